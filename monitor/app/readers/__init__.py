"""The read side over Kafka: partitions that are followed, and never written."""

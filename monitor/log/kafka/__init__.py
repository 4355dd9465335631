"""Events in the partitions of a Kafka topic."""

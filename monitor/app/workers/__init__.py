"""The write side over Kafka: partitions that are folded, committed and relayed."""

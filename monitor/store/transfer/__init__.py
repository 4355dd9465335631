"""Move a state between servers, and to another number of partitions."""

"""Which partition a benchmark belongs to."""

from functools import lru_cache

from aiokafka.partitioner import murmur2


@lru_cache(maxsize=1 << 16)
def owner(benchmark: str, partitions: int) -> int:
    """Return the partition that producers choose for the key `benchmark`.

    The Java client and aiokafka do so by default (murmur2); librdkafka does with ``partitioner=murmur2_random``.

    Parameters
    ----------
    benchmark
        The key, as UTF-8.
    partitions
        How many the topic has, at least 1.

    Examples
    --------
    >>> owner("mmlu-pro", 1)
    0
    """
    return int(murmur2(benchmark.encode()) & 0x7FFFFFFF) % partitions

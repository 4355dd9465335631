"""Which partition owns a benchmark."""

from functools import lru_cache
from typing import Final

_MASK: Final = 0xFFFFFFFF
_MULTIPLIER: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C


def murmur2(data: bytes) -> int:
    """Hash bytes as the default partitioner of the Java client does (`org.apache.kafka.common.utils.Utils.murmur2`).

    Returns
    -------
    int
        32 bits, from 0; Java prints the same bits with a sign.

    Examples
    --------
    >>> murmur2(b"foobar") - (1 << 32)
    -790332482
    """
    hashed = _SEED ^ len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        part = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _MASK
        part = (part ^ part >> 24) * _MULTIPLIER & _MASK
        hashed = hashed * _MULTIPLIER & _MASK ^ part
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    return hashed ^ hashed >> 15


@lru_cache(maxsize=1 << 16)
def owner(benchmark: str, partitions: int) -> int:
    """Return the partition on which all events of a benchmark belong.

    It is where the Java client and aiokafka put a message with the benchmark as its key, unless told otherwise; librdkafka does so with
    ``partitioner=murmur2_random``.

    Parameters
    ----------
    benchmark : str
        The key is its UTF-8.
    partitions : int
        How many partitions the topic has, at least 1.

    Examples
    --------
    >>> [owner(name, 4) for name in ("mmlu-pro", "gsm8k", "gpqa")]
    [2, 3, 2]
    """
    return (murmur2(benchmark.encode()) & 0x7FFFFFFF) % partitions

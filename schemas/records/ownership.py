"""The partition that owns a benchmark."""

from functools import lru_cache
from typing import Final

_MASK: Final = 0xFFFFFFFF
_MULTIPLIER: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C


def murmur2(data: bytes) -> int:
    """Hash bytes to 32 bits, from 0, as the Java client's default partitioner does (`org.apache.kafka.common.utils.Utils.murmur2`).

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
    """Return the partition that owns all events of a benchmark.

    The Java client and aiokafka choose the same partition for a message whose key is the name in UTF-8; librdkafka does so with
    ``partitioner=murmur2_random``.

    >>> [owner(name, 4) for name in ("mmlu-pro", "gsm8k", "gpqa")]
    [2, 3, 2]
    """
    return (murmur2(benchmark.encode()) & 0x7FFFFFFF) % partitions

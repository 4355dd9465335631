"""Digests for the keys of the store: names from outside never enter a key."""

from hashlib import blake2b


def benchmark_key(name: str) -> str:
    """Return the 32 hexadecimal digits (BLAKE2b-128) that identify a benchmark in keys.

    >>> len(benchmark_key("mmlu-pro"))
    32
    """
    return blake2b(name.encode("utf-8"), digest_size=16).hexdigest()


def record_digest(record: bytes) -> str:
    """Return the 32 hexadecimal digits (BLAKE2b-128) that identify a record."""
    return blake2b(record, digest_size=16).hexdigest()

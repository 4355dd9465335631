"""Names from outside never enter a key of the store: their digests do."""

from hashlib import blake2b


def benchmark_key(name: str) -> str:
    """Return the 32 hexadecimal digits (BLAKE2b-128) that stand for a benchmark in keys.

    Examples
    --------
    >>> len(benchmark_key("mmlu-pro"))
    32
    """
    return blake2b(name.encode("utf-8"), digest_size=16).hexdigest()


def record_digest(record: bytes) -> str:
    """Return the 32 hexadecimal digits (BLAKE2b-128) by which a record is known again."""
    return blake2b(record, digest_size=16).hexdigest()

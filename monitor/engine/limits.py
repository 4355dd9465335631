"""Limits of a partition: names from outside must not exhaust a worker."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Most names that a partition, or a benchmark of it, accepts; an event beyond a limit becomes a dead letter that names it."""

    benchmarks: int = 10_000
    contestants: int = 5_000  # pair state grows with the square
    rows: int = 10_000_000  # their names are one string in the store, of at most 512 MB
    values: int = 1_000_001  # every millionth from 0 to 1

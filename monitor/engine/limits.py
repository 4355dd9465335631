"""Limits of a partition: names from outside must not exhaust a worker."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Most names that a partition accepts; an event beyond a limit becomes a dead letter that names it.

    Attributes
    ----------
    benchmarks : int
        Benchmarks in a partition.
    contestants : int
        Models (with their epochs) in a benchmark; pair state grows with its square.
    rows : int
        Items (times repeats) in a benchmark; their names are one string in the store, of at most 512 MB.
    values : int
        Distinct scores in a benchmark, in millionths.
    """

    benchmarks: int = 10_000
    contestants: int = 5_000
    rows: int = 10_000_000
    values: int = 1_000_001

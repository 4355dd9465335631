"""How much one partition takes in before it says no: names from outside must not exhaust a worker."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of a partition; an event beyond one is a dead letter that names it.

    Attributes
    ----------
    benchmarks : int
        Benchmarks in a partition.
    contestants : int
        Models (with their epochs) in a benchmark; pair state grows with its square.
    rows : int
        Items (times repeats) in a benchmark; their names are one string of the store, which holds 512 MB.
    values : int
        Different scores in a benchmark, in millionths.
    """

    benchmarks: int = 10_000
    contestants: int = 5_000
    rows: int = 10_000_000
    values: int = 1_000_001

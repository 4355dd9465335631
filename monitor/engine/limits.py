"""Limits of a partition: names from outside must not exhaust a worker. docs/how-to/operate.md has them with the memory that they bound."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from monitor.engine.state.delta import Refusal
from monitor.engine.state.pairs import pair_count
from schemas.decode import Fault
from schemas.text import shorten

SNAPSHOT_PAIRS: Final = 2_000_000
"""Most pairs of a benchmark whose sums are saved for a restart; those of a larger one are computed again from its scores."""


class Usage(NamedTuple):
    """What benchmarks take of the budgets of a partition."""

    rows: int = 0
    cells: int = 0
    pairs: int = 0

    @classmethod
    def sized(cls, rows: int, contestants: int) -> "Usage":
        """Return what so many rows and contestants take.

        Examples
        --------
        >>> Usage.sized(10, 4)
        Usage(rows=10, cells=40, pairs=6)
        """
        return cls(rows, rows * contestants, pair_count(contestants))

    def plus(self, other: "Usage", sign: int = 1) -> "Usage":
        """Return the sum, or with sign -1 the difference."""
        return Usage(*(x + sign * y for x, y in zip(self, other, strict=True)))


NOTHING: Final = Usage()
BUDGET: Final = Usage(rows=10_000_000, cells=1_000_000_000, pairs=50_000_000)
"""What the benchmarks of a partition may take together: 3.0, 1.1 and 1.1 to 1.9 GB of a worker's memory."""


@dataclass(frozen=True)
class Limits:
    """Most that a partition, or a benchmark of it, accepts; an event beyond a limit becomes a dead letter that names it."""

    benchmarks: int = 10_000
    contestants: int = 5_000  # pair state grows with the square
    rows: int = 9_000_000  # sums of so many scores fit 63 bits, and their names one string of the store, at most 512 MB
    values: int = 9_000_000  # a row may have a score of its own
    budget: Usage = BUDGET
    """For all benchmarks of the partition together."""
    others: Usage = NOTHING
    """What the other benchmarks take of it."""


def exceeds(usage: Usage, budget: Usage) -> bool:
    """Return whether any part of a usage exceeds its budget."""
    return any(taken > most for taken, most in zip(usage, budget, strict=True))


def budget_fault(
    benchmark: str, field: str, value: object, limits: Limits, rows: int, contestants: int
) -> Fault | None:
    """Return why a benchmark cannot get so many rows and contestants next to the other benchmarks, or None."""
    total = limits.others.plus(Usage.sized(rows, contestants))
    nouns = "items", "cells (items x models)", "pairs of models"
    for noun, taken, most in zip(nouns, total, limits.budget, strict=True):
        if taken > most:
            reason = (
                f"{shorten(value)} would take the benchmarks of this partition to {taken:,} {noun}, and its budget is {most:,}; send fewer "
                "models or items, or spread the benchmarks over more partitions"
            )
            return Refusal(field, shorten(value), reason, benchmark)
    return None


def benchmark_fault(name: str, count: int, limits: Limits) -> Fault | None:
    """Return why a benchmark cannot begin next to `count` others, or None."""
    if count < limits.benchmarks:
        return None
    reason = f"{shorten(name)} is beyond the limit of {limits.benchmarks:,} benchmarks; send fewer benchmarks"
    return Refusal("benchmark", shorten(name), reason)

"""Limits of a partition: names from outside must not exhaust a worker; see docs/how-to/size-the-service.md."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from schemas.records.names import name_fault
from schemas.records.text import Fault, Refusal, shorten
from stats.numerics.pairs import pair_count

SNAPSHOT_PAIRS: Final = 2_000_000
"""Most pairs of a benchmark whose sums are saved for a restart; those of a larger one are computed again from its scores."""


VOTE_CELLS: Final = 150  # cells of a score matrix that take as much memory as one vote of a battle


class Usage(NamedTuple):
    """What benchmarks take of the budgets of a partition."""

    rows: int = 0
    cells: int = 0
    pairs: int = 0

    @classmethod
    def sized(cls, rows: int, contestants: int) -> "Usage":
        """Return what so many rows and contestants take.

        >>> Usage.sized(10, 4)
        Usage(rows=10, cells=40, pairs=6)
        """
        return cls(rows, rows * contestants, pair_count(contestants))

    @classmethod
    def of_battles(cls, prompts: int, votes: int, contestants: int) -> "Usage":
        """Return what the battles of a benchmark take: there is no cell, and a vote takes the memory of many."""
        return cls(prompts, votes * VOTE_CELLS, pair_count(contestants))

    def plus(self, other: "Usage", sign: int = 1) -> "Usage":
        """Return the sum, or with sign -1 the difference."""
        return Usage(self.rows + sign * other.rows, self.cells + sign * other.cells, self.pairs + sign * other.pairs)


NOTHING: Final = Usage()
BUDGET: Final = Usage(rows=10_000_000, cells=1_000_000_000, pairs=50_000_000)
"""What the benchmarks of a partition may take together: 2.1, 1.1 and 1.1 to 1.9 GB of a worker's memory."""


@dataclass(frozen=True)
class Limits:
    """Most that a partition, or a benchmark of it, accepts; an event beyond a limit becomes a dead letter that names it."""

    benchmarks: int = 10_000
    contestants: int = 5_000  # pair state grows with the square
    rows: int = 9_000_000  # sums of so many scores fit 63 bits, and their names one string of the store, at most 512 MB
    values: int = 9_000_000  # a row may have a score of its own
    budget: Usage = BUDGET  # for all benchmarks of the partition together
    others: Usage = NOTHING  # what the other benchmarks take of it


def exceeds(usage: Usage, budget: Usage) -> bool:
    """Return whether any part of a usage exceeds its budget."""
    return usage.rows > budget.rows or usage.cells > budget.cells or usage.pairs > budget.pairs


def budget_fault(
    benchmark: str, field: str, value: object, limits: Limits, rows: int, contestants: int
) -> Fault | None:
    """Return why a benchmark cannot get so many rows and contestants next to the other benchmarks, or None."""
    return usage_fault(benchmark, field, value, limits, Usage.sized(rows, contestants))


def usage_fault(benchmark: str, field: str, value: object, limits: Limits, usage: Usage) -> Fault | None:
    """Return why a benchmark cannot take so much next to the other benchmarks, or None."""
    total = limits.others.plus(usage)
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


def bad_name(benchmark: str, field: str, name: str | None) -> Fault | None:
    """Return what is wrong with a name that is new, or None."""
    reason = None if name is None else name_fault(name)
    if reason is None:
        return None
    return Fault(field, shorten(name), f"the name {reason}; use 1 to 200 printable characters", benchmark)


def limit_fault(benchmark: str, field: str, value: object, count: int, most: int) -> Fault | None:
    """Return why a benchmark gets nothing more of a kind, or None."""
    if count < most:
        return None
    nouns = {"item_id": "items", "model": "models", "score": "different scores", "cluster": "judges", "winner": "votes"}
    noun = nouns[field]
    reason = f"{shorten(value)} is beyond the limit of {most:,} {noun} a benchmark; send fewer {noun}"
    return Refusal(field, shorten(value), reason, benchmark)


def model_fault(benchmark: str, model: str, limits: Limits, count: int) -> Fault | None:
    """Return why a new model is refused next to `count` others, by its name or their number."""
    return bad_name(benchmark, "model", model) or limit_fault(benchmark, "model", model, count, limits.contestants)

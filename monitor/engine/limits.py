"""Limits of a partition: names from outside must not exhaust a worker."""

from dataclasses import dataclass

from monitor.engine.state.delta import Refusal
from schemas.decode import Fault
from schemas.text import shorten


@dataclass(frozen=True)
class Limits:
    """Most names that a partition, or a benchmark of it, accepts; an event beyond a limit becomes a dead letter that names it."""

    benchmarks: int = 10_000
    contestants: int = 5_000  # pair state grows with the square
    rows: int = 9_000_000  # sums of so many scores fit 63 bits, and their names one string of the store, at most 512 MB
    values: int = 9_000_000  # a row may have a score of its own


def benchmark_fault(name: str, count: int, limits: Limits) -> Fault | None:
    """Return why a benchmark cannot begin next to `count` others, or None."""
    if count < limits.benchmarks:
        return None
    reason = f"{shorten(name)} is beyond the limit of {limits.benchmarks:,} benchmarks; send fewer benchmarks"
    return Refusal("benchmark", shorten(name), reason)

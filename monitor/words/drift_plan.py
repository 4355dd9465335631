"""The plan of a sentinel in words."""

from collections.abc import Iterator

from monitor.words.counts import counted
from schemas.records.text import shorten
from schemas.results.drift import DriftPlan, PlannedDrop, PlannedWatch


def noise(plan: DriftPlan) -> str:
    """Return how much scores vary between runs, and where that is known from."""
    share = f"Between two runs {200 * plan.variance:.0f} % of the items differ"
    if plan.benchmark is None or plan.model is None:
        return f"{share} (--flips)."
    shared = f"; whole runs move by {100 * plan.shocks:.1f} points more than their items explain" if plan.shocks else ""
    return f"{share}, as in the runs of {shorten(plan.model)} on {shorten(plan.benchmark)}{shared}."


def drop(score: float) -> str:
    """Return a drop as the head of a column."""
    return f"{100 * score:g} points"


def found(watch: PlannedWatch, of: PlannedDrop) -> str:
    """Return how soon a drop is found."""
    if watch.history < of.least_history:
        return "never"
    return f"over {of.horizon}" if of.median is None else f"{of.median:.0f}"


def unfound(plan: DriftPlan) -> Iterator[str]:
    """Yield, for each watch, the largest drop that it will not find, and the history that it takes."""
    for watch in plan.watches:
        never = [each for each in watch.drops if watch.history < each.least_history]
        if never:
            largest = max(never, key=lambda each: each.drop)
            yield (
                f"With {counted(watch.history, 'run')} of history a drop of {drop(largest.drop)} will not be found at "
                f"{counted(watch.items, 'item')}: that takes at least {counted(largest.least_history, 'run')} before it."
            )


def bound(plan: DriftPlan) -> str:
    """Return how often a false alarm is expected, and what the columns mean."""
    return (
        f"Runs until half of such lasting drops are found, simulated. At most one false alarm is expected in "
        f"{plan.false_alarm_runs:,.0f} runs."
    )

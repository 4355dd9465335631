"""Items of a benchmark that an undeclared repeat holds: each is the mean of all its repeats, computed from the rows."""

from typing import Any, Final, NamedTuple

from monitor.view.board import BoardView
from schemas.records.scores import ABSENT, SCORE_UNIT, SKIPPED
from schemas.results.report import RepeatsReport

_ONE_EACH: Final = RepeatsReport(min=1, mean=1.0, max=1)


class RepeatCounts(NamedTuple):
    """Scored repeats an item, over the items that have any."""

    least: int
    mean: float
    most: int


def repeats_of(benchmark: BoardView, contestants: Any) -> RepeatCounts | None:  # noqa: ANN401 - an index of any kind
    """Return how many scored repeats the items of some contestants have; None without a score."""
    if benchmark.battles is not None:
        votes = benchmark.battles.counts
        return RepeatCounts(int(votes.min()), float(votes.mean()), int(votes.max())) if votes.size else None
    if benchmark.repeats is None:
        return RepeatCounts(1, 1.0, 1) if benchmark.scored[contestants].sum() else None
    repeats = benchmark.repeats if benchmark.repeats.members is None else benchmark.repeats.members
    count = repeats.count[: len(repeats.keys), contestants]
    count = count[count > 0]
    return RepeatCounts(int(count.min()), float(count.mean()), int(count.max())) if count.size else None


def scores_by_item(benchmark: BoardView, model: str) -> dict[str, float | None]:
    """Return the score of each item that the newest epoch of a model has, the mean of its repeats; None for a skipped one."""
    view = benchmark.described()
    contestant = view.newest(model)
    codes, values = view.item_codes()[:, contestant], view.item_values
    return {
        key.item: None if code == SKIPPED else float(values[code]) / SCORE_UNIT
        for key, code in zip(view.item_keys, codes.tolist(), strict=True)
        if code != ABSENT
    }


def has_repeats(benchmark: BoardView) -> bool:
    """Return whether a score is, or may be, the mean of several repeats."""
    counts = repeats_of(benchmark.described(), slice(None, len(benchmark.contestants)))
    return benchmark.spec.repeats != 1 or (counts is not None and counts.most > 1)


def repeats_report(benchmark: BoardView, contestant: int) -> RepeatsReport | None:
    """Report how many scored repeats the items of a model have; None for battles, whose votes are of pairs."""
    if benchmark.battles is not None:
        return None
    if benchmark.repeats is None:
        return _ONE_EACH if benchmark.scored[contestant] else None
    counts = repeats_of(benchmark, contestant)
    return None if counts is None else RepeatsReport(min=counts.least, mean=counts.mean, max=counts.most)

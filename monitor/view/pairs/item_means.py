"""Items of a benchmark that an undeclared repeat holds: each is the mean of all its repeats, computed from the rows."""

from copy import copy
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.repeats import Repeats
from monitor.engine.state.restore import sums_of_items
from schemas.records.scores import ABSENT, ONE, SCORE_UNIT, SKIPPED
from schemas.results.report import RepeatsReport

_views: WeakKeyDictionary[Benchmark, tuple[tuple[int, int], Benchmark]] = WeakKeyDictionary()


_ONE_EACH: Final = RepeatsReport(min=1, mean=1.0, max=1)


class RepeatCounts(NamedTuple):
    """Scored repeats an item, over the items that have any."""

    least: int
    mean: float
    most: int


def described(benchmark: Benchmark) -> Benchmark:
    """Return a benchmark for its figures: itself, or a view whose items or prompts are means if an undeclared repeat holds it."""
    if not benchmark.undeclared:
        return benchmark
    version = benchmark.off, benchmark.counters["events"]
    known = _views.get(benchmark)
    if known is not None and known[0] == version:
        return known[1]
    view = _all_votes(benchmark) if benchmark.battles is not None else _all_repeats(benchmark)
    _views[benchmark] = version, view
    return view


def _all_votes(benchmark: Benchmark) -> Benchmark:
    """Return a view whose units are the means of all votes."""
    view = copy(benchmark)
    view.spec = benchmark.spec.model_copy(update={"repeats": "all"})
    view.ended = set(range(len(benchmark.contestants)))
    for name in ("n", "b", "c", "scored", "total"):
        setattr(view, name, np.zeros_like(getattr(benchmark, name)))
    view.graded_pairs = None
    view.add_units(view.betting_units())
    return view


def _all_repeats(benchmark: Benchmark) -> Benchmark:
    view = copy(benchmark)
    view.repeats = Repeats(None, units=benchmark.spec.units)
    for key in benchmark.rows:
        view.repeats.add_row(key)
    view.repeats.rebuild(benchmark.matrix(), benchmark.table.by_code, np.ones(len(benchmark.contestants), bool))
    view.mixed = not view.graded and bool((view.item_codes() > ONE).any())
    for name, values in sums_of_items(view).items():
        setattr(view, name, values)
    return view


def repeats_of(benchmark: Benchmark, contestants: Any) -> RepeatCounts | None:  # noqa: ANN401 - an index of any kind
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


def scores_by_item(benchmark: Benchmark, model: str) -> dict[str, float | None]:
    """Return the score of each item that the newest epoch of a model has, the mean of its repeats; None for a skipped one."""
    view = described(benchmark)
    contestant = view.epoch_contestant_of[model, view.latest_epoch[model]]
    codes, values = view.item_codes()[:, contestant], view.item_values
    return {
        key.item: None if code == SKIPPED else float(values[code]) / SCORE_UNIT
        for key, code in zip(view.item_keys, codes.tolist(), strict=True)
        if code != ABSENT
    }


def has_repeats(benchmark: Benchmark) -> bool:
    """Return whether a score is, or may be, the mean of several repeats."""
    counts = repeats_of(described(benchmark), slice(None, len(benchmark.contestants)))
    return benchmark.spec.repeats != 1 or (counts is not None and counts.most > 1)


def repeats_report(benchmark: Benchmark, contestant: int) -> RepeatsReport | None:
    """Report how many scored repeats the items of a model have; None for battles, whose votes are of pairs."""
    if benchmark.battles is not None:
        return None
    if benchmark.repeats is None:
        return _ONE_EACH if benchmark.scored[contestant] else None
    counts = repeats_of(benchmark, contestant)
    return None if counts is None else RepeatsReport(min=counts.least, mean=counts.mean, max=counts.most)

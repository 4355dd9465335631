"""Make boards of the state; call it while the state does not change."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.engine.kinds.repeats import Repeats
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.committed import Committed
from monitor.engine.state.graded import WeightedPairs
from monitor.view.board import (
    BattleFacts,
    BoardView,
    Cells,
    GradedSums,
    ItemScores,
    Latch,
    PairSums,
    Prefixes,
    of_scores,
)
from monitor.view.drift import report_of
from monitor.view.kinds.battles import kind_of
from schemas.records.scores import ONE, SCORE_UNIT
from schemas.results.changes import Claim
from stats.numerics.pairs import pair_members


def board_view(benchmark: Benchmark) -> BoardView:
    """Return a benchmark as it is now."""
    view = _board_view(benchmark)
    if not view.undeclared:
        return view
    return replace(view, means=cache(lambda: _of_votes(view) if view.battles is not None else _of_repeats(view)))


def _board_view(benchmark: Benchmark) -> BoardView:
    size, pairs = len(benchmark.contestants), benchmark.pairs
    votes, committed = benchmark.battles, benchmark.committed
    return BoardView(
        origin=benchmark,
        version=state_version(benchmark),
        name=benchmark.name,
        key=benchmark.key,
        off=benchmark.off,
        spec=benchmark.spec,
        kind_of=kind_of,
        declared=benchmark.declared,
        generation=benchmark.generation,
        seed=benchmark.seed,
        board=benchmark.board,
        quarantine=benchmark.quarantine,
        gaps=benchmark.gaps,
        contestants=list(benchmark.contestants),
        epochs={model: list(places) for model, places in benchmark.epochs.items()},
        latest_epoch=dict(benchmark.latest_epoch),
        epoch_contestant_of=dict(benchmark.epoch_contestant_of),
        superseded=list(benchmark.superseded),
        ended=frozenset(benchmark.ended),
        assumed_ended=frozenset(benchmark.assumed_ended),
        items=benchmark.items,
        rows=len(benchmark.rows),
        met=benchmark.met,
        counters=dict(benchmark.counters),
        change_counts=benchmark.change_counts.copy(),
        drift=None if benchmark.sentinel is None else cache(partial(report_of, benchmark.sentinel)),
        changes=benchmark.changes,
        reading=benchmark.reading,
        unread=benchmark.unread,
        incomplete=benchmark.incomplete,
        complete_files=benchmark.complete_files,
        found_units=bool(benchmark.found_units.of_item),
        finding=benchmark.finding,
        too_many_items=benchmark.too_many_items,
        exceeded=benchmark.exceeded,
        undeclared=benchmark.undeclared,
        mixed=benchmark.mixed,
        unknown_units=benchmark.unknown_units,
        has_choice=benchmark.has_choice,
        scored=benchmark.scored[:size].copy(),
        skipped=benchmark.skipped[:size].copy(),
        total=benchmark.total[:size].copy(),
        conflicts=benchmark.conflicts.listed,
        again=lambda: benchmark.conflicts.by_contestant(size),
        sums=lambda: PairSums(*(_fixed(getattr(benchmark, name)[:pairs]) for name in ("n", "b", "c"))),
        family_index=lambda: _fixed(benchmark.family_index[:pairs]),
        claims={claim: _latch(benchmark, claim) for claim in benchmark.claims},
        graded_sums=None if benchmark.graded_pairs is None else lambda: _graded(benchmark),
        settling=benchmark.settling,
        weighting=copy(benchmark.weighting),
        committed=None if committed is None else _prefixes(committed),
        battles=BattleFacts(_fixed(votes.votes), votes.judges, votes.counts.copy())
        if benchmark.holds_battles
        else None,
        by_item=benchmark.by_item,
        row_keys=benchmark.rows,
        cells=lambda: Cells(_fixed(benchmark.matrix()), _fixed(benchmark.table.by_code)),
        scores=lambda: ItemScores(_fixed(benchmark.item_codes()), _fixed(benchmark.item_values), benchmark.item_keys),
    )


def current_view(benchmark: Benchmark) -> BoardView:
    """Return a benchmark as it is now; it keeps the view until it changes."""
    known = benchmark.reading_side
    if not isinstance(known, BoardView) or known.version != state_version(benchmark):
        known = benchmark.reading_side = board_view(benchmark)
    return known


def state_version(benchmark: Benchmark) -> tuple[object, ...]:
    """Return what differs whenever a benchmark has changed since it was loaded."""
    state = benchmark.off, benchmark.revision, *benchmark.counters.values()
    return (
        *state,
        benchmark.spec,
        benchmark.board,
        benchmark.quarantine,
        len(benchmark.gaps),
        len(benchmark.ended),
        benchmark.incomplete,
    )


def _latch(benchmark: Benchmark, claim: Claim) -> Callable[[], Latch]:
    def read() -> Latch:
        state, pairs = benchmark.claims[claim], benchmark.pairs
        return Latch(_fixed(state.side[:pairs]), _fixed(state.peak[:pairs]), state.open_weight)

    return read


def _graded(benchmark: Benchmark) -> GradedSums:
    sums, pairs = benchmark.graded_pairs, benchmark.pairs
    assert sums is not None
    shared = _fixed(sums.shared[:pairs]) if isinstance(sums, WeightedPairs) else None
    return GradedSums(_fixed(sums.capital[:pairs]), _fixed(sums.lead[:pairs]), shared)


def _prefixes(committed: Committed) -> Prefixes:
    sums = {name: _fixed(values) for name, values in committed.sums.items()}
    return Prefixes(committed.size, committed.reached.copy(), _fixed(committed.item_at), committed.ids, sums)


def _of_votes(view: BoardView) -> BoardView:
    """Return a view whose units are the means of all votes."""
    assert view.battles is not None
    size = len(view.contestants)
    units = view.battles.units()
    n, b, c = (
        np.bincount(units.pair[some], minlength=view.pairs).astype(np.int32)
        for some in (slice(None), units.difference > 0, units.difference < 0)
    )
    members, points = np.concatenate(pair_members(units.pair)), (SCORE_UNIT + units.difference) // 2
    total = np.zeros(size, np.int64)
    np.add.at(total, members, np.concatenate([points, SCORE_UNIT - points]))
    return replace(
        view,
        spec=view.spec.model_copy(update={"repeats": "all"}),
        ended=frozenset(range(size)),
        scored=np.bincount(members, minlength=size).astype(np.int64),
        total=total,
        sums=lambda: PairSums(n, b, c),
        graded_sums=None,
    )


def _of_repeats(view: BoardView) -> BoardView:
    cells, contestants = view.cells(), len(view.contestants)
    repeats = Repeats(None, units=view.spec.units)
    for key in view.row_keys:
        repeats.add_row(key)
    repeats.rebuild(cells.codes, cells.values, np.ones(contestants, bool))
    scores = ItemScores(repeats.codes, repeats.table.by_code, repeats.keys)
    return replace(
        view, by_item=repeats, mixed=not view.graded and bool((scores.codes > ONE).any()), **of_scores(scores)
    )


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array through which nothing is written."""
    fixed = array.view()
    fixed.flags.writeable = False
    return np.asarray(fixed)

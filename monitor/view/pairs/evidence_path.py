"""The e-process of a pair along its shared items, with its interval, recomputed from the rows; and the data of charts."""

from dataclasses import dataclass
from math import log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.committed import prefix_log_e
from monitor.engine.state.codes import Codes
from monitor.engine.state.committed import item_steps
from monitor.view.board import BoardView
from monitor.view.pairs.counts import Floats
from monitor.view.pairs.table import PairTable
from monitor.view.pairs.weights import WeightedScores, weighting_of
from schemas.records.scores import SCORE_UNIT, ZERO
from stats.evidence.eprocess import log_e_halves
from stats.evidence.graded import graded_log_e, graded_log_e_halves, initial_capital, log_increments
from stats.intervals.completion_gap import completion_interval
from stats.intervals.confidence import gap_interval
from stats.numerics.pairs import Index, pair_index

AS_STORED: Final = "as first seen"
"""The order of a path that may differ from the order of arrival, so the path need not cross where the latch closed."""

COMMITTED: Final = "committed: the order that the seed fixes, up to the first item that either model lacks"
"""The order of a path under policy committed, which is the order of the latch: the path crosses where the latch closed."""

COMMITTED_SHARED: Final = "committed: the order that the seed fixes, of the items that both models have"
"""The same once both runs have ended and missing items are ignored: the pair is judged at the end of this path."""


class PairPath(NamedTuple):
    """The path of a pair, shape (points,) each. Graded scores have no interval; ln e is None if they were not declared."""

    order: str
    n: Index
    gap: Floats
    log_e: Floats | None
    log_e_a: Floats | None
    log_e_b: Floats | None
    gap_low: Floats | None
    gap_high: Floats | None
    log_threshold: float
    log_family_threshold: float


def pair_path(benchmark: BoardView, one: int, other: int, points: int, last: int = 0) -> PairPath:
    """Compute the path of a pair, and of its last items each one."""
    benchmark = benchmark.described()
    table = PairTable(benchmark, superseded=(np.array([one]), np.array([other])))
    along = _walk(benchmark, one, other, points, ignoring=bool(table.ignored[0]), last=last)
    n, kept = along.kept, along.kept - 1
    spec = benchmark.spec
    pair = pair_index(np.array([min(one, other)]), np.array([max(one, other)]))
    family = float(benchmark.family_thresholds(pair)[0])
    if not benchmark.binary:
        values = benchmark.item_values
        d = values[along.x] - values[along.y]
        weighting = weighting_of(benchmark)
        if weighting is not None:
            d = weighting.weigh(d[None], along.items)[0]
        scale = 1.0 if weighting is None else WeightedScores(benchmark, weighting).item_scale
        gap = scale * np.cumsum(d)[kept] / (SCORE_UNIT * n)
        e: tuple[Floats | None, Floats | None, Floats | None] = (None, None, None)
        if benchmark.graded and benchmark.suite is None:  # the members follow one another, so their order is no path
            e = _graded_evidence(d / SCORE_UNIT, n)
        return PairPath(along.order, n, gap, e[0], e[1], e[2], None, None, -log(spec.alpha), family)
    b, c, c_worst, b_best = along.counts()
    for_one = log_e_halves(b, c_worst, spec.mixture)[0]
    for_other = log_e_halves(b_best, c, spec.mixture)[1]
    if spec.order.policy == "completion":
        # The items that come later on the path are missing at this point of it.
        assert table.counted_missing is not None
        items = int(table.n[0] + table.counted_missing[0])
        low, high = completion_interval(items, b, c, items - n, spec.alpha)
    else:
        low, high = gap_interval(n, b, c_worst, spec.alpha, spec.mixture)
    if (b_best != b).any() or (c_worst != c).any():
        high = gap_interval(n, b_best, c, spec.alpha, spec.mixture)[1]
    log_e = prefix_log_e(b, c, c_worst, b_best, spec.mixture)
    return PairPath(along.order, n, (b - c) / n, log_e, for_one, for_other, low, high, -log(spec.alpha), family)


class _Walk(NamedTuple):
    """The items of a path: codes of both contestants in order, and the number of items at each point kept."""

    order: str
    x: Codes
    y: Codes
    kept: Index
    items: Index

    def counts(self) -> tuple[Index, Index, Index, Index]:
        """Return b, c, c_worst and b_best (see `monitor.engine.state.committed`) at the points kept."""
        steps = item_steps(self.x, self.y)
        b, c, c_worst, b_best = (
            np.cumsum(steps[name], dtype=np.int64)[self.kept - 1] for name in ("b", "c", "c_worst", "b_best")
        )
        return b, c, c_worst, b_best


def _walk(benchmark: BoardView, one: int, other: int, points: int, *, ignoring: bool, last: int = 0) -> _Walk:
    """Return the items of a pair in order; `ignoring`: whether its runs have ended, and what is missing is ignored."""
    committed, codes = benchmark.committed if benchmark.binary or benchmark.graded else None, benchmark.item_codes()
    if committed is not None and not ignoring:
        order, items = COMMITTED, committed.items(one, other)
    else:
        order, items = AS_STORED, np.arange(len(codes))
        if committed is not None:
            order, items = COMMITTED_SHARED, committed.item_at[committed.item_at >= 0]
        items = items[(codes[items][:, [one, other]] >= ZERO).all(axis=1)]
    x, y = codes[items][:, [one, other]].T
    even = np.linspace(1, x.size, min(points, x.size)).round().astype(np.int64)
    kept = np.unique(np.concatenate([even, np.arange(max(x.size - last, 0), x.size) + 1]))
    return _Walk(order, x, y, kept, items)


def _graded_evidence(differences: Floats, kept: Index) -> tuple[Floats, Floats, Floats]:
    """Return ln e and its halves at the points kept of a path of graded scores."""
    distinct, index = np.unique(differences, return_inverse=True)
    steps = log_increments(distinct)
    capital = initial_capital((kept.size,))
    current, start = capital[0].copy(), 0
    for k, stop in enumerate(kept.tolist()):
        counts = np.bincount(index[start:stop], minlength=distinct.size)
        current += np.tensordot(counts, steps, axes=1)
        capital[k], start = current, stop
    return graded_log_e(capital), *graded_log_e_halves(capital)


# --- charts -----------------------------------------------------------------------------------------------------------------------------

POINTS: Final = 160  # points of a curve, at most: more cannot be seen


@dataclass(frozen=True)
class EvidenceCurve:
    """Values of ln e of a pair after n shared items."""

    n: NDArray[np.int64]
    log_e: Floats


@dataclass(frozen=True)
class PairChart:
    """The chart of one adjacent pair, and N* with its uncertainty."""

    curve: EvidenceCurve
    log_threshold: float  # ln 1/alpha_j of the pair; infinite for a pair without a place in the family
    anytime_required_n: float
    required_n_low: float
    required_n_high: float


@dataclass(frozen=True)
class ChartData:
    """The charts of one benchmark."""

    matrix: NDArray[np.int8]
    """Family-wise decisions by rank, shape (models, models): +1 where the row's model is better, -1 where the column's is."""
    pairs: list[PairChart | None]
    """Charts of the adjacent pairs, by rank; None for a pair without 0/1 scores on shared items."""
    skipped: list[int]  # items without a score of each model, by rank


def chart_data(table: PairTable) -> ChartData:
    """Compute the data of the charts; only formats with charts need it."""
    benchmark = table.benchmark
    sides = table.decided("anytime_family")
    at = np.flatnonzero(table.adjacent)
    with_curve = at[table.n[at] > 0] if benchmark.binary else at[:0]
    charts = dict(zip(with_curve.tolist(), _pair_charts(table, with_curve), strict=True))
    return ChartData(
        matrix=np.zeros((table.ranking.size,) * 2, np.int8) if sides is None else table.matrix(sides, -sides),
        pairs=[charts.get(q) for q in at.tolist()],
        skipped=benchmark.skipped[table.ranking].tolist(),
    )


def _pair_charts(table: PairTable, at: Index) -> list[PairChart]:
    if at.size == 0:
        return []
    # Only charts need the bootstrap.
    from stats.fixed_n.bootstrap import required_n_interval  # noqa: PLC0415

    spec = table.benchmark.spec
    low, high = required_n_interval(table.n[at], table.wins[at], table.losses[at], alpha=spec.alpha, power=spec.power)
    columns = (table.log_family_threshold(at), table.anytime_required_n(at), low, high)
    curves = (_curve(table, q) for q in at.tolist())
    return [PairChart(curve, *map(float, numbers)) for curve, *numbers in zip(curves, *columns, strict=True)]


def _curve(table: PairTable, q: int) -> EvidenceCurve:
    """Return the curve of a pair from no evidence on: along the committed order, else in first-seen order of the items.

    The order changes the path, not its endpoint.
    """
    walk = _walk(table.benchmark, int(table.a[q]), int(table.b[q]), POINTS, ignoring=bool(table.ignored[q]))
    log_e = prefix_log_e(*walk.counts(), table.benchmark.spec.mixture)
    return EvidenceCurve(np.concatenate([[0], walk.kept]), np.concatenate([[0.0], log_e]))

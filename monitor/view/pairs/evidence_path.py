"""The e-process of a pair along its shared items, with its interval, recomputed from the rows; and the data of charts."""

from itertools import pairwise
from math import log
from typing import Final, NamedTuple

import numpy as np

from monitor.view.board import BoardView, Floats
from monitor.view.kinds.binary import walk_counts
from monitor.view.kinds.kind import Walk
from monitor.view.pairs.table import PairTable
from monitor.view.values import ChartData, EvidenceCurve, PairChart
from schemas.records.scores import ZERO
from stats.evidence.eprocess import prefix_log_e
from stats.fixed_n.bootstrap import required_n_interval
from stats.numerics.pairs import Index

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
    stretches: list[tuple[str, int]] | None


def pair_path(benchmark: BoardView, one: int, other: int, points: int, last: int = 0) -> PairPath:
    """Compute the path of a pair, and of its last items each one."""
    benchmark = benchmark.described()
    table = PairTable(benchmark, superseded=(np.array([one]), np.array([other])))
    along = _walk(benchmark, one, other, points, ignoring=bool(table.pairs.ignored[0]), last=last)
    limits = np.array([-log(benchmark.spec.alpha), benchmark.family_thresholds(table.pairs.pair)[0]])
    alone, family = table.kind.log_e_threshold(limits).tolist()
    return PairPath(
        along.order, along.kept, *table.kind.course(along), alone, family, _stretches(benchmark, along.items)
    )


def _stretches(benchmark: BoardView, items: Index) -> list[tuple[str, int]] | None:
    """Return the categories as they follow each other along a path, each with its last item; None where they are mixed."""
    names = [benchmark.item_keys[k].cluster or "" for k in items.tolist()]
    ends = [k for k, (own, after) in enumerate(pairwise([*names, None]), 1) if own != after]
    return [(names[k - 1], k) for k in ends] if 1 < len(ends) <= 2 * len({*names}) else None


def _walk(benchmark: BoardView, one: int, other: int, points: int, *, ignoring: bool, last: int = 0) -> Walk:
    """Return the items of a pair in order; `ignoring`: whether its runs have ended, and what is missing is ignored."""
    committed, codes = benchmark.committed if benchmark.as_declared else None, benchmark.item_codes()
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
    return Walk(order, x, y, kept, items)


# --- charts -----------------------------------------------------------------------------------------------------------------------------

POINTS: Final = 160  # points of a curve, at most: more cannot be seen


def chart_data(table: PairTable) -> ChartData:
    """Compute the data of the charts; only formats with charts need it."""
    benchmark = table.benchmark
    sides = table.decided("anytime_family")
    at = np.flatnonzero(table.pairs.adjacent)
    shared = at[table.pairs.n[at] > 0]
    charts = dict(zip(shared.tolist(), _pair_charts(table, shared), strict=False))
    return ChartData(
        matrix=np.zeros((table.ranking.size,) * 2, np.int8) if sides is None else table.pairs.matrix(sides, -sides),
        pairs=[charts.get(q) for q in at.tolist()],
        skipped=benchmark.skipped[table.ranking].tolist(),
    )


def _pair_charts(table: PairTable, at: Index) -> list[PairChart]:
    """Return the charts of some pairs that share items; none for scores that are not 0 or 1."""
    anytime = table.kind.anytime_required_n(at)
    if anytime is None or at.size == 0:
        return []
    spec = table.benchmark.spec
    low, high = required_n_interval(
        table.pairs.n[at], table.pairs.wins[at], table.pairs.losses[at], alpha=spec.alpha, power=spec.power
    )
    columns = (table.kind.log_e_threshold(table.log_family_threshold(at)), anytime, low, high)
    curves = (_curve(table, q) for q in at.tolist())
    return [PairChart(curve, *map(float, numbers)) for curve, *numbers in zip(curves, *columns, strict=True)]


def _curve(table: PairTable, q: int) -> EvidenceCurve:
    """Return the curve of a pair from no evidence on: along the committed order, else in first-seen order of the items."""
    # The order changes the path, not its endpoint.
    walk = _walk(
        table.benchmark, int(table.pairs.a[q]), int(table.pairs.b[q]), POINTS, ignoring=bool(table.pairs.ignored[q])
    )
    log_e = prefix_log_e(*walk_counts(walk), table.benchmark.spec.mixture)
    return EvidenceCurve(np.concatenate([[0], walk.kept]), np.concatenate([[0.0], log_e]))

"""Evidence on some pairs that stays valid at every look: e-values, intervals of the gap, items until a decision."""

from typing import Final

import numpy as np

from monitor.view.pairs.counts import Flags, Floats
from monitor.view.pairs.evidence import Sides
from monitor.view.pairs.table import PairTable
from schemas.records.scores import SCORE_UNIT
from schemas.results.changes import PROCEDURES
from stats.evidence.curtailed import items_to_curtailed_decision, items_to_exact_decision
from stats.evidence.growth import expected_items_to_decision
from stats.families.stepwise import WHOLE
from stats.fixed_n.mcnemar import exact_p
from stats.intervals.completion_gap import completion_interval
from stats.intervals.confidence import gap_interval
from stats.numerics.pairs import Index

MOST_PAIRS: Final = 100_000
"""Pairs up to which intervals of graded scores are computed: each takes a pass over its items."""

_FOUND: Final = 0.8
"""Share of the tests that find a gap, wherever a surface names the items that it needs."""

_SLAB_CELLS: Final = 100_000
_GRID: Final = 60
"""Points a unit at which differences of graded scores count in an order-free interval."""
_NOTHING: Final = float(np.finfo(np.float64).tiny)

Bounds = tuple[Floats, Floats]


def evidence_columns(table: PairTable, at: Index) -> dict[str, Floats]:
    """Return the columns of the report that may be looked at while results come in, for some pairs; nan where there is no value.

    These are ``log_e``, ``log_e_a``, ``log_e_b``, ``gap_low``, ``gap_high``, ``gap_family_low``, ``gap_family_high`` (at alpha and at
    `family_alpha`) and ``items_to_decision``.
    """
    blank = np.full(at.size, np.nan)
    halves = table.log_e_halves(at) if table.bets else (blank, blank)
    columns = {
        "log_e": table.log_e[at] if table.bets else blank,
        "log_e_a": halves[0],
        "log_e_b": halves[1],
        "items_to_decision": _items_to_decision(table, at) if table.benchmark.binary else blank,
    }
    alpha = np.full(at.size, table.benchmark.spec.alpha)
    single, family = ((blank, blank),) * 2
    if table.bets:
        bounds = gap_bounds(table, at, alpha, family_alpha(table, at))
        # Decisions that no longer count (a trusted order that proved wrong) do not move an interval away from 0.
        decided = (table.decided(name) for name in PROCEDURES)
        sides = (np.zeros(at.size, np.int8) if each is None else each[at] for each in decided)
        single, family = (_agreeing(low, high, side) for (low, high), side in zip(bounds, sides, strict=True))
    columns |= {"gap_low": single[0], "gap_high": single[1], "gap_family_low": family[0], "gap_family_high": family[1]}
    return {name: np.where(table.n[at] > 0, values, np.nan) for name, values in columns.items()}


def family_alpha(table: PairTable, at: Index) -> Floats:
    """Return the level of the interval of some pairs in the family, their share of alpha; 0 for a pair without a place there.

    The threshold of a decision rises as others are made, to alpha at last; at that level the intervals of a board would not hold together.
    """
    return np.asarray(table.benchmark.spec.alpha * table.family_weights(at) / WHOLE)


def gap_bounds(table: PairTable, at: Index, *levels: Floats) -> list[Bounds]:
    """Return the anytime-valid bounds of the gap of some pairs at each level (one alpha a pair); nan where alpha is 0."""
    if table.completes:
        return _completion_bounds(table, at, *levels)
    if (
        table.benchmark.suite is not None
    ):  # along committed orders: the items of a prefix are not in the order of the rows
        return [(np.full(at.size, np.nan), np.full(at.size, np.nan)) for _ in levels]
    return _binary_bounds(table, at, *levels) if table.benchmark.binary else graded_bounds(table, at, *levels)


def _agreeing(low: Floats, high: Floats, side: Sides) -> Bounds:
    """Return bounds that leave out 0 exactly where a pair is decided.

    A decision stays valid while the present evidence falls, and so does an interval that ends at 0 (without it) on the decided side. Of an
    undecided pair the larger interval with 0 is valid too: its evidence may reach a threshold that fell only later.
    """
    low = np.where(side > 0, np.maximum(low, _NOTHING), np.where(side < 0, low, np.minimum(low, 0)))
    high = np.where(side < 0, np.minimum(high, -_NOTHING), np.where(side > 0, high, np.maximum(high, 0)))
    # The interval of a decision that the present evidence contradicts is empty.
    empty = low > high
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


def _completion_bounds(table: PairTable, at: Index, *levels: Floats) -> list[Bounds]:
    """Return the interval of complete benchmarks, missing items at their worst: it holds in any order of arrival."""
    missing = table.counted_missing
    assert missing is not None
    bounds = []
    for alpha in levels:
        low, high = np.full((2, at.size), np.nan)
        placed = np.flatnonzero((alpha > 0) & (table.n[at] > 0))
        some, rest = at[placed], missing[at[placed]]
        if table.benchmark.binary:
            counts = table.n[some] + rest, table.wins[some], table.losses[some], rest
            low[placed], high[placed] = completion_interval(*counts, alpha[placed])
        else:
            low[placed], high[placed] = _graded_completion(table, some, rest, alpha[placed])
        bounds.append((low, high))
    return bounds


def _graded_completion(table: PairTable, at: Index, missing: Index, alpha: Floats) -> Bounds:
    """Return the order-free interval of graded scores: each difference counts at the two grid points around it."""
    from stats.intervals.graded_interval import graded_completion_low  # noqa: PLC0415 - start-up: only graded scores need it

    low, high = np.full((2, at.size), np.nan)
    if max(at.size, table.listed) > MOST_PAIRS:
        return low, high
    x, scored = (np.ascontiguousarray(values.T) for values in table.scores)
    weighting, scale, most = (
        (None, 1.0, 1.0)
        if table.weighted is None
        else (table.weighted.weighting, table.weighted.item_scale, table.weighted.gap_scale)
    )
    grid = np.arange(-_GRID, _GRID + 1) / _GRID
    step = max(1, _SLAB_CELLS // max(1, x.shape[1]))
    for start in range(0, at.size, step):
        some = slice(start, start + step)
        a, b = table.a[at[some]], table.b[at[some]]
        difference, shared = x[a] - x[b], (scored[a] > 0) & (scored[b] > 0)
        if weighting is None:
            counts = _on_grid(difference, shared)
            low[some] = graded_completion_low(grid, counts, missing[some], alpha[some])
            high[some] = -graded_completion_low(-grid, counts, missing[some], alpha[some])
            continue
        unit = weighting.unit / SCORE_UNIT
        counts = _on_grid(difference * unit[weighting.cluster], shared)
        lacking = np.maximum(weighting.size - weighting.counted(shared), 0)
        ones = np.ones((1, unit.size), bool)
        worst, best = (
            lacking @ np.concatenate([_on_grid(side * unit[[k]][None], ones[:, :1]) for k in range(unit.size)])
            for side in (-1, 1)
        )
        none = np.zeros(difference.shape[0])
        low[some] = graded_completion_low(grid, counts + worst, none, alpha[some])
        high[some] = -graded_completion_low(-grid, counts + best, none, alpha[some])
    return np.clip(scale * low, -most, most), np.clip(scale * high, -most, most)


def _on_grid(difference: Floats, shared: Flags) -> Floats:
    """Count the shared differences of each row at the points of a grid, in shares that keep their sum; shape (rows, points)."""
    place = (difference + 1) * _GRID
    below = np.floor(place).astype(np.int64).clip(max=2 * _GRID - 1)
    share = np.where(shared, place - below, 0)
    points = 2 * _GRID + 1
    index = below + points * np.arange(len(place))[:, None]
    size = points * len(place)
    counts = np.bincount(index.ravel(), (shared - share).ravel(), size)
    counts += np.bincount((index + 1).ravel(), share.ravel(), size)
    return counts.reshape(-1, points).clip(min=0)


def _binary_bounds(table: PairTable, at: Index, *levels: Floats) -> list[Bounds]:
    """Return the interval from the counts that verdicts use; a skipped item of a committed order counts against either end."""
    mixture = table.benchmark.spec.mixture
    alpha = np.concatenate(levels)  # all levels at once: of a hundred pairs most of the time goes into calls
    placed = np.flatnonzero(alpha > 0)
    low, high = np.full((2, alpha.size), np.nan)
    n, b, c, c_worst, b_best = (column[np.tile(at, len(levels))[placed]] for column in table.evidence)
    low[placed], high[placed] = gap_interval(n, b, c_worst, alpha[placed], mixture)
    skipped = (c_worst != c) | (b_best != b)
    if skipped.any():
        some = placed[skipped]
        high[some] = gap_interval(n[skipped], b_best[skipped], c[skipped], alpha[some], mixture)[1]
    return list(zip(*(bound.reshape(len(levels), at.size) for bound in (low, high)), strict=True))


def _items_to_decision(table: PairTable, at: Index) -> Floats:
    """Return the items until the family-wise decision at the present estimate; more than are missing is an extrapolation.

    It is of the test that decides: of all items of a benchmark that is as large, or of bets. None where missing items count at their worst
    and will not come.
    """
    items = np.full(at.size, np.nan)
    placed = table.has_place(at)
    some = at[placed]
    mixture, threshold = table.benchmark.spec.mixture, table.log_family_threshold(some)
    n, wins, losses, _, _ = (column[some] for column in table.evidence)
    if table.missing is None or (table.benchmark.spec.order.policy in {"committed", "trusted"} and not table.asserted):
        items[placed] = expected_items_to_decision(n, wins, losses, threshold, mixture)
        return items
    assert table.left is not None
    left = table.left[some]
    within = items_to_curtailed_decision(n, wins, losses, left, threshold)
    beyond = np.maximum(items_to_exact_decision(n, wins, losses, threshold), left + 1)
    lost = np.zeros(left.shape, bool) if table.counted_missing is None else table.counted_missing[some] > left
    items[placed] = np.where(lost, np.nan, np.where(np.isfinite(within), within, beyond))
    return items


def needs_items(table: PairTable, at: Index) -> Floats:
    """Return the items in all of a test that finds a gap of this size in 4 of 5 runs, at the threshold of the pair; nan without one."""
    needed = np.full(at.size, np.nan)
    placed = (table.n[at] > 0) & table.has_place(at)
    some = at[placed]
    needed[placed] = table.required_n(np.exp(-table.log_family_threshold(some)), some, _FOUND)
    return np.where(needed > 0, needed, np.nan)


def least_wins(table: PairTable, pair: int) -> int | None:
    """Return how many of the items that differ a model has to win for the exact test to decide; None where another test does."""
    if not (table.completes or table.decides_at_end):
        return None
    at, won, lost = np.array([pair]), int(table.wins[pair]), int(table.losses[pair])
    bound, _ = table.bound(np.zeros(1, np.int64), at)
    more = np.arange((won + lost + 1) // 2, won + lost + 1)
    p = exact_p(more, won + lost - more)
    decides = p <= np.exp(-table.log_family_threshold(at)[0])
    counts = np.isclose(exact_p(np.array([won]), np.array([lost])), np.exp(-np.maximum(bound, 0)))
    return int(more[decides][0]) if counts.all() and decides.any() else None


def decision_probability(table: PairTable, at: Index) -> Floats:
    """Return the probability of a family-wise decision by the last item, at the present threshold; nan where no item is to come.

    It is nan too for graded scores, without an item count, and for more than `MOST_PAIRS` pairs.
    """
    chance = np.full(at.size, np.nan)
    if (
        not table.benchmark.binary
        or table.left is None
        or table.counted_missing is None
        or max(at.size, table.listed) > MOST_PAIRS
    ):
        return chance
    coming = table.has_place(at) & (table.left[at] > 0) & (table.n[at] > 0)
    some = at[coming]
    if some.size == 0:
        return chance
    # Complete files, which have no such pair, do not load it.
    from stats.planning.forecast import (  # noqa: PLC0415
        anytime_decision_probability,
        completion_decision_probability,
    )

    threshold, left = table.log_family_threshold(some), table.left[some]
    n, wins, losses, _, _ = (column[some] for column in table.evidence)
    if table.completes:
        lost = np.maximum(table.counted_missing[some] - left, 0)
        chance[coming] = completion_decision_probability(n, wins, losses, left, threshold, lost)
    else:
        chance[coming] = anytime_decision_probability(n, wins, losses, left, threshold, table.benchmark.spec.mixture)
    return chance


def equivalent(table: PairTable, at: Index) -> Flags:
    """Return which of some pairs are closer than the declared margin, and stay so however the missing items are scored."""
    margin, spec = table.benchmark.spec.margin, table.benchmark.spec
    near = np.zeros(at.size, bool)
    # What holds verdicts back makes the interval worthless.
    if margin is None or table.held or not table.bets:
        return near
    lasting = not table.asserted and spec.order.policy in {"committed", "trusted"}
    near = table.has_place(at) & (table.n[at] > 0) & (lasting | table.complete[at] | (table.ignored[at] > 0))
    if table.benchmark.binary:
        n, b, c, _, _ = (column[at] for column in table.evidence)
        near &= np.abs(b - c) < margin * n  # the interval contains the gap
    some = at[near]
    ((low, high),) = gap_bounds(table, some, family_alpha(table, some))
    near[near] = (-margin < low) & (high < margin)
    return near


# --- graded scores ----------------------------------------------------------------------------------------------------------------------


def graded_bounds(table: PairTable, at: Index, *levels: Floats) -> list[Bounds]:
    """Return the empirical Bernstein bounds of the gap at each level; nan where there are none.

    The items are taken in the order in which the benchmark saw them first, or in the committed order.
    """
    bounds = [(np.full(at.size, np.nan), np.full(at.size, np.nan)) for _ in levels]
    if max(at.size, table.listed) > MOST_PAIRS:
        return bounds
    shared = table.n[at] > 0
    if table.benchmark.battles is not None:
        for row in np.flatnonzero(shared).tolist():
            values = table.differences(int(at[row]))
            for (low, high), alpha in zip(bounds, levels, strict=True):
                if alpha[row] > 0:
                    ends = _last_bounds((values[None] + 1) / 2, np.array([values.size]), alpha[row : row + 1])
                    low[row], high[row] = ends[0][0], ends[1][0]
        return bounds
    order = _items_in_order(table)
    x, scored = (np.ascontiguousarray(values[order].T) for values in table.scores)
    present = scored > 0
    share, scale, most = np.ones(1), 1.0, 1.0
    if table.weighted is not None:
        weighting = table.weighted.weighting
        share = weighting.unit[weighting.cluster] / SCORE_UNIT
        scale, most = table.weighted.item_scale, table.weighted.gap_scale
    step = max(1, _SLAB_CELLS // max(1, x.shape[1]))
    for start in range(0, at.size, step):
        rows = start + np.flatnonzero(shared[start : start + step])
        if rows.size == 0:
            continue
        a, b = table.a[at[rows]], table.b[at[rows]]
        half, items = _packed(((x[a] - x[b]) * share + 1) / 2, present[a] & present[b])
        for (low, high), alpha in zip(bounds, levels, strict=True):
            some = np.flatnonzero(alpha[rows] > 0)
            low[rows[some]], high[rows[some]] = _last_bounds(half[some], items[some], alpha[rows[some]])
    return (
        [(np.maximum(scale * low, -most), np.minimum(scale * high, most)) for low, high in bounds]
        if scale != 1
        else bounds
    )


def _items_in_order(table: PairTable) -> Index | slice:
    """Return the items in the committed order, or all of them."""
    committed = table.benchmark.committed
    return slice(None) if committed is None else committed.item_at[committed.item_at >= 0]


def _packed(values: Floats, present: Flags) -> tuple[Floats, Index]:
    """Move the values that are present to the front of each row, in order; return them, and how many each row has."""
    items = present.sum(axis=1)
    packed = np.full((items.size, int(items.max())), 0.5)
    packed[np.arange(packed.shape[1]) < items[:, None]] = values[present]
    return packed, items


def _last_bounds(half: Floats, items: Index, alpha: Floats) -> Bounds:
    """Return the bounds of the gap after the last item of each pair, from (D + 1) / 2."""
    if items.size == 0:
        return np.empty(0), np.empty(0)
    # Only graded scores need it, and it would cost every start.
    from stats.intervals.sequences import empirical_bernstein  # noqa: PLC0415

    low, high = empirical_bernstein(half, alpha[:, None])
    last = (np.arange(items.size), items - 1)
    return 2 * low[last] - 1, 2 * high[last] - 1

"""Evidence on some pairs that stays valid at every look: e-values, intervals of the gap, items until a decision."""

from typing import Final

import numpy as np

from monitor.view.kinds.kind import Bounds
from monitor.view.pairs.counts import Flags, Floats, Sides
from monitor.view.pairs.table import PairTable
from schemas.results.changes import PROCEDURES
from stats.families.error_control import WHOLE
from stats.fixed_n.mcnemar import exact_p
from stats.fixed_n.resolution import mde
from stats.numerics.pairs import Index

_FOUND: Final = 0.8  # share of the tests that find a gap, wherever a surface names the items that it needs

_NOTHING: Final = float(np.finfo(np.float64).tiny)


def evidence_columns(table: PairTable, at: Index) -> dict[str, Floats]:
    """Return the columns of the report that may be looked at while results come in, for some pairs; nan where there is no value."""
    # These are ``log_e``, ``log_e_a``, ``log_e_b``, ``gap_low``, ``gap_high``, ``gap_family_low``, ``gap_family_high`` (at alpha and at
    # `family_alpha`) and ``items_to_decision``.
    blank, kind = np.full(at.size, np.nan), table.kind
    halves = kind.log_e_halves(at) if kind.bets else (blank, blank)
    columns = {
        "log_e": kind.log_e[at] if kind.bets else blank,
        "log_e_a": halves[0],
        "log_e_b": halves[1],
        "items_to_decision": blank.copy(),
    }
    placed = table.has_place(at)
    some = at[placed]
    columns["items_to_decision"][placed] = kind.items_to_decision(some, table.log_family_threshold(some))
    alpha = np.full(at.size, table.benchmark.spec.alpha)
    single, family = ((blank, blank),) * 2
    if kind.bets:
        bounds = kind.gap_bounds(at, alpha, family_alpha(table, at))
        # Decisions that no longer count (a trusted order that proved wrong) do not move an interval away from 0.
        decided = (table.decided(name) for name in PROCEDURES)
        sides = (np.zeros(at.size, np.int8) if each is None else each[at] for each in decided)
        single, family = (_agreeing(low, high, side) for (low, high), side in zip(bounds, sides, strict=True))
    columns |= {"gap_low": single[0], "gap_high": single[1], "gap_family_low": family[0], "gap_family_high": family[1]}
    return {name: np.where(table.pairs.n[at] > 0, values, np.nan) for name, values in columns.items()}


def family_alpha(table: PairTable, at: Index) -> Floats:
    """Return the level of the interval of some pairs in the family, their share of alpha; 0 for a pair without a place there."""
    # The threshold of a decision rises as others are made, to alpha at last; at that level the intervals of a board would not hold
    # together.
    return np.asarray(table.benchmark.spec.alpha * table.family_weights(at) / WHOLE)


def _agreeing(low: Floats, high: Floats, side: Sides) -> Bounds:
    """Return bounds that leave out 0 exactly where a pair is decided."""
    # A decision stays valid while the present evidence falls, and so does an interval that ends at 0 (without it) on the decided side. Of
    # an undecided pair the larger interval with 0 is valid too: its evidence may reach a threshold that fell only later.
    low = np.where(side > 0, np.maximum(low, _NOTHING), np.where(side < 0, low, np.minimum(low, 0)))
    high = np.where(side < 0, np.minimum(high, -_NOTHING), np.where(side > 0, high, np.maximum(high, 0)))
    # The interval of a decision that the present evidence contradicts is empty.
    empty = low > high
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


def needs_items(table: PairTable, at: Index) -> Floats:
    """Return the items in all of a test that finds a gap of this size in 4 of 5 runs, at the threshold of the pair; nan without one."""
    needed = np.full(at.size, np.nan)
    placed = (table.pairs.n[at] > 0) & table.has_place(at)
    some = at[placed]
    needed[placed] = table.kind.required_n(np.exp(-table.log_family_threshold(some)), some, _FOUND)
    return np.where(needed > 0, needed, np.nan)


def found_gap(table: PairTable, pair: int) -> float | None:
    """Return the gap that a test of as many items as a pair shares finds in 4 of 5 runs; None where no gap is large enough."""
    at, sd = np.array([pair]), float(table.kind.moments[1][pair])
    if not sd > 0 or not table.has_place(at)[0]:
        return None
    gap = float(mde(table.pairs.n[pair], sd, np.exp(-table.log_family_threshold(at)[0]), _FOUND))
    return gap if gap < 1 else None


def least_wins(table: PairTable, pair: int) -> int | None:
    """Return how many of the items that differ a model has to win for the exact test to decide; None where another test does."""
    if not (table.pairs.completes or table.kind.decides_at_end):
        return None
    at = np.array([pair])
    (won,), (lost,) = table.kind.counts(at)
    if won is None or lost is None:
        return None
    more = np.arange((won + lost + 1) // 2, won + lost + 1)
    p = exact_p(more, won + lost - more)
    decides = p <= np.exp(-table.log_family_threshold(at)[0])
    return int(more[decides][0]) if decides.any() else None


def decision_probability(table: PairTable, at: Index) -> Floats:
    """Return the probability of a family-wise decision by the last item, at the present threshold; nan where no item is to come."""
    # It is nan too for graded scores, without an item count, and for more than `MOST_PAIRS` pairs.
    return table.kind.decision_probability(at, table.has_place(at), table.log_family_threshold)


def equivalent(table: PairTable, at: Index) -> Flags:
    """Return which of some pairs are closer than the declared margin, and stay so however the missing items are scored."""
    margin, spec, pairs = table.benchmark.spec.margin, table.benchmark.spec, table.pairs
    near = np.zeros(at.size, bool)
    # What holds verdicts back makes the interval worthless.
    if margin is None or table.held or not table.kind.bets:
        return near
    lasting = not table.asserted and spec.order.policy in {"committed", "trusted"}
    near = table.has_place(at) & (pairs.n[at] > 0) & (lasting | pairs.complete[at] | (pairs.ignored[at] > 0))
    near &= table.kind.near(at, margin)
    some = at[near]
    ((low, high),) = table.kind.gap_bounds(some, family_alpha(table, some))
    near[near] = (-margin < low) & (high < margin)
    return near

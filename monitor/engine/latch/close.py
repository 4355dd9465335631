"""Close latches at the first event that reaches a threshold.

A pair on its own (`anytime`) is decided at ln 1/alpha. In its family (`anytime_family`) the largest evidence so far counts, against a
threshold that falls with every decision of the family (`stats.stepwise`): one event may decide many pairs. Only evidence from ln 1/alpha
on matters there, so only pairs that reach it have a peak. Pairs are settled by the same rule (`monitor/engine/latch/settled.py`).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import BEFORE, Crossing, Trajectory, Walk
from monitor.engine.state.pair_state import PROCEDURES, PairState
from monitor.engine.state.pairs import Index, pair_members
from monitor.engine.state.step_down import StepDown
from schemas.changes import Claim, Kind, Procedure
from stats.curtailed import TOLERANCE
from stats.stepwise import step_down_events


def close_latches(pairs: PairState, walk: Walk) -> list[Crossing]:
    """Close the latches that pairs reach in a chunk, and keep the largest evidence of open pairs; return what closed in the log's order."""
    parts = [part for part in walk.near() if part.pair.size]
    if not parts:
        return []
    steps = joined(parts)
    steps = steps.rows(np.argsort(steps.pair, kind="stable"))
    rows = steps.rows((steps.evidence >= pairs.limits_in_family(steps.pair) - TOLERANCE) & (steps.side != 0))
    families, threshold = step_down(pairs, "anytime_family", rows, walk.whole)
    alone = np.isfinite(pairs.limits_alone(steps.pair)) & (pairs.latched["anytime"][steps.pair] == 0)
    singles = steps.rows(first(steps.pair, alone & (steps.side != 0) & (steps.evidence >= pairs.limit - TOLERANCE)))
    closed = [
        *latch(pairs, "anytime", "decided", singles, np.full(singles.pair.size, pairs.limit)),
        *latch(pairs, "anytime_family", "decided", families, threshold),
    ]
    fresh = np.unique(np.concatenate([singles.pair, families.pair]))
    if fresh.size:  # a pair decided at an event may reverse at any later one
        steps = joined([steps.rows(~np.isin(steps.pair, fresh)), walk.whole(fresh)])
    for procedure, decided in zip(PROCEDURES, (singles, families), strict=True):
        closed += _reverse(pairs, procedure, steps, decided)
    return sorted(closed, key=lambda x: (x.position, x.pair))


def step_down(
    pairs: PairState, claim: Claim, rows: Trajectory, whole: Callable[[Index], Trajectory]
) -> tuple[Trajectory, NDArray[np.float64]]:
    """Return what a claim with falling thresholds latches in a chunk, and the thresholds that it met; keep the peaks of what stays open.

    `rows` are the steps that matter, by pair. Each pair is returned as its step at the event with the largest evidence so far, or as its
    state after the event, by `whole`, if another pair latched it. Infinite evidence needs no place in a family.
    """
    latches = pairs.claims[claim]
    if not rows.pair.size:  # a threshold falls with a latch only
        return rows, np.zeros(0)
    pair, when, limit = _events(pairs, latches, rows)
    if not pair.size:
        _keep_peaks(latches, rows)
        return rows.rows(slice(0)), limit
    place = np.searchsorted(pair, rows.pair).clip(max=pair.size - 1)
    ends = pair[place] == rows.pair
    _keep_peaks(latches, rows.rows(~ends | (rows.when <= when[place])))
    met = ends & (rows.when == when[place]) & ((rows.evidence >= limit[place] - TOLERANCE) | np.isinf(rows.evidence))
    own = rows.rows(first(rows.pair, met))
    led = ~np.isin(pair, own.pair)
    if not led.any():
        return own, limit
    state = _at(whole(pair[led]), when[led])
    peak = latches.peak[state.pair]
    state = state._replace(when=when[led], evidence=np.abs(peak), side=np.sign(peak).astype(np.int64))
    both = joined([own, state])
    return both.rows(np.argsort(both.pair)), limit


def _events(pairs: PairState, latches: StepDown, rows: Trajectory) -> tuple[Index, Index, NDArray[np.float64]]:
    """Return the pairs that are latched, ascending, the event of each and its threshold."""
    certain = np.isinf(rows.evidence)
    certain[certain] = pairs.family_weights(rows.pair[certain]) == 0
    outside = rows.rows(first(rows.pair, certain))
    found = [(outside.pair, outside.when.astype(np.int64), np.full(outside.pair.size, np.inf))]
    rows = rows.rows(~certain)
    waiting = latches.waiting()
    waiting = np.union1d(rows.pair, waiting[~pairs.closed[waiting]])
    family_of = pairs.families(waiting)
    for family in np.unique(pairs.families(rows.pair)).tolist():
        members = waiting[family_of == family]
        own = rows.rows(np.isin(rows.pair, members))
        decisions = step_down_events(
            np.abs(latches.peak[members]),
            pairs.family_weights(members),
            (np.searchsorted(members, own.pair), own.when, own.evidence),
            latches.open_weight(family),
            pairs.spec.alpha,
        )
        found.append((members[decisions.pair], decisions.when, decisions.threshold_log))
    pair, when, limit = (np.concatenate(x) for x in zip(*found, strict=True))
    order = np.argsort(pair)
    return pair[order], when[order], limit[order]


def _keep_peaks(latches: StepDown, rows: Trajectory) -> None:
    """Keep the largest evidence of each pair, with the side it is for: of equal steps, that of the earliest."""
    if rows.pair.size:
        order = np.lexsort((-rows.when, rows.evidence, rows.pair))
        largest = rows.rows(order[np.append(np.flatnonzero(np.diff(rows.pair[order])), rows.pair.size - 1)])
        higher = largest.evidence > np.abs(latches.peak[largest.pair])
        latches.keep_peaks(largest.pair[higher], (largest.side * largest.evidence)[higher])


def _at(whole: Trajectory, when: Index) -> Trajectory:
    """Return the last step of each pair up to an event."""
    starts = np.flatnonzero(np.diff(whole.pair, prepend=-1))
    so_far = whole.when <= np.repeat(when, np.diff(starts, append=whole.pair.size))
    return whole.rows(starts + np.add.reduceat(so_far, starts, dtype=np.int64) - 1)


def settle(pairs: PairState, parts: list[Trajectory], along: Walk | None = None) -> list[Crossing]:
    """Settle pairs by the steps that matter, and return this in the log's order; `along` is the walk of a committed order."""
    parts = [part for part in parts if part.pair.size]
    if not parts:
        return []
    rows = joined(parts)
    rows = rows.rows(np.lexsort((-rows.evidence, rows.when, rows.pair)))

    def whole(some: Index) -> Trajectory:
        assert along is not None  # only a committed order has pairs that others may settle
        steps = along.whole(some)
        return steps._replace(missing=pairs.missing(steps.n))

    settled, limit = step_down(pairs, "settled", rows, whole)
    return sorted(latch(pairs, "settled", "settled", settled, limit), key=lambda x: (x.position, x.pair))


def latch(
    pairs: PairState, claim: Claim, kind: Kind, steps: Trajectory, threshold: NDArray[np.float64]
) -> list[Crossing]:
    """Latch a claim at one step of each pair, and return this."""
    pairs.latch(claim, steps.pair, steps.side)
    return _crossings(claim, kind, steps, threshold)


def _reverse(pairs: PairState, procedure: Procedure, steps: Trajectory, decided: Trajectory) -> list[Crossing]:
    """Record the first event after each decision at which the other model leads."""
    latch = pairs.latched[procedure]
    later = steps.when > BEFORE
    if decided.pair.size:
        place = np.searchsorted(decided.pair, steps.pair).clip(max=decided.pair.size - 1)
        # One event may take a pair several steps along a committed order.
        since, walked = decided.when[place], (decided.n + decided.missing)[place]
        after = (steps.when > since) | ((steps.when == since) & (steps.n + steps.missing > walked))
        later &= after | (decided.pair[place] != steps.pair)
    side = latch[steps.pair]
    against = (np.abs(side) == 1) & (side * np.sign(steps.lead) < 0) & later
    turned = steps.rows(first(steps.pair, against))
    latch[turned.pair] *= 2
    return _crossings(procedure, "reversed", turned, pairs.log_thresholds(turned.pair)[procedure])


def _crossings(procedure: Claim, kind: Kind, steps: Trajectory, threshold: NDArray[np.float64]) -> list[Crossing]:
    pair, when, *values = steps
    columns = (*pair_members(pair), pair, when, *values, threshold)
    return [Crossing(procedure, kind, *row) for row in zip(*(x.tolist() for x in columns), strict=True)]


def joined(parts: list[Trajectory]) -> Trajectory:
    """Return all steps of some trajectories."""
    return Trajectory(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def first(pair: Index, closes: NDArray[np.bool_]) -> Index:
    """Return each pair's first step that closes a latch; the steps of a pair are in the order of time."""
    some = np.flatnonzero(closes)
    return some[np.unique(pair[some], return_index=True)[1]]

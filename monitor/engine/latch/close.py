"""Close latches at the first event that reaches a threshold.

A pair on its own (`anytime`) is decided at ln 1/alpha. In its family (`anytime_family`) the largest evidence so far counts, against a
threshold that falls with every decision of the family (`stats.stepwise`): one event may decide many pairs. Only evidence from ln 1/alpha
on matters there, so only pairs that reach it have a peak.
"""

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import BEFORE, Crossing, Trajectory, Walk
from monitor.engine.state.pair_state import PROCEDURES, PairState
from monitor.engine.state.pairs import Index, pair_members
from schemas.changes import Kind, Procedure
from stats.curtailed import TOLERANCE
from stats.stepwise import step_down_events


def close_latches(pairs: PairState, walk: Walk) -> list[Crossing]:
    """Close the latches that pairs reach in a chunk, and keep the largest evidence of open pairs; return what closed in the log's order."""
    parts = [part for part in walk.near() if part.pair.size]
    if not parts:
        return []
    steps = _joined(parts)
    steps = steps.rows(np.argsort(steps.pair, kind="stable"))
    families, threshold = _decide_families(pairs, walk, steps)
    alone = np.isfinite(pairs.limits_alone(steps.pair)) & (pairs.latched["anytime"][steps.pair] == 0)
    singles = steps.rows(_first(steps.pair, alone & (steps.side != 0) & (steps.evidence >= pairs.limit - TOLERANCE)))
    closed = [
        *_decide(pairs, "anytime", singles, np.full(singles.pair.size, pairs.limit)),
        *_decide(pairs, "anytime_family", families, threshold),
    ]
    fresh = np.unique(np.concatenate([singles.pair, families.pair]))
    if fresh.size:  # a pair decided at an event may reverse at any later one
        steps = _joined([steps.rows(~np.isin(steps.pair, fresh)), walk.whole(fresh)])
    for procedure, decided in zip(PROCEDURES, (singles, families), strict=True):
        closed += _reverse(pairs, procedure, steps, decided)
    return sorted(closed, key=lambda x: (x.position, x.pair))


def _decide_families(pairs: PairState, walk: Walk, steps: Trajectory) -> tuple[Trajectory, NDArray[np.float64]]:
    """Return the family decisions of a chunk, each as a step at its event with the largest evidence so far, and the thresholds they met.

    The largest evidence of the pairs that stay open is kept.
    """
    rows = steps.rows((steps.evidence >= pairs.limits_in_family(steps.pair) - TOLERANCE) & (steps.side != 0))
    members: list[Index] = [np.zeros(0, np.int64)]
    event: list[Index] = [np.zeros(0, np.int64)]
    threshold: list[NDArray[np.float64]] = [np.zeros(0)]
    family_of = pairs.families(rows.pair)
    for family in np.unique(family_of).tolist():
        own = rows.rows(family_of == family)
        waiting = np.union1d(own.pair, pairs.waiting(family))
        decisions = step_down_events(
            np.abs(pairs.peak[waiting]),
            pairs.family_weights(waiting),
            (np.searchsorted(waiting, own.pair), own.when, own.evidence),
            pairs.open_weight(family),
            pairs.spec.alpha,
        )
        members.append(waiting[decisions.pair])
        event.append(decisions.when)
        threshold.append(decisions.threshold_log)
    pair, when, limit = np.concatenate(members), np.concatenate(event), np.concatenate(threshold)
    order = np.argsort(pair)
    pair, when, limit = pair[order], when[order], limit[order]
    if not pair.size:
        _keep_peaks(pairs, rows)
        return rows.rows(slice(0)), limit
    place = np.searchsorted(pair, rows.pair).clip(max=pair.size - 1)
    ends = pair[place] == rows.pair
    _keep_peaks(pairs, rows.rows(~ends | (rows.when <= when[place])))
    met = ends & (rows.when == when[place]) & (rows.evidence >= limit[place] - TOLERANCE)
    return _decided(pairs, walk.whole(pair), when, rows.rows(_first(rows.pair, met))), limit


def _keep_peaks(pairs: PairState, rows: Trajectory) -> None:
    """Keep the largest evidence of each pair, with the side it is for."""
    if rows.pair.size:
        order = np.lexsort(
            (-rows.when, rows.evidence, rows.pair)
        )  # the earliest step of those with the largest evidence
        largest = rows.rows(order[np.append(np.flatnonzero(np.diff(rows.pair[order])), rows.pair.size - 1)])
        higher = largest.evidence > np.abs(pairs.peak[largest.pair])
        pairs.keep_peaks(largest.pair[higher], (largest.side * largest.evidence)[higher])


def _decided(pairs: PairState, whole: Trajectory, when: Index, own: Trajectory) -> Trajectory:
    """Return the step of each pair's decision at an event: its own, or its state after it, with its peak, if another pair decided it."""
    starts = np.flatnonzero(np.diff(whole.pair, prepend=-1))
    so_far = whole.when <= np.repeat(when, np.diff(starts, append=whole.pair.size))
    state = whole.rows(starts + np.add.reduceat(so_far, starts, dtype=np.int64) - 1)
    peak = pairs.peak[state.pair]
    state = state._replace(when=when, evidence=np.abs(peak), side=np.sign(peak).astype(np.int64))
    others = state.rows(~np.isin(state.pair, own.pair))
    both = _joined([own, others])
    return both.rows(np.argsort(both.pair))


def _decide(
    pairs: PairState, procedure: Procedure, decided: Trajectory, threshold: NDArray[np.float64]
) -> list[Crossing]:
    pairs.latch(procedure, decided.pair, decided.side)
    return _crossings(procedure, "decided", decided, threshold)


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
    turned = steps.rows(_first(steps.pair, against))
    latch[turned.pair] *= 2
    return _crossings(procedure, "reversed", turned, pairs.log_thresholds(turned.pair)[procedure])


def _crossings(procedure: Procedure, kind: Kind, steps: Trajectory, threshold: NDArray[np.float64]) -> list[Crossing]:
    pair, when, *values = steps
    columns = (*pair_members(pair), pair, when, *values, threshold)
    return [Crossing(procedure, kind, *row) for row in zip(*(x.tolist() for x in columns), strict=True)]


def _joined(parts: list[Trajectory]) -> Trajectory:
    return Trajectory(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _first(pair: Index, closes: NDArray[np.bool_]) -> Index:
    """Return each pair's first step that closes a latch."""
    some = np.flatnonzero(closes)
    return some[np.unique(pair[some], return_index=True)[1]]

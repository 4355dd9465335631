"""Close latches at the first event that reaches a threshold.

A pair on its own (`anytime`) is decided at ln 1/alpha. In its family (`anytime_family`) the largest evidence so far counts, against a
threshold that falls with every decision of the family (`stats.families.stepwise`): one event may decide many pairs. Only evidence from ln
1/alpha on matters there, so only pairs that reach it have a peak. Pairs are settled by the same rule (`monitor/engine/latch/settled.py`).

What closes in a chunk follows from the largest evidence of each pair in it. Only the trajectories of those pairs are then followed event by
event, to find when.
"""

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import BEFORE, Closed, Peaks, Trajectory, Walk
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import Index
from monitor.engine.state.step_down import StepDown
from schemas.results.changes import PROCEDURES, Claim, Procedure
from stats.evidence.curtailed import TOLERANCE
from stats.families.stepwise import step_down, step_down_events


def close_latches(pairs: PairState, walk: Walk) -> Closed | None:
    """Close the latches that pairs reach in a chunk, and keep the largest evidence of open pairs; return what closed in the log's order."""
    parts = [part for part in walk.near() if part.pair.size]
    if not parts:
        return None
    peaks = Peaks.joined(parts)
    open_alone = np.isfinite(pairs.limits_alone(peaks.pair)) & (pairs.latched["anytime"][peaks.pair] == 0)
    alone = open_alone & (peaks.side != 0) & (peaks.evidence >= pairs.limit - TOLERANCE)
    in_family = latching(pairs, "anytime_family", peaks)
    moved = np.union1d(peaks.pair[alone | peaks.turns], in_family)
    if not moved.size:
        return None
    steps = walk.whole(moved)
    families, threshold = latch_together(pairs, "anytime_family", in_family, steps)
    may = np.isin(steps.pair, peaks.pair[alone]) & (steps.when > BEFORE)
    singles = steps.rows(first(steps.pair, may & (steps.side != 0) & (steps.evidence >= pairs.limit - TOLERANCE)))
    pairs.latch("anytime", singles.pair, singles.side)
    closed = [
        Closed.of("anytime", "decided", singles, np.full(singles.pair.size, pairs.limit)),
        Closed.of("anytime_family", "decided", families, threshold),
    ]
    for procedure, decided in zip(PROCEDURES, (singles, families), strict=True):
        closed.append(_reverse(pairs, procedure, walk, steps, decided))
    return Closed.joined(closed)


def latching(pairs: PairState, claim: Claim, peaks: Peaks) -> Index:
    """Return the pairs, ascending, that a claim with falling thresholds latches in a chunk; keep the peaks of the others.

    Infinite evidence needs no place in a family.
    """
    latches = pairs.claims[claim]
    peaks = peaks.rows((peaks.evidence >= pairs.limits_in_family(peaks.pair, claim) - TOLERANCE) & (peaks.side != 0))
    weights, alpha = pairs.family_weights(peaks.pair), pairs.spec.alpha
    latching_pairs = [peaks.pair[(weights == 0) & np.isinf(peaks.evidence)]]
    for family, own in pairs.by_family(peaks.pair):
        open_weight = latches.open_weight(family)
        # A pair that waits stays below its threshold until another one latches.
        if step_down(peaks.evidence[own], weights[own], open_weight, alpha).pair.size:
            every = slice(0, pairs.pairs)
            is_open = ~pairs.closed[every] & (latches.side[every] == 0)
            evidence = np.where(is_open, np.abs(latches.peak[every]), 0)
            np.maximum.at(evidence, peaks.pair[own], peaks.evidence[own])
            members = np.flatnonzero(evidence)
            members = members[pairs.families(members) == family]
            decided = step_down(evidence[members], pairs.family_weights(members), open_weight, alpha)
            latching_pairs.append(members[decided.pair])
    pair = np.sort(np.concatenate(latching_pairs))
    rest = peaks.rows((peaks.evidence > np.abs(latches.peak[peaks.pair])) & ~np.isin(peaks.pair, pair))
    latches.keep_peaks(rest.pair, rest.side * rest.evidence)
    return pair


def latch_together(
    pairs: PairState, claim: Claim, pair: Index, steps: Trajectory
) -> tuple[Trajectory, NDArray[np.float64]]:
    """Latch pairs of a claim with falling thresholds, those of `latching`; return a step of each, ascending, and the thresholds met.

    `steps` are all steps of the pairs, by pair, then by time. The step of a pair is that at the event with the largest evidence so far, or
    its state after the event if another pair latched it.
    """
    latches = pairs.claims[claim]
    matters = np.isin(steps.pair, pair) & (steps.side != 0) & (steps.when > BEFORE)
    rows = steps.rows(matters & (steps.evidence >= pairs.limits_in_family(steps.pair, claim) - TOLERANCE))
    if not rows.pair.size:
        return rows, np.zeros(0)
    pair, when, limit = _events(pairs, latches, pair, rows)
    rows = rows.rows(np.isin(rows.pair, pair))
    place = np.searchsorted(pair, rows.pair)
    so_far = rows.rows(rows.when <= when[place])
    peaks = Peaks.of(so_far.pair, so_far.evidence, so_far.side)
    higher = peaks.rows(peaks.evidence > np.abs(latches.peak[peaks.pair]))
    latches.keep_peaks(higher.pair, higher.side * higher.evidence)
    met = (rows.when == when[place]) & ((rows.evidence >= limit[place] - TOLERANCE) | np.isinf(rows.evidence))
    own = rows.rows(first(rows.pair, met))
    led = ~np.isin(pair, own.pair)
    if led.any():
        state = _at(steps.rows(np.isin(steps.pair, pair[led])), when[led])
        peak = latches.peak[state.pair]
        state = state._replace(when=when[led], evidence=np.abs(peak), side=np.sign(peak).astype(np.int64))
        own = Trajectory.joined([own, state])
        own = own.rows(np.argsort(own.pair))
    pairs.latch(claim, own.pair, own.side)
    return own, limit


def _events(
    pairs: PairState, latches: StepDown, pair: Index, rows: Trajectory
) -> tuple[Index, Index, NDArray[np.float64]]:
    """Return the pairs, ascending, the event at which each latches, and its threshold."""
    outside = np.isinf(rows.evidence) & (pairs.family_weights(rows.pair) == 0)
    certain = rows.rows(first(rows.pair, outside))
    found = [(certain.pair, certain.when.astype(np.int64), np.full(certain.pair.size, np.inf))]
    pair, rows = pair[~np.isin(pair, certain.pair)], rows.rows(~outside)
    for family, places in pairs.by_family(pair):
        members = pair[places]
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


def _at(whole: Trajectory, when: Index) -> Trajectory:
    """Return the last step of each pair up to an event."""
    starts = np.flatnonzero(np.diff(whole.pair, prepend=-1))
    so_far = whole.when <= np.repeat(when, np.diff(starts, append=whole.pair.size))
    return whole.rows(starts + np.add.reduceat(so_far, starts, dtype=np.int64) - 1)


def settle(pairs: PairState, certain: list[Trajectory], bets: Walk | None = None) -> Closed | None:
    """Settle pairs by steps at which they are certain, and by bets along a committed order; return this in the log's order."""
    parts = [] if bets is None else [part for part in bets.near() if part.pair.size]
    for steps in certain:
        parts = [part.rows(~np.isin(part.pair, steps.pair)) for part in parts]
        parts.append(Peaks.of(steps.pair, steps.evidence, steps.side))
    if not parts:
        return None
    pair = latching(pairs, "settled", Peaks.joined(parts))
    if not pair.size:
        return None
    steps = _in_order(Trajectory.joined([*certain, *([] if bets is None else [bets.whole(pair)])]))
    settled, limit = latch_together(pairs, "settled", pair, steps)
    return Closed.joined([Closed.of("settled", "settled", settled, limit)])


def _in_order(steps: Trajectory) -> Trajectory:
    """Return steps by pair, then by time, those of one event by falling evidence."""
    key = steps.pair << 32 | (steps.when - BEFORE)
    order = np.argsort(key, kind="stable")  # a merge: each part is sorted
    key = key[order]
    twice = np.zeros(key.size, bool)
    twice[1:] = key[1:] == key[:-1]
    twice[:-1] |= twice[1:]
    some = np.flatnonzero(twice)
    if some.size:
        order[some] = order[some][np.lexsort((-steps.evidence[order[some]], key[some]))]
    return steps.rows(order)


def _reverse(pairs: PairState, procedure: Procedure, walk: Walk, steps: Trajectory, decided: Trajectory) -> Closed:
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
    turned = walk.exact(steps.rows(first(steps.pair, against)))
    latch[turned.pair] *= 2
    return Closed.of(procedure, "reversed", turned, pairs.log_thresholds(turned.pair)[procedure])


def first(pair: Index, closes: NDArray[np.bool_]) -> Index:
    """Return each pair's first step that closes a latch; steps are by pair, then by time."""
    some = np.flatnonzero(closes)
    return some[np.flatnonzero(np.diff(pair[some], prepend=-1))]

"""Close latches at the first event that reaches a threshold.

A pair on its own (`anytime`) is decided at ln 1/alpha. In its family (`anytime_family`) the largest evidence so far counts, against a
threshold that falls with every decision of the family (`stats.families.stepwise`): one event may decide many pairs. Only evidence from ln
1/alpha on matters there, so only pairs that reach it have a peak. Pairs are settled by the same rule (`monitor/engine/latch/settled.py`).

What closes in a chunk follows from the largest evidence of each pair in it. Only the trajectories of those pairs are then followed event by
event, to find when.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Closed, Evident, Peaks, Steps, Trajectory, Walk, first
from monitor.engine.latch.new_scores import BEFORE
from monitor.engine.slices import Slices
from monitor.engine.state.pairs.pair_state import PairState
from monitor.engine.state.pairs.step_down import StepDown
from schemas.results.changes import PROCEDURES, Claim, Procedure
from stats.evidence.curtailed import TOLERANCE
from stats.families.stepwise import step_down, step_down_events, step_thresholds
from stats.numerics.pairs import Index


def close_latches(pairs: PairState, walk: Walk) -> Slices[Closed | None]:
    """Close the latches that pairs reach in a chunk, and keep the largest evidence of open pairs; return what closed in the log's order."""
    parts = yield from _near(walk)
    if not parts:
        return None
    pairs.loop = None  # it holds what follows from the latches and peaks
    peaks = Peaks.joined(parts)
    open_alone = np.isfinite(pairs.limits_alone(peaks.pair)) & (pairs.latched["anytime"][peaks.pair] == 0)
    alone = open_alone & (peaks.side != 0) & (peaks.evidence >= pairs.limit - TOLERANCE)
    in_family = latching(pairs, "anytime_family", peaks)
    if not (alone.any() or in_family.pair.size or peaks.turns.any()):
        return None
    yield False
    families, threshold = latch_together(pairs, "anytime_family", in_family, walk)
    yield False
    singles = _first_alone(pairs, np.unique(peaks.pair[alone]), walk)
    pairs.latch("anytime", singles.pair, singles.side)
    closed = [
        Closed.of("anytime", "decided", singles, np.full(singles.pair.size, pairs.limit)),
        Closed.of("anytime_family", "decided", families, threshold),
    ]
    yield False
    turning = np.unique(peaks.pair[peaks.turns])
    for procedure, decided in zip(PROCEDURES, (singles, families), strict=True):
        turned = _reverse(pairs, procedure, walk, turning, decided)
        limit = pairs.limits_alone(turned.pair) if procedure == "anytime" else _limits_at(pairs, turned, families)
        closed.append(Closed.of(procedure, "reversed", turned, limit))
    yield False
    return Closed.joined(closed)


def _near(walk: Evident) -> Slices[list[Peaks]]:
    """Return the pairs of which a latch may close, in parts; a slice ends after each."""
    parts = []
    for part in walk.near():
        if part.pair.size:
            parts.append(part)
            yield False
    return parts


def _first_alone(pairs: PairState, pair: Index, walk: Walk) -> Trajectory:
    """Return the step at which each of some pairs is decided on its own."""
    limit = np.full(pair.size, pairs.limit)
    if not pair.size:
        return Trajectory.nothing()
    steps = walk.crossing(pair, limit)
    closes = (steps.when > BEFORE) & (steps.side != 0) & (steps.evidence >= pairs.limit - TOLERANCE)
    return steps.rows(first(steps.pair, closes))


class Latching(NamedTuple):
    """Pairs that a claim with falling thresholds latches in a chunk; arrays of shape (pairs,), by pair."""

    pair: Index
    lowest: NDArray[np.float64]  # their thresholds after the chunk
    highest: NDArray[np.float64]  # and before it; infinite without a place in a family

    @classmethod
    def joined(cls, parts: list["Latching"]) -> "Latching":
        """Return the pairs of all parts, ascending."""
        pair, lowest, highest = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(pair)
        return cls(pair[order], lowest[order], highest[order])


def latching(pairs: PairState, claim: Claim, peaks: Peaks) -> Latching:
    """Return the pairs that a claim with falling thresholds latches in a chunk; keep the peaks of the others.

    Infinite evidence needs no place in a family.
    """
    latches = pairs.claims[claim]
    peaks = peaks.rows((peaks.evidence >= pairs.limits_in_family(peaks.pair, claim) - TOLERANCE) & (peaks.side != 0))
    weights, alpha = pairs.family_weights(peaks.pair), pairs.spec.alpha
    outside = peaks.pair[(weights == 0) & np.isinf(peaks.evidence)]
    certain = np.full(outside.size, np.inf)
    parts = [Latching(outside, certain, certain)]
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
            units = pairs.family_weights(members)
            decided = step_down(evidence[members], units, open_weight, alpha)
            units = units[decided.pair]
            lowest, highest = (step_thresholds(units, left, alpha) for left in (decided.open_weight, open_weight))
            parts.append(Latching(members[decided.pair], lowest, highest))
    some = Latching.joined(parts)
    rest = peaks.rows((peaks.evidence > np.abs(latches.peak[peaks.pair])) & ~np.isin(peaks.pair, some.pair))
    latches.keep_peaks(rest.pair, rest.side * rest.evidence)
    return some


def latch_together(
    pairs: PairState, claim: Claim, some: Latching, walk: Steps
) -> tuple[Trajectory, NDArray[np.float64]]:
    """Latch the pairs of `latching`; return a step of each, ascending, and the thresholds met.

    The step of a pair is the one that meets its threshold at the event, or its state after the event if another pair latched it.
    """
    latches, pair = pairs.claims[claim], some.pair
    if not pair.size:
        return Trajectory.nothing(), np.zeros(0)
    low = np.maximum(some.lowest, pairs.limits_in_family(pair, claim))
    steps = walk.reaching(pair, low, some.highest)
    matters = (steps.side != 0) & (steps.when > BEFORE)
    rows = steps.rows(matters & (steps.evidence >= pairs.limits_in_family(steps.pair, claim) - TOLERANCE))
    if not rows.pair.size:
        return rows, np.zeros(0)
    pair, when, limit = _events(pairs, latches, pair, rows)
    rows = rows.rows(np.isin(rows.pair, pair))
    place = np.searchsorted(pair, rows.pair)
    known = np.abs(latches.peak[pair])
    earlier = rows.when < when[place]
    np.maximum.at(known, place[earlier], rows.evidence[earlier])
    so_far = rows.rows(rows.when <= when[place])
    peaks = Peaks.of(so_far.pair, so_far.evidence, so_far.side)
    higher = peaks.rows(peaks.evidence > np.abs(latches.peak[peaks.pair]))
    latches.keep_peaks(higher.pair, higher.side * higher.evidence)
    met = (rows.when == when[place]) & ((rows.evidence >= limit[place] - TOLERANCE) | np.isinf(rows.evidence))
    own = rows.rows(first(rows.pair, met))
    # Another pair latched those that had met the threshold before: their step at the event, if any, need not be their highest so far.
    led = (known >= limit - TOLERANCE) & ~np.isin(pair, own.pair[np.isinf(own.evidence)])
    if led.any():
        state = _led(latches, pair[led], when[led], limit[led], walk)
        own = Trajectory.joined([own.rows(~np.isin(own.pair, state.pair)), state])
        own = own.rows(np.argsort(own.pair))
    pairs.latch(claim, own.pair, own.side)
    return own, limit


def _led(latches: StepDown, pair: Index, when: Index, limit: NDArray[np.float64], walk: Steps) -> Trajectory:
    """Return the steps at which pairs meet their thresholds again, or their states, with the largest evidence so far."""
    limit = limit - TOLERANCE
    state = walk.after(pair, when, limit)
    again, peak = (state.when == when) & (state.evidence >= limit), latches.peak[pair]
    return state._replace(
        when=when,
        evidence=np.where(again, state.evidence, np.abs(peak)),
        side=np.where(again, state.side, np.sign(peak)).astype(np.int64),
    )


def _events(
    pairs: PairState, latches: StepDown, pair: Index, rows: Trajectory
) -> tuple[Index, Index, NDArray[np.float64]]:
    """Return the pairs, ascending, the event at which each latches, and its threshold."""
    outside = np.isinf(rows.evidence) & (pairs.family_weights(rows.pair) == 0)
    certain = rows.rows(first(rows.pair, outside))
    latched = [(certain.pair, certain.when.astype(np.int64), np.full(certain.pair.size, np.inf))]
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
        latched.append((members[decisions.pair], decisions.when, decisions.threshold_log))
    pair, when, limit = (np.concatenate(x) for x in zip(*latched, strict=True))
    order = np.argsort(pair)
    return pair[order], when[order], limit[order]


def settle(pairs: PairState, certain: list[Trajectory], bets: Evident | None = None) -> Slices[Closed | None]:
    """Settle pairs by steps at which they are certain, and by bets along a committed order; return this in the log's order."""
    parts = [] if bets is None else (yield from _near(bets))
    for steps in certain:
        parts = [part.rows(~np.isin(part.pair, steps.pair)) for part in parts]
        parts.append(Peaks.of(steps.pair, steps.evidence, steps.side))
    if not parts:
        return None
    some = latching(pairs, "settled", Peaks.joined(parts))
    if not some.pair.size:
        return None
    yield False
    settled, limit = latch_together(pairs, "settled", some, _CertainOr(certain, bets))
    yield False
    return Closed.joined([Closed.of("settled", "settled", settled, limit)])


class _CertainOr:
    """The steps at which pairs are certain, next to their bets, if there are any."""

    def __init__(self, certain: list[Trajectory], bets: Evident | None) -> None:
        self._certain, self._bets = certain, bets

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:
        """Return the steps of both."""
        bets = [] if self._bets is None else [self._bets.reaching(pair, low, high)]
        return _in_order(Trajectory.joined([*self._certain, *bets]))

    def after(self, pair: Index, when: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs along their bets."""
        assert self._bets is not None  # what is certain needs no other pair to be settled
        return self._bets.after(pair, when, limit)


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


def _reverse(pairs: PairState, procedure: Procedure, walk: Walk, turning: Index, decided: Trajectory) -> Trajectory:
    """Reverse decisions in this chunk, and some of `turning`, at the first event after each at which the other model leads."""
    latch = pairs.latched[procedure]
    pair = np.union1d(turning[np.abs(latch[turning]) == 1], decided.pair)
    since = np.zeros(pair.size, np.int64)
    since[np.searchsorted(pair, decided.pair)] = decided.step
    turned = walk.turned(pair, latch[pair], since) if pair.size else Trajectory.nothing()
    latch[turned.pair] *= 2
    return turned


def _limits_at(pairs: PairState, turned: Trajectory, decided: Trajectory) -> NDArray[np.float64]:
    """Return ln 1/alpha_j of decided pairs after an event each: without the decisions of their families later in the chunk."""
    later = np.zeros(turned.pair.size, np.int64)
    when, weights, families = decided.when, pairs.family_weights(decided.pair), pairs.families(decided.pair)
    for family, own in pairs.by_family(turned.pair):
        some = np.flatnonzero(families == family)
        some = some[np.argsort(when[some], kind="stable")]
        spent = np.concatenate([np.zeros(1, np.int64), np.cumsum(weights[some])])  # up to each decision
        until = np.searchsorted(when[some], turned.when[own], side="right")
        later[own] = spent[-1] - spent[until]
    return pairs.family_thresholds(turned.pair, later)

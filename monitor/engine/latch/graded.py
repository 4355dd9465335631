"""Latches of graded scores: the most that a chunk can add rules pairs out; the others are computed event by event."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import NEVER, SLACK, Crossing, NewScores, Trajectory, close, in_log_order
from monitor.engine.state.codes import SCORE_UNIT
from monitor.engine.state.counts import Gains
from monitor.engine.state.graded import BETS, Capital, Differences, GradedPairs, capital_gained, differences_of
from monitor.engine.state.pair_state import PairState, Thresholds
from monitor.engine.state.pairs import Index, chosen, pair_index, pair_members
from stats.graded import graded_completion_bound, graded_log_e, log_increments

_SLAB_CELLS: Final = 2_000_000


def enter_graded(
    pairs: PairState, sums: GradedPairs, values: NDArray[np.int64], new: NewScores, gains: Gains, *, can_decide: bool
) -> list[Crossing]:
    """Add the items that pairs share since a chunk to their capital in `sums`, and close the latches they reach.

    The counts of the chunk are already added to `pairs`, and its new pairs registered. `values` are the scores of the codes, in units.
    """
    changed = np.flatnonzero(gains.n)
    pair = chosen(gains.pair, changed)
    members = pair_members(pair)
    start = pairs.n[pair] - gains.n[changed]
    closed: list[Crossing] = []
    step = max(1, _SLAB_CELLS // max(1, new.rows))
    for low in range(0, pair.size, step):
        i, j = (x[low : low + step] for x in members)
        times = new.shared(i, j)
        joined = (times >= 0) & (times < NEVER)
        differences = np.where(joined, differences_of(new.after[i], new.after[j], values), 0)
        closed += _enter_some(pairs, sums, (i, j), start[low : low + step], times, differences, can_decide=can_decide)
    return in_log_order(closed)


def _enter_some(
    pairs: PairState,
    sums: GradedPairs,
    members: tuple[Index, Index],
    start: NDArray[np.int32],
    times: NDArray[np.int16],
    differences: Differences,
    *,
    can_decide: bool,
) -> list[Crossing]:
    gained, most = capital_gained(differences)
    pair = pair_index(*members)
    capital, lead = sums.capital[pair], sums.lead[pair]
    sums.capital[pair] += gained
    sums.lead[pair] += differences.sum(axis=1)
    if not can_decide:
        return []
    threshold = pairs.log_thresholds(pair)
    limit = pairs.open_limits(pair, threshold)
    if pairs.spec.order.policy == "completion":
        # The bound never falls: its last value is the highest, and a decision never reverses.
        missing = pairs.missing(pairs.n[pair])
        reach = np.maximum(*graded_completion_bound(sums.capital[pair], missing)) >= limit - SLACK
    else:
        reach = graded_log_e(capital + most) >= limit - SLACK
        lowest, highest = (lead + part(differences, 0).sum(axis=1) for part in (np.minimum, np.maximum))
        reach |= pairs.may_reverse(pair, lowest, highest)
    candidates = np.flatnonzero(reach)
    closed: list[Crossing] = []
    longest = int(((times >= 0) & (times < NEVER)).sum(axis=1).max(initial=1))
    step = max(1, _SLAB_CELLS // (BETS * max(1, longest)))
    for low in range(0, candidates.size, step):
        some = candidates[low : low + step]
        limits = {procedure: values[some] for procedure, values in threshold.items()}
        before = (start[some], capital[some], lead[some])
        of = (members[0][some], members[1][some])
        closed += _replay(pairs, of, before, times[some], differences[some], limits)
    return closed


def _replay(
    pairs: PairState,
    members: tuple[Index, Index],
    before: tuple[NDArray[np.int32], Capital, NDArray[np.int64]],
    times: NDArray[np.int16],
    differences: Differences,
    threshold: Thresholds,
) -> list[Crossing]:
    """Close the latches of some pairs event by event."""
    n0, capital0, lead0 = before
    joined = (times >= 0) & (times < NEVER)
    length = int(joined.sum(axis=1).max(initial=0))
    order = np.argsort(np.where(joined, times, NEVER), axis=1, kind="stable")[:, :length]
    along = np.take_along_axis(differences, order, axis=1)
    happened = np.take_along_axis(joined, order, axis=1)
    distinct, index = np.unique(along, return_inverse=True)
    steps = log_increments(distinct / SCORE_UNIT)[index.reshape(along.shape)]
    capital = capital0[:, None] + np.cumsum(steps, axis=1)
    n = n0[:, None] + np.cumsum(happened, axis=1, dtype=np.int32)
    lead = lead0[:, None] + np.cumsum(along, axis=1)
    if pairs.spec.order.policy == "completion":
        missing = pairs.missing(n)
        for_first, for_second = graded_completion_bound(capital, missing)
        evidence, side = np.maximum(for_first, for_second), np.where(for_first >= for_second, 1, -1)
    else:
        missing, evidence, side = np.zeros_like(n), graded_log_e(capital), np.sign(lead)
    when = np.take_along_axis(times, order, axis=1)
    at = np.nonzero(happened)
    none = np.zeros(at[0].size, np.int32)
    trajectory = Trajectory(at[0], when[at], n[at], none, none, lead[at], missing[at], evidence[at], side[at])
    return close(pairs.latched, members, trajectory, threshold)

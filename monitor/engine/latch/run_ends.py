"""Latches at the end of runs, where what is missing was declared ignorable: pairs are judged on the items they share."""

import numpy as np

from monitor.engine.latch.base import Crossing, Trajectory, close, in_log_order
from monitor.engine.state.graded import GradedPairs
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import Index, pair_members
from stats.eprocess import log_e_value, log_leader_bound
from stats.graded import graded_completion_bound


def crossings_at_end(pairs: PairState, graded: GradedPairs | None, pair: Index) -> list[Crossing]:
    """Close the latches that pairs of ended runs reach with nothing missing; the event is the first of its batch."""
    pair = pair[(pairs.n[pair] > 0) & ~pairs.closed[pair] & pairs.comparable(pair)]
    n, b, c = pairs.n[pair], pairs.b[pair], pairs.c[pair]
    none = np.zeros_like(n)
    lead, side = b - c, np.sign(b - c)
    if graded is not None:
        for_first, for_second = graded_completion_bound(graded.capital[pair], none)
        evidence, lead = np.maximum(for_first, for_second), graded.lead[pair]
        b = c = none
        side = np.where(for_first >= for_second, 1, -1)
    elif pairs.spec.order.policy == "completion":
        evidence = log_leader_bound(b, c, none, pairs.spec.mixture)
    else:
        evidence = log_e_value(b, c, pairs.spec.mixture)
    trajectory = Trajectory(np.arange(pair.size), none.astype(np.int16), n, b, c, lead, none, evidence, side)
    return in_log_order(close(pairs.latched, pair_members(pair), trajectory, pairs.log_thresholds(pair)))

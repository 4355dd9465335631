"""Latches of pairs that are judged all at once: at the end of runs, on the items they share, and when a benchmark is declared again."""

import numpy as np

from monitor.engine.latch.base import Crossing, Trajectory, close, in_log_order
from monitor.engine.state.graded import GradedPairs
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import Index, pair_members
from stats.eprocess import log_e_value, log_leader_bound
from stats.graded import graded_completion_bound, graded_log_e


def crossings_at_once(pairs: PairState, graded: GradedPairs | None, pair: Index, *, ignored: bool) -> list[Crossing]:
    """Close the latches that pairs reach with their present sums; the event is the first of its batch.

    `ignored`: what is missing does not count against the leader under policy completion.
    """
    pair = pair[(pairs.n[pair] > 0) & ~pairs.closed[pair] & pairs.comparable(pair)]
    n, b, c = pairs.n[pair], pairs.b[pair], pairs.c[pair]
    none = np.zeros_like(n)
    complete = pairs.spec.order.policy == "completion"
    missing = pairs.missing(n) if complete and not ignored else none
    lead, side = b - c, np.sign(b - c)
    if graded is not None:
        capital, lead = graded.capital[pair], graded.lead[pair]
        b = c = none
        if complete:
            for_first, for_second = graded_completion_bound(capital, missing)
            evidence, side = np.maximum(for_first, for_second), np.where(for_first >= for_second, 1, -1)
        else:
            evidence, side = graded_log_e(capital), np.sign(lead)
    elif complete:
        evidence = log_leader_bound(b, c, missing, pairs.spec.mixture)
    else:
        evidence = log_e_value(b, c, pairs.spec.mixture)
    trajectory = Trajectory(np.arange(pair.size), none.astype(np.int16), n, b, c, lead, missing, evidence, side)
    return in_log_order(close(pairs.latched, pair_members(pair), trajectory, pairs.log_thresholds(pair)))

"""Steps from which on it is known who leads on all items of the benchmark.

It is certain once the items missing cannot bring the lead back to 0. Along a committed order it is known earlier: there bets on items drawn
without replacement count (`stats.evidence.settled`).
"""

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Trajectory
from monitor.engine.latch.new_scores import BEFORE, is_certain
from monitor.engine.state.graded import GradedPairs
from monitor.engine.state.pairs.pair_state import PairState
from stats.evidence.settled import TIE
from stats.numerics.pairs import Index


def newly_certain(pairs: PairState, graded: GradedPairs | None, pair: Index) -> Index:
    """Return which of some pairs have just become certain: they are open, not settled, and nothing missing can undo their lead."""
    if not pair.size:
        return pair
    n = pairs.n[pair]
    if graded is None:
        pair = pair[is_certain(pairs.b[pair] - pairs.c[pair], pairs.missing(n).astype(np.int64))]
    else:
        pair = pair[is_certain(graded.lead[pair], graded.room(pair, pairs.missing(n)), graded.rounding(n))]
    pair = pair[(pairs.claims["settled"].side[pair] == 0) & ~pairs.closed[pair]]
    return np.sort(pair[pairs.comparable(pair)])


def certain_steps(pairs: PairState, steps: Trajectory) -> Trajectory:
    """Return the first of the steps of each pair at which it is certain, with infinite evidence; for 0/1 scores that count the same."""
    return certain_along(pairs, steps, pairs.missing(steps.n).astype(np.int64))


def certain_along(
    pairs: PairState, steps: Trajectory, room: NDArray[np.int64], rounding: NDArray[np.int64] | int = 0
) -> Trajectory:
    """Return the first certain step of each pair, given how far missing items can move the lead, and what of it is rounding."""
    certain = np.flatnonzero(is_certain(steps.lead, room, rounding) & (steps.when > BEFORE))
    level = np.abs(steps.lead) <= rounding
    certain = certain[np.unique(steps.pair[certain], return_index=True)[1]]
    steps, level = steps.rows(certain), level[certain]
    side = np.where(level, TIE, np.sign(steps.lead)).astype(np.int64)
    return steps._replace(missing=pairs.missing(steps.n), evidence=np.full(side.shape, np.inf), side=side)

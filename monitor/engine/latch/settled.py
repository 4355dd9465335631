"""Steps from which on it is known who leads on all items of the benchmark.

It is certain once the items missing cannot bring the lead back to 0. Along a committed order it is known earlier: there bets on items drawn
without replacement count (`stats.settled`).
"""

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import BEFORE, Trajectory
from monitor.engine.state.codes import SCORE_UNIT, Counts
from monitor.engine.state.graded import GradedPairs
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import Index
from stats.settled import TIE


def newly_certain(pairs: PairState, graded: GradedPairs | None, pair: Index) -> Index:
    """Return which of some pairs have just become certain: they are open, not settled, and nothing missing can undo their lead."""
    if not pair.size:
        return pair
    lead = pairs.b[pair] - pairs.c[pair] if graded is None else graded.lead[pair]
    pair = pair[_is_certain(pairs, pairs.n[pair], lead)]
    pair = pair[(pairs.claims["settled"].side[pair] == 0) & ~pairs.closed[pair]]
    return np.sort(pair[pairs.comparable(pair)])


def certain_steps(pairs: PairState, steps: Trajectory) -> Trajectory:
    """Return the first of the steps of each pair at which it is certain, with infinite evidence."""
    certain = np.flatnonzero(_is_certain(pairs, steps.n, steps.lead) & (steps.when > BEFORE))
    steps = steps.rows(certain[np.unique(steps.pair[certain], return_index=True)[1]])
    side = np.where(steps.lead == 0, TIE, np.sign(steps.lead)).astype(np.int64)
    return steps._replace(missing=pairs.missing(steps.n), evidence=np.full(side.shape, np.inf), side=side)


def _is_certain(pairs: PairState, n: Counts, lead: NDArray[np.int64] | Counts) -> NDArray[np.bool_]:
    missing = pairs.missing(n).astype(np.int64)
    unit = SCORE_UNIT if pairs.graded else 1
    return np.asarray((np.abs(lead) > missing * unit) | ((missing == 0) & (lead == 0)))

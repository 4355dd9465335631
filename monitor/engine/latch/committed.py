"""Latches along a committed order: the evidence at every item of a prefix counts, in the order of the permutation.

For the first model a skipped item bets the lowest difference it allows, for the second one the highest. So the evidence is the sum of two
parts: e+ at (b, c_worst) and e- at (b_best, c), each with its weight in the mixture. With nothing skipped it is e(b, c).
"""

from collections.abc import Iterator
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import BEFORE, SLACK, Trajectory, may_reach
from monitor.engine.state.committed import Advance, Committed, Sums
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import Index, pair_index, pair_members
from stats.eprocess import log_completion_bound, log_e_value
from stats.mixtures import parse_mixture

_SLAB_CELLS: Final = 2_000_000
_LN2: Final = log(2.0)

Counts = NDArray[np.int32] | NDArray[np.int64]


def prefix_log_e(b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str) -> NDArray[np.float64]:
    """Return ln of the two-sided evidence."""
    log_e = log_e_value(b, c, mixture)
    skipped = np.nonzero((c_worst != c) | (b_best != b))
    if skipped[0].size:
        log_e[skipped] = np.logaddexp(*_halves(b[skipped], c[skipped], c_worst[skipped], b_best[skipped], mixture))
    return log_e


def _halves(
    b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ln of the two parts of the evidence, for the first model and for the second; their sum is the e-value."""
    return log_completion_bound(b, c_worst, 0, mixture)[0], log_completion_bound(b_best, c, 0, mixture)[1]


def _sides(b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str) -> NDArray[np.int64]:
    """Return for whom the evidence is: 1 for the first model, -1 for the second."""
    side = np.where(b >= c, 1, -1)
    unclear = (c_worst != c) | (b_best != b) | (not parse_mixture(mixture).symmetric)
    if unclear.any():
        for_first, for_second = _halves(b[unclear], c[unclear], c_worst[unclear], b_best[unclear], mixture)
        side[unclear] = np.where(for_first >= for_second, 1, -1)
    return side


class CommittedWalk:
    """The trajectories of the pairs whose prefixes grow in a chunk."""

    def __init__(self, pairs: PairState, committed: Committed, advance: Advance) -> None:
        self._pairs, self._committed, self._advance = pairs, committed, advance
        self._pair = pair_index(advance.i, advance.j)

    def near(self) -> Iterator[Trajectory]:
        """Yield the steps at which a latch may close."""
        advance = self._advance
        limit = self._pairs.limits(self._pair)
        candidates = np.flatnonzero(_reach(self._pairs, self._committed, advance, self._pair, limit))
        length = advance.stop - advance.start
        step = max(1, _SLAB_CELLS // max(1, int(length[candidates].max(initial=0))))
        for start in range(0, candidates.size, step):
            some = candidates[start : start + step]
            yield self._steps(some, limit[some])

    def whole(self, pair: Index) -> Trajectory:
        """Return every step of some pairs."""
        order = np.argsort(self._pair)
        place = order[np.searchsorted(self._pair, pair, sorter=order).clip(max=self._pair.size - 1)]
        grown = self._pair[place] == pair
        steps = self._steps(place[grown], np.zeros(int(grown.sum())))
        sums = {name: values[pair] for name, values in self._committed.sums.items()}
        prefix = self._committed.prefix(*pair_members(pair))
        at = place[grown]
        for name, values in sums.items():
            values[grown] = self._advance.before[name][at]
        prefix[grown] -= (self._advance.stop - self._advance.start)[at]
        start = self._trajectory(pair, np.full(pair.size, BEFORE), sums, prefix)
        both = Trajectory(*(np.concatenate(columns) for columns in zip(start, steps, strict=True)))
        return both.rows(np.argsort(both.pair, kind="stable"))

    def _steps(self, some: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs along the permutation at which they may reach a limit or reverse."""
        advance, (of, step, when, sums) = self._advance, self._advance.along(some)
        near = _may_reach(sums["b"], sums["c_worst"], sums["b_best"], sums["c"], limit[of])
        near |= np.abs(sums["b"] - sums["c"]) == 1  # the lead moves by one item: it reverses nowhere else
        near |= (step == 0) | (limit[of] <= 0)
        pair, before = self._pair[some], self._committed.prefix(advance.i[some], advance.j[some])
        before -= (advance.stop - advance.start)[some]
        of, step, when = of[near], step[near], when[near]
        return self._trajectory(pair[of], when, {name: x[near] for name, x in sums.items()}, before[of] + step + 1)

    def _trajectory(self, pair: Index, when: Index, sums: Sums, prefix: Index) -> Trajectory:
        mixture = self._pairs.spec.mixture
        n, b, c, c_worst, b_best = (sums[name] for name in ("n", "b", "c", "c_worst", "b_best"))
        return Trajectory(
            pair=pair,
            when=when,
            n=n,
            b=b,
            c=c,
            lead=b - c,
            missing=(prefix - n).astype(np.int32),
            evidence=prefix_log_e(b, c, c_worst, b_best, mixture),
            side=_sides(b, c, c_worst, b_best, mixture),
        )


def _reach(
    pairs: PairState, committed: Committed, advance: Advance, pair: Index, limit: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which pairs may close a latch: each part of the evidence is largest at a corner of its counts."""
    mixture, before = pairs.spec.mixture, advance.before
    b1, c1 = (committed.sums[name][pair] for name in ("b", "c"))
    reach = _may_reach(b1, before["c_worst"], before["b_best"], c1, limit)
    some = np.flatnonzero(reach)
    for_first = log_completion_bound(b1[some], before["c_worst"][some], 0, mixture)[0]
    for_second = log_completion_bound(before["b_best"][some], c1[some], 0, mixture)[1]
    reach[some] = np.logaddexp(for_first, for_second) >= limit[some] - SLACK
    return reach | pairs.may_reverse(pair, before["b"] - c1, b1 - before["c"])


def _may_reach(
    b: NDArray[np.int32],
    c_worst: NDArray[np.int32],
    b_best: NDArray[np.int32],
    c: NDArray[np.int32],
    limit: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Rule out most evidence that is below a limit: the sum of two parts reaches it only if the larger one reaches half of it."""
    return may_reach(b, c_worst, limit - _LN2) | may_reach(b_best, c, limit - _LN2)

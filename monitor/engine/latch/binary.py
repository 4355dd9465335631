"""Latches of 0/1 scores.

Sums do not depend on the order inside a chunk; latches do. Whole numbers rule most pairs out. Then the corners do: ln e is convex in
(b, c), so over the rectangle that contains a trajectory it is largest at a corner. The remaining pairs are followed step by step.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import SLACK, Peaks, Trajectory, by_pair
from monitor.engine.latch.paths import Evidence, KeptPaths, NewScores, Paths, Sums, paths
from monitor.engine.state.pairs.counts import Gains
from monitor.engine.state.pairs.pair_state import PairState
from schemas.results.changes import PROCEDURES
from stats.numerics.pairs import Index, among, chosen

_SLAB_PAIRS: Final = 32_768


class BinaryWalk:
    """The trajectories of 0/1 scores through a chunk; its sums are already added to `pairs`, and its new pairs registered."""

    def __init__(self, pairs: PairState, evidence: Evidence, new: NewScores, gains: Gains) -> None:
        self._pairs, self._evidence, self._gains = pairs, evidence, gains
        self._paths = KeptPaths(lambda pair: paths(new, pair, self._before(pair), evidence.cells))
        self._crossing: list[Trajectory] = []

    def near(self) -> Iterator[Peaks]:
        """Yield the pairs of which a latch may close."""
        pairs, evidence = self._pairs, self._evidence
        for near, turns in _near(pairs, evidence, self._gains):
            yield Peaks.turning(turns)
            pair = chosen(self._gains.pair, near)
            after = Sums(pairs.n[pair], pairs.b[pair], pairs.c[pair])
            limit, alone = pairs.open_limits(pair)
            if evidence.final:
                yield Peaks(pair, evidence.at(after, limit), np.sign(after.b - after.c), np.zeros(pair.size, bool))
                continue
            before = Sums(*(x - gain[near] for x, gain in zip(after, self._gains[1:], strict=True)))
            candidates = np.flatnonzero(_highest(evidence, before, after, limit) >= limit - SLACK)
            pair, limit, alone = pair[candidates], limit[candidates], alone[candidates]
            for path in self._paths.new(pair):
                (of, step), crossing = evidence.highest(path, limit[path.place], alone[path.place])
                self._crossing.append(self._steps(pair, path, *crossing))
                sums = path.sums(of, step)
                yield Peaks.of(pair[path.place[of]], evidence.exact(sums), np.sign(sums.b - sums.c))

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs with evidence from `low` on, up to the first from `high` on."""
        evidence = self._evidence
        parts = [
            self._steps(pair, rows, *evidence.reaching(rows, low[rows.place], high[rows.place]))
            for rows in self._paths.rows(pair)
        ]
        return self._exact(by_pair(parts))

    def crossing(self, pair: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the steps of pairs that are not decided on their own, around ln 1/alpha up to the first from there on."""
        if self._evidence.final:
            return self.reaching(pair, limit, limit)
        return self._exact(by_pair([steps.rows(among(pair, steps.pair)[0]) for steps in self._crossing]))

    def after(self, pair: Index, when: Index, limit: NDArray[np.float64]) -> Trajectory:  # noqa: ARG002 - one step an event
        """Return the state of some pairs after an event each."""
        parts = []
        for rows in self._paths.rows(pair):
            of, step = np.arange(rows.place.size), rows.number(when[rows.place])
            parts.append(self._steps(pair, rows, of, step))
        return self._exact(by_pair(parts))

    def turned(self, pair: Index, side: NDArray[np.integer[Any]], since: Index) -> Trajectory:
        """Return the first step against a side of those of some pairs that have one."""
        turns = self._paths.first_against(pair, side, since)
        return self._exact(by_pair([self._steps(pair, rows, of, step) for rows, of, step in turns]))

    def certain(self, pair: Index) -> Trajectory:
        """Return the first step from which on no missing item can undo the lead, for those of some pairs that have one."""
        missing = self._pairs.missing
        parts = []
        for rows in self._paths.rows(pair):
            of, step = rows.first_certain(missing(rows.n))
            parts.append(self._steps(pair, rows, of, step))
        return by_pair(parts)

    def _exact(self, steps: Trajectory) -> Trajectory:
        return steps._replace(evidence=self._evidence.exact(Sums(steps.n, steps.b, steps.c)))

    def _before(self, pair: Index) -> Sums:
        """Return the sums of some pairs before the chunk."""
        pairs, gains = self._pairs, self._gains.of(pair)
        return Sums(*(x[pair] - gain for x, gain in zip((pairs.n, pairs.b, pairs.c), gains, strict=True)))

    def _steps(self, pair: Index, path: Paths, of: Index, step: Index) -> Trajectory:
        """Return some points of paths as steps without evidence."""
        n, b, c = path.sums(of, step)
        when, lead = path.positions(of, step), b - c
        nothing = np.full(of.size, -np.inf)
        return Trajectory(
            pair[path.place[of]], when, n, b, c, lead, self._evidence.missing(n), nothing, np.sign(lead), step
        )


def _near(pairs: PairState, evidence: Evidence, gains: Gains) -> Iterator[tuple[Index, Index]]:
    """Yield places among the gains of pairs that whole numbers do not rule out, some at a time, and the pairs that may reverse."""
    size = gains.n.size
    for start in range(0, size, _SLAB_PAIRS):
        part = slice(start, min(start + _SLAB_PAIRS, size))
        pair = part if isinstance(gains.pair, slice) else gains.pair[part]
        after = Sums(pairs.n[pair], pairs.b[pair], pairs.c[pair])
        before = Sums(*(x - gain[part] for x, gain in zip(after, gains[1:], strict=True)))
        undecided = np.logical_or.reduce([pairs.latched[procedure][pair] == 0 for procedure in PROCEDURES])
        some = np.flatnonzero(undecided & evidence.may_decide(before, after) & (gains.n[part] > 0)) + start
        turns = np.zeros(0, np.int64)
        if not evidence.final:
            turns = np.flatnonzero(pairs.may_reverse(pair, before.b - after.c, after.b - before.c)) + start
        if some.size or turns.size:
            yield some, chosen(gains.pair, turns)


def _highest(evidence: Evidence, low: Sums, high: Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the highest evidence possible between two points; minus infinity where it is certainly below a limit."""
    corners = Sums(*(np.stack(x) for x in ((high.n, high.n), (high.b, low.b), (low.c, high.c))))
    return np.asarray(evidence.at(corners, np.stack([limit, limit])).max(axis=0))

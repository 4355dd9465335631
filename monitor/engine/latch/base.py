"""What all latches share: new scores by time, and trajectories of pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import ONE, ZERO, Codes, Counts
from monitor.engine.state.pairs import Index
from schemas.results.changes import CLAIMS, KINDS, Claim, Kind
from stats.evidence.eprocess import log_e_value

STATISTICS_VERSION: Final = 5
"""Version of everything a latch depends on; a state of another version is refused."""

Times = NDArray[np.int16]
NEVER: Final = np.iinfo(np.int16).max
"""Later than any position in a chunk: a chunk has at most 8,000, and four times as many fit."""
ALWAYS: Final = -1
BEFORE: Final = -1
"""The time of the state before a chunk."""
SLACK: Final = 1e-9
"""Evidence this close below a threshold is computed exactly: rounding must not rule a latch out."""
_SLAB_CELLS: Final = 500_000
_LN2: Final = log(2.0)


@dataclass(frozen=True)
class NewScores:
    """The new scores of a chunk and the rows they are in, shape (contestants, rows): the scores of a contestant are contiguous."""

    time: Times
    """Position of each score in the chunk; ALWAYS if it was there before, NEVER if it is absent or skipped."""
    after: Codes
    """The rows with the new scores."""
    row: Index
    """The row of each new score, by contestant."""
    count: Index
    """Number of new scores of each contestant."""

    @classmethod
    def of(cls, before: Codes, after: Codes, row: Index, contestant: Index, position: Index) -> "NewScores":
        """Lay out new scores by time; `before` and `after` have shape (rows, contestants)."""
        time = np.where(before.T.copy() >= ZERO, np.int16(ALWAYS), np.int16(NEVER))
        time[contestant, row] = position
        order = np.argsort(contestant, kind="stable")
        return cls(time, after.T.copy(), row[order], np.bincount(contestant, minlength=len(time)))

    @property
    def rows(self) -> int:
        """Number of rows with new scores."""
        return int(self.time.shape[1])

    def shared(self, i: Index, j: Index) -> Times:
        """Return when pairs came to share each row, shape (pairs, rows)."""
        times = self.time[i]
        return np.maximum(times, self.time[j], out=times)

    @cached_property
    def _marks(self) -> Times:
        """Four times the time of each score, and 1 where it is right or 2 where it is wrong; NEVER stays the latest."""
        marks = self.time * np.int16(4)
        marks += self.after == ONE
        marks += (self.after == ZERO).view(np.int8) * np.int8(2)
        np.copyto(marks, NEVER, where=self.time == NEVER)
        return marks

    def meetings(self, i: Index, j: Index) -> Times:
        """Return four times when pairs came to share rows, and 1 where only i is right or 2 where only j is; in no order, padded by NEVER.

        A new score meets those of the other model that were there before it. Few rows have new scores of a pair.
        """
        (rows, marks), every = self._new, self._marks.reshape(-1)
        many = self.count[i] >= self.count[j]
        sides = []
        for of in (many, ~many):
            own, other = np.where(of, i, j), np.where(of, j, i)
            width = int(self.count[own].max(initial=0))
            mine, theirs = marks[own, :width], every.take(rows[own, :width] + (other * self.rows)[:, None])
            one_right = (mine & 3) + (theirs & 3) == 3
            outcome = np.where(of[:, None], mine, theirs) & np.where(one_right, np.int16(3), np.int16(0))
            mine &= ~np.int16(3)
            sides.append(np.where(theirs < mine, mine | outcome, NEVER))
        return np.concatenate(sides, axis=1)

    @cached_property
    def _new(self) -> tuple[Index, Times]:
        """The rows of the new scores of each contestant and their marks, which lie before all others where it has fewer."""
        step = np.arange(int(self.count.max(initial=0)))
        place = (np.cumsum(self.count) - self.count)[:, None] + step
        rows = self.row.take(place, mode="clip")
        marks = np.take_along_axis(self._marks, rows, axis=1)
        marks[step >= self.count[:, None]] = np.iinfo(np.int16).min
        return rows, marks

    def first_shared(self, i: Index, j: Index) -> Times:
        """Return when pairs that shared nothing before got their first shared item, shape (pairs,)."""
        first = np.empty(i.size, np.int16)
        step = max(1, _SLAB_CELLS // max(1, self.rows))
        for start in range(0, i.size, step):
            self.shared(i[start : start + step], j[start : start + step]).min(axis=1, out=first[start : start + step])
        return first


class Sums(NamedTuple):
    """Counts of pairs at one point of their trajectories; arrays of one shape."""

    n: Counts
    b: Counts
    c: Counts


class Evidence(Protocol):
    """The evidence of 0/1 scores under one order policy: ln e, or -ln p."""

    final: bool
    """Whether evidence never falls along a trajectory, so that a decision never reverses."""
    symmetric: bool
    """Whether evidence only grows while the lead does."""

    def may_decide(self, before: Sums, after: Sums) -> NDArray[np.bool_]:
        """Rule out, cheaply, most pairs whose evidence stays below ln 1/alpha between two points."""

    def at(self, sums: Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the evidence at points; minus infinity where it is certainly below a limit."""

    def exact(self, sums: Sums) -> NDArray[np.float64]:
        """Return the evidence at points."""

    def missing(self, n: Counts) -> Counts:
        """Return the items counted against the leader, given the shared ones."""


class Trajectory(NamedTuple):
    """Steps of pairs through a chunk at which a latch may close; arrays of shape (steps,), by pair, then by time."""

    pair: Index  # the pair of each step
    when: NDArray[np.integer[Any]]  # position of its event in the chunk; BEFORE for the state before the chunk
    n: Counts
    b: Counts
    c: Counts
    lead: Counts | NDArray[np.int64]  # b - c, or the sum of D in units of graded scores, which have no b and c
    missing: Counts
    evidence: NDArray[np.float64]
    side: NDArray[np.integer[Any]]

    def rows(self, some: Index | NDArray[np.bool_] | slice) -> "Trajectory":
        """Return some of the steps."""
        columns: Any = (x[some] for x in self)
        return Trajectory(*columns)

    @classmethod
    def joined(cls, parts: Sequence["Trajectory"]) -> "Trajectory":
        """Return all steps of some trajectories."""
        return parts[0] if len(parts) == 1 else cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class Closed(NamedTuple):
    """Latches that closed in a chunk; arrays of shape (latches,)."""

    claim: NDArray[np.int8]  # place in CLAIMS
    kind: NDArray[np.int8]  # place in KINDS
    steps: Trajectory  # the step at which each closed, with the evidence that it rests on
    threshold: NDArray[np.float64]

    @classmethod
    def of(cls, claim: Claim, kind: Kind, steps: Trajectory, threshold: NDArray[np.float64]) -> "Closed":
        """Return latches of one claim and kind."""
        size = steps.pair.size
        return cls(
            np.full(size, CLAIMS.index(claim), np.int8), np.full(size, KINDS.index(kind), np.int8), steps, threshold
        )

    @classmethod
    def joined(cls, parts: list["Closed"]) -> "Closed":
        """Return all latches of some parts in the order of the log; those of one event and pair in the order of the parts."""
        claim, kind, steps, threshold = zip(*parts, strict=True)
        joined = cls(np.concatenate(claim), np.concatenate(kind), Trajectory.joined(steps), np.concatenate(threshold))
        return joined.rows(np.lexsort((joined.steps.pair, joined.steps.when)))

    def rows(self, some: Index | slice) -> "Closed":
        """Return some of the latches."""
        return Closed(self.claim[some], self.kind[some], self.steps.rows(some), self.threshold[some])

    def names(self) -> list[tuple[Claim, Kind]]:
        """Return the claim and the kind of each."""
        codes = zip(self.claim.tolist(), self.kind.tolist(), strict=True)
        return [(CLAIMS[claim], KINDS[kind]) for claim, kind in codes]


class Peaks(NamedTuple):
    """The largest evidence of pairs in a chunk; arrays of shape (pairs,)."""

    pair: Index
    evidence: NDArray[np.float64]  # minus infinity where none matters
    side: NDArray[np.integer[Any]]  # for whom it is: of equal steps, at the earliest
    turns: NDArray[np.bool_]  # whether the lead of a decided pair may reverse

    @classmethod
    def of(cls, pair: Index, evidence: NDArray[np.float64], side: NDArray[np.integer[Any]]) -> "Peaks":
        """Return the largest evidence of each pair, given its steps by pair, then by time."""
        starts = np.flatnonzero(np.diff(pair, prepend=-1))
        turns = np.zeros(starts.size, bool)
        if not starts.size:
            return cls(pair, evidence, side, turns)
        largest = np.maximum.reduceat(evidence, starts)
        steps = np.flatnonzero(evidence == np.repeat(largest, np.diff(starts, append=pair.size)))
        earliest = steps[np.flatnonzero(np.diff(pair[steps], prepend=-1))]
        return cls(pair[starts], largest, side[earliest], turns)

    @classmethod
    def turning(cls, pair: Index) -> "Peaks":
        """Return pairs that may reverse; what evidence there is does not matter."""
        none = np.full(pair.size, -np.inf)
        return cls(pair, none, np.zeros(pair.size, np.int64), np.ones(pair.size, bool))

    @classmethod
    def joined(cls, parts: Sequence["Peaks"]) -> "Peaks":
        """Return the peaks of several sets of pairs."""
        return parts[0] if len(parts) == 1 else cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def rows(self, some: Index | NDArray[np.bool_]) -> "Peaks":
        """Return some of the pairs."""
        columns: Any = (x[some] for x in self)
        return Peaks(*columns)


class Walk(Protocol):
    """The trajectories of the pairs of a benchmark through one chunk, whose scores are already added to the sums."""

    def near(self) -> Iterator[Peaks]:
        """Yield all pairs of which a latch may close, some at a time.

        These are the pairs with evidence from `PairState.limits` on, and decided ones that may reverse.
        """

    def counts(self, pair: Index) -> Trajectory:
        """Return every step of some pairs (ascending), by pair, and their state before the chunk as a step at BEFORE.

        They may have no evidence.
        """

    def whole(self, pair: Index) -> Trajectory:
        """Return the same steps with their evidence; it may be minus infinity where it is below ln 1/alpha."""

    def exact(self, steps: Trajectory) -> Trajectory:
        """Return some of the steps of `whole` with their evidence, however small it is."""


def may_reach(b: Counts, c: Counts, log_threshold: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rule out, for any mixture, most pairs that cannot have ln e >= threshold: no mixture exceeds the largest likelihood ratio.

    ln max_theta 2^m theta^b (1 - theta)^c = m KL(b/m, 1/2) <= ln 2 (b - c)^2 / m.
    """
    difference = (b - c).astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity times nothing: never reached
        large = _LN2 * difference * difference >= log_threshold * (b + c) * (1 - 1e-9)
    return np.asarray(large & (difference != 0))


def log_e_from(b: Counts, c: Counts, limit: NDArray[np.float64], mixture: str) -> NDArray[np.float64]:
    """Return ln e; minus infinity where it is certainly below a limit."""
    log_e = np.full(limit.shape, -np.inf)
    some = np.nonzero(may_reach(b, c, limit))
    log_e[some] = log_e_value(b[some], c[some], mixture)
    return log_e

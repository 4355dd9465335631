"""What all latches share: trajectories of pairs, and what closes on them."""

from collections.abc import Iterator, Sequence
from math import log
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Counts
from schemas.results.changes import CLAIMS, KINDS, Claim, Kind
from stats.evidence.eprocess import log_e_value
from stats.numerics.pairs import Index

SLACK: Final = 1e-9
"""Evidence this close below a threshold is computed exactly: rounding must not rule a latch out."""
_LN2: Final = log(2.0)


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
    step: NDArray[np.integer[Any]]  # its number in the chunk, 0 for the state before it

    def rows(self, some: Index | NDArray[np.bool_] | slice) -> "Trajectory":
        """Return some of the steps."""
        columns: Any = (x[some] for x in self)
        return Trajectory(*columns)

    @classmethod
    def nothing(cls) -> "Trajectory":
        """Return no steps."""
        none, counts = np.zeros(0, np.int64), np.zeros(0, np.int32)
        return cls(none, none, counts, counts, counts, counts, counts, np.zeros(0), none, none)

    @classmethod
    def joined(cls, parts: Sequence["Trajectory"]) -> "Trajectory":
        """Return all steps of some trajectories."""
        return parts[0] if len(parts) == 1 else cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def by_pair(parts: list[Trajectory]) -> Trajectory:
    """Return all steps of some parts, by pair."""
    if not parts:
        return Trajectory.nothing()
    joined = Trajectory.joined(parts)
    ascending = (joined.pair[1:] >= joined.pair[:-1]).all()
    return joined if ascending else joined.rows(np.argsort(joined.pair, kind="stable"))


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


class Steps(Protocol):
    """The trajectories of the pairs of a benchmark through one chunk, whose scores are already added to the sums."""

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs (ascending) with evidence from `low` on, up to the first from `high` on, by pair, then by time.

        Further steps may be among them; their evidence may be minus infinity where it is below `low`. Steps that do not exceed all before
        them may be missing.
        """

    def after(self, pair: Index, when: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the step of some pairs (ascending) that reaches a limit at an event each, or the state after the event if none does.

        The evidence of a state, and for whom it is, may be missing.
        """


class Evident(Steps, Protocol):
    """Trajectories with evidence."""

    def near(self) -> Iterator[Peaks]:
        """Yield all pairs of which a latch may close, some at a time.

        These are the pairs with evidence from `PairState.limits` on, and decided ones that may reverse.
        """


class Walk(Evident, Protocol):
    """Trajectories on which pairs are decided."""

    def crossing(self, pair: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return `reaching` of pairs that are near and not decided on their own, up to the first step from ln 1/alpha on."""

    def turned(self, pair: Index, side: NDArray[np.integer[Any]], since: Index) -> Trajectory:
        """Return the first step at which the lead is against a side, for those of some pairs (ascending) that have one after a step."""


def reaching_or_last(steps: Trajectory, when: Index, limit: NDArray[np.float64]) -> Trajectory:
    """Return the first step of each pair that reaches a limit at an event, or its last step up to the event."""
    starts = np.flatnonzero(np.diff(steps.pair, prepend=-1))
    sizes = np.diff(starts, append=steps.pair.size)
    when, limit = np.repeat(when, sizes), np.repeat(limit, sizes)
    chosen = starts + np.add.reduceat(steps.when <= when, starts, dtype=np.int64) - 1
    reached = first(steps.pair, (steps.when == when) & (steps.evidence >= limit))
    chosen[np.searchsorted(starts, reached, side="right") - 1] = reached
    return steps.rows(chosen)


def rising(evidence: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which steps exceed all before them, shape (pairs, steps)."""
    exceeds = np.ones(evidence.shape, bool)
    np.greater(evidence[:, 1:], np.maximum.accumulate(evidence[:, :-1], axis=1), out=exceeds[:, 1:])
    return exceeds


def first_against(steps: Trajectory, pair: Index, side: NDArray[np.integer[Any]], since: Index) -> Trajectory:
    """Return the first step of each pair, after one of them, at which the lead is against a side; `steps` are all of the pairs."""
    place = np.searchsorted(pair, steps.pair)
    against = (side[place] * np.sign(steps.lead) < 0) & (steps.step > since[place])
    return steps.rows(first(steps.pair, against))


def first(pair: Index, closes: NDArray[np.bool_]) -> Index:
    """Return each pair's first step that closes a latch; steps are by pair, then by time."""
    some = np.flatnonzero(closes)
    return some[np.flatnonzero(np.diff(pair[some], prepend=-1))]


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

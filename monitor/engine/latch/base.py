"""Latches: the first event at which the evidence for a pair reaches its threshold, whatever the chunking.

What is common to all order policies and kinds of scores: places in the family, thresholds, and closing latches on the way of pairs through
a chunk. The ways themselves are laid out by `binary_latches`, `committed_latches` and `graded_pairs`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.benchmark import PROCEDURES, Benchmark
from monitor.engine.state.counts import ZERO, Codes
from monitor.engine.state.pairs import Index, Places, pair_index, pair_members
from stats.families import capacity_alpha, spending_alpha

STATISTICS_VERSION: Final = 4
"""Version of everything a latch rests on: a state made by another one is refused."""

Times = NDArray[np.int16]
NEVER: Final = np.iinfo(np.int16).max
"""Later than any position in a chunk, of which there are at most 4,000."""
ALWAYS: Final = -1
_SLAB_CELLS: Final = 500_000
_LN2: Final = log(2.0)

Counts = NDArray[np.int32]


@dataclass(frozen=True)
class Chunk:
    """The new counting cells of a chunk, beside the rows they are in; a contestant's are neighbours in memory.

    Attributes
    ----------
    time : array of int16, shape (contestants, rows)
        When each cell came: its position in the chunk, ALWAYS if it was there before, NEVER if it is absent or skipped.
    after : array of codes, shape (contestants, rows)
        The rows with the new cells.
    """

    time: Times
    after: Codes

    @classmethod
    def of(cls, before: Codes, after: Codes, row: Index, contestant: Index, position: Index) -> "Chunk":
        """Lay out the times of a chunk's new, scored cells; `before` and `after` are of shape (rows, contestants)."""
        time = np.where(before.T.copy() >= ZERO, np.int16(ALWAYS), np.int16(NEVER))
        time[contestant, row] = position
        return cls(time, after.T.copy())

    @property
    def rows(self) -> int:
        """How many rows the chunk touches."""
        return int(self.time.shape[1])

    def shared(self, i: Index, j: Index) -> Times:
        """When each row became shared by each pair, shape (pairs, rows)."""
        times = self.time[i]
        return np.maximum(times, self.time[j], out=times)

    def first_shared(self, i: Index, j: Index) -> Times:
        """When each of some pairs that shared nothing before got its first shared item, shape (pairs,)."""
        first = np.empty(i.size, np.int16)
        step = max(1, _SLAB_CELLS // max(1, self.rows))
        for start in range(0, i.size, step):
            self.shared(i[start : start + step], j[start : start + step]).min(axis=1, out=first[start : start + step])
        return first


class Crossing(NamedTuple):
    """A latch that closed: pair (i, j), procedure, kind, the event, and the evidence at that event."""

    i: int
    j: int
    pair: int
    procedure: str
    kind: str
    position: int
    side: int
    n: int
    b: int
    c: int
    lead: int
    missing: int
    log_e: float
    log_threshold: float


class Path(NamedTuple):
    """Steps of pairs on their way through a chunk: those at which a latch may close; arrays of shape (steps,), by pair, then by time.

    Attributes
    ----------
    of : array of int64
        Which of the pairs each step belongs to, ascending.
    when : array of int16
        Position of the event in the chunk.
    n, b, c, lead, missing, evidence, side : arrays
        As they are after each step; see `Crossing`. `lead` is the sum of D: b - c, or in the units of graded scores, which have no b and c.
    """

    of: Index
    when: Times
    n: Counts
    b: Counts
    c: Counts
    lead: Counts | NDArray[np.int64]
    missing: Counts
    evidence: NDArray[np.float64]
    side: NDArray[np.integer[Any]]


def register(benchmark: Benchmark, chunk: Chunk, pair: Index) -> NDArray[np.uint32]:
    """Give pairs with their first shared item their place in the family, in the order of arrival.

    Ties (one event that gives several pairs their first item) go by the order in which the models came. Never by rank or score: the
    family-wise error rate would not hold (statistics, families).
    """
    pair = pair[benchmark.comparable(pair)]
    if benchmark.spec.family.pairs is not None:
        pair = pair[np.isin(pair, declared_pairs(benchmark))]
    if pair.size == 0:
        return np.empty(0, np.uint32)
    pair = pair[np.lexsort((pair, chunk.first_shared(*pair_members(pair))))]
    benchmark.family_index[pair] = np.arange(benchmark.registered + 1, benchmark.registered + 1 + pair.size)
    benchmark.registered += pair.size
    return np.asarray(pair, np.uint32)


def declared_pairs(benchmark: Benchmark) -> Index:
    """Return the indices of the pairs that were declared beforehand, in every combination of their epochs."""
    found = []
    of: dict[str, list[int]] = {}
    for k, contestant in enumerate(benchmark.contestants):
        of.setdefault(contestant.model, []).append(k)
    for one, other in benchmark.spec.family.pairs or ():
        found += [(min(p, q), max(p, q)) for p in of.get(one, ()) for q in of.get(other, ())]
    i, j = np.array(found, np.int64).reshape(-1, 2).T
    return pair_index(i, j)


def log_thresholds(benchmark: Benchmark, pair: Index) -> dict[str, NDArray[np.float64]]:
    """Return ln 1/alpha and ln 1/alpha_j of pairs, shape (pairs,) each.

    Infinite where a pair has no place in the family, and for two epochs of one model: they are no hypothesis.
    """
    spec = benchmark.spec
    place = benchmark.family_index[pair]
    capacity = spec.family.capacity
    safe = np.maximum(place, 1)
    alpha_j = spending_alpha(safe, spec.alpha) if capacity is None else capacity_alpha(safe, spec.alpha, capacity)
    with np.errstate(divide="ignore"):
        family = np.where((place > 0) & (alpha_j > 0), -np.log(alpha_j), np.inf)
    alone = np.full(pair.shape, -log(spec.alpha))
    alone[~benchmark.comparable(pair)] = np.inf
    return {"anytime": alone, "anytime_family": family}


def may_reach(b: Counts, c: Counts, log_threshold: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rule out, for any mixture, most pairs that cannot have ln e >= threshold: no mixture exceeds the largest likelihood ratio.

    ln max_theta 2^m theta^b (1 - theta)^c = m KL(b/m, 1/2) <= ln 2 (b - c)^2 / m.
    """
    difference = (b - c).astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity times nothing: never reached
        large = _LN2 * difference * difference >= log_threshold * (b + c) * (1 - 1e-9)
    return np.asarray(large & (difference != 0))


def open_limits(benchmark: Benchmark, pair: Index, threshold: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the lowest threshold that is still to be reached by each pair; infinite where all are."""
    limit = np.full(pair.shape, np.inf)
    for procedure in PROCEDURES:
        undecided = benchmark.latched[procedure][pair] == 0
        limit = np.minimum(limit, np.where(undecided, threshold[procedure], np.inf))
    return limit


def turned(
    benchmark: Benchmark, pair: Places, before: tuple[Counts, Counts], after: tuple[Counts, Counts]
) -> NDArray[np.bool_]:
    """Say which decided pairs may have come to lean the other way somewhere between two pairs of counts (b, c)."""
    (b0, c0), (b1, c1) = before, after
    reach = np.zeros(b0.shape, bool)
    for procedure in PROCEDURES:
        side = benchmark.latched[procedure][pair]
        reach |= ((side == 1) & (b0 < c1)) | ((side == -1) & (b1 > c0))
    return reach


def close(
    benchmark: Benchmark, members: tuple[Index, Index], path: Path, threshold: dict[str, NDArray[np.float64]]
) -> list[Crossing]:
    """Close the latches that pairs reach on their way, and note the reversals.

    Parameters
    ----------
    benchmark : Benchmark
        Its latches are set.
    members : arrays of int64 (i, j), shape (pairs,)
    path : Path
    threshold : dict of arrays of float64, shape (pairs,)
        See `log_thresholds`.
    """
    pair = pair_index(*members)
    of, steps = path.of, path.of.size
    found: list[Crossing] = []
    for procedure in PROCEDURES:
        limit = threshold[procedure]
        latch = benchmark.latched[procedure][pair]
        since = np.where(latch == 0, steps, -1)
        hit = _first(of, (path.evidence >= limit[of]) & (latch == 0)[of])
        latch[of[hit]], since[of[hit]] = path.side[hit], hit
        against = np.where(np.abs(latch) == 1, latch, 0)[of] * np.sign(path.lead) < 0
        turn = _first(of, against & (np.arange(steps) > since[of]))
        latch[of[turn]] *= 2
        benchmark.latched[procedure][pair] = latch
        for kind, closed in (("decided", hit), ("reversed", turn)):
            found += _closed(members, path, closed, procedure, kind, limit)
    return found


def _first(of: Index, closes: NDArray[np.bool_]) -> Index:
    """Return each pair's first step that closes a latch."""
    some = np.flatnonzero(closes)
    return some[np.unique(of[some], return_index=True)[1]]


def _closed(
    members: tuple[Index, Index],
    path: Path,
    steps: Index,
    procedure: str,
    kind: str,
    limit: NDArray[np.float64],
) -> Iterator[Crossing]:
    """Yield what closes at some steps."""
    of, *values = (x[steps] for x in path)
    first, second = (x[of] for x in members)
    when, n, b, c, lead, missing, evidence, side = values
    columns = (first, second, pair_index(first, second), when, side, n, b, c, lead, missing, evidence, limit[of])
    for i, j, index, *rest in zip(*(x.tolist() for x in columns), strict=True):
        yield Crossing(i, j, index, procedure, kind, *rest)

"""Latches: the first event at which the evidence for a pair reaches its threshold, whatever the chunking.

Sums do not care about the order inside a chunk, latches do. ln e is convex in (b, c), so its largest value over a chunk's rectangle of
(b, c) is at a corner: only a pair that could reach a threshold there is replayed event by event.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.benchmark import PROCEDURES, Benchmark
from monitor.engine.counts import ONE, ZERO, Codes, Gains
from monitor.engine.pairs import Index, Places, chosen, pair_index, pair_members
from stats.eprocess import log_completion_bound, log_e_value
from stats.families import capacity_alpha, spending_alpha

STATISTICS_VERSION: Final = 3
"""Version of everything a latch rests on: a state made by another one is refused."""

Times = NDArray[np.int16]
NEVER: Final = np.iinfo(np.int16).max
"""Later than any position in a chunk, of which there are at most 4,000."""
ALWAYS: Final = -1
_SLAB_CELLS: Final = 500_000
_SLAB_PAIRS: Final = 32_768
_LN2: Final = log(2.0)
_SLACK: Final = 1e-9
"""A corner this close below its threshold is replayed too: rounding must not decide what is looked at."""

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


@dataclass(frozen=True)
class Path:
    """The way of pairs through a chunk, event by event (or item by item), one row a pair; arrays of shape (pairs, steps).

    Attributes
    ----------
    when : array of int
        Position of the event in the chunk.
    happened : array of bool
        False behind the end of a pair's own way.
    n, b, c, lead, missing, evidence, side : arrays
        As they are after each step; see `Crossing`. `lead` is the sum of D: b - c, or in the units of graded scores, which have no b and c.
    """

    when: NDArray[np.integer[Any]]
    happened: NDArray[np.bool_]
    n: NDArray[np.int32]
    b: NDArray[np.int32]
    c: NDArray[np.int32]
    lead: NDArray[np.int32] | NDArray[np.int64]
    missing: NDArray[np.int32]
    evidence: NDArray[np.float64]
    side: NDArray[np.int64]


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


def crossings(benchmark: Benchmark, chunk: Chunk, gains: Gains) -> list[Crossing]:
    """Close the latches that a chunk reaches.

    Parameters
    ----------
    benchmark : Benchmark
        With the sums of the chunk already added, and its new pairs registered.
    chunk : Chunk
        The new cells.
    gains : Gains
        What the chunk added.

    Returns
    -------
    list of Crossing
        In the order of the log. The latches of `benchmark` are set.
    """
    found: list[Crossing] = []
    step = max(1, _SLAB_CELLS // max(1, chunk.rows))
    for near in _near(benchmark, gains):
        pair = chosen(gains.pair, near)
        after = (benchmark.n[pair], benchmark.b[pair], benchmark.c[pair])
        n0, b0, c0 = (x - gain[near] for x, gain in zip(after, gains[1:], strict=True))
        threshold = log_thresholds(benchmark, pair)
        candidates = np.flatnonzero(_reach(benchmark, pair, (b0, c0), threshold))
        for start in range(0, candidates.size, step):
            some = candidates[start : start + step]
            limits = {procedure: values[some] for procedure, values in threshold.items()}
            members = pair_members(pair[some])
            found += _replay(benchmark, chunk, members, (n0[some], b0[some], c0[some]), limits)
    return sorted(found, key=lambda x: (x.position, x.pair))


def _near(benchmark: Benchmark, gains: Gains) -> Iterator[Index]:
    """Yield where among the pairs those stand that may close a latch, some at a time: the others are ruled out by whole numbers.

    No threshold is below ln 1/alpha, so what does not come near that needs none computed. See `may_reach`.
    """
    size = gains.n.size
    ratio = np.float32(-log(benchmark.spec.alpha) / _LN2 * (1 - 1e-5))
    for start in range(0, size, _SLAB_PAIRS):
        part = slice(start, min(start + _SLAB_PAIRS, size))
        pair = part if isinstance(gains.pair, slice) else gains.pair[part]
        b1, c1 = benchmark.b[pair], benchmark.c[pair]
        b0, c0 = b1 - gains.b[part], c1 - gains.c[part]
        undecided = np.logical_or.reduce([benchmark.latched[procedure][pair] == 0 for procedure in PROCEDURES])
        if benchmark.spec.order.policy == "completion":
            near = undecided & (np.abs(b1 - c1) > benchmark.missing(benchmark.n[pair]))
        else:
            near = undecided & (_far_apart(b1, c0, ratio) | _far_apart(b0, c1, ratio))
            near |= turned(benchmark, pair, (b0, c0), (b1, c1))
        some = np.flatnonzero(near & (gains.n[part] > 0))
        if some.size:
            yield some + start


def _far_apart(b: Counts, c: Counts, ratio: np.float32) -> NDArray[np.bool_]:
    """`may_reach` in half the bits, with room for their rounding."""
    difference = (b - c).astype(np.float32)
    difference *= difference
    return np.asarray(difference > ratio * (b + c).astype(np.float32))


def may_reach(b: Counts, c: Counts, log_threshold: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rule out, for any mixture, most pairs that cannot have ln e >= threshold: no mixture exceeds the largest likelihood ratio.

    ln max_theta 2^m theta^b (1 - theta)^c = m KL(b/m, 1/2) <= ln 2 (b - c)^2 / m.
    """
    difference = (b - c).astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity times nothing: never reached
        large = _LN2 * difference * difference >= log_threshold * (b + c) * (1 - 1e-9)
    return np.asarray(large & (difference != 0))


def _reach(
    benchmark: Benchmark,
    pair: Index,
    before: tuple[Counts, Counts],
    threshold: dict[str, NDArray[np.float64]],
) -> NDArray[np.bool_]:
    """Say which pairs may close a latch somewhere in the rectangle of their (b, c)."""
    b0, c0 = before
    b1, c1 = benchmark.b[pair], benchmark.c[pair]
    open_limit = open_limits(benchmark, pair, threshold)
    if benchmark.spec.order.policy == "completion":
        # The bound never falls, so its largest value is the last one; and a decision that cannot be undone cannot reverse.
        missing = benchmark.missing(benchmark.n[pair])
        lead, trail = np.maximum(b1, c1), np.minimum(b1, c1) + missing
        reach = (lead > trail) & may_reach(lead, trail, open_limit)
        some = np.flatnonzero(reach)
        bound = np.maximum(*log_completion_bound(b1[some], c1[some], missing[some], benchmark.spec.mixture))
        reach[some] = bound >= open_limit[some] - _SLACK
        return reach

    reach = np.zeros(pair.shape, bool)
    for b, c in ((b1, c0), (b0, c1)):
        some = np.flatnonzero(~reach & may_reach(b, c, open_limit))
        reach[some] = log_e_value(b[some], c[some], benchmark.spec.mixture) >= open_limit[some] - _SLACK
    return reach | turned(benchmark, pair, before, (b1, c1))


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


def _replay(
    benchmark: Benchmark,
    chunk: Chunk,
    members: tuple[Index, Index],
    before: tuple[Counts, Counts, Counts],
    threshold: dict[str, NDArray[np.float64]],
) -> list[Crossing]:
    """Follow pairs event by event through a chunk; see `crossings`."""
    i, j = members
    times = chunk.shared(i, j)
    joined = (times >= 0) & (times < NEVER)
    length = int(joined.sum(axis=1).max(initial=0))
    if length == 0:
        return []
    order = np.argsort(np.where(joined, times, NEVER), axis=1, kind="stable")[:, :length]
    first, second = chunk.after[i], chunk.after[j]
    happened = np.take_along_axis(joined, order, axis=1)
    wins = np.take_along_axis((first == ONE) & (second == ZERO) & joined, order, axis=1)
    losses = np.take_along_axis((first == ZERO) & (second == ONE) & joined, order, axis=1)
    n, b, c = (
        start[:, None] + np.cumsum(steps, axis=1) for start, steps in zip(before, (happened, wins, losses), strict=True)
    )

    if benchmark.spec.order.policy == "completion":
        missing = benchmark.missing(n)
        for_first, for_second = log_completion_bound(b, c, missing, benchmark.spec.mixture)
        evidence = np.maximum(for_first, for_second)
        side = np.where(for_first >= for_second, 1, -1)
    else:
        missing = np.zeros_like(n)
        evidence = log_e_value(b, c, benchmark.spec.mixture)
        side = np.sign(b - c)

    return close(
        benchmark,
        members,
        Path(
            when=np.take_along_axis(times, order, axis=1),
            happened=happened,
            n=n,
            b=b,
            c=c,
            lead=b - c,
            missing=missing,
            evidence=evidence,
            side=side,
        ),
        threshold,
    )


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
    lead, evidence, side, happened = path.lead, path.evidence, path.side, path.happened
    length = happened.shape[1]
    found: list[Crossing] = []
    for procedure in PROCEDURES:
        limit = threshold[procedure]
        latch = benchmark.latched[procedure][pair]
        open_now = latch == 0
        hit = happened & (evidence >= limit[:, None]) & open_now[:, None]
        step, closes = hit.argmax(axis=1), hit.any(axis=1)
        since = np.where(open_now, np.where(closes, step, length), -1)
        latch = np.where(closes, side[np.arange(pair.size), step], latch)
        against = np.where(np.abs(latch) == 1, latch, 0)[:, None] * np.sign(lead) < 0
        turn = happened & against & (np.arange(length) > since[:, None])
        benchmark.latched[procedure][pair] = np.where(turn.any(axis=1), 2 * latch, latch)
        for kind, closed in (("decided", hit), ("reversed", turn)):
            found += _closed(members, path, closed, procedure, kind, limit)
    return found


def _closed(
    members: tuple[Index, Index],
    path: Path,
    closed: NDArray[np.bool_],
    procedure: str,
    kind: str,
    limit: NDArray[np.float64],
) -> Iterator[Crossing]:
    """Yield each pair's first step that closes a latch."""
    some = np.flatnonzero(closed.any(axis=1))
    at = closed[some].argmax(axis=1)
    first, second = (x[some] for x in members)
    steps = (path.when, path.side, path.n, path.b, path.c, path.lead, path.missing, path.evidence)
    columns = (first, second, pair_index(first, second), *(x[some, at] for x in steps), limit[some])
    for i, j, pair, *rest in zip(*(x.tolist() for x in columns), strict=True):
        yield Crossing(i, j, pair, procedure, kind, *rest)

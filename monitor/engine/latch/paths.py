"""New scores by time, and the steps of pairs of 0/1 scores through a chunk as tables: a row a pair, a column a stretch of steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Codes, Counts
from schemas.records.scores import ONE, ZERO
from stats.numerics.pairs import Index, among, pair_members

Times = NDArray[np.int16]
NEVER: Final = np.iinfo(np.int16).max
"""Later than any position in a chunk: a chunk has at most 8,000, and four times as many fit."""
ALWAYS: Final = -1
BEFORE: Final = -1
"""The time of the state before a chunk."""
STRETCH: Final = 16
"""Steps of a stretch."""
_FIRST: Final = np.array([(1 << steps) - 1 for steps in range(STRETCH + 1)], np.uint16)
"""The words whose first steps are set, by their number."""
_SLAB_CELLS: Final = 500_000
_KEPT_STRETCHES: Final = 1_000_000
_SHARE: Final = 64
_FEW: Final = 4
"""The pairs of one model with those that have nothing new are walked apart from others if few models have such pairs, or if they fill such
a part of a table: each table is looked through apart."""


@dataclass(frozen=True)
class NewScores:
    """The new scores of a chunk and the rows they are in, shape (contestants, rows): the scores of a contestant are contiguous."""

    time: Times
    """Position of each score in the chunk; ALWAYS if it was there before, NEVER if it is absent or skipped."""
    after: Codes
    """The rows with the new scores."""
    row: Index
    """The row of each new score, by contestant, then by time."""
    count: Index
    """Number of new scores of each contestant."""

    @classmethod
    def of(cls, before: Codes, after: Codes, row: Index, contestant: Index, position: Index) -> "NewScores":
        """Lay out new scores by time; `before` and `after` have shape (rows, contestants)."""
        time = np.where(before.T.copy() >= ZERO, np.int16(ALWAYS), np.int16(NEVER))
        time[contestant, row] = position
        order = np.lexsort((position, contestant))
        return cls(time, after.T.copy(), row[order], np.bincount(contestant, minlength=len(time)))

    @property
    def rows(self) -> int:
        """Number of rows with new scores."""
        return int(self.time.shape[1])

    def in_time(self, contestant: int) -> tuple[Index, Times]:
        """Return the rows of the new scores of a contestant, by time, and their positions in the chunk."""
        rows = self.row[self._starts[contestant] : self._starts[contestant] + self.count[contestant]]
        return rows, self.time[contestant, rows]

    @cached_property
    def _starts(self) -> Index:
        return np.asarray(np.cumsum(self.count) - self.count)

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
        place = self._starts[:, None] + step
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


Points = tuple[Index, Index]
"""Pairs, by their rows in such tables, and steps of theirs; step 0 is the state before the first one."""

Words = NDArray[np.uint16]
"""One bit a step of a stretch, the lowest first."""


class Paths(NamedTuple):
    """Steps of pairs, in stretches of 16: counts at their ends, and in between a bit a step.

    Attributes
    ----------
    place : ndarray of int, shape (pairs,)
        Where each pair is among those asked for.
    steps : ndarray of int, shape (pairs,)
        Number of steps of each pair.
    b, c : ndarray of int32, shape (pairs, 1 + stretches)
        Discordant counts before the first step and after each stretch; they stay after the last step.
    wins, losses : ndarray of uint16, shape (pairs, stretches)
        The steps of each stretch on which only the first model is right, and only the second.
    n : ndarray of int32, shape (pairs,)
        Shared items before the chunk; each step adds one.
    when : ndarray of int16, shape (pairs, most steps), optional
        Position of the event of each step.
    """

    place: Index
    steps: Index
    b: Counts
    c: Counts
    wins: Words
    losses: Words
    n: Counts
    when: Times | None = None

    @classmethod
    def of(
        cls, place: Index, steps: Index, before: Sums, wins: Words, losses: Words, when: Times | None = None
    ) -> "Paths":
        """Return paths, given the sums before the first step."""
        return cls(place, steps, _at_ends(before.b, wins), _at_ends(before.c, losses), wins, losses, before.n, when)

    def there(self) -> NDArray[np.bool_]:
        """Return which stretches have a step of their pair, shape (pairs, stretches)."""
        return np.asarray(np.arange(self.wins.shape[1]) * STRETCH < self.steps[:, None])

    def rows(self, some: Index) -> "Paths":
        """Return some of the pairs."""
        if some.size == self.steps.size:  # all of them: `some` is ascending
            return self
        columns: Any = (None if x is None else x[some] for x in self)
        return Paths(*columns)

    def inside(self, stretches: NDArray[np.bool_]) -> tuple[Index, Index, Counts, Counts]:
        """Return the points of some stretches, by pair, then by step, and b and c there."""
        at = np.flatnonzero(stretches)
        of, stretch = np.divmod(at, stretches.shape[1])
        return self._points(at, _FIRST[np.clip(self.steps[of] - stretch * STRETCH, 0, STRETCH)])

    def moved(self, stretches: NDArray[np.bool_]) -> tuple[Index, Index, Counts, Counts]:
        """Return those of `inside` that change b or c, and the first one of each pair: at all others b and c are as before.

        The stretches are some of those that `there` has.
        """
        at = np.flatnonzero(stretches)
        return self._points(at, self.wins.ravel()[at] | self.losses.ravel()[at] | (at % stretches.shape[1] == 0))

    def _points(self, at: Index, steps: Words) -> tuple[Index, Index, Counts, Counts]:
        """Return the points of stretches, given their places in the table and the steps of each."""
        of, stretch = np.divmod(at, self.wins.shape[1])
        bits = np.unpackbits(steps.astype("<u2").view(np.uint8), bitorder="little")
        there, step = np.divmod(np.flatnonzero(bits), STRETCH)
        begin, until = (at + of)[there], _FIRST[step + 1]  # there is one end more than stretches
        b, c = (
            ends.ravel()[begin] + np.bitwise_count(words.ravel()[at[there]] & until)
            for ends, words in ((self.b, self.wins), (self.c, self.losses))
        )
        return of[there], stretch[there] * STRETCH + step + 1, b, c

    def number(self, when: Index) -> Index:
        """Return how many steps each pair has taken after an event."""
        assert self.when is not None
        there = np.arange(self.when.shape[1]) < self.steps[:, None]
        return np.asarray(((self.when <= when[:, None]) & there).sum(axis=1))

    def may_turn(self, some: Index, side: NDArray[np.integer[Any]], since: Index) -> NDArray[np.bool_]:
        """Return which of some pairs lose as many items after a point as bring the lead against a side."""
        _, b, c = self.sums(some, since)
        lost = np.where(side > 0, self.c[some, -1] - c, self.b[some, -1] - b)
        return np.asarray(lost > np.sign(side) * (b - c))

    def first_against(self, side: NDArray[np.integer[Any]], since: Index) -> Points:
        """Return the first point of each pair, after one of them, at which the lead is against a side, for pairs that have one."""
        sign = np.sign(side)[:, None]
        lead = sign * (self.b[:, :-1] - self.c[:, :-1])
        lost = np.bitwise_count(np.where(sign > 0, self.losses, self.wins))
        later = np.arange(STRETCH, STRETCH + self.wins.shape[1] * STRETCH, STRETCH) > since[:, None]
        of, step, b, c = self.inside(later & (lead < lost))
        against = np.flatnonzero((sign[of, 0] * (b - c) < 0) & (step > since[of]))
        earliest = against[np.flatnonzero(np.diff(of[against], prepend=-1))]
        return of[earliest], step[earliest]

    def first_certain(self, missing: Counts) -> Points:
        """Return the first point of each pair at which what is missing cannot undo its lead, given what was before the chunk.

        It stays so: an item brings the lead no closer to 0 than it leaves missing ones.
        """
        step = np.minimum(np.arange(STRETCH, STRETCH + self.wins.shape[1] * STRETCH, STRETCH), self.steps[:, None])
        certain = is_certain(self.b[:, 1:] - self.c[:, 1:], missing[:, None] - step) & self.there()
        certain[:, 1:] &= ~certain[:, :-1]
        of, step, b, c = self.inside(certain)
        some = np.flatnonzero(is_certain(b - c, missing[of] - step))
        earliest = some[np.flatnonzero(np.diff(of[some], prepend=-1))]
        return of[earliest], step[earliest]

    def sums(self, of: Index, step: Index) -> Sums:
        """Return the sums at some points."""
        stretch, inside = np.divmod(step, STRETCH)
        last = np.minimum(stretch, self.wins.shape[1] - 1)  # nothing is inside a stretch after the last
        b, c = (
            ends[of, stretch] + np.bitwise_count(words[of, last] & _FIRST[inside])
            for ends, words in ((self.b, self.wins), (self.c, self.losses))
        )
        return Sums((self.n[of] + step).astype(np.int32), b, c)

    def positions(self, of: Index, step: Index) -> NDArray[np.int64]:
        """Return the positions of the events of some points, BEFORE for step 0."""
        assert self.when is not None
        when = np.full(step.shape, BEFORE, np.int64)
        some = np.flatnonzero(step)
        when[some] = self.when[of[some], step[some] - 1]
        return when


def is_certain(
    lead: NDArray[np.int64] | Counts, room: NDArray[np.int64] | Counts, rounding: NDArray[np.int64] | int = 0
) -> NDArray[np.bool_]:
    """Return where nothing missing can undo a lead, or a tie, given how far the lead can move and what of it is rounding."""
    return np.asarray((np.abs(lead) > room + rounding) | ((room == 0) & (np.abs(lead) <= rounding)))


def _at_ends(before: Counts, words: Words) -> Counts:
    """Return counts before the first stretch and after each."""
    ends = np.empty((before.size, words.shape[1] + 1), np.int32)
    ends[:, 0] = before
    ends[:, 1:] = np.bitwise_count(words)
    return np.cumsum(ends, axis=1, out=ends)


def words_of(steps: NDArray[np.bool_]) -> Words:
    """Pack steps, shape (pairs, steps), into at least one word each."""
    octets = np.packbits(steps, axis=1, bitorder="little")
    words = np.zeros((len(steps), max(1, -(-steps.shape[1] // STRETCH))), "<u2")
    words.view(np.uint8)[:, : octets.shape[1]] = octets
    return words


class KeptPaths:
    """Paths of pairs that are kept to be followed again, as long as they are not too many.

    Parameters
    ----------
    follow : callable
        Yields the paths of some pairs; `Paths.place` is where each of them is among these.
    """

    def __init__(self, follow: Callable[[Index], Iterator[Paths]]) -> None:
        self._follow = follow
        self._kept: list[tuple[Index, Paths]] = []
        self._room = _KEPT_STRETCHES

    def new(self, pair: Index) -> Iterator[Paths]:
        """Yield the paths of pairs that have none yet."""
        for path in self._follow(pair):
            self._room -= path.wins.size
            if self._room > 0:
                self._kept.append((pair[path.place], path))
            yield path

    def of(self, pair: Index) -> Iterator[tuple[Paths, Index, Index]]:
        """Yield the paths of pairs (ascending): tables, which of their rows are asked for, and where these are in `pair`."""
        left = np.ones(pair.size, bool)
        for of, path in self._kept[:]:
            some, place = among(pair, of)
            if some.size:
                left[place] = False
                yield path, some, place
        rest = np.flatnonzero(left)
        if rest.size:
            for path in self.new(pair[rest]):
                yield path, np.arange(path.place.size), rest[path.place]

    def rows(self, pair: Index) -> Iterator[Paths]:
        """Yield the paths of pairs (ascending) alone; `Paths.place` is where each is in `pair`."""
        for path, some, place in self.of(pair):
            yield path.rows(some)._replace(place=place)

    def first_against(
        self, pair: Index, side: NDArray[np.integer[Any]], since: Index
    ) -> Iterator[tuple[Paths, Index, Index]]:
        """Yield the first points against a side after one of them; `Paths.place` is where each pair is in `pair`."""
        for path, some, place in self.of(pair):
            turning = np.flatnonzero(path.may_turn(some, side[place], since[place]))
            if turning.size:
                rows = path.rows(some[turning])._replace(place=place[turning])
                yield rows, *rows.first_against(side[rows.place], since[rows.place])


class Evidence(Protocol):
    """The evidence of 0/1 scores under one order policy: ln e, or -ln p."""

    final: bool
    """Whether evidence never falls along a trajectory, so that a decision never reverses."""
    cells: int
    """Cells of the largest tables that it looks at."""

    def may_decide(self, before: Sums, after: Sums) -> NDArray[np.bool_]:
        """Rule out, cheaply, most pairs whose evidence stays below ln 1/alpha between two points."""

    def at(self, sums: Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the evidence at points; minus infinity where it is certainly below a limit."""

    def highest(self, paths: Paths, limit: NDArray[np.float64], reach: NDArray[np.float64]) -> tuple[Points, Points]:
        """Return few points of each pair, its highest among them, and its points around `reach` up to the first from there on.

        A pair that stays below its limit may have none; `reach` is at least the limit.
        """

    def reaching(self, paths: Paths, low: NDArray[np.float64], high: NDArray[np.float64]) -> Points:
        """Return the points with evidence from `low` on, up to the first from `high` on.

        A few below may be among them, and points with the evidence of the one before may be missing.
        """

    def exact(self, sums: Sums) -> NDArray[np.float64]:
        """Return the evidence at points."""

    def missing(self, n: Counts) -> Counts:
        """Return the items counted against the leader, given the shared ones."""


def paths(new: NewScores, pair: Index, before: Sums, cells: int) -> Iterator[Paths]:
    """Yield the steps of some pairs, in tables of at most so many cells, given their sums before the chunk."""
    members = pair_members(pair)
    rest = np.ones(pair.size, bool)
    for contestant, place in _one_sided(new, members, cells // _SHARE):
        rest[place] = False
        step = max(1, cells // int(new.count[contestant]))
        for start in range(0, place.size, step):
            yield _against_known(new, contestant, members, place[start : start + step], before)
    left = np.flatnonzero(rest)
    step = max(1, cells // max(1, 2 * int(new.count.max(initial=0))))
    for start in range(0, left.size, step):
        some = left[start : start + step]
        yield _between_new(new, (members[0][some], members[1][some]), some, Sums(*(x[some] for x in before)))


def _one_sided(new: NewScores, members: tuple[Index, Index], least: int) -> Iterator[tuple[int, Index]]:
    """Yield contestants with new scores and the places of their pairs with contestants without any, where these are worth a table."""
    i, j = members
    place = np.flatnonzero((new.count[i] > 0) != (new.count[j] > 0))
    if not place.size:
        return
    own = np.where(new.count[i[place]] > 0, i[place], j[place])
    order = np.argsort(own, kind="stable")
    own, place = own[order], place[order]
    starts = np.flatnonzero(np.diff(own, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), own.size], strict=True):
        if starts.size <= _FEW or (end - start) * new.count[own[start]] >= least:
            yield int(own[start]), place[start:end]


def _against_known(new: NewScores, contestant: int, members: tuple[Index, Index], some: Index, before: Sums) -> Paths:
    """Return the paths of pairs of a contestant with others that have nothing new.

    They meet at the events of the contestant, so these need no sorting.
    """
    i, j = members[0][some], members[1][some]
    first = i == contestant
    rows, when = new.in_time(contestant)
    theirs = new.after[np.where(first, j, i)].take(rows, axis=1)
    mine, right, there = new.after[None, contestant, rows] == ONE, theirs == ONE, theirs >= ZERO
    steps = np.count_nonzero(there, axis=1)
    if (steps < rows.size).any():
        taken = np.arange(int(steps.max(initial=0))) < steps[:, None]
        mine, right, when = (_to_left(each, there, taken) for each in (mine, right, when))
    else:
        when = np.broadcast_to(when, there.shape)
    mine, right = words_of(mine), words_of(right)
    own, other = mine & ~right, right & ~mine  # items that only the contestant, only the other has right
    first = first[:, None]
    wins, losses = np.where(first, own, other), np.where(first, other, own)
    return Paths.of(some, steps, Sums(*(x[some] for x in before)), wins, losses, when)


def _to_left(values: NDArray[Any], there: NDArray[np.bool_], taken: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the values of each row that are there, one after another, where `taken` has room for them, and zeros after them."""
    table = np.zeros(taken.shape, values.dtype)
    table[taken] = np.broadcast_to(values, there.shape)[there]
    return table


def _between_new(new: NewScores, members: tuple[Index, Index], place: Index, before: Sums) -> Paths:
    """Return the paths of any pairs: their events are put in order."""
    times = new.meetings(*members)
    times.sort(axis=1)
    steps = np.count_nonzero(times != NEVER, axis=1)
    times = times[:, : int(steps.max(initial=1))]
    kind = np.where(times == NEVER, np.int16(0), times & 3)
    return Paths.of(place, steps, before, words_of(kind == 1), words_of(kind == 2), times >> 2)

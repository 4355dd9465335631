"""The verdict changes of one benchmark or of all: in the order of the log within each partition, so a cursor has a place in each."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from heapq import merge
from itertools import groupby, islice
from typing import Final

from monitor.serve.api.problems import ProblemError, unknown_benchmark
from monitor.serve.report_cache import ReportCache
from monitor.view.board import BoardView
from schemas.results.verdict_changes import VerdictChanges

Position = tuple[int, int]
"""A change's id as numbers: the offset of its record in the log, and its sequence number in the record."""

Source = tuple[str, VerdictChanges]  # a benchmark, and its changes by field: one is made when it is read

_KEPT_TEXTS: Final = 1_000  # changes whose JSON is kept: many streams send the same ones

START: Final = (-1, -1)  # ahead of the first change


def parse_change_id(id_: str) -> Position:
    """Parse the id of a change."""
    offset, dash, sequence = id_.partition("-")
    if not (dash and offset.isdecimal() and sequence.isdecimal() and id_.isascii() and len(id_) <= 60):
        raise ValueError(f"{id_!r} is not the id of a change; use the `id` of a change that the API returned.")
    return int(offset), int(sequence)


def format_change_id(position: Position) -> str:
    """Return the id of a change at a position."""
    return f"{position[0]}-{position[1]}"


class VerdictHistory:
    """The changes of one benchmark, or of all benchmarks of one partition: ids have one order only there."""

    def __init__(self, reports: ReportCache, benchmark: str | None, partition: int | None = None) -> None:
        self._reports, self._benchmark, self._partition = reports, benchmark, partition
        self._folded: list[tuple[object, int]] = []  # the partitions, and how far each was folded, as of the last call
        self._counts: dict[str, tuple[object, int]] = {}
        self._clear()

    def _clear(self) -> None:
        self._positions: list[Position] = []
        self._sources: list[Source] = []
        self._fields: list[str] = []
        self._made: dict[Position, bytes] = {}  # the JSON of the changes that were made last

    def after(self, position: Position, limit: int, may_read: Callable[[str], bool]) -> list[tuple[Position, bytes]]:
        """Return the first changes after a position, of benchmarks that may be read, as JSON, each with its position."""
        self._catch_up()
        start = bisect_right(self._positions, position)
        return self._texts(self._readable(range(start, len(self._positions)), limit, may_read))

    def latest(self, limit: int, may_read: Callable[[str], bool]) -> list[tuple[float, bytes]]:
        """Return the latest changes that may be read as JSON, newest first, each with the time when it was stored; 0: unknown."""
        self._catch_up()
        latest = self._readable(self._backwards, limit, may_read)
        named = ((self._sources[place][0], self._fields[place]) for place in latest)
        times = (self._reports.commit_times(name).changes.get(field, 0.0) for name, field in named)
        return [(time, text) for time, (_, text) in zip(times, self._texts(latest), strict=True)]

    def end(self, may_read: Callable[[str], bool]) -> Position:
        """Return the position of the latest change of a benchmark that may be read."""
        self._catch_up()
        latest = self._readable(self._backwards, 1, may_read)
        return self._positions[latest[0]] if latest else START

    @property
    def _backwards(self) -> range:
        return range(len(self._positions) - 1, -1, -1)

    def _readable(self, places: Iterable[int], limit: int, may_read: Callable[[str], bool]) -> list[int]:
        """Return the first of some places whose benchmarks may be read."""
        allowed = cache(may_read)
        return list(islice((place for place in places if allowed(self._sources[place][0])), limit))

    def _texts(self, places: Sequence[int]) -> list[tuple[Position, bytes]]:
        """Return the position and the JSON of the changes at some places; changes of one benchmark in sequence are made together."""
        new = [place for place in places if self._positions[place] not in self._made]
        for _, group in groupby(new, key=lambda place: id(self._sources[place])):
            of_one = list(group)
            texts = self._sources[of_one[0]][1].texts([self._fields[place] for place in of_one])
            self._made.update(zip((self._positions[place] for place in of_one), texts, strict=True))
        made = [(position, self._made[position]) for position in (self._positions[place] for place in places)]
        for position in list(islice(self._made, max(0, len(self._made) - _KEPT_TEXTS))):
            del self._made[position]
        return made

    def _catch_up(self) -> None:
        """Add the changes since the last call; start again if a benchmark was reloaded or removed."""
        folded: list[tuple[object, int]] = [
            (each.state, each.off) for each in self._reports.partitions if self._partition in {None, each.number}
        ]
        if folded == self._folded:
            return
        self._folded = folded
        benchmarks = self._own_benchmarks()
        if any(
            name not in benchmarks or benchmarks[name].origin is not origin
            for name, (origin, _) in self._counts.items()
        ):
            self._counts = {}
            self._clear()
        known = len(self._positions)
        for name, benchmark in benchmarks.items():
            _, count = self._counts.get(name, (benchmark, 0))
            changes = benchmark.changes
            self._counts[name] = (benchmark.origin, len(changes))
            fields = list(islice(changes, count, None))
            self._positions += changes.orders(fields)
            self._sources += [(name, changes)] * len(fields)
            self._fields += fields
        self._sort(known)

    def _own_benchmarks(self) -> dict[str, BoardView]:
        if self._benchmark is None:
            return self._reports.own_benchmarks(self._partition)
        suite, benchmark = self._reports.suite(self._benchmark), self._reports.benchmark(self._benchmark)
        return {} if suite is not None or benchmark is None else {self._benchmark: benchmark}

    def _sort(self, known: int) -> None:
        """Restore the order of the ids after changes were added to the first `known` ones."""
        if known == len(self._positions):
            return
        start = known if not known or min(self._positions[known:]) > self._positions[known - 1] else 0
        places = sorted(range(start, len(self._positions)), key=self._positions.__getitem__)
        self._positions[start:] = [self._positions[place] for place in places]
        self._sources[start:] = [self._sources[place] for place in places]
        self._fields[start:] = [self._fields[place] for place in places]


Cursor = dict[int, Position]
"""The place in each partition up to which a client has the changes; one that is absent has not begun."""

_MAX_HISTORIES: Final = 64
_PLACE: Final = r"[0-9]{1,30}-[0-9]{1,29}"
_IN_PARTITION: Final = rf"[0-9]{{1,9}}:{_PLACE}"
CURSOR_PATTERN: Final = rf"^(?:{_PLACE}|{_IN_PARTITION}(?:,{_IN_PARTITION})*)$"


class ChangeFeed:
    """The changes of some partitions, each in the order of its ids; which partition comes first has no meaning."""

    def __init__(self, histories: Mapping[int, VerdictHistory]) -> None:
        self._histories = histories

    def after(
        self, cursor: Cursor, limit: int, may_read: Callable[[str], bool]
    ) -> tuple[list[tuple[str, bytes]], Cursor]:
        """Return the first changes after a cursor as JSON, each with the cursor after it as text, and the last of these."""
        batch: list[tuple[str, bytes]] = []
        cursor = dict(cursor)
        for number, history in self._histories.items():
            for position, change in history.after(cursor.get(number, START), limit - len(batch), may_read):
                cursor[number] = position
                batch.append((self.text(cursor), change))
            if len(batch) == limit:
                break
        return batch, cursor

    def latest(self, limit: int, may_read: Callable[[str], bool]) -> list[bytes]:
        """Return the latest changes as JSON, newest first; those of several partitions by the time when they were stored."""
        parts = (history.latest(limit, may_read) for history in self._histories.values())
        return [change for _, change in islice(merge(*parts, key=lambda dated: -dated[0]), limit)]

    def end(self, may_read: Callable[[str], bool]) -> Cursor:
        """Return the cursor after the latest change of a benchmark that may be read."""
        return {number: history.end(may_read) for number, history in self._histories.items()}

    def text(self, cursor: Cursor) -> str:
        """Return a cursor as text: the id of a change, or, of several partitions, one of each that has begun."""
        if len(self._histories) == 1:
            (number,) = self._histories
            return format_change_id(cursor[number])
        begun = sorted((number, place) for number, place in cursor.items() if place != START)
        return ",".join(f"{number}:{format_change_id(place)}" for number, place in begun)

    def parse(self, text: str | None) -> Cursor:
        """Parse the cursor of a request; None has not begun."""
        if text is None:
            return {}
        several = len(self._histories) > 1
        if several != (":" in text):
            other = "of one benchmark or partition" if several else "over all partitions"
            raise ProblemError(
                422, f"after: {text[:80]!r} is of another feed, {other}. Use `next` of an answer of this one."
            )
        try:
            if not several:
                return dict.fromkeys(self._histories, parse_change_id(text))
            places = (part.split(":", 1) for part in text.split(","))
            cursor = {int(number): parse_change_id(place) for number, place in places}
        except ValueError as error:
            raise ProblemError(422, f"after: {error}") from error
        if unknown := cursor.keys() - self._histories.keys():
            raise ProblemError(422, f"after: the log has no partition {min(unknown)}. Use `next` of an earlier answer.")
        return cursor


class ChangeFeeds:
    """The feeds of a server; histories are shared by all requests, those of the benchmarks that were last asked for."""

    def __init__(self, reports: ReportCache) -> None:
        self._reports = reports
        self._by_partition: dict[int, VerdictHistory] = {}
        self._by_name: dict[str, VerdictHistory] = {}

    def of(self, benchmark: str | None) -> ChangeFeed:
        """Return the changes of a benchmark, or of all."""
        reports = self._reports
        if benchmark is None:
            numbers = [each.number for each in reports.partitions]
            for number in numbers:
                self._by_partition.setdefault(number, VerdictHistory(reports.whole, None, number))
            return ChangeFeed({number: self._by_partition[number] for number in numbers})
        if not reports.has(benchmark):
            raise unknown_benchmark(benchmark)
        history = self._by_name.pop(benchmark, None) or VerdictHistory(reports.whole, benchmark)
        self._by_name[benchmark] = history
        if len(self._by_name) > _MAX_HISTORIES:
            del self._by_name[next(iter(self._by_name))]
        return ChangeFeed({0: history})

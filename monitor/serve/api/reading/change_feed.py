"""The verdict changes of one benchmark or of all: in the order of the log within each partition, so a cursor has a place in each."""

from collections.abc import Callable, Mapping
from heapq import merge
from itertools import islice
from typing import Final

from monitor.serve.api.problems import ProblemError, unknown_benchmark
from monitor.serve.api.reading.verdict_history import START, Position, VerdictHistory, format_change_id, parse_change_id
from monitor.serve.report_cache import ReportCache

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

"""Verdict changes in log order, sorted by id as the state grows, so that pages and streams resume at an id."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import Final

from monitor.engine.partition import Partition
from monitor.engine.state.benchmark import Benchmark
from monitor.serve.report_cache import ReportCache
from schemas.results.verdict_changes import VerdictChanges

Position = tuple[int, int]
"""A change's id as numbers: the offset of its record in the log, and its sequence number in the record."""

Entry = tuple[str, VerdictChanges, str]
"""A benchmark, its changes, and the field of one of them: it is made when it is read."""

START: Final = (-1, -1)
"""Ahead of the first change."""

_KEPT_TEXTS: Final = 1_000
"""Changes whose JSON is kept: many streams send the same ones."""


def parse_change_id(id_: str) -> Position:
    """Parse the id of a change.

    Raises
    ------
    ValueError
        If the id is malformed.
    """
    offset, dash, sequence = id_.partition("-")
    if not (dash and offset.isdecimal() and sequence.isdecimal() and id_.isascii() and len(id_) <= 60):
        raise ValueError(f"{id_!r} is not the id of a change; use the `id` of a change that the API returned.")
    return int(offset), int(sequence)


def format_change_id(position: Position) -> str:
    """Return the id of a change at a position."""
    return f"{position[0]}-{position[1]}"


class VerdictHistory:
    """The changes of one benchmark, or of all benchmarks of one partition: ids have one order only there.

    Parameters
    ----------
    reports : ReportCache
    benchmark : str or None
        None: all benchmarks of the partition.
    partition : int, optional
        None: of the one that has the benchmark.
    """

    def __init__(self, reports: ReportCache, benchmark: str | None, partition: int | None = None) -> None:
        self._reports, self._benchmark, self._partition = reports, benchmark, partition
        self._folded: list[tuple[Partition, int]] = []
        """The partitions, and how far each was folded, as of the last call."""
        self._counts: dict[str, tuple[Benchmark, int]] = {}
        self._positions: list[Position] = []
        self._entries: list[Entry] = []
        self._made: dict[Position, bytes] = {}
        """The JSON of the changes that were made last."""

    def after(self, position: Position, limit: int, may_read: Callable[[str], bool]) -> list[tuple[Position, bytes]]:
        """Return the first changes after a position, of benchmarks that may be read, as JSON, each with its position."""
        self._catch_up()
        start = bisect_right(self._positions, position)
        entries = (self._entries[k] for k in range(start, len(self._entries)))
        return self._texts(list(_readable(entries, limit, may_read)))

    def latest(self, limit: int, may_read: Callable[[str], bool]) -> list[tuple[float, bytes]]:
        """Return the latest changes that may be read as JSON, newest first, each with the time when it was stored; 0: unknown."""
        self._catch_up()
        latest = list(_readable(reversed(self._entries), limit, may_read))
        times = (self._reports.commit_times(name).changes.get(field, 0.0) for name, _, field in latest)
        return [(time, text) for time, (_, text) in zip(times, self._texts(latest), strict=True)]

    def end(self, may_read: Callable[[str], bool]) -> Position:
        """Return the position of the latest change of a benchmark that may be read."""
        self._catch_up()
        for _, changes, field in _readable(reversed(self._entries), 1, may_read):
            return changes.order(field)
        return START

    def _catch_up(self) -> None:
        """Add the changes since the last call; start again if a benchmark was reloaded or removed."""
        folded = [(each, each.off) for each in self._reports.partitions if self._partition in {None, each.number}]
        if folded == self._folded:
            return
        self._folded = folded
        benchmarks = self._own_benchmarks()
        if any(benchmarks.get(name) is not benchmark for name, (benchmark, _) in self._counts.items()):
            self._counts, self._positions, self._entries, self._made = {}, [], [], {}
        fresh: list[tuple[Position, Entry]] = []
        for name, benchmark in benchmarks.items():
            _, count = self._counts.get(name, (benchmark, 0))
            self._counts[name] = (benchmark, len(benchmark.changes))
            changes = benchmark.changes
            fresh += ((changes.order(field), (name, changes, field)) for field in islice(changes, count, None))
        if fresh:
            self._add(sorted(fresh, key=lambda entry: entry[0]))

    def _own_benchmarks(self) -> dict[str, Benchmark]:
        if self._benchmark is None:
            return self._reports.own_benchmarks(self._partition)
        suite, benchmark = self._reports.suite(self._benchmark), self._reports.benchmark(self._benchmark)
        return {} if suite is not None or benchmark is None else {self._benchmark: benchmark}

    def _add(self, fresh: list[tuple[Position, Entry]]) -> None:
        if self._positions and fresh[0][0] < self._positions[-1]:
            fresh = sorted([*zip(self._positions, self._entries, strict=True), *fresh], key=lambda entry: entry[0])
            self._positions, self._entries = [], []
        self._positions += (position for position, _ in fresh)
        self._entries += (entry for _, entry in fresh)

    def _texts(self, entries: list[Entry]) -> list[tuple[Position, bytes]]:
        """Return the position and the JSON of each; those of one benchmark in sequence are made together."""
        positions = [changes.order(field) for _, changes, field in entries]
        new = [each for each in zip(positions, entries, strict=True) if each[0] not in self._made]
        for _, group in groupby(new, key=lambda each: id(each[1][1])):
            of_one = list(group)
            changes, fields = of_one[0][1][1], [field for _, (_, _, field) in of_one]
            self._made.update(zip((position for position, _ in of_one), changes.texts(fields), strict=True))
        texts = [(position, self._made[position]) for position in positions]
        for position in list(islice(self._made, max(0, len(self._made) - _KEPT_TEXTS))):
            del self._made[position]
        return texts


def _readable(entries: Iterable[Entry], limit: int, may_read: Callable[[str], bool]) -> Iterator[Entry]:
    """Return the first entries of benchmarks that may be read."""
    allowed: dict[str, bool] = {}

    def is_allowed(entry: Entry) -> bool:
        name = entry[0]
        if name not in allowed:
            allowed[name] = may_read(name)
        return allowed[name]

    return islice(filter(is_allowed, entries), limit)

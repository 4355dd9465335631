"""Count what each file gave, and which files and items were not read."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from monitor.engine.state.benchmark import Benchmark
from schemas.records.events import EventFields
from schemas.records.packed import Reject, Segment
from schemas.records.reading import Refused
from schemas.records.text import shorten

_LOSE_ITEMS: Final = frozenset({"unit", "score"})
"""The fields for which an event is refused that is of an item of the benchmark: other ids and other clusters are none of it."""


class Tally:
    """What files gave, line by line."""

    def __init__(self) -> None:
        self._files: dict[str, set[str]] = {}
        """The benchmarks of each file."""
        self._refused: dict[str, Reject] = {}
        """The first reject of each file without any result so far, and the one that ended a file."""
        self._rejects: Counter[tuple[str, str | None, str | None]] = Counter()
        """Rejected lines by file, benchmark and item."""
        self._lost: dict[str, Counter[str | None]] = defaultdict(Counter)
        """Events that can be read and were refused, by benchmark and item."""

    def of(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        """Count segments, and pass them on."""
        for segment in segments:
            self._add(segment)
            yield segment

    def _add(self, segment: Segment) -> None:
        benchmarks = self._files.setdefault(segment.path, set())
        if segment.events:
            # A block has a few hundred lines, and most files one benchmark: the ends of the block are enough.
            benchmarks |= {segment.events[0].benchmark, segment.events[-1].benchmark}
        benchmarks |= {each.declare for each in segment.declarations}
        for reject in segment.rejects:
            if reject.get("refuses") or segment.path not in self._refused:
                self._refused[segment.path] = reject
            self._rejects[reject["source"], reject.get("benchmark"), reject.get("item_id")] += 1

    def refuse(self, event: EventFields, field: str) -> None:
        """Count an event that the fold has refused because of a field."""
        if field in _LOSE_ITEMS:
            self._lost[event.benchmark][event.item_id] += 1

    def finish(self, benchmarks: Mapping[str, Benchmark], share: float) -> None:
        """Record with each benchmark which files and items were not read, and whether that is more than a share of them."""
        refused = {
            path: Refused(path, reject["reason"], reject.get("benchmark"))
            for path, reject in self._refused.items()
            if reject.get("refuses") or not self._files[path]
        }
        for benchmark in benchmarks.values():
            mine = [each for each in refused.values() if each.benchmark in {None, benchmark.name}]
            reading = benchmark.reading
            reading.refused = mine
            reading.elsewhere = [
                each
                for each in refused.values()
                if each not in mine and not _has_results(benchmarks.get(each.benchmark or ""))
            ]
            lost = Counter(self._lost[benchmark.name])
            for (source, name, item), count in self._rejects.items():
                lost[item] += count if name == benchmark.name and source not in refused else 0
            reading.unread = 0 if benchmark.battles is not None else _unread(benchmark, lost)
            reading.excess = self._excess(benchmark, {each.path for each in mine}, share)

    def _excess(self, benchmark: Benchmark, refused: set[str], share: float) -> str:
        files = len(refused | {path for path, names in self._files.items() if benchmark.name in names})
        rejected = sum(count for (_, name, _), count in self._rejects.items() if name == benchmark.name)
        lines = rejected + sum(count for name, count in benchmark.counters.items() if name != "rejected")
        parts = [
            f"{part:,} of {whole:,} {what}, more than {share:.0%},"
            for part, whole, what in ((len(refused), files, "files"), (rejected, lines, "lines"))
            if part > share * whole
        ]
        if not parts:
            return ""
        return f"{shorten(benchmark.name)}: {' and '.join(parts)} could not be read; fix the files, or raise the limit with --max-rejected"


def _has_results(benchmark: Benchmark | None) -> bool:
    return benchmark is not None and bool(benchmark.contestants)


def _unread(benchmark: Benchmark, lost: Mapping[str | None, int]) -> int:
    """Count the items of rejected lines that the benchmark does not have; each line that names none may be of one more."""
    # Not `has_item`, which knows units where items have any.
    read = set(benchmark.rows.names)
    named = sum(count > 0 and item not in read for item, count in lost.items() if item)
    return lost.get(None, 0) + named

"""Count what each file gave, and which files and items were not read."""

from collections.abc import Iterable, Iterator

from monitor.engine.chunk_fold import LOSE_ITEMS, Partition
from monitor.view.partition_view import excess
from schemas.records.chunks import DeadLetter
from schemas.records.events import EventFields
from schemas.records.packed import Segment
from schemas.records.reading import Readings


class Tally:
    """What files gave, line by line."""

    def __init__(self) -> None:
        self._files: dict[str, set[str]] = {}  # the benchmarks of each file
        self.readings = Readings()

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
        self.readings.read(
            segment.path, 0, continued=bool(benchmarks), results=bool(benchmarks), rejects=segment.rejects, found=None
        )

    def refuse(self, letter: DeadLetter, path: str, event: EventFields | None) -> None:
        """Count what the fold has refused: an event, or a declaration or an end of runs."""
        if letter.benchmark is not None:
            item = event.item_id if event is not None and letter.field in LOSE_ITEMS else None
            self.readings.reject(path, letter.benchmark, item)

    def finish(self, partition: Partition, share: float) -> None:
        """Record with each benchmark which files and items were not read, and whether that is more than a share of them."""
        partition.note_readings()
        for benchmark in partition.benchmarks.values():
            refused = {each.path for each in benchmark.reading.refused}
            files = len(refused | {path for path, names in self._files.items() if benchmark.name in names})
            benchmark.reading.excess = excess(
                benchmark, self.readings.rejected(benchmark.name), len(refused), files, share
            )

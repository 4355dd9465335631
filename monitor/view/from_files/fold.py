"""Fold files of results into a state, without a log and a store."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Final

from monitor.engine.chunk_fold import Partition
from monitor.engine.declarations import follow, judge, under_version, with_found_units
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.pairs.counts import CHUNK_CELLS
from monitor.engine.state.restore import restore_benchmark
from monitor.files.declaration_file import Declare, begin, with_own_declarations
from monitor.files.epochs import Epochs
from monitor.files.reject_limit import RejectedLine, RejectLimit
from monitor.files.runs import incomplete_benchmarks, not_whole
from monitor.files.streams.encodings import OpenStream, open_stream
from monitor.files.streams.paths import origin
from monitor.files.streams.read import read_files
from monitor.view.board import BoardView
from monitor.view.from_files.runs import newer_runs
from monitor.view.from_files.tally import Tally
from monitor.view.partition_view import board_views
from schemas.records.chunks import Chunk
from schemas.records.columns import EventBatch, EventColumns, EventList, JoinedEvents
from schemas.records.declaration import Declaration
from schemas.records.events import EventFields
from schemas.records.packed import Segment
from schemas.records.scores import SCORE_UNIT

_MOST_REJECTS: Final = 2_000
"""Lines that cannot be read after which a chunk ends: they take memory, and the limit is checked at its end."""

FileStarts = list[tuple[int, str]]  # index of the first event of each file in a segment, and the file

_index = itemgetter(0)


def fold_files(
    files: Sequence[Path],
    declare: Declare | None,
    limit: RejectLimit,
    *,
    epochs: Epochs | None = None,
    inherit: bool = False,
    declare_all: bool = True,
    part: bool = False,
    resolve: Callable[[Segment], Segment] | None = None,
    open_file: OpenStream = open_stream,
    on_rejected: Callable[[RejectedLine], None],
    on_progress: Callable[[int, int], None] | None = None,
) -> Partition:
    """Fold files into a partition; their end is the end of every run, except in the benchmarks of a file that breaks off."""
    partition, tally = Partition(), Tally()
    partition.readings = tally.readings
    known: set[str] = set()
    with_family: set[str] = set()
    broken_off: dict[str, str] = {}
    segments: Iterator[Segment] = tally.of(_without_breaks(read_files(files, on_progress, open_file), broken_off))
    changes: list[Callable[[Segment], Segment]] = [change for change in (epochs, resolve) if change is not None]
    for change in changes:
        segments = map(change, segments)
    for joined, starts in join_segments(segments):
        # Collecting the names of all events takes 4 % of the time, so it is done only if something may be declared of one.
        segment = begin(joined, known, declare) if declare_all else with_own_declarations(joined, declare)
        first = partition.off
        begun = [Declaration.model_validate(each) for each in segment.begun.values() if each is not None]
        declarations = [*segment.declarations, *begun]
        with_family |= {each.declare for each in declarations if "family" in each.model_fields_set}
        delta = partition.fold_events(
            declarations,
            segment.events,
            [reject.get("benchmark") for reject in segment.rejects],
            first + max(len(segment.events), 1),
            [(segment.path, line) for line in segment.declared_at],
            segment.ended,
        )
        for reject in segment.rejects:
            if "above" not in reject:  # the scale is reported once, at the end
                on_rejected(RejectedLine.of(reject))
        for letter in delta.dead_letters:
            # A refused declaration has a file and a line; a refused event has only its index, which gives the file.
            source = (
                letter.source if letter.line else starts[bisect_right(starts, letter.offset - first, key=_index) - 1][1]
            )
            refused = letter.offset - first
            # After the events come ends of runs.
            event = segment.events[refused] if not letter.line and refused < len(segment.events) else None
            tally.refuse(letter, source, event)
            on_rejected(RejectedLine(source, letter.line, letter.field, letter.reason))
        limit.add(segment.line_count, segment.rejects, lambda name: _from_one(partition.benchmarks.get(name or "")))
    limit.finish()
    tally.finish(partition, limit.share)
    _declare_units(partition)
    paths = {path: broken_off[origin(path)] for path in files if origin(path) in broken_off}
    incomplete = not_whole({name: each.spec for name, each in partition.benchmarks.items()}) | incomplete_benchmarks(
        paths, partition.benchmarks, open_file
    )
    if inherit:
        whole = {name: each for name, each in partition.benchmarks.items() if name not in incomplete}
        partition.fold_events([], [], [], partition.off + 1, ended=newer_runs(whole))
    if part:
        return partition
    partition.end_all_runs(incomplete)
    for name, benchmark in partition.benchmarks.items():
        all_read = name not in incomplete and not benchmark.reading.refused
        benchmark.complete_files = name not in with_family and all_read
    return partition


def boards_of_records(records: Sequence[bytes]) -> dict[str, BoardView]:
    """Return the boards that some records of a log make."""
    partition = Partition()
    partition.fold(Chunk(0, 0, len(records), range(len(records)), records))
    return board_views([partition])


def declared_board(declaration: Declaration) -> dict[str, BoardView]:
    """Return a board that has a declaration and no results yet."""
    partition = Partition()
    partition.fold_events([declaration], [], [], 1)
    return board_views([partition])


def _declare_units(partition: Partition) -> None:
    """Declare the units that events have named, where none were declared."""
    for name, benchmark in partition.benchmarks.items():
        if benchmark.found_units.of_item:
            new = restore_benchmark(under_version(benchmark, with_found_units(benchmark)))
            new.reading = benchmark.reading
            follow(benchmark, new)
            judge(new, EventBatch.at(name, partition.off, 0), new.delta())
            new.found_units = benchmark.found_units
            partition.benchmarks[name] = new


def _from_one(benchmark: Benchmark | None) -> bool:
    """Return whether no score that was read is below 1."""
    return benchmark is None or bool((benchmark.total == benchmark.scored * SCORE_UNIT).all())


def _without_breaks(segments: Iterable[Segment], broken_off: dict[str, str]) -> Iterator[Segment]:
    """Yield the segments of lines; add what is missing of a file that breaks off to `broken_off`."""
    for segment in segments:
        if segment.incomplete is None:
            yield segment
        else:
            broken_off[segment.path] = segment.incomplete


def join_segments(segments: Iterable[Segment]) -> Iterator[tuple[Segment, FileStarts]]:
    """Join short segments into chunks of a full fold, whose fixed cost is then paid less often."""
    joined: Segment | None = None
    starts: FileStarts = []
    parts: list[Sequence[EventFields]] = []
    length = 0
    for segment in segments:
        full = length + len(segment.events) > CHUNK_CELLS
        if joined is not None and (segment.declarations or joined.ended or full or len(joined.rejects) > _MOST_REJECTS):
            yield joined._replace(events=_joined(parts)), starts
            joined = None
        if joined is None:
            joined, starts, parts, length = segment, [(0, segment.path)], [segment.events], len(segment.events)
            continue
        starts.append((length, segment.path))
        length += len(segment.events)
        if isinstance(parts[-1], list) and isinstance(segment.events, list):
            parts[-1].extend(segment.events)
        else:
            parts.append(segment.events)
        joined.rejects.extend(segment.rejects)
        joined = joined._replace(ended=segment.ended)
    if joined is not None:
        yield joined._replace(events=_joined(parts)), starts


def _joined(parts: Sequence[Sequence[EventFields]]) -> Sequence[EventFields]:
    if len(parts) == 1:
        return parts[0]
    return JoinedEvents([part if isinstance(part, EventColumns) else EventList(list(part)) for part in parts])

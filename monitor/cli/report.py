"""`rankwatch report`: the fold over files, no servers."""

import gc
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from monitor.cli.errors import FAULT, USAGE, stop
from monitor.cli.importing import Logs, importer
from monitor.cli.output import print_report
from monitor.engine.partition import Partition
from monitor.engine.state.counts import CHUNK_CELLS
from monitor.ingest.files.blocks import Open
from monitor.ingest.files.paths import PathError, show
from monitor.ingest.files.segments import Segment, read_files
from monitor.ingest.files.streams import open_stream
from monitor.ingest.importer import named_path
from monitor.ingest.reject_limit import RejectLimit, TooManyRejected
from schemas.events import Declaration

if TYPE_CHECKING:
    from rich.progress import Progress

_SHOWN_REJECTS = 20
Begins = list[tuple[int, str]]
"""Index of an event, and the file that it and those behind it came from."""

_first = itemgetter(0)
_what = attrgetter("field", "found", "reason")


def run(paths: Sequence[Path], form: str, pairs: str, max_rejected: float, logs: Logs, *, detail: bool) -> None:
    """Read the files and print their report."""
    print_report([read_results(paths, max_rejected, logs)], form, pairs, detail=detail)


def read_results(paths: Sequence[Path], max_rejected: float, logs: Logs) -> Partition:
    """Fold the results that paths stand for, under what is declared beside them; whatever is wrong with them ends the command."""
    gc.disable()  # what is read here holds no cycles, and the process ends with what is made of it
    declared = declared_beside(paths)
    reader = importer(logs, declared.get)
    try:
        files = reader.find(paths)
    except PathError as error:
        stop(str(error), USAGE)
    return fold_files(files, RejectLimit(max_rejected), declared, reader.open)


def declared_beside(paths: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Return what a rankwatch.toml beside the results declares, by benchmark."""
    places = [named_path(path)[1] for path in paths]
    if not any(((place if place.is_dir() else place.parent) / "rankwatch.toml").exists() for place in places):
        return {}
    from monitor.ingest.declaration_file import DeclaredError, read_declared

    try:
        return read_declared(places)
    except DeclaredError as error:
        stop(str(error), USAGE)


def fold_files(
    files: Sequence[Path], limit: RejectLimit, declared: dict[str, dict[str, Any]], opener: Open = open_stream
) -> Partition:
    """Fold files into a state; name each line that could not be read on standard error.

    `declared` holds for a benchmark from its first event, unless a declaration stands before it in the files.
    """
    partition = Partition()
    declared = dict(declared)
    named = 0
    with _Reading() as progress:
        try:
            for segment, begins in _joined(read_files(files, progress, opener)):
                start = partition.off
                delta = partition.fold_events(
                    [*segment.declarations, *_first_seen(segment, declared)],
                    segment.events,
                    [reject.get("benchmark") for reject in segment.rejects],
                    partition.off + max(len(segment.events), 1),
                    [(segment.path, line) for line in segment.declared_at],
                )
                rejects = [(r["source"], r["line"], r["field"], r["found"], r["reason"]) for r in segment.rejects]
                letters = [
                    # An event that the fold refuses is known by its place among the events; of a declaration, file and line are.
                    (
                        x.source if x.line else begins[bisect_right(begins, x.offset - start, key=_first) - 1][1],
                        x.line,
                        *_what(x),
                    )
                    for x in delta.dead_letters
                ]
                for which in (*rejects, *letters):
                    named += 1
                    if named <= _SHOWN_REJECTS:
                        _name(*which)
                limit.add(segment.lines, segment.rejects)
            limit.finish()
        except TooManyRejected as error:
            stop(str(error), FAULT)
        except OSError as error:
            stop(f"{show(error.filename or 'a file')}: {error.strerror or error}", FAULT)
    if named > _SHOWN_REJECTS:
        print(f"rankwatch: {named - _SHOWN_REJECTS:,} more lines could not be read", file=sys.stderr)
    if not limit.lines:
        stop_without_results(files)
    return partition


def _first_seen(segment: Segment, declared: dict[str, dict[str, Any]]) -> list[Declaration]:
    """Take out of `declared` what the segment declares itself, and what holds from here on: that is returned."""
    if not declared:
        return []
    for declaration in segment.declarations:
        declared.pop(declaration.declare, None)
    names = {event.benchmark for event in segment.events} & declared.keys()
    return [Declaration.model_validate({"declare": name, **declared.pop(name)}) for name in sorted(names)]


def stop_without_results(files: Sequence[Path]) -> NoReturn:
    """End a command whose files hold nothing to report on."""
    rule = "a result is a JSON object a line with benchmark, item_id, model and score"
    stop(f"{', '.join(show(f) for f in files)}: no results in there: {rule}", FAULT)


def _joined(segments: Iterable[Segment]) -> Iterator[tuple[Segment, Begins]]:
    """Join short segments while they fit one fold: it has a cost of its own, whatever it folds. With each comes where its files begin."""
    joined: Segment | None = None
    begins: Begins = []
    for segment in segments:
        if joined is not None and (segment.declarations or len(joined.events) + len(segment.events) > CHUNK_CELLS):
            yield joined, begins
            joined = None
        if joined is None:
            joined, begins = segment, [(0, segment.path)]
        else:
            begins.append((len(joined.events), segment.path))
            joined.events.extend(segment.events)
            joined.rejects.extend(segment.rejects)
    if joined is not None:
        yield joined, begins


def _name(source: str, line: int | None, field: str, found: str, reason: str) -> None:
    where = f"{show(source)}:{line}" if line is not None else show(source)
    print(f"rankwatch: {where}: {field}: found {found}: {reason}\n", end="", file=sys.stderr)


class _Reading:
    """A progress bar on standard error where that is a terminal, and the reading takes long enough to want one."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    def __enter__(self) -> Callable[[int, int], None] | None:
        if not sys.stderr.isatty():
            return None
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        bar = self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        bar.start()
        task = bar.add_task("reading", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return progress

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

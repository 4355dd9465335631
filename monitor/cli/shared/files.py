"""Files of results as commands read them: found, opened and folded, every error on standard error."""

import gc
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, Self

from monitor.cli.shared.commands import given
from monitor.cli.shared.declared.declarations import Declarations, make_declarations
from monitor.cli.shared.declared.values import similar_first
from monitor.cli.shared.errors import FAULT, USAGE, file_error, note, stop
from monitor.cli.shared.options import DeclareOptions, LogOptions, ScoreOptions
from monitor.cli.shared.progress import progress_bar
from monitor.files.dated_runs import DatedRuns, Run, RunFault
from monitor.files.epochs import NEXT, EpochRecord, Epochs
from monitor.files.formats.choices import ChoiceError, Choices
from monitor.files.importer import Importer
from monitor.files.reject_limit import RejectedLine, RejectLimit, TooManyRejected
from monitor.files.runs import incomplete_benchmarks
from monitor.files.streams.copying import CopyError
from monitor.files.streams.paths import NothingYetError, PathError, named_path, origin, show
from monitor.files.streams.read import read_files
from monitor.view.board import BoardView
from monitor.view.from_files.fold import fold_files
from monitor.view.from_files.one_score import OneScore, has_conflicts, take_counts
from monitor.view.partition_view import board_views
from monitor.words.counts import counted
from schemas.records.events import Ended, models_of
from schemas.records.names import MAX_INDEX, natural
from schemas.records.text import shorten
from schemas.results.gate import ConflictRule


def parse_epoch(text: str | None, *, inherit: bool) -> int | str | None:
    """Return a number or "next"; anything else ends the command, as does `--inherit` without an epoch."""
    if inherit and text is None:
        stop("--inherit: give the epoch of the new scores with --epoch N or --epoch next", USAGE)
    if text is None or text == NEXT:
        return text
    if not text.isdecimal() or int(text) > MAX_INDEX:
        stop(f"--epoch {text}: use a whole number from 0 to {MAX_INDEX}, or next", USAGE)
    return int(text)


def by_path(
    epoch: int | str, importer: Importer, paths: Sequence[str], aliases: Mapping[str, str]
) -> tuple[list[Path], Epochs]:
    """Return the files of paths in the order of the paths, and the epochs that make each path a generation."""
    place: dict[str, int] = {}
    files: list[Path] = []
    for number, path in enumerate(paths):
        fresh = [file for file in importer.find([path]) if origin(file) not in place]
        files += fresh
        place |= dict.fromkeys(map(origin, fresh), number)
    return files, Epochs(epoch, group=lambda file: place[file], aliases=aliases)


def after_state(epoch: int | str | None, benchmarks: Mapping[str, BoardView], record: EpochRecord) -> Epochs:
    """Return the epochs of files whose scores come after a state, as it is now."""
    newest = {
        name: dict(benchmark.latest_epoch)
        | {alias: benchmark.latest_epoch.get(model, 0) for alias, model in benchmark.spec.aliases.items()}
        for name, benchmark in benchmarks.items()
    }
    return Epochs(epoch, newest=lambda benchmark: newest.get(benchmark, {}), record=record)


def note_read_before(epoch: int | str | None, files: Iterable[Path]) -> None:
    """Print which files have the epoch of the command already, and why nothing of them is read again."""
    names = list(map(show, files))
    if epoch is None or not names:
        return
    others = len(names) - 1
    which, verb, them = (
        (f"{names[0]} and {counted(others, 'more file')}", "were", "them") if others else (names[0], "was", "it")
    )
    note(
        f"{which} {verb} read with --epoch {epoch} before, and nothing new was read; to read {them} again, give a newer number "
        "(--epoch N)"
    )


def inherited(ends: Iterable[Ended]) -> str:
    """Return a clause with how many of these runs inherit; empty where none does."""
    count = sum(end.base is not None for end in ends)
    keep = "keeps" if count == 1 else "keep"
    return f"; {count:,} of them {keep} the scores of the epoch before where there is no new one" if count else ""


_PRINTED_LINES: Final = 20
_ALIKE: Final = 3  # lines of a file that are printed for one reason


class Resolution(NamedTuple):
    """Which of several scores counts, and for which model the best one does where it is the worst."""

    rule: ConflictRule
    baseline: str


def read_results(
    paths: Sequence[str],
    max_rejected: float,
    logs: ScoreOptions | None = None,
    declared: DeclareOptions | Declarations | None = None,
    epoch: int | str | None = None,
    *,
    inherit: bool = False,
    part: bool = False,
    resolution: Resolution | None = None,
) -> Mapping[str, BoardView]:
    """Fold the results in `paths` under what the flags, the files next to them and they themselves declare; an error ends the command."""
    # With a `resolution` the files are read again where scores are in conflict. With `part` they are known to be a part of a benchmark:
    # their end ends no run, and nothing is printed about what is missing.
    gc.disable()  # folding creates no cycles, and the process ends with the report
    declarations = (
        declared if isinstance(declared, Declarations) else make_declarations(declared or DeclareOptions(), paths)
    )
    importer = make_importer(logs or LogOptions())
    declarations.chooses_scores = lambda: importer.chooses_scores and not part
    files, epochs = find_files(importer, paths), None
    if epoch is not None:
        files, epochs = by_path(epoch, importer, paths, declarations.aliases)
    limit = RejectLimit(max_rejected)
    rejected = RejectedLines()
    try:
        with rejected, progress_bar("reading") as update:
            fold = partial(
                fold_files,
                files,
                declarations,
                epochs=epochs,
                declare_all=declarations.given_any,
                open_file=importer.open,
                inherit=inherit,
                part=part,
                on_progress=None if update is None else lambda done, total: update(completed=done, total=total),
            )
            partition = fold(limit=limit, on_rejected=rejected.print)
            if resolution is not None and resolution.rule != "first" and has_conflicts(partition):
                segments = read_files(files, opener=importer.open)
                chosen = OneScore(resolution.rule, resolution.baseline, partition.benchmarks)
                chosen.collect(segments if epochs is None else map(epochs, segments))
                first = partition.benchmarks
                partition = fold(limit=RejectLimit(max_rejected), on_rejected=lambda _: None, resolve=chosen)
                take_counts(partition.benchmarks.values(), first, resolution.rule, resolution.baseline)
    except TooManyRejected as error:
        if limit.rejected == 1 and not limit.scaled:  # the line above is all there is to report
            raise SystemExit(FAULT) from None
        stop(error.problem)
    except OSError as error:
        stop(file_error(error))
    except ValueError as error:
        stop(str(error))
    importer.describe({name: each.reading for name, each in partition.benchmarks.items()})
    boards = board_views([partition])
    if not any(part or board.counters["events"] for board in boards.values()):
        refused = f"no result is left (rejected: {rejected.count:,}); fix the files, or the flags"
        stop_without_results(files, refused if rejected.count else None)
    declarations.stop_unused(boards)
    if texts := [*unmatched_choices(importer), *_unmatched_aliases(declarations.aliases, files, importer)]:
        stop("\nrankwatch: ".join(texts), USAGE)
    declarations.note_units(boards)
    if not part:
        declarations.note_published(boards)
        declarations.note_family(boards)
        declarations.note_models(boards)
    return boards


def choose_board(benchmarks: Mapping[str, BoardView], name: str | None) -> BoardView:
    """Return the benchmark of a name, or the only one; another number of them ends the command."""
    known = similar_first(name or "", benchmarks)
    if name is None and len(benchmarks) > 1:
        stop(f"the files hold {len(benchmarks):,} benchmarks, {known}; choose one with --benchmark", USAGE)
    if name is not None and name not in benchmarks:
        stop(f"--benchmark {name}: the files hold no benchmark of that name; they hold {known}", USAGE)
    return next(iter(benchmarks.values())) if name is None else benchmarks[name]


def make_importer(logs: ScoreOptions, *, runs: bool = False) -> Importer:
    """Return the importer for these options."""
    try:
        return Importer(Choices.parse(**given(logs)), note, runs=runs)
    except ChoiceError as error:
        stop(str(error), USAGE)


def unmatched_choices(importer: Importer) -> list[str]:
    """Return a sentence for each choice of a metric, filter, scorer or scale for a name that no file read so far holds."""
    return [
        f"{entry}: it applies to nothing that was read; it could apply to {similar_first(name, names)}"
        for entry, name, names in importer.choices.unmatched()
    ]


def _unmatched_aliases(aliases: Mapping[str, str], files: Sequence[Path], importer: Importer) -> list[str]:
    """Return a sentence for each alias that is no model of the files; they are read again only if there is an alias."""
    if not aliases:
        return []
    models = {
        model
        for segment in read_files(files, opener=importer.open)
        for event in segment.events
        for model in models_of(event)
    }
    return [
        f"--alias {shorten(alias)}={shorten(model)}: no file holds scores of {shorten(alias)}; the models are "
        f"{similar_first(alias, models)}"
        for alias, model in aliases.items()
        if alias not in models
    ]


def find_files(importer: Importer, paths: Sequence[str]) -> list[Path]:
    """Return the files of results in `paths`; a path that cannot be read ends the command."""
    try:
        return importer.find(paths)
    except PathError as error:
        stop(str(error), USAGE)
    except CopyError as error:
        stop(str(error))


def is_empty(path: str) -> bool:
    """Return whether a path has no results yet."""
    place = Path(named_path(path)[1])
    return not place.exists() or (place.is_dir() and not any(each.is_file() for each in place.rglob("*")))


def find_present(importer: Importer, paths: Sequence[str]) -> list[Path]:
    """Return the files of results that are there; print which paths have none yet."""
    waiting = False
    for path in paths:
        try:
            importer.find([path])
        except NothingYetError as error:
            waiting = True
            note(f"{error.what} yet; watch waits for results there")
        except PathError as error:
            stop(str(error), USAGE)
    return importer.find(paths, strict=False) if waiting else find_files(importer, paths)


def benchmarks_in(files: Sequence[Path], importer: Importer, max_rejected: float = 1.0) -> set[str]:
    """Return the benchmarks whose results files hold; too many rejected lines end the command."""
    names, limit = set[str](), RejectLimit(max_rejected)
    for segment in read_files(files, opener=importer.open):
        names |= {event.benchmark for event in segment.events}
        try:
            limit.add(segment.line_count, segment.rejects)
        except TooManyRejected as error:
            stop(str(error))
    return names


def not_ending(
    ends: Iterable[Ended], incomplete: Mapping[Path, str], benchmarks: Iterable[str], importer: Importer
) -> tuple[list[Ended], list[str]]:
    """Return the ends of runs without those in benchmarks of files that break off, and for these benchmarks what to do."""
    ends = list(ends)
    clauses = incomplete_benchmarks(incomplete, {*benchmarks, *(end.ended for end in ends)}, importer.open)
    return [end for end in ends if end.ended not in clauses], [
        f"{shorten(name)}: {clause}, so no run was ended; complete the file, and run the command again"
        for name, clause in clauses.items()
    ]


def stop_refused(benchmarks: Iterable[BoardView]) -> None:
    """End a command that has printed its answer if too much of a benchmark could not be read."""
    if excess := [each.reading.excess for each in benchmarks if each.reading.excess]:
        stop("\nrankwatch: ".join(excess))


def stop_without_results(files: Sequence[Path], refused: str | None = None) -> NoReturn:
    """End a command that read no result; where results were read and refused, with these words."""
    if refused is not None:
        stop(refused)
    names = ", ".join(show(file) for file in files)
    what = "no results" if len(files) > 1 or files[0].stat().st_size else "the file is empty"
    stop(f"{names}: {what}; write one JSON object a line, or a row a score, with benchmark, item_id, model and score")


class RejectedLines:
    """Prints the first lines that were rejected, few of each reason, and counts the rest."""

    # A reject without a line number is printed at the end, once, with the count of those like it. Use it as a context manager, which prints
    # that at every end.

    def __init__(self) -> None:
        self.count = 0
        self._alike: dict[tuple[str, str, str], list[RejectedLine]] = {}
        """By file, field and reason: the lines that were printed."""
        self._more: Counter[tuple[str, str, str]] = Counter()
        self._printed = self._rest = 0

    def print(self, line: RejectedLine) -> None:
        """Print a line unless some of its reason, or many others, have been printed."""
        self.count += 1
        key = line.source, line.field, line.reason
        alike = self._alike.get(key, [])
        if len(alike) == (_ALIKE if line.line is not None else 1):
            self._more[key] += 1
        elif self._printed < _PRINTED_LINES:
            self._alike[key] = [*alike, line]
            self._printed += 1
            if line.line is not None:
                note(str(line))
        else:
            self._rest += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for key, alike in self._alike.items():
            last, count = alike[-1], self._more[key]
            if last.line is None:
                note(f"{last} (and {count:,} more)" if count else str(last))
            elif count:
                lines = "1 more line" if count == 1 else f"{count:,} more lines"
                note(f"{show(last.source)}: {lines} rejected for the same reason as line {last.line}")
        if self._rest:
            note(f"{self._rest:,} more lines were rejected")


def read_runs(
    paths: Sequence[str], logs: ScoreOptions, max_rejected: float, runs: DatedRuns, *, models: bool = False
) -> DatedRuns:
    """Add the results of files to runs; with `models` the path of a file may name its model. An error ends the command."""
    importer = make_importer(logs, runs=not models)
    files = sorted(find_files(importer, paths), key=lambda path: natural(str(path)))
    runs.files = {origin(path): path for path in files}
    limit, rejected = RejectLimit(max_rejected), RejectedLines()
    try:
        with rejected, progress_bar("reading") as update:
            progress = None if update is None else lambda done, total: update(completed=done, total=total)
            for segment in read_files(files, progress, importer.open):
                runs.add(segment)
                for reject in segment.rejects:
                    rejected.print(RejectedLine.of(reject))
                limit.add(segment.line_count, segment.rejects)
                runs.rejected += len(segment.rejects)
        limit.finish()
    except (TooManyRejected, RunFault) as error:
        stop(error.problem if isinstance(error, TooManyRejected) else str(error))
    except OSError as error:
        stop(file_error(error))
    if not runs.sentinels():
        stop_without_results(files)
    return runs


def refuse_copies(runs: DatedRuns, of: Sequence[Run], *, equal_runs: bool) -> None:
    """End the command where a file of the runs of a model may be a copy."""
    if not equal_runs and (copy := runs.copied(of)):
        stop(
            f"{show(copy[0])}: {show(copy[1])} has all that it has, and each counts as a run; remove the copy, name the runs "
            "(a field run), or add --equal-runs if these are runs that answered alike"
        )

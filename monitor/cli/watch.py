"""`rankwatch watch`: follow files through the embedded monitor."""

import asyncio
import json
import shlex
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from monitor.cli.shared.conflicts import check_conflicts_file, save_conflicts
from monitor.cli.shared.declared.declarations import make_declarations
from monitor.cli.shared.declared.prices import parse_prices, prices_fault
from monitor.cli.shared.declared.suites import suites_flag, suites_of_files
from monitor.cli.shared.errors import FAULT, USAGE, end_at_once, note, stop
from monitor.cli.shared.files import (
    after_state,
    benchmarks_in,
    find_files,
    find_present,
    inherited,
    make_importer,
    not_ending,
    note_read_before,
    parse_epoch,
    stop_refused,
    stop_without_results,
    unmatched_choices,
)
from monitor.cli.shared.options import (
    ConflictsOption,
    DataDirOption,
    DeclareOptions,
    DistinctOption,
    EndedOption,
    EpochOption,
    FormatOption,
    HostOption,
    InheritOption,
    LogOptions,
    MaxRejectedSetting,
    OutputOption,
    PairsOption,
    PortOption,
    PriceOption,
    PricesOption,
    SuiteMissingOption,
    SuiteOption,
    TopOption,
    VerboseOption,
)
from monitor.cli.shared.output import choose_output, print_report
from monitor.cli.shared.running.live import EventRate, IfComplete, make_view
from monitor.cli.shared.running.process import log_to_terminal, run_to_end
from monitor.cli.shared.running.stopping import Stopping
from monitor.cli.shared.settings import read_settings
from monitor.cli.shared.table import print_table
from monitor.files.epochs import EpochRecord
from monitor.files.importer import show_argument
from monitor.files.reject_limit import RejectLimit, TooManyRejected
from monitor.files.runs import ends_of_runs, incomplete_benchmarks, not_whole
from monitor.files.streams.paths import is_remote, named_path, origin
from monitor.files.tail import Tailer
from monitor.render.drift import findings
from monitor.render.terminal.plain import LiveStatus
from monitor.service.embedded import EmbeddedMonitor
from monitor.state_lock import StateTorn
from monitor.view.build import ReportView, report_views
from monitor.view.from_files.runs import epoch_before
from monitor.view.ranking.goal import priced_report
from monitor.words.counts import counted
from monitor.words.flags import with_flags
from monitor.words.reading import not_read, why_not_whole
from schemas.records.declaration import Declaration
from schemas.records.events import Ended
from schemas.records.text import mask_url, shorten
from schemas.results.drift import DriftReport
from schemas.results.report import Report

if TYPE_CHECKING:
    from monitor.cli.shared.declared.declarations import Declarations
    from monitor.cli.shared.output import Output
    from monitor.cli.shared.running.live import View
    from monitor.files.importer import Importer
    from monitor.settings import Settings


_REFRESH_SECONDS: Final = 0.5
_NAMED: Final = 3  # benchmarks whose unread files and items the status names
_SUMMARY_MODELS: Final = 1_000  # models up to which the report is printed at the end: more would delay the stop
_DRAIN_SHARE: Final = 0.2  # share of the time for a stop in which the rest of the log is folded


def watch(
    declared: DeclareOptions,
    logs: LogOptions,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="files or folders, as for report; without any, watch reads what is posted over HTTP",
            show_default=False,
            readable=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="read everything, print the report and exit")] = False,
    form: FormatOption = None,
    out: OutputOption = None,
    pairs: PairsOption = None,
    top: TopOption = None,
    verbose: VerboseOption = False,
    epoch: EpochOption = None,
    inherit: InheritOption = False,
    ended: EndedOption = False,
    conflicts: ConflictsOption = None,
    data_dir: DataDirOption = None,
    host: HostOption = None,
    port: PortOption = None,
    max_rejected: MaxRejectedSetting = None,
    suite: SuiteOption = None,
    suite_missing: SuiteMissingOption = None,
    distinct: DistinctOption = False,
    price: PriceOption = None,
    prices: PricesOption = None,
) -> None:
    """Follow results as they are written; report each ranking that is decided.

    Every new result is counted exactly once, however often you stop and start. No pair is decided before you declare an order policy: give
    the item count with --items, or assert with --order trusted that neither arrival nor what is skipped depends on outcomes.

    Example: rankwatch watch results/ --items 12032
    """
    if not once:
        end_at_once()
    elif not paths:
        stop("watch --once: give the files or folders to read", USAGE)
    if (ended or inherit) and not paths:
        stop(f"watch --{'ended' if ended else 'inherit'}: give the files or folders whose runs end", USAGE)
    for path in [] if once else paths or []:
        if is_remote(place := named_path(path)[1]):
            stop(f"{mask_url(place)}: watch follows files and folders; read standard input and URLs with --once", USAGE)
    given = parse_prices(price or (), prices, of_all=True)
    output = choose_output(form, out, pairs, verbose=verbose, top=top, prices=given)
    check_conflicts_file(conflicts)
    settings = read_settings(
        data_dir=data_dir,
        host=host,
        port=port,
        max_rejected=max_rejected,
        suites=None if once else suites_flag(suite),
        prices=None if once else given,
        suite_missing=None if suite_missing is None else suite_missing.value,
        distinct_items=distinct or None,
    )
    directory = [] if data_dir is None else ["--data-dir", str(data_dir)]
    command = shlex.join(["rankwatch", "watch", *map(show_argument, paths or []), *directory])
    declare = make_declarations(declared, paths or [], live=command)
    importer = make_importer(logs)
    declare.chooses_scores = lambda: importer.chooses_scores
    log_to_terminal()
    files = _Files(paths or [], importer, declare, parse_epoch(epoch, inherit=inherit), ended=ended, inherit=inherit)
    if once:
        run_to_end(_read_once(files, settings, output, conflicts, suite))
    else:
        try:
            run_to_end(_follow(files, settings, conflicts))
        except BrokenPipeError:  # it follows no longer, and nobody asked it to end
            raise SystemExit(FAULT) from None


class _Files(NamedTuple):
    """What to read: the PATH arguments, what opens and declares it, the epoch of events without one, and which of its runs end."""

    paths: Sequence[str]
    importer: "Importer"
    declare: "Declarations"
    epoch: int | str | None
    ended: bool  # whether every run ends
    inherit: bool  # whether runs of a newer epoch end, and inherit from the epoch before


async def _read_once(
    files: _Files, settings: "Settings", output: "Output", conflicts: Path | None, suite: Sequence[str] | None
) -> None:
    """Read the files to their end and print the report."""
    inputs = find_files(files.importer, files.paths)
    files.declare.note_present(inputs)
    async with EmbeddedMonitor(settings, serve=False, declare=files.declare) as monitor:
        await monitor.caught_up()
        files.declare.stop_unused(monitor.reports.benchmarks(), lambda: benchmarks_in(inputs, files.importer))
        await _resume(files, monitor)
        await monitor.reports.at_rest()
        tailer = _make_tailer(files, monitor)
        try:
            await tailer.run_once()
        except TooManyRejected as error:
            await monitor.caught_up()
            stop(str(error))
        await monitor.caught_up()
        await monitor.checked()
        await monitor.reports.at_rest()
        if not any(benchmark.counters["events"] for benchmark in monitor.reports.benchmarks().values()):
            rejected = monitor.dead_letters_written
            stop_without_results(inputs, _rejected(rejected, monitor) if rejected else None)
        for text in unmatched_choices(files.importer):
            note(text)
        all_ended = not (files.ended or files.inherit) or await _end_runs(files, monitor, tailer)
        if monitor.dead_letters_written:
            note(_rejected(monitor.dead_letters_written, monitor))
        await monitor.reports.at_rest()
        partitions = monitor.reports.partitions
    # Everything is stored. For this report alone, the end of the files is the end of every run; a later run may add to them.
    for partition in partitions:
        broken_off = incomplete_benchmarks(tailer.incomplete, [*partition.names()], files.importer.open)
        partition.assume_ends(not_whole({name: board.spec for name, board in partition.boards()}) | broken_off)
        partition.note_excess(map(origin, tailer.files), settings.max_rejected)
    boards = {name: board for each in partitions for name, board in each.boards()}
    save_conflicts(boards.values(), conflicts)
    print_report(
        boards, output, suites_of_files(suite, boards, settings.suite_missing, distinct=settings.distinct_items)
    )
    files.declare.note_models(boards)
    for name, board in sorted(boards.items()):
        if board.undeclared and not board.incomplete:
            mean = "" if board.unknown_units else "the report takes the mean of all repeats; live, "
            files.declare.notes(
                f"{shorten(name)}: {mean}no pair is decided: {with_flags(board.undeclared)}", "with undeclared repeats"
            )
    stop_refused(boards.values())
    if not all_ended:
        raise SystemExit(FAULT)


async def _follow(files: _Files, settings: "Settings", conflicts: Path | None) -> None:
    """Follow the files and serve until a signal or an error."""
    files.declare.note_present(find_present(files.importer, files.paths))
    view = make_view(settings.low_coverage)
    stopping = Stopping(settings.drain_seconds)
    monitor = EmbeddedMonitor(settings, on_change=view.change, declare=files.declare, watched=files.paths)
    async with AsyncExitStack() as stack:

        async def start() -> None:
            await stack.enter_async_context(monitor)
            await _resume(files, monitor)

        await stopping.unless_requested(start())
        if not stopping.requested:
            try:
                await _show(files, monitor, view, stopping)
            finally:
                await _print_summary(monitor)
            await monitor.reports.at_rest()
            save_conflicts(monitor.reports.benchmarks().values(), conflicts)


async def _print_summary(monitor: "EmbeddedMonitor") -> None:
    """Print the report as of now: what was on the screen goes with it. Without one if the fold of a chunk fails, or takes too long."""
    settings, reports = monitor.settings, monitor.reports
    prices = settings.prices

    def report() -> tuple[list[DriftReport], list[ReportView]]:
        every = reports.benchmarks()
        sentinels = [board.drift() for board in every.values() if board.drift is not None]
        boards = {name: board for name, board in every.items() if board.drift is None}
        if not boards or any(len(board.contestants) > _SUMMARY_MODELS for board in boards.values()):
            return sentinels, []
        return sentinels, list(report_views(boards, pairs="adjacent", assert_complete=False, suites=reports.suites))

    try:
        sentinels, views = await asyncio.wait_for(reports.read_briefly(report), _DRAIN_SHARE * settings.drain_seconds)
    except (StateTorn, TimeoutError):
        note("no report is printed, because a chunk of the log is not folded whole; the next start folds it")
        return
    for line in chain.from_iterable(findings(sentinel) for sentinel in sentinels if sentinel.sentinels):
        print(line)
    if views:
        print_table(replace(view, report=priced_report(view.report, prices)) for view in views)
        fault = prices_fault([view.report for view in views], prices) if prices else None
        if fault is not None:
            note(fault)


async def _resume(files: _Files, monitor: "EmbeddedMonitor") -> None:
    """Take up the benchmarks that have begun; what flags change is declared as the next version, unless it is refused."""
    paths, importer = files.paths, files.importer
    await monitor.caught_up()
    specs = {name: benchmark.spec for name, benchmark in monitor.reports.benchmarks().items()}

    def refused(fields: dict[str, Any]) -> str | None:
        declaration = Declaration.model_validate(fields)
        partition = monitor.reports.partition_of(declaration.declare)
        fault = None if partition is None else partition.declaration_fault(declaration, folded=True)
        return None if fault is None else f"{fault.field}: {fault.reason}"

    changed = files.declare.resume(specs, lambda: benchmarks_in(importer.find(paths, strict=False), importer), refused)
    if changed:
        await monitor.log.append([json.dumps(fields).encode() for fields in changed])
        await monitor.caught_up()


async def _end_runs(files: _Files, monitor: "EmbeddedMonitor", tailer: "Tailer") -> bool:
    """End the runs whose scores the files hold, and that have not ended; print how many, and how many inherit."""
    # Runs in benchmarks of a file that breaks off go on: the file is printed. Return whether there was none.
    await monitor.caught_up()
    benchmarks = monitor.reports.benchmarks()
    paths = [path for path in files.importer.find(files.paths, strict=False) if path in tailer.files]
    found = await asyncio.to_thread(ends_of_runs, paths, files.importer.open, tailer.epochs)
    whole, refusals = await asyncio.to_thread(not_ending, found, tailer.incomplete, benchmarks, files.importer)
    await monitor.reports.at_rest()  # what was posted meanwhile may be folded in a thread
    benchmarks = monitor.reports.benchmarks()
    limited = {name: why for name, each in benchmarks.items() if (why := why_not_whole(each.reading))}
    refusals += [
        f"{shorten(name)}: no run was ended: {limited[name]}"
        for name in sorted({e.ended for e in whole} & limited.keys())
    ]
    whole = [end for end in whole if end.ended not in limited]
    ends: dict[Ended, None] = {}
    before = 0
    for end in whole:
        benchmark = benchmarks.get(end.ended)
        run = None if benchmark is None else benchmark.epoch_contestant_of.get((end.model or "", end.epoch or 0))
        if benchmark is None or run is None:
            continue  # none of its scores counts
        model, epoch = benchmark.contestants[run]
        base = epoch_before(benchmark, model, epoch) if files.inherit else None
        if base is None and not files.ended:
            continue
        if run in benchmark.ended:
            before += 1
        else:
            ends[end.model_copy(update={"model": model, "base": base})] = None
    if ends:
        await monitor.log.append(
            [end.model_dump_json(exclude_none=True).encode() for end in sorted(ends, key=lambda end: end.epoch or 0)]
        )
        await monitor.caught_up()
    for refusal in refusals:
        note(refusal)
    note(f"{counted(len(ends), 'run')} ended{f'; {before:,} had ended before' if before else ''}{inherited(ends)}")
    return not refusals


def _make_tailer(files: _Files, monitor: "EmbeddedMonitor", *, waits: bool = False) -> "Tailer":
    try:
        record = EpochRecord(monitor.settings.data_dir.absolute() / "epochs.json")
    except ValueError as error:
        stop(str(error))
    files.importer.resume(monitor.partition.readings.chosen())
    return Tailer(
        files.paths,
        monitor.log.append,
        monitor.partition.sources,
        declare=files.declare,
        known=set(monitor.reports.benchmarks()),
        epochs=after_state(files.epoch, monitor.reports.benchmarks(), record),
        on_first_pass=lambda paths: note_read_before(files.epoch, paths),
        refused=monitor.partition.readings.refused,
        notice=note,
        limit=RejectLimit(monitor.settings.max_rejected),
        poll_interval=monitor.settings.poll_seconds,
        importer=files.importer,
        waits=waits,
    )


async def _show(files: _Files, monitor: "EmbeddedMonitor", view: "View", stopping: "Stopping") -> None:
    """Follow the files and show the state until a signal, an error or too many rejects."""

    async def end_runs() -> None:
        await _end_runs(files, monitor, tailer)

    await monitor.reports.at_rest()
    tailer = _make_tailer(files, monitor, waits=True)
    following = tailer.follow(end_runs if files.ended or files.inherit else None)
    rate, if_complete, reports = EventRate(), IfComplete(), monitor.reports

    async def show() -> None:
        while True:
            with suppress(StateTorn):  # the monitor fails with the cause
                await update()
            await asyncio.sleep(_REFRESH_SECONDS)

    async def update() -> None:
        boards = await reports.read(lambda: reports.boards(monitor.settings.low_coverage)) if view.shows_reports else []
        report = Report(benchmarks=[each for each, _ in boards])
        await reports.at_rest()
        status = _status(monitor, tailer, rate)
        if status.caught_up:
            sentence = await reports.read(lambda: if_complete.sentence(reports.benchmarks()))
            status = replace(status, note="; ".join(filter(None, (status.note, sentence))) or None)
        view.update(report, status, ties={each.benchmark: ties for each, ties in boards})

    tasks = [asyncio.create_task(each) for each in (following, monitor.failed(), stopping.wait(), show())]
    try:
        with view:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    with suppress(TimeoutError):
        await asyncio.wait_for(monitor.caught_up(), _DRAIN_SHARE * monitor.settings.drain_seconds)


def _status(monitor: "EmbeddedMonitor", tailer: "Tailer", rate: "EventRate") -> "LiveStatus":
    progress = tailer.progress
    benchmarks = monitor.reports.benchmarks()
    events = sum(benchmark.counters["events"] for benchmark in benchmarks.values())
    caught_up = progress.bytes_done >= progress.bytes_total and monitor.lag == 0
    notes = [_rejected(monitor.rejected, monitor)] if monitor.rejected else []
    notes += [
        f"{shorten(name)}: {what}"
        for name, benchmark in sorted(benchmarks.items())
        if (what := benchmark.reading.hold or not_read(benchmark.reading, benchmark.unread))
    ][:_NAMED]
    return LiveStatus(
        events=events,
        events_per_second=rate.update(events),
        rejected=monitor.rejected,
        bytes_done=progress.bytes_done,
        bytes_total=progress.bytes_total,
        caught_up=caught_up,
        url=monitor.web.url if monitor.web else None,
        note="; ".join(notes) or None,
    )


def _rejected(count: int, monitor: "EmbeddedMonitor") -> str:
    return f"{counted(count, 'record')} rejected; {monitor.dead_letters_path} has each with the reason"

"""`rankwatch watch`: follow files through the embedded monitor."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from monitor.cli.errors import FAULT, USAGE, stop
from monitor.cli.importing import Logs, importer
from monitor.cli.output import print_report
from monitor.cli.report import declared_beside, stop_without_results
from monitor.cli.settings import quiet_logs, read_settings
from monitor.engine.partition import FREE_TO_CHANGE
from monitor.settings import Settings
from schemas.events import Declaration, Spec

if TYPE_CHECKING:
    from monitor.app.embedded_monitor import EmbeddedMonitor
    from monitor.cli.stopping import Stopping
    from monitor.ingest.importer import Importer
    from monitor.ingest.tail import Tailer

_REFRESH_SECONDS = 0.5


def run(
    paths: Sequence[Path],
    items: Sequence[str],
    order: str | None,
    flags: dict[str, Any],
    logs: Logs,
    once: tuple[str, str] | None,
) -> None:
    """Watch until stopped, or once."""
    if once and not paths:
        stop("watch --once: give the files to read, or folders of them", USAGE)
    settings = read_settings(flags)
    declare = declarations(items, order, paths)
    quiet_logs()
    from monitor.app.process import startup_errors

    try:
        asyncio.run(_watch(paths, settings, declare, importer(logs, declare), once))
    except BrokenPipeError:
        raise  # whoever read our output has gone: no fault to tell
    except startup_errors() as error:
        stop(str(error), FAULT)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def declarations(
    items: Sequence[str], order: str | None, paths: Sequence[Path]
) -> Callable[[str], dict[str, Any] | None]:
    """Return what is declared of a benchmark that is seen for the first time.

    From --items N, --items NAME=N and --order, and before them from what a rankwatch.toml beside the results says of it.
    """
    tables = declared_beside(paths)
    counts: dict[str | None, int] = {}
    for entry in items:
        name, equals, number = entry.rpartition("=")
        if not number.isdecimal() or int(number) < 1:
            stop(f"--items {entry}: give a number of items, or NAME=N", USAGE)
        counts[name if equals else None] = int(number)

    def declare(benchmark: str) -> dict[str, Any] | None:
        spec: dict[str, Any] = dict(tables.get(benchmark, ()))
        count = counts.get(benchmark, counts.get(None))
        if count is not None:
            spec["items"] = count
        if order is not None and order != _policy(spec):
            spec["order"] = order
        return {"declare": benchmark, **spec} if spec else None

    try:
        for name in tables or [next((name for name in counts if name), "benchmark")]:
            probe = declare(name)
            if probe is not None:
                Declaration.model_validate(probe)
    except ValidationError as error:
        stop(error.errors(include_url=False)[0]["msg"].removeprefix("Value error, "), USAGE)
    return declare


def _policy(spec: dict[str, Any]) -> str | None:
    declared = spec.get("order")
    return declared.get("policy") if isinstance(declared, dict) else declared


async def _watch(
    paths: Sequence[Path],
    settings: Settings,
    declare: Callable[[str], dict[str, Any] | None],
    reader: "Importer",
    once: tuple[str, str] | None,
) -> None:
    from monitor.app.embedded_monitor import EmbeddedMonitor
    from monitor.cli.stopping import Stopping
    from monitor.ingest.files.paths import PathError
    from monitor.ingest.reject_limit import RejectLimit
    from monitor.ingest.tail import Tailer

    try:
        files = reader.find(paths)
    except PathError as error:
        stop(str(error), USAGE)
    view = _view(settings)
    stopping = None if once else Stopping(settings.drain_seconds)
    async with contextlib.AsyncExitStack() as stack:
        monitor = EmbeddedMonitor(settings, on_change=None if once else view.change, serve=not once, declare=declare)
        starting = _start(monitor, stack, declare)
        await (starting if stopping is None else stopping.unless_asked(starting))
        if stopping is not None and stopping.asked:
            return
        tailer = Tailer(
            paths,
            monitor.log.append,
            monitor.partition.sources,
            declare=declare,
            known=set(monitor.reports.benchmarks()),
            limit=RejectLimit(settings.max_rejected),
            poll_interval=settings.poll_seconds,
            importer=reader,
        )
        if once:
            await _once(monitor, tailer, once, files)
        elif stopping is not None:
            await _follow(monitor, tailer, view, stopping)


async def _start(
    monitor: "EmbeddedMonitor", stack: contextlib.AsyncExitStack, declare: Callable[[str], dict[str, Any] | None]
) -> None:
    await stack.enter_async_context(monitor)
    await monitor.caught_up()
    _check_declared(monitor, declare)


def _check_declared(monitor: "EmbeddedMonitor", declare: Callable[[str], dict[str, Any] | None]) -> None:
    """Refuse flags that contradict what was declared when a benchmark's first score came."""
    for name, benchmark in monitor.reports.benchmarks().items():
        wanted = declare(name)
        if wanted is None:
            continue
        spec = Spec.model_validate({key: value for key, value in wanted.items() if key != "declare"})
        for key in Spec.model_fields:
            if (
                key not in FREE_TO_CHANGE
                and key in spec.model_fields_set | {"order"}
                and getattr(spec, key) != getattr(benchmark.spec, key)
            ):
                then = getattr(benchmark.spec, key)
                stop(
                    f"{name}: its first scores came under {key} {_shown(then)}, which cannot become {_shown(getattr(spec, key))}: "
                    "verdicts would rest on a choice made after seeing data; take it back, or start over with another --data-dir",
                    USAGE,
                )


def _shown(value: object) -> str:
    return str(getattr(value, "policy", value))


async def _once(monitor: "EmbeddedMonitor", tailer: "Tailer", once: tuple[str, str], files: Sequence[Path]) -> None:
    from monitor.ingest.reject_limit import TooManyRejected

    form, pairs = once
    try:
        await tailer.run_once()
    except TooManyRejected as error:
        await monitor.caught_up()
        stop(str(error), FAULT)
    await monitor.caught_up()
    if not monitor.reports.benchmarks():
        stop_without_results(files)
    if monitor.dead_letters_written:
        print(
            f"rankwatch: {monitor.dead_letters_written:,} records could not be read: see {monitor.dead_letters_path}",
            file=sys.stderr,
        )
    print_report(monitor.reports.partitions, form, pairs)


async def _follow(monitor: "EmbeddedMonitor", tailer: "Tailer", view: Any, stopping: "Stopping") -> None:  # noqa: ANN401 - a LiveView or a PlainView
    """Follow the files until a signal, a fault, or too many rejects."""
    following = asyncio.create_task(tailer.follow())
    ends = {following, asyncio.create_task(monitor.failed()), asyncio.create_task(stopping.wait())}
    rate = Rate()
    try:
        with view:
            while True:
                view.update(monitor.reports.report(), _status(monitor, tailer, rate))
                done, _ = await asyncio.wait(ends, timeout=_REFRESH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    break
    finally:
        for task in ends:
            task.cancel()
        outcomes = await asyncio.gather(*ends, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(monitor.caught_up(), 10)


class Rate:
    """Events a second over the last few looks."""

    def __init__(self, span: float = 5.0) -> None:
        self._span = span
        self._looks: list[tuple[float, int]] = []

    def see(self, events: int) -> float:
        """Return the rate, having seen so many events now."""
        now = monotonic()
        self._looks = [(t, n) for t, n in self._looks if now - t <= self._span] + [(now, events)]
        (start, first), (end, last) = self._looks[0], self._looks[-1]
        return (last - first) / (end - start) if end > start else 0.0


def _status(monitor: "EmbeddedMonitor", tailer: "Tailer", rate: Rate) -> Any:  # noqa: ANN401
    from monitor.render.terminal.plain import LiveStatus

    progress = tailer.progress
    events = sum(benchmark.counters["events"] for benchmark in monitor.reports.benchmarks().values())
    return LiveStatus(
        events=events,
        events_per_second=rate.see(events),
        rejected=monitor.rejected,
        bytes_done=progress.bytes_done,
        bytes_total=progress.bytes_total,
        caught_up=progress.bytes_done >= progress.bytes_total and monitor.lag == 0,
        url=monitor.web.url if monitor.web else None,
        note=f"{monitor.rejected:,} records could not be read: see {monitor.dead_letters_path}"
        if monitor.rejected
        else None,
    )


def _view(settings: Settings) -> Any:  # noqa: ANN401
    from monitor.render.terminal.report import output_console

    console = output_console()
    if console.is_terminal and not console.is_dumb_terminal:
        from monitor.render.terminal.live import LiveView

        return LiveView(console, low_coverage=settings.low_coverage)
    from monitor.render.terminal.plain import PlainView

    return PlainView()

"""`rankwatch demo`: replay the paper's MMLU-Pro top ten through the embedded monitor."""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.live import Live
from rich.text import Text

from monitor.cli.shared.running.live import EventRate, make_view
from monitor.cli.shared.running.process import log_to_terminal, run_to_end
from monitor.cli.shared.settings import read_settings
from monitor.cli.shared.table import print_table
from monitor.paper.demo.naive import NaivePeeking
from monitor.paper.demo.simulate import demo_stream
from monitor.paper.demo.story import is_short, naive_column, render_story
from monitor.paper.demo.year import SENTINEL, demo_year
from monitor.paper.demo.year_story import calls_of_windows, render_year
from monitor.render.drift import chart
from monitor.render.terminal.layout import output_console
from monitor.render.terminal.plain import LiveStatus
from monitor.service.embedded import EmbeddedMonitor
from monitor.view.build import report_views
from monitor.view.drift import with_found

if TYPE_CHECKING:
    from monitor.cli.shared.running.live import View
    from monitor.paper.demo.simulate import DemoStream
    from monitor.paper.demo.year import Year
    from schemas.results.changes import AnyChange
    from schemas.results.drift import DriftReport

_STEPS_PER_SECOND: Final = 10
_LATE_SECONDS: Final = 1.0  # between two looks at the board where the replay is late, as with interpreted loops


def demo(
    drift: Annotated[
        bool, typer.Option("--drift", help="replay a year of daily runs of one model, which another version replaces")
    ] = False,
    null: Annotated[
        bool, typer.Option("--null", help="replay ten equal models, or a quiet year: every verdict is a false alarm")
    ] = False,
    seconds: Annotated[float, typer.Option("--seconds", min=0, help="length of the replay")] = 20.0,
    seed: Annotated[
        int, typer.Option("--seed", help="seed of the simulated joint table and of the committed order")
    ] = 0,
    keep: Annotated[bool, typer.Option("--keep", help="serve the page after the replay too, until Ctrl-C")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, help="port to serve on; 0 takes a free one (the default without --keep)"
        ),
    ] = None,
) -> None:
    """Replay the paper's MMLU-Pro top ten, or a year of one model, as a live stream, looked at in three ways.

    Example: rankwatch demo --drift
    """
    log_to_terminal()
    with tempfile.TemporaryDirectory(prefix="rankwatch-demo-") as folder:
        port = port if keep or port is not None else 0
        replay = _replay_year if drift else _replay
        run_to_end(replay(Path(folder), null=null, seconds=seconds, seed=seed, keep=keep, port=port))


async def _replay(folder: Path, *, null: bool, seconds: float, seed: int, keep: bool, port: int | None) -> None:
    stream = demo_stream(null=null, seed=seed)
    naive = NaivePeeking(stream.pairs)
    view = make_view()
    async with EmbeddedMonitor(read_settings(data_dir=folder, port=port), on_change=view.change) as monitor:
        try:
            with view:
                await _play(monitor, stream, naive, view, seconds)
        except asyncio.CancelledError:
            await monitor.reports.at_rest()
            print_table(report_views(monitor.reports.benchmarks(), pairs="adjacent", assert_complete=False))
            raise
        console = output_console()
        await monitor.reports.at_rest()
        if null or not is_short(console):
            views = report_views(monitor.reports.benchmarks(), pairs="adjacent", assert_complete=False)
            print_table(views, last=False)
        render_story(monitor.reports.report("all"), naive, console, null)
        await _stay(monitor, keep)


async def _stay(monitor: "EmbeddedMonitor", keep: bool) -> None:
    """Serve the page until Ctrl-C, if that was asked for."""
    if keep and monitor.web is not None:
        output_console().print(f"\nThe page stays at {monitor.web.url} until Ctrl-C.", highlight=False)
        with suppress(asyncio.CancelledError):  # the announced end, not an interrupted one
            await asyncio.Event().wait()


async def _replay_year(folder: Path, *, null: bool, seconds: float, seed: int, keep: bool, port: int | None) -> None:
    year, console, said = demo_year(null=null, seed=seed), output_console(), list[str]()

    def say(change: "AnyChange") -> None:
        said.append(f"rankwatch: {change.sentence}")

    async with EmbeddedMonitor(read_settings(data_dir=folder, port=port), on_change=say) as monitor:
        await _play_year(monitor, year, said, seconds)
        render_year(year, with_found(_runs_so_far(monitor)), console)
        await _stay(monitor, keep)


async def _play_year(monitor: "EmbeddedMonitor", year: "Year", said: list[str], seconds: float) -> None:
    """Append the runs evenly over so many seconds, and show them, and who calls a drop, as they come."""
    console, calls, start = output_console(), calls_of_windows(year), monotonic()
    with Live(console=console, transient=True, auto_refresh=False) as live:
        for number, run in enumerate(year.runs):
            await monitor.log.append(run if number else [year.declaration, *run])
            await monitor.caught_up()
            said += calls.get(number, [])
            while said:
                console.print(Text(said.pop(0)), highlight=False)
            if console.is_terminal:
                (sentinel,) = _runs_so_far(monitor).sentinels
                live.update(Text("\n".join(chart(sentinel))), refresh=True)
            await asyncio.sleep(max(0.0, start + seconds * (number + 1) / len(year.runs) - monotonic()))


def _runs_so_far(monitor: "EmbeddedMonitor") -> "DriftReport":
    benchmark = monitor.reports.benchmark(SENTINEL)
    assert benchmark is not None, "the sentinel is declared with the first run"
    assert benchmark.drift is not None, "it declares drift"
    return benchmark.drift()


async def _play(
    monitor: "EmbeddedMonitor", stream: "DemoStream", naive: "NaivePeeking", view: "View", seconds: float
) -> None:
    """Append the events evenly over so many seconds, and show the board after each part."""
    await monitor.log.append([stream.declaration])
    rate, steps, start, shown = EventRate(), max(1, round(seconds * _STEPS_PER_SECOND)), monotonic(), -_LATE_SECONDS
    for step in range(steps):
        part = slice(*(len(stream.events) * k // steps for k in (step, step + 1)))
        if stream.events[part]:
            await monitor.log.append(stream.events[part])
        await monitor.caught_up()
        benchmark = monitor.reports.benchmark(stream.benchmark)
        if benchmark is not None and benchmark.pairs:
            naive.follow(stream, int(benchmark.sums().n.min()))
        events = benchmark.counters["events"] if benchmark else 0
        due = start + seconds * (step + 1) / steps
        if monotonic() < due or monotonic() >= shown + _LATE_SECONDS or step == steps - 1:
            report = monitor.reports.report("all") if view.shows_reports else None
            view.update(report, _status(monitor, stream, events, rate.update(events)), naive_column(naive))
            shown = monotonic()
        await asyncio.sleep(max(0.0, due - monotonic()))


def _status(monitor: "EmbeddedMonitor", stream: "DemoStream", events: int, rate: float) -> "LiveStatus":
    return LiveStatus(
        events=events,
        events_per_second=rate,
        rejected=monitor.rejected,
        bytes_done=monitor.partition.off - monitor.log.first_offset,
        bytes_total=sum(map(len, stream.events)) + len(stream.events),
        caught_up=events == len(stream.events),
        url=monitor.web.url if monitor.web else None,
        note=stream.note,
    )

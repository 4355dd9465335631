"""`rankwatch demo`: the paper's MMLU-Pro top ten, replayed through the embedded monitor."""

import asyncio
import tempfile
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from monitor.cli.errors import FAULT, stop
from monitor.cli.settings import quiet_logs, read_settings
from monitor.cli.watch import Rate

if TYPE_CHECKING:
    from monitor.app.embedded_monitor import EmbeddedMonitor
    from monitor.paper.demo.simulate import DemoStream

_TICKS_PER_SECOND = 10


def run(*, null: bool, seconds: float, seed: int, port: int) -> None:
    """Replay, and end with what was computed beside what was published."""
    quiet_logs()
    from monitor.app.process import startup_errors

    with tempfile.TemporaryDirectory(prefix="rankwatch-demo-") as folder:
        try:
            asyncio.run(_replay(Path(folder), null=null, seconds=seconds, seed=seed, port=port))
        except BrokenPipeError:
            raise  # whoever read our output has gone: no fault to tell
        except startup_errors() as error:
            stop(str(error), FAULT)
        except KeyboardInterrupt:
            raise SystemExit(130) from None


async def _replay(folder: Path, *, null: bool, seconds: float, seed: int, port: int) -> None:
    from monitor.app.embedded_monitor import EmbeddedMonitor
    from monitor.paper.demo.naive import NaivePeeking
    from monitor.paper.demo.simulate import demo_stream
    from monitor.paper.demo.story import naive_column, render_story
    from monitor.render.terminal.live import LiveView
    from monitor.render.terminal.plain import PlainView
    from monitor.render.terminal.report import output_console, render_report

    console = output_console()
    stream = demo_stream(null=null, seed=seed)
    naive = NaivePeeking(stream.pairs)
    view: Any = PlainView() if not console.is_terminal or console.is_dumb_terminal else LiveView(console)
    settings = read_settings({"data_dir": folder, "port": port})
    async with EmbeddedMonitor(settings, on_change=view.change) as monitor:
        rate = Rate()
        with view:
            await monitor.log.append([stream.declaration])
            ticks = max(1, round(seconds * _TICKS_PER_SECOND))
            begin = monotonic()
            for tick in range(ticks):
                share = slice(*(len(stream.events) * t // ticks for t in (tick, tick + 1)))
                if stream.events[share]:
                    await monitor.log.append(stream.events[share])
                await monitor.caught_up()
                _look(monitor, naive, stream)
                view.update(monitor.reports.report("all"), _status(monitor, stream, rate), naive_column(naive))
                await asyncio.sleep(max(0.0, begin + seconds * (tick + 1) / ticks - monotonic()))
        render_report(monitor.reports.report(), console, extra=naive_column(naive))
        render_story(monitor.reports.report("all"), naive, console, null)


def _look(monitor: "EmbeddedMonitor", naive: Any, stream: "DemoStream") -> None:  # noqa: ANN401
    benchmark = monitor.reports.benchmarks().get(stream.benchmark)
    if benchmark is not None and benchmark.pairs:
        naive.follow(stream, int(benchmark.n[: benchmark.pairs].min()))


def _status(monitor: "EmbeddedMonitor", stream: "DemoStream", rate: Rate) -> Any:  # noqa: ANN401
    from monitor.render.terminal.plain import LiveStatus

    benchmark = monitor.reports.benchmarks().get(stream.benchmark)
    events = benchmark.counters["events"] if benchmark else 0
    return LiveStatus(
        events=events,
        events_per_second=rate.see(events),
        rejected=monitor.rejected,
        bytes_done=monitor.partition.off - monitor.log.first_offset,
        bytes_total=sum(map(len, stream.events)) + len(stream.events),
        caught_up=events == len(stream.events),
        url=monitor.web.url if monitor.web else None,
        note=stream.note,
    )

"""What `watch` and `demo` show while they run."""

from collections.abc import Mapping
from time import monotonic
from typing import Final, Protocol, Self

from monitor.render.pairs import Extra
from monitor.render.terminal.layout import output_console
from monitor.render.terminal.live import LiveView
from monitor.render.terminal.plain import LiveStatus, PlainView
from monitor.view.board import BoardView
from monitor.view.build import benchmark_report
from monitor.view.values import TieBands
from monitor.words.counts import counted
from monitor.words.numbers import safe
from monitor.words.results import clause
from schemas.results.changes import AnyChange
from schemas.results.report import Report

_RATE_SECONDS: Final = 5.0
_MAX_MODELS: Final = 300


class View(Protocol):
    """A live screen, or plain lines where there is no terminal."""

    shows_reports: bool  # whether `update` uses the report

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def update(
        self,
        report: Report | None,
        status: LiveStatus,
        extra: Extra | None = None,
        ties: Mapping[str, TieBands] | None = None,
    ) -> None:
        """Show a report and a status; `ties` are by benchmark."""

    def change(self, change: AnyChange) -> None:
        """Show a verdict change."""


def make_view(low_coverage: float = 0.0) -> View:
    """Return the view that suits standard output."""
    console = output_console()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(console, low_coverage=low_coverage)
    return PlainView()


class IfComplete:
    """What `report` would print of benchmarks whose item count nobody has declared: there is no live verdict on them."""

    def __init__(self) -> None:
        self._last: tuple[dict[str, tuple[int, bool, int]], str | None] = {}, None

    def sentence(self, benchmarks: Mapping[str, BoardView]) -> str | None:
        """Return the result if the items read so far were all; None if every benchmark is declared."""
        open_ended = {
            name: benchmark
            for name, benchmark in sorted(benchmarks.items())
            if benchmark.spec.order.policy == "none" and len(benchmark.contestants) <= _MAX_MODELS
        }
        state = {name: (b.counters["events"], b.reading.whole, b.unread) for name, b in open_ended.items()}
        if state != self._last[0]:
            parts = (_if_complete(name, benchmark) for name, benchmark in open_ended.items())
            self._last = state, "; ".join(filter(None, parts)) or None
        return self._last[1]


def _if_complete(name: str, benchmark: BoardView) -> str | None:
    report = benchmark_report(benchmark, assert_complete=True)
    if report.result is None or "anytime_family" not in report.summary.undecided:
        return None
    items, best = counted(benchmark.items, "item"), clause(report.result.best.facts)
    return f'{safe(name)}: no item count is declared; `report` would print "{best}" if these {items} were all'


class EventRate:
    """Events per second over the last five seconds."""

    def __init__(self) -> None:
        self._counts: list[tuple[float, int]] = []

    def update(self, events: int) -> float:
        """Take the present count of events and return the rate."""
        now = monotonic()
        self._counts = [(t, n) for t, n in self._counts if now - t <= _RATE_SECONDS] + [(now, events)]
        (start, first), (end, last) = self._counts[0], self._counts[-1]
        return (last - first) / (end - start) if end > start else 0.0

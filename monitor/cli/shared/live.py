"""What `watch` and `demo` show while they run."""

from time import monotonic
from typing import Final, Protocol, Self

from monitor.render.terminal.live import LiveView
from monitor.render.terminal.plain import LiveStatus, PlainView
from monitor.render.terminal.report import output_console
from monitor.render.terminal.tables import Extra
from schemas.changes import VerdictChange
from schemas.report import Report

_RATE_SECONDS: Final = 5.0


class View(Protocol):
    """A live screen, or plain lines where there is no terminal."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def update(self, report: Report | None, status: LiveStatus, extra: Extra | None = None) -> None:
        """Show a report and a status."""

    def change(self, change: VerdictChange) -> None:
        """Show a verdict change."""


def make_view(low_coverage: float = 0.0) -> View:
    """Return the view that suits standard output."""
    console = output_console()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveView(console, low_coverage=low_coverage)
    return PlainView()


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

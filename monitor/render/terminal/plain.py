"""Live output without a terminal: plain lines without escape codes, and without rich."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final, Self

from monitor.words.numbers import safe
from monitor.words.order import level
from schemas.records.text import Sentence
from schemas.results.changes import AnyChange, DriftChange, VerdictChange
from schemas.results.report import Report

STATUS_INTERVAL: Final = 5.0  # seconds between two status lines


@dataclass(frozen=True)
class LiveStatus:
    """The progress of reading."""

    events: int = 0
    events_per_second: float = 0.0
    rejected: int = 0
    bytes_done: int | None = None
    bytes_total: int | None = None
    caught_up: bool = False
    url: str | None = None
    note: Sentence | None = None

    @property
    def share(self) -> float | None:
        """Return the share of the input that has been read; None where it is not known."""
        if self.bytes_done is None or not self.bytes_total:
            return None
        return min(1.0, max(0.0, self.bytes_done / self.bytes_total))


class Progress:
    """The rate of reading and the time left, from the positions so far."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, int] | None = None
        self._last: tuple[float, int] | None = None

    def see(self, status: LiveStatus) -> None:
        """Record a position; a smaller one, or having caught up, restarts the measurement."""
        if status.bytes_done is None or status.caught_up:
            self._first = None
            return
        now = (self._clock(), status.bytes_done)
        if self._first is None or self._last is None or now[1] < self._last[1]:
            self._first = now
        self._last = now

    def rate(self) -> float | None:
        """Return bytes per second; None until there are two positions."""
        if self._first is None or self._last is None or self._last[0] <= self._first[0]:
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])

    def sentence(self, status: LiveStatus) -> str:
        """Return the share, the rate and the time left: "42 %, 3.1 MB/s, 0:12 left"."""
        if status.share is None or status.bytes_done is None or status.bytes_total is None:
            return ""
        parts = [f"{status.share:.0%}"]
        rate = self.rate()
        if rate:
            parts.append(f"{rate / 1e6:,.1f} MB/s")
            minutes, seconds = divmod(round(max(0, status.bytes_total - status.bytes_done) / rate), 60)
            parts.append(f"{minutes}:{seconds:02d} left")
        return ", ".join(parts)


def status_sentence(status: LiveStatus, *, with_note: bool = True) -> str:
    """Return the counts and the rate in one line."""
    parts = [f"{status.events:,} events", f"{status.events_per_second:,.0f} events/s", f"{status.rejected:,} rejected"]
    parts.append("caught up" if status.caught_up else "catching up")
    if status.url:
        parts.append(safe(status.url))
    if status.note and with_note:
        parts.append(safe(status.note))
    return ", ".join(parts)


class PlainView:
    """Write a line at the start, one for each family-wise verdict change, and a status line every few seconds; the note once.

    >>> seconds = iter([0.0, 1.0, 6.0])
    >>> with PlainView(print, clock=lambda: next(seconds)) as view:
    ...     view.update(None, LiveStatus(events=10))
    ...     view.update(None, LiveStatus(events=20))
    ...     view.update(None, LiveStatus(events=30, caught_up=True))
    watching
    10 events, 0 events/s, 0 rejected, catching up
    30 events, 0 events/s, 0 rejected, caught up
    """

    shows_reports = False

    def __init__(
        self,
        write: Callable[[str], object] | None = None,
        *,
        clock: Callable[[], float] = monotonic,
        every: float = STATUS_INTERVAL,
    ) -> None:
        self._write = write or _to_stdout
        self._clock = clock
        self._every = every
        self._due: float | None = None
        self._written: LiveStatus | None = None
        self._progress = Progress(clock)

    def __enter__(self) -> Self:
        self._write("watching")
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there is no screen to restore."""

    def update(self, report: Report | None, status: LiveStatus, extra: object = None, ties: object = None) -> None:  # noqa: ARG002 - the interface of LiveView
        """Write a status line if one is due and the status has changed."""
        self._progress.see(status)
        now = self._clock()
        if status == self._written or (self._due is not None and now < self._due):
            return
        with_note = self._written is None or status.note != self._written.note
        self._due, self._written = now + self._every, status
        progress = "" if status.caught_up else self._progress.sentence(status)
        self._write(status_sentence(status, with_note=False) + (f" ({progress})" if progress else ""))
        if with_note and status.note:
            self._write(safe(status.note))

    def change(self, change: AnyChange) -> None:
        """Write a change of a verdict family-wise, and what a monitor of a sentinel reports; the report and the log have the evidence."""
        if isinstance(change, DriftChange):
            self._write(f"{change.kind}: {safe(change.benchmark)}: {safe(change.sentence)}")
        elif change.procedure == "anytime_family":
            self._write(_short(change))


def _short(change: VerdictChange) -> str:
    where = safe(change.benchmark)
    if change.kind != "decided":
        return f"{change.kind}: {where}: {safe(change.sentence)}"
    a, b = map(safe, in_verdict_order(change))
    how = "family-wise" if change.alpha is None else f"family-wise {level(change.alpha)}"
    return f"decided: {where}: {a} is better than {b}, {how}, after {change.evidence.n:,} items"


def in_verdict_order(change: VerdictChange) -> tuple[str, str]:
    """Return the models of a change, the better one first."""
    a, b = change.model_a, change.model_b
    return (b, a) if change.after == "b" else (a, b)


def _to_stdout(line: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "backslashreplace").decode(encoding), flush=True)  # noqa: T201 - this is the output

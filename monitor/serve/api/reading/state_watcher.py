"""Wake the streams when the state changes: one task polls it for all of them, and none while no stream is open."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import lru_cache
from time import monotonic
from typing import Any, Final, NamedTuple

from fastapi.responses import StreamingResponse

from monitor.serve.log_position import without_position
from monitor.serve.report_cache import ReportCache
from monitor.state_lock import StateTorn
from schemas.results.api import Update

HEARTBEAT_SECONDS: Final = 15.0
HEARTBEAT: Final = b": alive\n\n"  # a comment that keeps a silent connection open

STREAM: Final[dict[int | str, dict[str, Any]]] = {  # the answer of a stream, for the description of the API
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "events"}
}


def event_stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Answer with events; proxies pass them on at once, and keep none. The stream ends where the state cannot be read any more."""

    async def readable() -> AsyncIterator[bytes]:
        with suppress(StateTorn):
            async for event in events:
                yield event

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(readable(), media_type="text/event-stream", headers=headers)


def frame(event: str, data: bytes, id_: str | None = None) -> bytes:
    """Encode one event; JSON has no newline, so `data` is one line."""
    id_line = "" if id_ is None else f"id: {id_}\n"
    return b"".join((f"event: {event}\n{id_line}data: ".encode(), data, b"\n\n"))


POLL_SECONDS: Final = 0.1
_REST: Final = 20  # of many boards, the state is looked at again after this many times the time that it took


class _Seen(NamedTuple):
    """A benchmark or suite as of a poll."""

    events: int
    state: tuple[object, ...]


@lru_cache(maxsize=1 << 14)
def _update(name: str, events: int) -> bytes:
    """Return an `update` as all streams send it."""
    return frame("update", Update(benchmark=name, events=events).as_json())


class StateWatcher:
    """Polls what is reported, while anything subscribes."""

    def __init__(self, reports: ReportCache) -> None:
        self.version = 0
        self.stopped = False
        self._reports = reports
        self._seen: dict[str, _Seen] = {}
        self._changed_at: dict[str, int] = {}
        """The version of the last change of each name, also of those that are gone."""
        self._grown_at: dict[str, int] = {}  # the version at which the events of each name changed last, ascending
        self._took = 0.0
        self._subscribers = 0
        self._polling: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def subscribe(self) -> AsyncIterator[None]:
        """Keep the state polled inside the context."""
        self._subscribers += 1
        try:
            if self._polling is None:
                await asyncio.create_task(self._look(), context=without_position())
            if self._polling is None:  # no other subscriber has begun meanwhile
                self._polling = asyncio.create_task(self._poll(), context=without_position())
            yield
        finally:
            self._subscribers -= 1
            if not self._subscribers and self._polling is not None:
                self._polling.cancel()
                self._polling = None

    def has_changed(self, version: int, name: str | None = None) -> bool:
        """Return whether a benchmark or suite (None: any) has changed after a version."""
        return (self.version if name is None else self._changed_at.get(name, 0)) > version

    async def wait(self, version: int, seconds: float, name: str | None = None) -> bool:
        """Wait for a change of a benchmark or suite (None: of any) after `version`, or the stop; return False on timeout."""
        try:
            async with asyncio.timeout(seconds):
                while not self.has_changed(version, name) and not self.stopped:
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def updates(self, version: int, name: str | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield each benchmark and suite (one, if it is named) that has new events after a version: its name and its `update`."""
        for each in reversed(self._grown_at) if name is None else (name,):
            if self._grown_at.get(each, 0) <= version:
                return
            if each in self._seen:
                yield each, _update(each, self._seen[each].events)

    def stop(self) -> None:
        """Wake every subscriber so that it ends."""
        self.stopped = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(max(POLL_SECONDS, _REST * self._took))
            with contextlib.suppress(StateTorn):
                await self._look()

    async def _look(self) -> None:
        """Look at the state between two chunks, and wake the subscribers if it has changed."""
        if await self._reports.read_briefly(self._compare):
            self._wake()

    def _compare(self) -> bool:
        """Compare the state with what was seen last; return whether it has changed."""
        start = monotonic()
        before, now = self._seen, self._now()
        self._took = monotonic() - start
        changed = [name for name in before.keys() | now.keys() if before.get(name) != now.get(name)]
        if not changed:
            return False
        self._seen = now
        self.version += 1
        for name in changed:
            self._changed_at[name] = self.version
            if name in now and (name not in before or now[name].events != before[name].events):
                self._grown_at.pop(name, None)
                self._grown_at[name] = self.version
        return True

    def _now(self) -> dict[str, _Seen]:
        reports = self._reports
        now = {
            name: _Seen(events, version)
            for each in reports.partitions
            for name, events, version in each.versions()
            if reports.may_show(name)
        }
        for suite in reports.suites:
            members = [now[member] for member in suite.members if member in now]
            now[suite.name] = _Seen(sum(each.events for each in members), tuple(each.state for each in members))
        return now

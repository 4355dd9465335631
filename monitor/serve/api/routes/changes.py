"""Routes for verdict changes: pages, and server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from monitor.serve.api.problems import ProblemError, unknown_benchmark
from monitor.serve.api.reading.event_stream import HEARTBEAT, HEARTBEAT_SECONDS, STREAM, event_stream, frame
from monitor.serve.api.reading.state_watcher import StateWatcher
from monitor.serve.api.reading.verdict_history import START, Position, VerdictHistory, parse_change_id
from monitor.serve.report_cache import ReportCache
from schemas.records.names import MAX_NAME_LENGTH
from schemas.results.api import ChangePage, Update

_BATCH: Final = 500
_MAX_HISTORIES: Final = 64
Name = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME_LENGTH)]
_ID: Final = r"^[0-9]{1,30}-[0-9]{1,29}$"
After = Annotated[str | None, Query(pattern=_ID, description="`id` of the last change you have")]
Newest = Annotated[bool, Query(description="return the latest changes, newest first, instead of a page")]


def change_routes(reports: ReportCache, watcher: StateWatcher) -> APIRouter:
    """Make the routes for verdict changes."""
    routes = APIRouter(prefix="/api/v1/changes")
    histories: dict[str | None, VerdictHistory] = {}

    def history_of(benchmark: str | None) -> VerdictHistory:
        """Return the history of a benchmark, shared by all requests; keep the last used ones."""
        if benchmark is None and len(reports.partitions) > 1:
            raise ProblemError(
                422, "benchmark: found nothing; changes of several partitions have no common order. Name a benchmark."
            )
        if benchmark is not None and benchmark not in reports.names():
            raise unknown_benchmark(benchmark)
        history = histories.pop(benchmark) if benchmark in histories else VerdictHistory(reports.whole, benchmark)
        histories[benchmark] = history
        if len(histories) > _MAX_HISTORIES:
            del histories[next(iter(histories))]
        return history

    @routes.get("")
    async def changes(
        benchmark: Name = None,
        after: After = None,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
        newest: Newest = False,  # noqa: FBT002 - a query parameter
    ) -> ChangePage:
        """List verdict changes in log order. Pages are stable: new changes only come after the last one."""
        start = _position(after)

        def page() -> ChangePage:
            history = history_of(benchmark)
            if newest:
                latest = history.latest(limit, reports.may_read)
                return ChangePage(changes=latest, next=latest[0].id if latest else after)
            changes = history.after(start, limit, reports.may_read)
            return ChangePage(changes=changes, next=changes[-1].id if changes else after)

        return await reports.read(page, None if benchmark is None else [benchmark])

    @routes.get(
        "/stream",
        response_class=StreamingResponse,
        responses=STREAM,
    )
    async def stream(
        benchmark: Name = None,
        after: After = None,
        last_event_id: Annotated[str | None, Header(pattern=_ID)] = None,
    ) -> StreamingResponse:
        """Stream verdict changes as server-sent events.

        A `change` event carries a verdict change as JSON, and its id. With `Last-Event-ID` or `after`, the stream resumes after that id;
        otherwise it starts with the next change. An `update` event reports new events of a benchmark, at most twice a second.
        """
        history = history_of(benchmark)
        known = last_event_id or after
        start = history.end() if known is None else _position(known)
        return event_stream(_server_sent_events(reports, watcher, history, benchmark, start))

    return routes


def _position(id_: str | None) -> Position:
    try:
        return START if id_ is None else parse_change_id(id_)
    except ValueError as error:
        raise ProblemError(422, f"after: {error}") from error


async def _server_sent_events(
    reports: ReportCache, watcher: StateWatcher, history: VerdictHistory, benchmark: str | None, position: Position
) -> AsyncIterator[bytes]:
    """Yield changes after a position as they come, the benchmarks that moved, and heartbeats in between."""
    seen: dict[str, int] = {}
    names = None if benchmark is None else [benchmark]
    yield b"retry: 2000\n\n"
    async with watcher.subscribe():
        while not watcher.stopped:
            version = watcher.version
            while batch := await reports.read(lambda: history.after(position, _BATCH, reports.may_read), names):  # noqa: B023 - it runs now
                yield b"".join(frame("change", change.model_dump_json(), change.id) for change in batch)
                position = parse_change_id(batch[-1].id)
            updates = _updates(reports, benchmark, seen)
            if updates:
                yield updates
            if not await watcher.wait(version, HEARTBEAT_SECONDS):
                yield HEARTBEAT


def _updates(reports: ReportCache, benchmark: str | None, seen: dict[str, int]) -> bytes:
    frames = []
    for name, events in reports.events().items():
        if benchmark in {None, name} and seen.get(name) != events:
            seen[name] = events
            frames.append(frame("update", Update(benchmark=name, events=events).model_dump_json()))
    return b"".join(frames)

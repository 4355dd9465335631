"""Routes for verdict changes: pages, and server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from monitor.serve.api.reading.change_feed import CURSOR_PATTERN, ChangeFeed, ChangeFeeds, Cursor
from monitor.serve.api.reading.state_watcher import (
    HEARTBEAT,
    HEARTBEAT_SECONDS,
    STREAM,
    StateWatcher,
    event_stream,
    frame,
)
from monitor.serve.report_cache import ReportCache
from monitor.words.page import change_words
from schemas.records.names import MAX_NAME_LENGTH
from schemas.results.api import ChangePage

_BATCH: Final = 20  # changes that a stream reads at once: it reads while everything else waits

Name = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME_LENGTH)]
_MAX_CURSOR: Final = 30_000  # longest cursor: the head of a request, which has it, may have 32 KB

After = Annotated[
    str | None, Query(pattern=CURSOR_PATTERN, max_length=_MAX_CURSOR, description="`next` of the last page you have")
]
Newest = Annotated[bool, Query(description="return the latest changes, newest first, instead of a page")]


Words = Annotated[bool, Query(description="add `words`: each sentence without what most of the changes assume")]


def change_routes(reports: ReportCache, watcher: StateWatcher) -> APIRouter:
    """Make the routes for verdict changes."""
    routes = APIRouter(prefix="/api/v1/changes")
    feeds = ChangeFeeds(reports)

    @routes.get("", response_model=ChangePage)
    async def changes(
        benchmark: Name = None,
        after: After = None,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
        newest: Newest = False,  # noqa: FBT002 - a query parameter
        words: Words = False,  # noqa: FBT002 - a query parameter
    ) -> Response:
        """List verdict changes in log order, of each partition. Pages are stable: new changes only come after the last one."""

        def page() -> bytes:
            feed = feeds.of(benchmark)
            start = feed.parse(after)
            if newest:
                latest = feed.latest(limit, reports.may_read)
                return _page(latest, feed.text(feed.end(reports.may_read)) if latest else after, words=words)
            found, _ = feed.after(start, limit, reports.may_read)
            return _page([change for _, change in found], found[-1][0] if found else after, words=words)

        body = await reports.read(page, None if benchmark is None else [benchmark])
        return Response(body, media_type="application/json")

    @routes.get("/stream", response_class=StreamingResponse, responses=STREAM)
    async def stream(
        benchmark: Name = None,
        after: After = None,
        last_event_id: Annotated[str | None, Header(pattern=CURSOR_PATTERN, max_length=_MAX_CURSOR)] = None,
    ) -> StreamingResponse:
        """Stream verdict changes as server-sent events.

        A `change` event carries a verdict change as JSON, and its id. With `Last-Event-ID` or `after`, the stream resumes after that id;
        otherwise it starts with the next change. An `update` event reports new events of a benchmark, at most ten times a second.
        """
        await reports.at_rest()
        feed = feeds.of(benchmark)
        known = last_event_id or after
        start = (
            await reports.read_briefly(lambda: feed.end(reports.may_read), []) if known is None else feed.parse(known)
        )
        return event_stream(_server_sent_events(reports, watcher, feed, benchmark, start))

    return routes


def _page(changes: list[bytes], after: str | None, *, words: bool) -> bytes:
    """Return a `ChangePage` as JSON; the changes are JSON already."""
    also = b',"words":' + change_words(changes).as_json() if words else b""
    return b'{"changes":[' + b",".join(changes) + b"]" + also + b',"next":' + to_json(after) + b"}"


async def _server_sent_events(
    reports: ReportCache, watcher: StateWatcher, feed: ChangeFeed, benchmark: str | None, cursor: Cursor
) -> AsyncIterator[bytes]:
    """Yield changes after a position as they come, the benchmarks that moved, and heartbeats in between."""
    names = None if benchmark is None else [benchmark]
    reported = -1
    yield b"retry: 2000\n\n"
    async with watcher.subscribe():
        while not watcher.stopped:
            version = watcher.version
            while True:
                batch, cursor = await reports.read_briefly(
                    lambda: feed.after(cursor, _BATCH, reports.may_read),  # noqa: B023 - it runs now
                    names,
                )
                if not batch:
                    break
                yield b"".join(frame("change", change, id_) for id_, change in batch)
            await reports.at_rest()
            updates = b"".join(update for name, update in watcher.updates(reported, benchmark) if reports.has(name))
            reported = watcher.version
            if updates:
                yield updates
            if not await watcher.wait(version, HEARTBEAT_SECONDS, benchmark):
                yield HEARTBEAT

"""Verdict changes, page by page and as server-sent events."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from monitor.serve.api.problems import ProblemError
from monitor.serve.api.state_watcher import Pulse
from monitor.serve.api.verdict_history import START, Histories, History, Place, place_of
from monitor.serve.report_cache import Board
from schemas.api import ChangePage, Update
from schemas.names import MAX_NAME_LENGTH

HEARTBEAT_SECONDS: Final = 15.0
_BATCH: Final = 500
Name = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME_LENGTH)]
_ID: Final = r"^[0-9]{1,30}-[0-9]{1,29}$"


def changes_routes(board: Board, pulse: Pulse) -> APIRouter:
    """Make the routes that tell of verdict changes."""
    routes = APIRouter(prefix="/api/v1/changes")
    histories = Histories(board)

    @routes.get("")
    async def changes(
        benchmark: Name = None,
        after: Annotated[str | None, Query(pattern=_ID, description="id of the last change that is known")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
        newest: Annotated[bool, Query(description="the latest changes, latest first, instead of a page")] = False,  # noqa: FBT002 - a query parameter
    ) -> ChangePage:
        """List verdict changes in the order of the log. What has been listed never moves: a page begun at an id goes on there."""
        history = histories.of(benchmark)
        if newest:
            latest = history.latest(limit)
            return ChangePage(changes=latest, next=latest[0].id if latest else after)
        found = history.after(_place(after), limit)
        return ChangePage(changes=found, next=found[-1].id if found else after)

    @routes.get(
        "/stream",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "events"}},
    )
    async def stream(
        benchmark: Name = None,
        after: Annotated[str | None, Query(pattern=_ID, description="id of the last change that is known")] = None,
        last_event_id: Annotated[str | None, Header(pattern=_ID)] = None,
    ) -> StreamingResponse:
        """Follow verdict changes as server-sent events.

        Event `change` has the change as JSON, and its id; `Last-Event-ID` (or `after`) takes up behind an id, else it begins with what
        comes next. Event `update` says that a benchmark has moved, at most twice a second.
        """
        history = histories.of(benchmark)
        known = last_event_id or after
        start = history.last() if known is None else _place(known)
        return StreamingResponse(
            _events(board, pulse, history, benchmark, start),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    return routes


def _place(id_: str | None) -> Place:
    try:
        return START if id_ is None else place_of(id_)
    except ValueError as error:
        raise ProblemError(422, f"after: {error}") from error


async def _events(
    board: Board, pulse: Pulse, history: History, benchmark: str | None, place: Place
) -> AsyncIterator[bytes]:
    """Write changes behind a place as they come; between them say what has moved, and that the line is alive."""
    seen: dict[str, int] = {}
    yield b"retry: 2000\n\n"
    async with pulse.following():
        while not pulse.ended:
            beat = pulse.beat
            while found := history.after(place, _BATCH):
                yield b"".join(_frame("change", change.model_dump_json(), change.id) for change in found)
                place = place_of(found[-1].id)
            moved = _moved(board, benchmark, seen)
            if moved:
                yield moved
            if not await pulse.wait(beat, HEARTBEAT_SECONDS):
                yield b": alive\n\n"


def _moved(board: Board, benchmark: str | None, seen: dict[str, int]) -> bytes:
    frames = []
    for name, state in board.benchmarks().items():
        events = state.counters["events"]
        if benchmark in {None, name} and seen.get(name) != events:
            seen[name] = events
            frames.append(_frame("update", Update(benchmark=name, events=events).model_dump_json()))
    return b"".join(frames)


def _frame(event: str, data: str, id_: str | None = None) -> bytes:
    """Write one event; JSON holds no newline, so `data` is one line."""
    head = "" if id_ is None else f"id: {id_}\n"
    return f"event: {event}\n{head}data: {data}\n\n".encode()

"""Server-sent events, as the streams of the API send them."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from fastapi.responses import StreamingResponse

from monitor.state_lock import StateTorn

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

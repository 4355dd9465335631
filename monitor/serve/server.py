"""Serve an application over HTTP/1.1 on one address."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitor.serve.access.control import PROBES
from monitor.serve.api.problems import ProblemError
from monitor.serve.connections import CLIENT_CONNECTIONS, CONNECTIONS, RETRY_SECONDS, Connections

HEAD_SECONDS: Final = 10.0
"""How long the head of a request may take to arrive, counted from the connection or the previous answer."""

WRITE_SECONDS: Final = 30.0  # how long a client may accept nothing of its answer

_HEAD_BYTES: Final = 32_768
_BACKLOG: Final = 100
"""Connections that may wait to be accepted. All of them are accepted in one turn of the event loop, and their requests read in the next, so
that a flood does not close a connection ahead of its request."""

_READ_BYTES: Final = 8_192
"""Bytes that are read and parsed in one turn of the event loop: a body in chunks of one byte takes 25 us for each."""

_CHUNK_OVERHEAD: Final = 65_536  # a body whose chunk headers take more than this, and more than its content, is cut off

_OTHER_DESCRIPTORS: Final = 200  # descriptors that are kept free for the log, the store, the brokers and files


class BoundedProtocol(H11Protocol):
    """Uvicorn's protocol with bounds: on connections, on the time of a head, and on the time in which a client accepts nothing."""

    def __init__(self, *args: Any, connections: Connections, **kwargs: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*args, **kwargs)
        self._bounds = connections
        self._idle_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._overhead = self._content = 0  # bytes of the current request that are no content, and those that are

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's own
        """Count the connection, or prepare to refuse its requests."""
        super().connection_made(transport)
        transport.max_size = _READ_BYTES  # type: ignore[attr-defined]  # how much asyncio's own transports read at a time
        status = self._bounds.add(self, self.client[0] if self.client else "")
        if status is not None:
            self.app = _Refusing(self.app, status)
        self._begin_idle()

    def data_received(self, data: bytes) -> None:
        """End the idle time once a request begins."""
        cycle, before = self.cycle, len(self.cycle.body) if self.cycle is not None else 0
        super().data_received(data)
        if self._in_request and self._idle_timer is not None:
            self._stop_idle_timer()
            self._bounds.begin_request(self)
        if self.cycle is not cycle:
            self._overhead = self._content = 0
        elif cycle is not None:
            content = len(cycle.body) - before
            self._content += content
            self._overhead += len(data) - content
            if self._overhead > max(_CHUNK_OVERHEAD, self._content):
                self.transport.abort()

    def on_response_complete(self) -> None:
        """Begin the idle time, unless the next request has begun."""
        super().on_response_complete()
        if not self._in_request and not self.transport.is_closing():
            self._begin_idle()

    def pause_writing(self) -> None:
        """Watch that the client accepts something of its answer."""
        super().pause_writing()
        self._check_writing(0)

    def resume_writing(self) -> None:
        """Stop watching."""
        super().resume_writing()
        self._stop_write_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._stop_idle_timer()
        self._stop_write_timer()
        self._bounds.remove(self)
        super().connection_lost(exc)

    def close_now(self) -> None:
        """Close the connection without an answer."""
        self.transport.abort()

    @property
    def _in_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _begin_idle(self) -> None:
        self._stop_idle_timer()
        self._idle_timer = self.loop.call_later(HEAD_SECONDS, self._close_idle)
        self._bounds.end_request(self)

    def _close_idle(self) -> None:
        self.transport.close()  # once the rest of an answer is sent, which a client may never accept
        if self.transport.get_write_buffer_size() and self._write_timer is None:
            self._check_writing(0)

    def _check_writing(self, before: int) -> None:
        """Close the connection if as much waits to be sent as one time ago."""
        waiting = self.transport.get_write_buffer_size()
        if waiting == before:
            self.transport.abort()
        else:
            self._write_timer = self.loop.call_later(WRITE_SECONDS, self._check_writing, waiting)

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None


class _Refusing:
    """Refuses every request of a connection too many, but the probes."""

    def __init__(self, app: ASGIApp, status: int) -> None:
        self._app, self._status = app, status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        whose = "This client has" if self._status == 429 else "All clients together have"
        detail = f"{whose} too many requests under way. Use fewer connections, or retry in {RETRY_SECONDS} s."
        headers = {"Retry-After": str(RETRY_SECONDS), "Connection": "close"}
        await ProblemError(self._status, detail, headers=headers).response()(scope, receive, send)


class _Server(uvicorn.Server):
    """A server that leaves signals to the monitor."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """Serves an application until it is stopped."""

    def __init__(
        self,
        web: FastAPI,
        host: str,
        port: int,
        connections: int = CONNECTIONS,
        client_connections: int = CLIENT_CONNECTIONS,
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise OSError(
                f"cannot serve on {host}:{port} ({error.strerror}); choose another --port, or 0 for a free one"
            ) from error
        url_host = f"[{host}]" if ":" in host else host
        self.url = f"http://{url_host}:{self._socket.getsockname()[1]}"
        self.connections = _connections(connections, client_connections)
        config = uvicorn.Config(
            web,
            http=partial(BoundedProtocol, connections=self.connections),  # type: ignore[arg-type]  # only called
            backlog=_BACKLOG,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=_HEAD_BYTES,
            server_header=False,
            proxy_headers=False,
        )
        self._web = web
        self._server = _Server(config)
        self._task: asyncio.Task[Any] | None = None

    async def start(self) -> None:
        """Start serving."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - uvicorn only sets a flag
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Stop serving."""
        self._web.state.watcher.stop()
        if self._task is not None:
            self._server.should_exit = True
            await self._task
        self._socket.close()


def _connections(total: int, per_client: int) -> Connections:
    """Return the bounds on connections, lower ones where the system lets this process open few files."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return Connections(total, per_client)
    possible = min(total, max(allowed - _OTHER_DESCRIPTORS, allowed // 2))
    return Connections(possible, min(per_client, possible * per_client // total))

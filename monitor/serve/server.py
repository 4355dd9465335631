"""Serve an application over HTTP/1.1 on one address."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any, Final

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 10.0
"""How long the head of a request may take to arrive."""

_CONNECTIONS: Final = 1_000
_HEAD_BYTES: Final = 32_768


class HeadTimeoutProtocol(H11Protocol):
    """Uvicorn's protocol with a timeout for the head of a request; its own covers only idle connections between requests."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's own
        """Start the timeout."""
        super().connection_made(transport)
        self._start_timeout()

    def data_received(self, data: bytes) -> None:
        """Stop the timeout once the head is complete; start it with the next head."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timeout()
        elif self._deadline is None:
            self._start_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout."""
        self._stop_timeout()
        super().connection_lost(exc)

    def _start_timeout(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_timeout(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    """A server that leaves signals to the monitor."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """Serves an application until it is stopped."""

    def __init__(self, web: FastAPI, host: str, port: int) -> None:
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
        config = uvicorn.Config(
            web,
            http=HeadTimeoutProtocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            limit_concurrency=_CONNECTIONS,
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

"""The HTTP surface: probes, metrics, API. On loopback it is open to this machine; elsewhere every request carries a token."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.types import ASGIApp

from monitor.serve.access import Guard
from monitor.serve.api.body_reader import Bodies
from monitor.serve.api.change_routes import changes_routes
from monitor.serve.api.openapi import add_description
from monitor.serve.api.problems import add_problems
from monitor.serve.api.read_routes import reading_routes
from monitor.serve.api.state_watcher import Pulse
from monitor.serve.api.write_routes import Closed, Intake, writing_routes
from monitor.serve.metrics.collector import program_version
from monitor.serve.page_files import page_routes
from monitor.serve.report_cache import Board
from monitor.serve.server import ImpatientProtocol

BODY_BYTES: Final = 16_000_000
"""Bytes that the body of a request may have unless told otherwise."""

_CONNECTIONS: Final = 1_000
_HEAD_BYTES: Final = 32_768


class _Guarded(FastAPI):
    """An application behind a guard, which also sees the answers to our own faults."""

    token: str | None = None
    loopback: bool = True

    def build_middleware_stack(self) -> ASGIApp:
        return Guard(super().build_middleware_stack(), self.token, loopback=self.loopback)


def make_web(
    board: Board,
    scrape: Callable[[str], tuple[bytes, str]],
    ready: Callable[[], str | None],
    *,
    token: str | None,
    loopback: bool,
    low_coverage: float,
    intake: Intake | None = None,
    body_bytes: int = BODY_BYTES,
) -> FastAPI:
    """Make the application.

    Parameters
    ----------
    board : Board
    scrape : callable
        Returns the metrics in the format that an Accept header asks for, and the type of that content.
    ready : callable
        Returns None when the monitor is ready, else what it is waiting for.
    token : str or None
        Bearer token that every request but the probes has to carry.
    loopback : bool
        Whether it serves this machine only; see `monitor.serve.access.Guard`.
    low_coverage : float
        Share of the items below which the page marks a model.
    intake : Intake, optional
        Where events that are posted go; none: they are refused.
    body_bytes : int
        Bytes that the body of a request may have, inflated.
    """
    web = _Guarded(
        title="rankwatch",
        version=program_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        redirect_slashes=False,
    )
    web.token, web.loopback = token, loopback
    pulse = web.state.pulse = Pulse(board)
    add_problems(web)
    add_description(web)
    _add_probes(web, scrape, ready)
    web.include_router(page_routes(low_coverage))
    web.include_router(reading_routes(board))
    web.include_router(changes_routes(board, pulse))
    web.include_router(writing_routes(board, intake or Closed(), Bodies(body_bytes)))
    return web


def _add_probes(web: FastAPI, scrape: Callable[[str], tuple[bytes, str]], ready: Callable[[], str | None]) -> None:
    @web.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return Response("ok\n", media_type="text/plain")

    @web.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        waiting = ready()
        return Response(f"{waiting or 'ok'}\n", 503 if waiting else 200, media_type="text/plain")

    @web.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        text, content_type = scrape(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": content_type})


class _Server(uvicorn.Server):
    """A server that leaves the signals to the monitor."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """Serves an application on an address until it is stopped."""

    def __init__(self, web: FastAPI, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise OSError(
                f"cannot serve on {host}:{port} ({error.strerror}): choose another --port, or 0 for a free one"
            ) from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            web,
            http=ImpatientProtocol,
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
        """Begin to serve."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - uvicorn tells by a flag
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Stop serving."""
        self._web.state.pulse.end()
        if self._task is not None:
            self._server.should_exit = True
            await self._task
        self._socket.close()

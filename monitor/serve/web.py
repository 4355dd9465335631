"""The HTTP surface: probes, metrics, reports. On loopback it is open to this machine; elsewhere every request carries a token."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from hmac import compare_digest
from typing import Any, Literal

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.middleware.trustedhost import TrustedHostMiddleware

from monitor.serve.board import Board
from monitor.serve.metrics import program_version
from schemas.report import Report

Next = Callable[[Request], Awaitable[Response]]
LOOPBACK_NAMES = ["127.0.0.1", "localhost", "[::1]"]


def make_web(
    board: Board, registry: CollectorRegistry, ready: Callable[[], str | None], *, token: str | None, loopback: bool
) -> FastAPI:
    """Make the application.

    Parameters
    ----------
    board : Board
    registry : CollectorRegistry
    ready : callable
        Returns None when the monitor is ready, else what it is waiting for.
    token : str or None
        Bearer token that every request but the probes has to carry.
    loopback : bool
        Whether it serves this machine only; then only loopback names are taken as Host, so that no page from elsewhere can reach it by
        pointing its own name at 127.0.0.1.
    """
    web = FastAPI(
        title="rankwatch", version=program_version(), docs_url=None, redoc_url=None, openapi_url="/api/v1/openapi.json"
    )
    if loopback:
        web.add_middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK_NAMES)
    if token is not None:
        _guard(web, token)
    _add_probes(web, registry, ready)
    _add_reports(web, board)
    return web


def _guard(web: FastAPI, token: str) -> None:
    @web.middleware("http")
    async def authorise(request: Request, call_next: Next) -> Response:
        if request.url.path not in {"/healthz", "/readyz"}:
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not compare_digest(given.encode(), token.encode()):
                return _problem(401, "A bearer token is required", "send the header Authorization: Bearer <token>")
        return await call_next(request)


def _add_probes(web: FastAPI, registry: CollectorRegistry, ready: Callable[[], str | None]) -> None:
    @web.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return Response("ok\n", media_type="text/plain")

    @web.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        waiting = ready()
        return Response(f"{waiting or 'ok'}\n", 503 if waiting else 200, media_type="text/plain")

    @web.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})


def _add_reports(web: FastAPI, board: Board) -> None:
    @web.get("/api/v1/benchmarks")
    async def benchmarks(pairs: Literal["adjacent", "all"] = "adjacent") -> Report:
        """Report every benchmark, in the form of `rankwatch report --format json`."""
        return board.report(pairs)

    @web.get(
        "/api/v1/benchmarks/{name:path}", responses={404: {"description": "no such benchmark"}}, response_model=Report
    )
    async def benchmark(name: str, pairs: Literal["adjacent", "all"] = "adjacent") -> Report | Response:
        """Report one benchmark, in the form of `rankwatch report --format json`."""
        found = board.benchmark(name, pairs)
        if found is None:
            detail = f"{name!r} has no events; GET /api/v1/benchmarks lists those that have"
            return _problem(404, "No such benchmark", detail)
        return Report(benchmarks=[found])


def _problem(status: int, title: str, detail: str) -> JSONResponse:
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(body, status, media_type="application/problem+json")


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
            web, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=2, server_header=False
        )
        self._server = _Server(config)
        self._task: asyncio.Task[Any] | None = None

    async def start(self) -> None:
        """Begin to serve."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - uvicorn tells by a flag
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Stop serving."""
        if self._task is not None:
            self._server.should_exit = True
            await self._task
        self._socket.close()

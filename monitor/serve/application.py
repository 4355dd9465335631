"""Assemble the HTTP application: page, API, metrics and probes."""

from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.types import ASGIApp

from monitor.serve.access.audit import Audit
from monitor.serve.access.caller import may_read
from monitor.serve.access.control import AccessControl, caller_routes
from monitor.serve.access.limits import ClientLimits
from monitor.serve.access.rules import AccessRules, require_all
from monitor.serve.api.openapi import add_openapi
from monitor.serve.api.problems import add_problems
from monitor.serve.api.reading.cached_answers import CachedAnswers
from monitor.serve.api.reading.state_watcher import StateWatcher
from monitor.serve.api.routes.admissions import admission_routes, admit_routes
from monitor.serve.api.routes.boards import board_routes
from monitor.serve.api.routes.changes import change_routes
from monitor.serve.api.routes.drift import drift_routes
from monitor.serve.api.routes.events import write_routes
from monitor.serve.api.routes.files import file_routes
from monitor.serve.api.routes.next import next_routes
from monitor.serve.api.routes.otlp import otlp_routes
from monitor.serve.api.routes.reports import read_routes
from monitor.serve.api.routes.runs import run_routes
from monitor.serve.api.routes.views import view_routes
from monitor.serve.api.writing.body_reader import BodyReader
from monitor.serve.api.writing.request import ReadOnlyIntake, WriteRules
from monitor.serve.http_caching import Gzip, HttpCaching
from monitor.serve.log_position import FoldedLog, LogPosition, WholeLog
from monitor.serve.metrics.collector import program_version
from monitor.serve.page_files import page_routes
from monitor.serve.serving import Collect, Serving
from monitor.state_lock import StateTorn

_AT_READERS: Final = "A worker has no page, no API and accepts no events: use `rankwatch serve`."
"""What a worker answers on any path but the probes and its metrics."""


class _Application(FastAPI):
    """An application inside the access control, so that its error responses carry the security headers too."""

    log: FoldedLog
    access: AccessRules
    audit: Audit
    loopback: bool = True
    cache_seconds: int = 0

    def build_middleware_stack(self) -> ASGIApp:
        positioned = LogPosition(HttpCaching(super().build_middleware_stack(), self.cache_seconds), self.log)
        return AccessControl(Gzip(positioned), self.access, self.audit, loopback=self.loopback)


def make_application(serving: Serving) -> FastAPI:
    """Make the application."""
    web = _make(serving)
    watcher, reports, intake = web.state.watcher, serving.reports, serving.intake
    readable = reports.readable_by(may_read)
    add_problems(web)
    add_openapi(web)
    _add_probes(web, serving)
    _add_metrics(web, serving)
    web.include_router(caller_routes(serving.access, serving.watched, serving.topic))
    web.include_router(page_routes(serving.low_coverage))
    answers = CachedAnswers(readable)
    web.include_router(read_routes(readable, answers))
    web.include_router(view_routes(readable, answers, serving.low_coverage))
    web.include_router(drift_routes(readable))
    web.include_router(run_routes(readable))
    web.include_router(next_routes(readable, watcher, intake))
    web.include_router(admission_routes(readable, intake))
    web.include_router(change_routes(readable, watcher))
    body_reader = BodyReader(serving.body_bytes)
    writes = (
        intake or ReadOnlyIntake(),
        WriteRules(body_reader, serving.limits or ClientLimits(), web.audit, serving.count_quota),
    )
    web.include_router(write_routes(reports, *writes))
    web.include_router(admit_routes(reports, *writes))
    web.include_router(board_routes(reports, *writes))
    web.include_router(otlp_routes(reports, *writes, serving.read_otlp))
    web.include_router(file_routes(reports, *writes, serving.read_file))
    return web


def make_worker_application(serving: Serving) -> FastAPI:
    """Make the application of a worker: probes, and metrics of the process. Any other path is a 404 that names `rankwatch serve`."""
    web = _make(serving)
    add_problems(web, no_route=_AT_READERS)
    _add_probes(web, serving)
    _add_metrics(web, serving, default="process")
    return web


def _make(serving: Serving) -> _Application:
    """Make an application without routes."""
    web = _Application(
        title="rankwatch",
        version=program_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    reports = serving.reports
    web.access, web.loopback, web.audit = serving.access, serving.loopback, serving.audit or Audit()
    web.cache_seconds = serving.cache_seconds
    web.log = serving.log or WholeLog(lambda: {partition.number: partition.off for partition in reports.partitions})
    reports.cache.state_age = web.log.age
    web.state.watcher = StateWatcher(reports)
    return web


def _add_probes(web: FastAPI, serving: Serving) -> None:
    @web.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return Response("ok\n", media_type="text/plain")

    @web.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        waiting = serving.waiting_for()
        return Response(f"{waiting or serving.holds()}\n", 503 if waiting else 200, media_type="text/plain")


def _add_metrics(web: FastAPI, serving: Serving, default: Collect = "all") -> None:
    @web.get("/metrics", include_in_schema=False)
    async def metrics(request: Request, collect: Collect = default) -> Response:
        require_all("read", "the metrics, which are of every benchmark")
        accept = request.headers.get("accept", "")
        names: list[str] | None = None if collect == "all" else []
        try:
            text, content_type = await serving.reports.read(lambda: serving.scrape(accept, collect), names)
        except StateTorn:
            text, content_type = serving.scrape(accept, "process")  # an alert on it needs them
        return Response(text, headers={"content-type": content_type, "vary": "Accept"})

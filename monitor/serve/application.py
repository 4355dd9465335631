"""Assemble the HTTP application: page, API, metrics and probes."""

from collections.abc import Callable, Sequence
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
from monitor.serve.api.routes.files import ReadFile, file_routes
from monitor.serve.api.routes.next import next_routes
from monitor.serve.api.routes.otlp import ReadOtlp, otlp_routes
from monitor.serve.api.routes.reports import read_routes
from monitor.serve.api.routes.runs import run_routes
from monitor.serve.api.routes.views import view_routes
from monitor.serve.api.writing.body_reader import BodyReader
from monitor.serve.api.writing.intake import Intake, ReadOnlyIntake
from monitor.serve.api.writing.request import WriteRules
from monitor.serve.http_caching import Gzip, HttpCaching
from monitor.serve.log_position import FoldedLog, LogPosition, WholeLog
from monitor.serve.metrics.collector import Collect, program_version
from monitor.serve.page_files import page_routes
from monitor.serve.report_cache import ReportCache
from monitor.state_lock import StateTorn

Scrape = Callable[[str, Collect], tuple[bytes, str]]
"""Takes an Accept header, and what to collect; returns the metrics and their content type."""

_AT_READERS: Final = "A worker has no page, no API and accepts no events: use `rankwatch serve`."
"""What a worker answers on any path but the probes and its metrics."""

BODY_BYTES: Final = 16_000_000  # default limit of a request body


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


def make_application(
    reports: ReportCache,
    scrape: Scrape,
    waiting_for: Callable[[], str | None],
    log: FoldedLog | None = None,
    *,
    access: AccessRules,
    loopback: bool,
    low_coverage: float,
    cache_seconds: int = 0,
    intake: Intake | None = None,
    read_otlp: ReadOtlp | None = None,
    read_file: ReadFile | None = None,
    body_bytes: int = BODY_BYTES,
    limits: ClientLimits | None = None,
    audit: Audit | None = None,
    holds: Callable[[], str] = lambda: "ok",
    count_quota: Callable[[str], None] = lambda _: None,
    watched: Sequence[str] = (),
    topic: str | None = None,
) -> FastAPI:
    """Make the application."""
    limits, audit = limits or ClientLimits(), audit or Audit()
    web = _make(reports, access, audit, log, loopback=loopback, cache_seconds=cache_seconds)
    watcher = web.state.watcher
    readable = reports.readable_by(may_read)
    add_problems(web)
    add_openapi(web)
    _add_probes(web, waiting_for, holds)
    _add_metrics(web, reports, scrape)
    web.include_router(caller_routes(access, watched, topic))
    web.include_router(page_routes(low_coverage))
    answers = CachedAnswers(readable)
    web.include_router(read_routes(readable, answers))
    web.include_router(view_routes(readable, answers, low_coverage))
    web.include_router(drift_routes(readable))
    web.include_router(run_routes(readable))
    web.include_router(next_routes(readable, watcher, intake))
    web.include_router(admission_routes(readable, intake))
    web.include_router(change_routes(readable, watcher))
    writes = intake or ReadOnlyIntake(), WriteRules(BodyReader(body_bytes), limits, audit, count_quota)
    web.include_router(write_routes(reports, *writes))
    web.include_router(admit_routes(reports, *writes))
    web.include_router(board_routes(reports, *writes))
    web.include_router(otlp_routes(reports, *writes, read_otlp))
    web.include_router(file_routes(reports, *writes, read_file))
    return web


def make_worker_application(
    reports: ReportCache,
    scrape: Scrape,
    waiting_for: Callable[[], str | None],
    *,
    access: AccessRules,
    audit: Audit,
    loopback: bool,
    holds: Callable[[], str],
) -> FastAPI:
    """Make the application of a worker: probes, and metrics of the process. Any other path is a 404 that names `rankwatch serve`."""
    # `make_application` has the same parameters.
    web = _make(reports, access, audit, None, loopback=loopback)
    add_problems(web, no_route=_AT_READERS)
    _add_probes(web, waiting_for, holds)
    _add_metrics(web, reports, scrape, default="process")
    return web


def _make(
    reports: ReportCache,
    access: AccessRules,
    audit: Audit,
    log: FoldedLog | None,
    *,
    loopback: bool,
    cache_seconds: int = 0,
) -> _Application:
    """Make an application without routes."""
    web = _Application(
        title="rankwatch",
        version=program_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    web.access, web.loopback, web.audit = access, loopback, audit
    web.cache_seconds = cache_seconds
    web.log = log or WholeLog(lambda: {partition.number: partition.off for partition in reports.partitions})
    reports.cache.state_age = web.log.age
    web.state.watcher = StateWatcher(reports)
    return web


def _add_probes(web: FastAPI, waiting_for: Callable[[], str | None], holds: Callable[[], str]) -> None:
    @web.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return Response("ok\n", media_type="text/plain")

    @web.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        waiting = waiting_for()
        return Response(f"{waiting or holds()}\n", 503 if waiting else 200, media_type="text/plain")


def _add_metrics(web: FastAPI, reports: ReportCache, scrape: Scrape, default: Collect = "all") -> None:
    @web.get("/metrics", include_in_schema=False)
    async def metrics(request: Request, collect: Collect = default) -> Response:
        require_all("read", "the metrics, which are of every benchmark")
        accept = request.headers.get("accept", "")
        names: list[str] | None = None if collect == "all" else []
        try:
            text, content_type = await reports.read(lambda: scrape(accept, collect), names)
        except StateTorn:
            text, content_type = scrape(accept, "process")  # an alert on it needs them
        return Response(text, headers={"content-type": content_type, "vary": "Accept"})

"""The route of sentinels: has a model got worse, or its judge moved."""

import asyncio

import msgspec
from fastapi import APIRouter, Response

from monitor.serve.api.problems import ProblemError
from monitor.serve.report_cache import Name, ReportCache, own_benchmark
from monitor.view.drift import with_found
from monitor.words.drift import page
from schemas.results.drift import DriftReport


def drift_routes(reports: ReportCache) -> APIRouter:
    """Make the route of sentinels."""
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/drift", responses={404: {"description": "No such benchmark, or it is no sentinel."}})
    async def drift(benchmark: Name, *, found: bool = False) -> Response:
        """Report the runs of each model of a sentinel, its alarms, and words for them; with `found`, the drops that would have been found.

        These are simulated, once for each run of a quiet model, which takes some seconds.
        """

        def facts() -> DriftReport:
            made = own_benchmark(reports, benchmark).drift
            if made is None:
                raise ProblemError(
                    404, f"Benchmark {benchmark!r} is no sentinel. One declares `drift` before its first run."
                )
            return made()

        report = await reports.read(facts, [benchmark])
        if found:
            report = await asyncio.to_thread(with_found, report)
        return Response(msgspec.json.encode(page(report)), media_type="application/json")

    return routes

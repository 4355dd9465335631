"""Routes that read the state: reports, summaries, pairs, paths and matrices."""

from math import isfinite
from typing import Annotated, Any, Final

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from numpy.typing import NDArray

from monitor.serve.api.problems import ProblemError
from monitor.serve.api.reading.cached_answers import CachedAnswers
from monitor.serve.report_cache import (
    NEXT_CURSOR,
    TOO_MANY_PAIRS,
    Cursor,
    Name,
    ReportCache,
    check_pairs,
    found_benchmark,
    live_pairs,
    own_benchmark,
    rank_of,
)
from monitor.view.build import Which
from monitor.view.items.conflict_rows import conflict_rows, counts_by_model, listed_conflicts
from monitor.view.live_pairs import LivePairs, Procedure, Sort
from monitor.view.pairs.evidence_path import pair_path
from monitor.view.pairs.rows import STATUSES
from monitor.words.columns import needs
from schemas.results.api import BenchmarkSummary, ConflictPage, Matrix, PairPage, PathReport
from schemas.results.report import PairReport, Report, Status

MAX_MATRIX_MODELS: Final = 1_000  # models in the largest matrix: a million cells


def read_routes(reports: ReportCache, answers: CachedAnswers) -> APIRouter:
    """Make the routes that read the state."""
    routes = APIRouter(prefix="/api/v1")
    _add_lists(routes, reports, answers)
    _add_reports(routes, reports, answers)
    _add_pairs(routes, reports, answers)
    _add_path_and_matrix(routes, reports, answers)
    return routes


def _add_lists(routes: APIRouter, reports: ReportCache, answers: CachedAnswers) -> None:
    def chosen(limit: int, cursor: str | None) -> tuple[list[str], dict[str, str]]:
        """Return the names of a page, and the header that names the next one."""
        names, start = reports.names(), int(cursor or 0)
        end = start + limit
        return names[start:end], {NEXT_CURSOR: str(end)} if end < len(names) else {}

    @routes.get("/benchmarks", response_model=Report, responses=TOO_MANY_PAIRS)
    async def benchmarks(
        pairs: Which = "adjacent", limit: Annotated[int, Query(ge=1, le=1_000)] = 100, cursor: Cursor = None
    ) -> Response:
        """Report suites, then benchmarks, by name, page by page, in the structure of `rankwatch report --format json`.

        `Rankwatch-Next-Cursor` names the next page; the last one has no such header.
        """
        await reports.at_rest()
        names, headers = chosen(limit, cursor)

        def report() -> bytes:
            check_pairs(filter(None, map(reports.find, names)), pairs)
            return reports.listed_reports(names, pairs)

        return Response(await reports.read(report, names), headers=headers, media_type="application/json")

    @routes.get("/summaries", response_model=list[BenchmarkSummary])
    async def summaries(
        request: Request, limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000, cursor: Cursor = None
    ) -> Response:
        """List suites, then benchmarks, by name, page by page, with a summary of each.

        `Rankwatch-Next-Cursor` names the next page; the last one has no such header.
        """
        await reports.at_rest()
        names, headers = chosen(limit, cursor)
        response = await answers.list_json(request, names, lambda: reports.listed_summaries(names))
        response.headers.update(headers)
        return response


def _add_reports(routes: APIRouter, reports: ReportCache, answers: CachedAnswers) -> None:

    @routes.get("/benchmarks/{name:path}/conflicts")
    async def conflicts(
        name: str,
        model: Annotated[Name | None, Query(description="only conflicts of this model")] = None,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
        cursor: Cursor = None,
    ) -> ConflictPage:
        """List the scores that contradict an earlier one, page by page: item, model, the score that counts and the refused one."""

        def page() -> ConflictPage:
            benchmark = own_benchmark(reports, name)
            start, listed = int(cursor or 0), listed_conflicts(benchmark, model)
            end = start + limit
            _, by_model = counts_by_model(benchmark)
            return ConflictPage(
                benchmark=name,
                conflicts=list(conflict_rows(benchmark, model, start, end)),
                total=benchmark.counters["conflicts"] if model is None else by_model.get(model, 0),
                listed=listed,
                next_cursor=str(end) if end < listed else None,
            )

        return await reports.read(page, [name])

    @routes.get("/benchmarks/{name:path}", response_model=Report, responses=TOO_MANY_PAIRS)
    async def benchmark(request: Request, name: str, pairs: Which = "adjacent") -> Response:
        """Report one benchmark, in the structure of `rankwatch report --format json`."""

        def report() -> bytes:
            check_pairs([found_benchmark(reports, name)], pairs)
            report = reports.benchmark_report(name, pairs)
            return Report(benchmarks=[] if report is None else [report]).as_json()

        return await answers.json(request, name, report, pairs)


def _add_pairs(routes: APIRouter, reports: ReportCache, answers: CachedAnswers) -> None:
    @routes.get("/pairs", response_model=PairPage)
    async def pairs(
        request: Request,
        benchmark: Name,
        status: Status | None = None,
        model: Annotated[Name | None, Query(description="one of the two models")] = None,
        other: Annotated[Name | None, Query(description="the other model")] = None,
        decided: Annotated[Procedure | None, Query(description="only pairs that this procedure decides")] = None,
        sort: Sort = "rank",
        descending: Annotated[bool, Query()] = False,  # noqa: FBT002 - a query parameter
        adjacent: Annotated[bool | None, Query(description="true: only neighbours by rank; false: only others")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
        cursor: Cursor = None,
    ) -> Response:
        """List pairs of a benchmark, filtered and sorted, page by page. Each page shows the state at the time of its request.

        The pairs are those of the latest epochs. `status=superseded` lists decided pairs of older epochs instead, by rank.
        """
        start = int(cursor or 0)
        end = start + limit

        def page() -> PairPage:
            live = live_pairs(reports, benchmark)
            if status == "superseded":
                rows = [row for row in live.superseded() if _matches(row, model, decided, adjacent)]
                return _page(rows[start:end], len(rows), end)
            keep = _with_models(live, model, other)
            if status is not None:
                keep &= live.with_status(status)
            if decided is not None:
                keep &= live.sides(decided) != 0
            if adjacent is not None:
                keep &= live.table.pairs.adjacent == adjacent
            indices = live.sort(np.flatnonzero(keep), sort, descending=descending)
            return _page(live.rows(indices[start:end]), indices.size, end)

        return await answers.json(request, benchmark, lambda: page().as_json())


def _add_path_and_matrix(routes: APIRouter, reports: ReportCache, answers: CachedAnswers) -> None:
    @routes.get("/path", response_model=PathReport)
    async def path(
        request: Request,
        benchmark: Name,
        model_a: Name,
        model_b: Name,
        points: Annotated[int, Query(ge=2, le=2_000)] = 400,
        last: Annotated[int, Query(ge=0, le=2_000, description="items at the end, each a point besides")] = 0,
    ) -> Response:
        """Return the e-process of a pair along its shared items, the interval of the gap, and what the page writes of it."""

        def follow() -> PathReport:
            live = live_pairs(reports, benchmark)
            first, second = (int(live.table.ranking[rank_of(live, model)]) for model in (model_a, model_b))
            if first == second:
                raise ProblemError(422, f"model_a and model_b are both {model_a!r}. Name two different models.")
            columns: dict[str, Any] = pair_path(live.benchmark, first, second, points, last)._asdict()
            columns |= live.of_page(np.flatnonzero(_with_models(live, model_a, model_b)))
            columns = {name: c.tolist() if isinstance(c, np.ndarray) else c for name, c in columns.items()}
            if not isfinite(columns["log_family_threshold"]):
                columns["log_family_threshold"] = None
            return PathReport(benchmark=benchmark, model_a=model_a, model_b=model_b, **columns)

        return await answers.json(request, benchmark, lambda: follow().as_json())

    @routes.get("/matrix", response_model=Matrix)
    async def matrix(request: Request, benchmark: Name) -> Response:
        """Return the family-wise decision and the status of every pair of a benchmark."""

        def cells() -> bytes:
            live = live_pairs(reports, benchmark)
            if len(live.models) > MAX_MATRIX_MODELS:
                raise ProblemError(
                    409,
                    f"Benchmark {benchmark!r} has {len(live.models):,} models; a matrix holds at most {MAX_MATRIX_MODELS:,}. "
                    "Page through GET /api/v1/pairs instead.",
                )
            met = live.table.kind.win_matrices()
            return Matrix(
                benchmark=benchmark,
                models=live.models,
                decided=live.decided_matrix().tolist(),
                statuses=list(STATUSES),
                status=live.status_matrix().tolist(),
                prompts=met and met[0].tolist(),
                wins=met and met[1].tolist(),
            ).as_json()

        return await answers.json(request, benchmark, cells)


def _with_models(live: LivePairs, *models: str | None) -> NDArray[np.bool_]:
    """Return which pairs contain each of the models; None is any model."""
    keep = np.ones(live.table.pairs.pair.size, bool)
    for model in models:
        if model is not None:
            rank_of(live, model)
            keep &= live.of_model(model)
    return keep


def _matches(row: PairReport, model: str | None, decided: Procedure | None, adjacent: bool | None) -> bool:  # noqa: FBT001
    return (
        (model is None or model in {row.model_a, row.model_b})
        and (decided is None or getattr(row.decided, decided) is not None)
        and (adjacent is None or row.adjacent == adjacent)
    )


def _page(pairs: list[PairReport], total: int, end: int) -> PairPage:
    return PairPage(
        pairs=pairs, need_notes=list(map(needs, pairs)), total=total, next_cursor=str(end) if end < total else None
    )

"""What can be asked of the state: reports, lists, pairs, paths, matrices, and whether a run may stop."""

from math import isfinite
from typing import Annotated, Any, Final, Literal

import numpy as np
from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse
from numpy.typing import NDArray

from monitor.report.evidence_path import pair_path
from monitor.report.live_pairs import LivePairs, Procedure, Sort
from monitor.report.pair_rows import STATUSES
from monitor.report.sentences import counted
from monitor.serve.api.problems import ProblemError
from monitor.serve.report_cache import Board
from schemas.api import BenchmarkSummary, EarlyStop, Matrix, OpenPair, PairPage, PathReport
from schemas.names import MAX_NAME_LENGTH
from schemas.report import PairReport, Report, Status

Name = Annotated[str, Query(min_length=1, max_length=MAX_NAME_LENGTH)]
Cursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,9}$", description="`next_cursor` of the page before")]

MATRIX_MODELS: Final = 1_000
"""Models up to which a matrix is given: a million cells."""

_SETTLED: Final = frozenset({"decided", "equivalent", "exhausted"})


def reading_routes(board: Board) -> APIRouter:
    """Make the routes that read the state."""
    routes = APIRouter(prefix="/api/v1")
    _reports(routes, board)
    _pairs(routes, board)
    _runs(routes, board)
    return routes


def live_pairs(board: Board, name: str) -> LivePairs:
    """Return the pairs of a benchmark, or raise the 404 that says what to do."""
    live = board.pairs(name)
    if live is None:
        raise ProblemError(
            404,
            f"{name!r} has no events here; GET /api/v1/summaries lists the benchmarks that this worker holds"
            " (each benchmark lives in one worker)",
        )
    return live


def _place(live: LivePairs, model: str) -> int:
    place = live.place(model)
    if place is None:
        raise ProblemError(
            404,
            f"no model {model!r} in {live.benchmark.name!r}; GET /api/v1/matrix?benchmark= lists its models",
        )
    return place


def _reports(routes: APIRouter, board: Board) -> None:
    @routes.get("/benchmarks")
    async def benchmarks(pairs: Literal["adjacent", "all"] = "adjacent") -> Report:
        """Report every benchmark, in the form of `rankwatch report --format json`."""
        return board.report(pairs)

    @routes.get("/benchmarks/{name:path}")
    async def benchmark(name: str, pairs: Literal["adjacent", "all"] = "adjacent") -> Report:
        """Report one benchmark, in the form of `rankwatch report --format json`."""
        found = board.benchmark(name, pairs)
        if found is None:
            raise ProblemError(404, f"{name!r} has no events here; GET /api/v1/benchmarks lists those that have")
        return Report(benchmarks=[found])

    @routes.get("/summaries")
    async def summaries() -> list[BenchmarkSummary]:
        """List the benchmarks that this worker holds, with what a list shows of each."""
        return board.summaries()


def _with_models(live: LivePairs, *models: str | None) -> NDArray[np.bool_]:
    """Return which pairs have each of the named models; None names none."""
    keep = np.ones(live.table.pair.size, bool)
    for model in models:
        if model is not None:
            _place(live, model)
            keep &= live.of_model(model)
    return keep


def _pairs(routes: APIRouter, board: Board) -> None:
    @routes.get("/pairs")
    async def pairs(
        benchmark: Name,
        status: Status | None = None,
        model: Annotated[Name | None, Query(description="one of the two models")] = None,
        other: Annotated[Name | None, Query(description="the other of the two")] = None,
        decided: Annotated[Procedure | None, Query(description="only pairs that this procedure decides")] = None,
        sort: Sort = "rank",
        descending: Annotated[bool, Query()] = False,  # noqa: FBT002 - a query parameter
        adjacent: Annotated[bool | None, Query(description="only neighbours by rank, or only others")] = None,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
        cursor: Cursor = None,
    ) -> PairPage:
        """List pairs of a benchmark, filtered and sorted, page by page; each page is of the state as it is then.

        They are those of the latest epochs; with `status=superseded` those of older ones that were decided, by rank.
        """
        live = live_pairs(board, benchmark)
        start = int(cursor or 0)
        end = start + limit
        if status == "superseded":
            rows = [row for row in live.superseded() if _listed(row, model, decided, adjacent)]
            return _page(rows[start:end], len(rows), end)
        keep = _with_models(live, model, other)
        if status is not None:
            keep &= live.with_status(status)
        if decided is not None:
            keep &= live.sides(decided) != 0
        if adjacent is not None:
            keep &= live.table.adjacent == adjacent
        listed = live.sort(np.flatnonzero(keep), sort, descending=descending)
        return _page(live.rows(listed[start:end]), listed.size, end)

    @routes.get("/path")
    async def path(
        benchmark: Name, model_a: Name, model_b: Name, points: Annotated[int, Query(ge=2, le=2_000)] = 400
    ) -> PathReport:
        """Return the e-process of a pair along its shared items, and the anytime-valid interval closing in."""
        live = live_pairs(board, benchmark)
        one, other = (int(live.table.ranking[_place(live, model)]) for model in (model_a, model_b))
        if one == other:
            raise ProblemError(422, f"model_a and model_b are both {model_a!r}: name two different models")
        found = pair_path(live.benchmark, one, other, points)
        lists: dict[str, Any] = {
            name: None if values is None else values.tolist()
            for name, values in found._asdict().items()
            if name != "order" and not name.endswith("threshold")
        }
        return PathReport(
            benchmark=benchmark,
            model_a=model_a,
            model_b=model_b,
            order=found.order,
            **lists,
            log_threshold=found.log_threshold,
            log_family_threshold=found.log_family_threshold if isfinite(found.log_family_threshold) else None,
        )

    @routes.get("/matrix")
    async def matrix(benchmark: Name) -> Matrix:
        """Return every pair of a benchmark at once: who is decided to be better, and the status of each pair."""
        live = live_pairs(board, benchmark)
        if len(live.models) > MATRIX_MODELS:
            raise ProblemError(
                409,
                f"{benchmark!r} has {len(live.models):,} models, and a matrix holds {MATRIX_MODELS:,}: page through /api/v1/pairs",
            )
        return Matrix(
            benchmark=benchmark,
            models=live.models,
            decided=live.decided_matrix().tolist(),
            statuses=list(STATUSES),
            status=live.status_matrix().tolist(),
        )


def _page(pairs: list[PairReport], total: int, end: int) -> PairPage:
    return PairPage(pairs=pairs, total=total, next_cursor=str(end) if end < total else None)


def _listed(row: PairReport, model: str | None, decided: Procedure | None, adjacent: bool | None) -> bool:  # noqa: FBT001
    """Say whether the filters let a row through."""
    return (
        (model is None or model in {row.model_a, row.model_b})
        and (decided is None or getattr(row.decided, decided) is not None)
        and (adjacent is None or row.adjacent == adjacent)
    )


def _runs(routes: APIRouter, board: Board) -> None:
    @routes.get("/early-stop")
    async def early_stop(benchmark: Name, model: Name) -> EarlyStop:
        """Say whether the run of a model may stop: whether each of its pairs is settled, and what would be left open.

        Verdicts under the policies `completion` and `committed` stay valid whether or not the run stops here; under `trusted` a run must
        not stop because of what other models score on later items.
        """
        live = live_pairs(board, benchmark)
        _place(live, model)
        rows = live.rows(np.flatnonzero(live.of_model(model)))
        left = sum(row.status not in _SETTLED for row in rows)
        return EarlyStop(
            benchmark=benchmark,
            model=model,
            may_stop=bool(rows) and not left,
            reason=_why(live, model, len(rows) - left, left),
            decided=[_other(row, model) for row in rows if row.status == "decided"],
            undecided=[_left(row, model) for row in rows if row.status != "decided"],
        )

    @routes.get("/order", response_class=PlainTextResponse)
    async def order(benchmark: Name) -> PlainTextResponse:
        """Return the committed order of a benchmark: item ids, one a line."""
        from stats.order import committed_order

        spec = live_pairs(board, benchmark).benchmark.spec
        if spec.order.seed is None or spec.item_ids is None:
            raise ProblemError(
                409, f"{benchmark!r} is declared under the order policy {spec.order.policy}, which commits to no order"
            )
        ids = spec.item_ids
        places = committed_order(spec.order.seed, ids).tolist()
        return PlainTextResponse("".join(f"{ids[place]}\n" for place in places))


def _other(row: PairReport, model: str) -> str:
    return row.model_b if row.model_a == model else row.model_a


def _left(row: PairReport, model: str) -> OpenPair:
    return OpenPair(
        other=_other(row, model), status=row.status, items_to_decision=row.items_to_decision, reason=row.reason
    )


def _why(live: LivePairs, model: str, settled: int, left: int) -> str:
    if not settled + left:
        return f"{model} is the only model of {live.benchmark.name}: there is nothing to compare it with"
    if left:
        return f"stopping now would leave {left:,} of {counted(settled + left, 'pair')} of {model} open" + (
            f": {live.hold_reason}" if live.hold_reason else ""
        )
    return f"each of the {counted(settled, 'pair')} of {model} is decided family-wise, equivalent, or has no items left"

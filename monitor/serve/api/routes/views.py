"""Routes of the views of the page that need more than the report: the board with its ties, and the items."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from monitor.serve.api.problems import ProblemError, unknown_benchmark
from monitor.serve.api.reading.cached_answers import CachedAnswers
from monitor.serve.api.routes.category_page import MOST_CATEGORIES, category_page
from monitor.serve.api.routes.item_page import TWO_MODEL_FILTERS, ItemChoice, item_page, surprise_page
from monitor.serve.api.routes.moment_page import earlier_board, tie_report
from monitor.serve.report_cache import (
    TOO_MANY_PAIRS,
    Cursor,
    Name,
    ReportCache,
    check_pairs,
    found_benchmark,
    live_pairs,
)
from monitor.view.items.hardness import ItemSort, Show
from monitor.view.ranking.replay import replay as replayed
from monitor.words.page import board_words
from schemas.results.api import Board, CategoryPage, EarlierBoard, ItemPage, Surprises
from schemas.results.replay import Replay


def view_routes(reports: ReportCache, answers: CachedAnswers, low_coverage: float) -> APIRouter:
    """Make the routes of the views; a model with less than the share `low_coverage` of the items is in no band."""
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/board", response_model=Board, responses=TOO_MANY_PAIRS)
    async def board(request: Request, benchmark: Name) -> Response:
        """Report one benchmark with its neighbours in rank, and its ties by the family-wise decisions."""

        def report() -> bytes:
            check_pairs([found_benchmark(reports, benchmark)], "adjacent")
            board = reports.board(benchmark, low_coverage)
            if board is None:
                raise unknown_benchmark(benchmark)
            answer = Board(report=board[0], ties=tie_report(board[1]), words=board_words(board[0]))
            return answer.as_json()

        return await answers.json(request, benchmark, report, "adjacent")

    @routes.get("/moments", response_model=EarlierBoard)
    async def moments(
        request: Request,
        benchmark: Name,
        at: Annotated[
            int | None, Query(ge=0, le=10**18, description="offset of a record; default: the last with a verdict")
        ] = None,
    ) -> Response:
        """Report the verdicts that were in force after a record of the log, and all moments at which verdicts fell or ended."""

        def report() -> bytes:
            live, times = live_pairs(reports, benchmark), reports.commit_times(benchmark)
            return earlier_board(live, at, low_coverage, times).as_json()

        return await answers.json(request, benchmark, report)

    @routes.get("/replay", response_model=Replay)
    async def replay(
        request: Request,
        benchmark: Name,
        seed: Annotated[int, Query(ge=0, le=10**9, description="chooses the random order")] = 0,
    ) -> Response:
        """Replay the scores in a random order: what p < .05 at each look would have called, next to anytime verdicts."""
        return await answers.json(
            request, benchmark, lambda: replayed(live_pairs(reports, benchmark).table, seed).as_json()
        )

    _add_items(routes, reports, answers)
    _add_categories(routes, reports, answers)
    return routes


def _add_items(routes: APIRouter, reports: ReportCache, answers: CachedAnswers) -> None:
    @routes.get("/items", response_model=ItemPage)
    async def items(
        request: Request,
        benchmark: Name,
        model_a: Annotated[Name | None, Query(description="compare this model with model_b on each item")] = None,
        model_b: Name | None = None,
        show: Show = "all",
        cluster: Annotated[str | None, Query(description="only items of this cluster")] = None,
        find: Annotated[str | None, Query(max_length=200, description="part of the item's id or cluster")] = None,
        sort: ItemSort = "item",
        limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
        cursor: Cursor = None,
    ) -> Response:
        """List the items of a benchmark, page by page, with the score of every model: exact, from the rows of the state."""
        start = int(cursor or 0)
        chosen = ItemChoice(model_a, model_b, show, cluster, find, sort, start, start + limit)
        if (model_a is None) != (model_b is None) or (model_a is not None and model_a == model_b):
            raise ProblemError(422, "Name two different models, model_a and model_b, or none.")
        if model_a is None and show in TWO_MODEL_FILTERS:
            raise ProblemError(422, f"show={show} compares two models. Name them: model_a and model_b.")
        return await answers.json(
            request, benchmark, lambda: item_page(live_pairs(reports, benchmark), chosen).as_json()
        )

    @routes.get("/surprises", response_model=Surprises)
    async def surprises(
        request: Request, benchmark: Name, model: Name, limit: Annotated[int, Query(ge=1, le=100)] = 5
    ) -> Response:
        """List the items on which the score of a model is most unlike those of the other models, where at least 8 have a score."""
        return await answers.json(
            request, benchmark, lambda: surprise_page(live_pairs(reports, benchmark), model, limit).as_json()
        )


def _add_categories(routes: APIRouter, reports: ReportCache, answers: CachedAnswers) -> None:
    @routes.get("/categories", response_model=CategoryPage)
    async def categories(
        request: Request,
        benchmark: Name,
        baseline: Annotated[Name | None, Query(description="compare every model with this one")] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_CATEGORIES, description="categories, the largest first")] = 60,
    ) -> Response:
        """Report the scores of every model by category (the `cluster` of an item), and the verdicts against one model in each of them."""
        return await answers.json(
            request, benchmark, lambda: category_page(live_pairs(reports, benchmark), baseline, limit).as_json()
        )

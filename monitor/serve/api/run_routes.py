"""Routes for an evaluation that runs: the committed order of its items, which of them run next, and whether a run may stop."""

import asyncio
from hashlib import sha256
from typing import Annotated, Any, Final

import numpy as np
from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import PlainTextResponse

from monitor.report.goal import priced
from monitor.report.live_pairs import LivePairs
from monitor.report.race import NoRaceError, Race
from monitor.report.sentences import counted
from monitor.serve.api.intake import Intake
from monitor.serve.api.problems import ProblemError
from monitor.serve.api.read_routes import Name, live_pairs, own_benchmark, rank_of
from monitor.serve.api.state_watcher import StateWatcher
from monitor.serve.api.write_routes import until
from monitor.serve.report_cache import ReportCache
from schemas.api import EarlyStop, Next, OpenPair
from schemas.events import MAX_GOAL_LENGTH
from schemas.goals import parse_goal
from schemas.report import PairReport
from stats.order import committed_order

MAX_BLOCK: Final = 1_000
"""Items of a block, at most: an answer lists them for every model."""

MAX_MODELS: Final = 1_000
"""Models without a score that a request may name."""

MAX_WAIT: Final = 30.0
"""Seconds for which an answer is held back, at most: proxies end a silent connection after a minute."""

_NO_RACE: Final[dict[int | str, dict[str, Any]]] = {
    304: {"description": "The answer is still the one of `If-None-Match`."},
    409: {"description": "The benchmark has no goal, no list of items, or another order policy."},
}

Goal = Annotated[str | None, Query(max_length=MAX_GOAL_LENGTH, description="in place of the declared goal")]
Models = Annotated[
    list[Name] | None, Query(description="a model that takes part before its first score; may be repeated")
]
Block = Annotated[
    int | None,
    Query(ge=1, le=MAX_BLOCK, description="items that a model may be ahead; default: 10, later 2 % of the items run"),
]
Wait = Annotated[
    float, Query(ge=0, le=MAX_WAIT, description="seconds to wait for another answer than the one of `If-None-Match`")
]
Known = Annotated[str | None, Header(max_length=200, description="the `ETag` of the last answer")]

_CLOSED: Final = frozenset({"decided", "equivalent", "exhausted"})


def run_routes(reports: ReportCache, watcher: StateWatcher, intake: Intake | None = None) -> APIRouter:
    """Make the routes for an evaluation that runs; `intake` is where its scores come in, None on a server that does not write."""
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/early-stop")
    async def early_stop(benchmark: Name, model: Name) -> EarlyStop:
        """Report whether the run of a model may stop: whether every pair of the model is closed, and which pairs are open.

        Under the policies `completion` and `committed`, verdicts stay valid whether or not the run stops here. Under `trusted`, do not stop
        a run because of other models' scores on later items.
        """

        def judge() -> EarlyStop:
            live = live_pairs(reports, benchmark)
            rank_of(live, model)
            rows = live.rows(np.flatnonzero(live.of_model(model)))
            open_count = sum(row.status not in _CLOSED for row in rows)
            return EarlyStop(
                benchmark=benchmark,
                model=model,
                may_stop=bool(rows) and not open_count,
                reason=_reason(live, model, len(rows), open_count),
                decided=[_opponent(row, model) for row in rows if row.status == "decided"],
                undecided=[_open_pair(row, model) for row in rows if row.status != "decided"],
            )

        return await reports.read(judge, [benchmark])

    @routes.get("/order", response_class=PlainTextResponse)
    async def order(benchmark: Name) -> PlainTextResponse:
        """Return the committed order of a benchmark: item ids, one per line."""
        spec = own_benchmark(reports, benchmark).spec
        if spec.order.seed is None or spec.item_ids is None:
            raise ProblemError(
                409,
                f"Benchmark {benchmark!r} has no committed order: its order policy is {spec.order.policy}. "
                "Declare the policy `committed` before the first score.",
            )
        ids = spec.item_ids
        indices = committed_order(spec.order.seed, ids).tolist()
        return PlainTextResponse("".join(f"{ids[index]}\n" for index in indices))

    _add_next(routes, reports, watcher, intake)
    return routes


def _add_next(routes: APIRouter, reports: ReportCache, watcher: StateWatcher, intake: Intake | None) -> None:
    @routes.get("/next", response_model=Next, responses=_NO_RACE)
    async def next_runs(
        benchmark: Name,
        goal: Goal = None,
        model: Models = None,
        block: Block = None,
        wait: Wait = 0.0,
        if_none_match: Known = None,
    ) -> Response:
        """Report which models run next on which items until the goal is met, and which can no longer change the answer.

        Run the items, post their scores, and ask again. The answer depends on the log alone. With `wait` and the `ETag` of the last answer
        in `If-None-Match`, the next answer comes as soon as it is another one. The order policy has to be `committed`, or `completion` with
        a list of items: their verdicts stay valid wherever runs stop.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + wait
        if intake is not None and reports.owns(benchmark):
            # Scores that were written before the request are not asked for again.
            await until(lambda: intake.is_folded(benchmark))
        async with watcher.subscribe():
            while True:
                version = watcher.version
                text = await reports.read(
                    lambda: _next(reports, benchmark, goal, model or [], block).model_dump_json(), [benchmark]
                )
                tag = f'"{sha256(text.encode()).hexdigest()[:32]}"'
                if tag != if_none_match or clock() >= end or watcher.stopped:
                    break
                await watcher.wait(version, end - clock())
        answer = Response(status_code=304) if tag == if_none_match else Response(text, media_type="application/json")
        answer.headers.update({"ETag": tag, "Cache-Control": "no-store"})  # an old answer is paid for in items
        return answer


def _next(reports: ReportCache, benchmark: str, goal: str | None, expected: list[str], block: int | None) -> Next:
    """Return the next runs of a benchmark, or raise the problem."""
    if len(expected) > MAX_MODELS:
        raise ProblemError(422, f"model: found {len(expected):,} models; name at most {MAX_MODELS:,}, or declare them.")
    try:
        asked = None if goal is None else parse_goal(goal)
    except ValueError as error:
        raise ProblemError(422, f"goal: {error}.") from error
    try:
        answer = Race.of(live_pairs(reports, benchmark).table, asked, expected, block).report()
    except NoRaceError as error:
        raise ProblemError(409, f"Benchmark {error}.") from error
    return answer.model_copy(update={"goal": priced(answer.goal, reports.prices)})


def _opponent(row: PairReport, model: str) -> str:
    return row.model_b if row.model_a == model else row.model_a


def _open_pair(row: PairReport, model: str) -> OpenPair:
    return OpenPair(
        other=_opponent(row, model),
        status=row.status,
        items_to_decision=row.items_to_decision,
        decision_probability=row.decision_probability,
        reason=row.reason,
    )


def _reason(live: LivePairs, model: str, pairs: int, open_count: int) -> str:
    if not pairs:
        return f"{model} is the only model of {live.benchmark.name}; there is no other model to compare it with"
    if open_count:
        hold = f": {live.hold_reason}" if live.hold_reason else ""
        return f"stopping now leaves {open_count:,} of {counted(pairs, 'pair')} of {model} open{hold}"
    return f"each of the {counted(pairs, 'pair')} of {model} is decided family-wise, equivalent, or has no items left"

"""Routes for a race: which models run next on which items, asked for, waited for, or as a stream."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from monitor.serve.api.problems import ProblemError
from monitor.serve.api.reading.state_watcher import (
    HEARTBEAT,
    HEARTBEAT_SECONDS,
    STREAM,
    StateWatcher,
    event_stream,
    frame,
)
from monitor.serve.api.writing.appending import until_folded
from monitor.serve.api.writing.request import Intake
from monitor.serve.report_cache import Name, ReportCache, live_pairs
from monitor.view.ranking.goal import priced
from monitor.view.ranking.race import NoRaceError, Race
from schemas.records.declaration import MAX_GOAL_LENGTH
from schemas.records.goals import parse_goal
from schemas.results.api import Next

MAX_BLOCK: Final = 1_000  # items of a block, at most: an answer lists them for every model

MAX_MODELS: Final = 1_000  # models without a score that a request may name

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


Look = Callable[[], Awaitable[Next]]  # returns the present answer


def next_routes(reports: ReportCache, watcher: StateWatcher, intake: Intake | None = None) -> APIRouter:
    """Make the routes for a race; `intake` is where its scores come in, None on a server that does not write."""
    routes = APIRouter(prefix="/api/v1/next")

    def looking(benchmark: str, goal: str | None, model: list[str] | None, block: int | None) -> Look:
        return lambda: reports.read(lambda: _next(reports, benchmark, goal, model or [], block), [benchmark])

    @routes.get("", response_model=Next, responses=_NO_RACE)
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
        await until_folded(
            reports, intake, benchmark
        )  # scores that were written before the request are not asked for again
        text, tag = await _wait(benchmark, looking(benchmark, goal, model, block), watcher, wait, if_none_match)
        answer = Response(status_code=304) if tag == if_none_match else Response(text, media_type="application/json")
        answer.headers.update({"ETag": tag, "Cache-Control": "no-store"})  # an old answer is paid for in items
        return answer

    @routes.get("/stream", response_class=StreamingResponse, responses={**STREAM, 409: _NO_RACE[409]})
    async def stream(
        benchmark: Name, goal: Goal = None, model: Models = None, block: Block = None
    ) -> StreamingResponse:
        """Stream the answers of `GET /api/v1/next` as server-sent events.

        A `next` event carries an answer as JSON: the present one, and then each that differs from the last one, at most four times a
        second. The stream ends after the answer with `over`.
        """
        look = looking(benchmark, goal, model, block)
        return event_stream(
            _answers(benchmark, await look(), look, watcher)
        )  # what cannot be raced is a problem, and no stream

    return routes


async def _wait(
    benchmark: str, look: Look, watcher: StateWatcher, seconds: float, known: str | None
) -> tuple[bytes, str]:
    """Return the answer and its tag, once it is another one than the known one, or the time is over."""
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    async with watcher.subscribe():
        while True:
            version = watcher.version
            text = (await look()).as_json()
            tag = f'"{sha256(text).hexdigest()[:32]}"'
            if tag != known or clock() >= end or watcher.stopped:
                return text, tag
            await watcher.wait(version, end - clock(), benchmark)


async def _answers(benchmark: str, answer: Next, look: Look, watcher: StateWatcher) -> AsyncIterator[bytes]:
    """Yield each answer that differs from the last one, until the race is over."""
    last: Next | None = None
    async with watcher.subscribe():
        while not watcher.stopped:
            version = watcher.version
            if answer != last:
                yield frame("next", answer.as_json())
                last = answer
            if answer.over:
                return
            if not await watcher.wait(version, HEARTBEAT_SECONDS, benchmark):
                yield HEARTBEAT
            try:
                answer = await look()
            except ProblemError:
                return  # the board is gone, or cannot be raced any more: the next request has the reason


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
    return answer.replace(goal=priced(answer.goal, reports.prices))

"""Routes for an evaluation that runs: the committed order of its items, and whether a run may stop."""

from typing import Final

import numpy as np
from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from monitor.serve.api.problems import ProblemError
from monitor.serve.report_cache import Name, ReportCache, live_pairs, own_benchmark, rank_of
from monitor.view.live_pairs import LivePairs
from monitor.words.counts import counted
from schemas.results.api import EarlyStop, OpenPair
from schemas.results.report import PairReport
from stats.order import committed_items

_CLOSED: Final = frozenset({"decided", "equivalent", "exhausted"})


def run_routes(reports: ReportCache) -> APIRouter:
    """Make the routes for an evaluation that runs."""
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
        await reports.at_rest()
        spec = own_benchmark(reports, benchmark).spec
        if spec.order.seed is None or spec.item_ids is None:
            raise ProblemError(
                409,
                f"Benchmark {benchmark!r} has no committed order: its order policy is {spec.order.policy}. "
                "Declare the policy `committed` before the first score.",
            )
        items = committed_items(spec.order.seed, spec.item_ids, spec.units)
        return PlainTextResponse("".join(f"{item}\n" for item in items))

    return routes


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

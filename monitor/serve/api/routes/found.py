"""What the routes read of a request, and find in the state, or the problem that answers it."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, TypeVar

from fastapi import Query

from monitor.serve.api.problems import ProblemError, unknown_benchmark
from monitor.serve.report_cache import ReportCache
from monitor.view.board import BoardView
from monitor.view.build import MAX_REPORT_PAIRS, Which
from monitor.view.live_pairs import LivePairs
from schemas.records.names import MAX_NAME_LENGTH
from schemas.records.text import shorten
from stats.numerics.pairs import pair_count

Found = TypeVar("Found")

Name = Annotated[str, Query(min_length=1, max_length=MAX_NAME_LENGTH)]
Cursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,9}$", description="`next_cursor` of the previous page")]

NEXT_CURSOR: Final = "Rankwatch-Next-Cursor"
"""Header of a page of a list that is not the last one: `cursor` of the next."""

TOO_MANY_PAIRS: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "The answer would have more pairs than an answer may have. Page through them."}
}


def check_pairs(benchmarks: Iterable[BoardView], pairs: Which) -> None:
    """Raise the 409 for a report of too many pairs."""
    displayed = sum(
        pair_count(count) if pairs == "all" else count - 1 for b in benchmarks if (count := len(b.latest_epoch))
    )
    if displayed > MAX_REPORT_PAIRS:
        raise ProblemError(
            409,
            f"The report would have {displayed:,} pairs; it holds at most {MAX_REPORT_PAIRS:,}. Page through GET /api/v1/pairs instead, or "
            "ask for fewer benchmarks at once (limit), or for the neighbours only.",
        )


def found_benchmark(reports: ReportCache, name: str) -> BoardView:
    """Return a benchmark, or the union of the members of a suite, or raise the 404."""
    return _known(reports.find(name), name)


def own_benchmark(reports: ReportCache, name: str) -> BoardView:
    """Return a benchmark that has events of its own, or raise the 404."""
    suite = reports.suite(name)
    if suite is not None:
        members = ", ".join(map(shorten, suite.members))
        raise ProblemError(
            404, f"{name!r} is a suite, which has no events of its own. Name one of its members: {members}."
        )
    return _known(reports.benchmark(name), name)


def live_pairs(reports: ReportCache, name: str) -> LivePairs:
    """Return the pairs of a benchmark, or raise the 404."""
    return _known(reports.live_pairs(name), name)


def _known(found: Found | None, name: str) -> Found:
    if found is None:
        raise unknown_benchmark(name)
    return found


def rank_of(live: LivePairs, model: str) -> int:
    """Return the 0-based rank of a model, or raise the 404."""
    rank = live.place(model)
    if rank is None:
        raise ProblemError(
            404, f"Benchmark {live.benchmark.name!r} has no model {model!r}. GET /api/v1/matrix lists its models."
        )
    return rank

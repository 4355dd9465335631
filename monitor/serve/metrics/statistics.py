"""Bound what computing the statistics of a scrape takes: it renews the oldest ones first."""

from collections.abc import Mapping
from math import inf
from time import thread_time
from typing import Final

from monitor.serve.metrics.budget import Shown
from monitor.serve.report_cache import ReportCache
from monitor.view.board import BoardView
from monitor.view.metrics_view import BoardCounts, board_counts, metrics_view

SCRAPE_SECONDS: Final = 0.4
"""Processor time after which a scrape renews no more statistics; the next one goes on where it ended."""

_BOARD_BYTES: Final = 2_000
_PAIR_BYTES: Final = 300


def statistics_of(
    reports: ReportCache, benchmarks: Mapping[str, BoardView], shown: Mapping[str, Shown]
) -> dict[str, BoardCounts]:
    """Return the statistics of all benchmarks; those that changed may be slightly old, unless the request asks for a later offset."""
    start, cache = thread_time(), reports.cache

    def key(name: str) -> tuple[object, ...]:
        return "statistics", name, shown[name]

    def renew(benchmark: BoardView) -> BoardCounts:
        some, table = shown[benchmark.name], reports.pair_table(benchmark)
        return metrics_view(benchmark, some.pairs, table) if some.models else board_counts(table)

    def of(name: str) -> BoardCounts:
        benchmark = benchmarks[name]
        return cache.get(
            key(name),
            reports.origin_of(name, (benchmark,)),
            lambda: renew(benchmark),
            size=_BOARD_BYTES + _PAIR_BYTES * min(shown[name].pairs, benchmark.pairs),
            most_seconds=inf,
            is_busy=lambda: thread_time() - start >= SCRAPE_SECONDS,
        )

    return {name: of(name) for name in sorted(benchmarks, key=lambda name: cache.at(key(name)))}

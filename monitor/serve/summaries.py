"""Summaries of benchmarks, as lists have them."""

import numpy as np

from monitor.view.board import BoardView
from monitor.view.build import board_report, order_report
from monitor.view.pairs.table import PairTable
from monitor.view.reasons import partial
from monitor.words.order import because
from schemas.results.api import BenchmarkSummary
from stats.numerics.pairs import pair_count, pair_members


def board_summary(board: BoardView) -> BenchmarkSummary:
    """Return the summary of a benchmark."""
    return _summary(board, _decided_pairs(board))


def suite_summary(table: PairTable) -> BenchmarkSummary:
    """Return the summary of the members of a suite, which are one benchmark here."""
    sides = table.decided("anytime_family")
    return _summary(table.benchmark, 0 if sides is None else int(np.count_nonzero(sides)))


def _summary(benchmark: BoardView, decided: int) -> BenchmarkSummary:
    models = len(benchmark.latest_epoch)
    return BenchmarkSummary(
        benchmark=benchmark.name,
        items=benchmark.items,
        events=benchmark.counters["events"],
        models=models,
        pairs=pair_count(models),
        decided=decided,
        order=order_report(benchmark),
        rejected=benchmark.counters["rejected"],
        conflicts=benchmark.counters["conflicts"],
        partial=because(partial(benchmark)),
        board=board_report(benchmark),
        members=list(benchmark.suite.members) if benchmark.suite is not None else None,
        battles=benchmark.battles is not None,
        sentinel=benchmark.drift is not None,
    )


def _decided_pairs(benchmark: BoardView) -> int:
    """Count the pairs of current models with a family-wise verdict."""
    if not benchmark.assumption_holds:
        return 0
    latched = np.flatnonzero(benchmark.latched["anytime_family"])
    i, j = pair_members(latched)
    current = benchmark.current()
    return int((current[i] & current[j]).sum())

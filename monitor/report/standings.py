"""The ranking of the models, and how much of it the decisions support."""

from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.pairs import Index
from monitor.report.pair_table import PairTable
from schemas.report import ModelReport
from stats.means import mean_interval
from stats.ranks import rank_intervals, tie_groups

CLOSURE_MODELS: Final = 500
"""Models up to which decisions are closed transitively; beyond it the products cost more than they tell."""

Decisions = NDArray[np.bool_]


def ranking_of(benchmark: Benchmark) -> Index:
    """Order current contestants from the best mean to the worst, ties by name; one without a score comes last."""
    current = np.flatnonzero(benchmark.current()) if benchmark.contestants else np.empty(0, np.int64)
    total, scored = benchmark.total, benchmark.scored

    def place(k: int) -> tuple[float, str]:
        return (-total[k] / scored[k] if scored[k] else 1.0, benchmark.contestants[k].model)

    return np.array(sorted(current.tolist(), key=place), np.int64)


def transitive_closure(decided: Decisions) -> Decisions:
    """Add to decisions what follows from them: A over B and B over C make A over C.

    With probability 1 - alpha no family-wise decision is false, and on that event nothing that follows from them is: the closure costs
    no error. Decisions that contradict each other (a cycle) cannot all be true; they are then returned as they are.

    Parameters
    ----------
    decided : array of bool, shape (models, models)
        ``decided[i, j]``: model i is decided to be better than model j.

    Examples
    --------
    >>> transitive_closure(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool))[0].tolist()
    [False, True, True]
    """
    closed = decided
    while True:
        steps = closed.astype(np.float32)
        grown = closed | (steps @ steps > 0)
        if (grown == closed).all():
            break
        closed = grown
    return decided if closed.diagonal().any() else closed


def _decisions(table: PairTable) -> Decisions:
    """Family-wise decisions as a matrix over ranks, closed."""
    size = table.ranking.size
    place = np.empty(len(table.benchmark.contestants), np.int64)
    place[table.ranking] = np.arange(size)
    family = table.decided_anytime["anytime_family"]
    at_a, at_b = place[table.a], place[table.b]
    better = np.zeros((size, size), bool)
    better[at_a[family > 0], at_b[family > 0]] = True
    better[at_b[family < 0], at_a[family < 0]] = True
    return transitive_closure(better) if size <= CLOSURE_MODELS else better


def model_reports(table: PairTable, *, held: bool) -> list[ModelReport]:
    """Report the models by rank.

    Parameters
    ----------
    table : PairTable
    held : bool
        Whether no verdict counts: every rank is then open.
    """
    benchmark, ranking = table.benchmark, table.ranking
    size = ranking.size
    better = np.zeros((size, size), bool) if held else _decisions(table)
    low, high = rank_intervals(better)
    groups = tie_groups(np.arange(size), better)
    scored = benchmark.scored[ranking]
    total = benchmark.total[ranking] / benchmark.unit
    known = scored > 0
    mean_low, mean_high = np.full(size, np.nan), np.full(size, np.nan)
    if known.any():
        mean_low[known], mean_high[known] = mean_interval(total[known], scored[known], benchmark.spec.alpha)
    items = table.assumed_items or benchmark.spec.items or benchmark.items
    return [
        ModelReport(
            model=benchmark.contestants[k].model,
            items=int(scored[r]),
            coverage=min(1.0, scored[r] / items) if items else 0.0,
            mean=float(total[r] / scored[r]) if scored[r] else None,
            mean_low=_number(mean_low[r]),
            mean_high=_number(mean_high[r]),
            rank=r + 1,
            rank_low=int(low[r]),
            rank_high=int(high[r]),
            tie_group=int(groups[r]),
        )
        for r, k in enumerate(ranking.tolist())
    ]


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None

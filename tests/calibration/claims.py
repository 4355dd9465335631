"""False claims of a report: rank ranges and intervals that leave out what is true."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from monitor.engine.state.benchmark import Benchmark
from monitor.view.board import Flags
from monitor.view.from_state import board_view
from monitor.view.pairs.intervals import evidence_columns
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.standings import model_reports
from stats.numerics.pairs import Index
from tests.calibration.streams import Wrong

SLACK: Final = 1e-12


def excluded_ranks(benchmark: Benchmark, quality: Mapping[str, float]) -> list[Wrong]:
    """Return the rank ranges that place a model below one that is not better, or above one that is not worse."""
    found = []
    for each in model_reports(PairTable.of(board_view(benchmark))):
        others = [value for model, value in quality.items() if model != each.model]
        better = sum(value > quality[each.model] for value in others)
        worse = sum(value < quality[each.model] for value in others)
        if each.rank_low > 1 + better or each.rank_high < len(quality) - worse:
            found.append(Wrong(f"{each.model} has rank {each.rank_low} to {each.rank_high}"))
    return found


def excluded_gaps(
    benchmark: Benchmark, quality: Mapping[str, float], claim: str, some: Callable[[Index, Index], Flags]
) -> list[Wrong]:
    """Return the intervals of some pairs that leave out the true gap; `claim` is gap or gap_family.

    `some` selects pairs by the numbers of their models.
    """
    table, found = PairTable.of(board_view(benchmark)), []
    number = np.array([int(contestant.model.split("-")[1]) for contestant in benchmark.contestants])
    at = np.flatnonzero(some(number[table.pairs.a], number[table.pairs.b]))
    columns = evidence_columns(table, at)
    true = np.array([quality[contestant.model] for contestant in benchmark.contestants])
    gap = true[table.pairs.a[at]] - true[table.pairs.b[at]]
    # Where nothing is shown, nothing is claimed.
    low, high = (columns[f"{claim}_{end}"] for end in ("low", "high"))
    for k in np.flatnonzero((gap < low - SLACK) | (gap > high + SLACK)).tolist():
        a, b = (benchmark.contestants[side[at[k]]].model for side in (table.pairs.a, table.pairs.b))
        text = f"{a} is {low[k]:.4f} to {high[k]:.4f} ahead of {b}, and {gap[k]:.4f} is true"
        found.append(Wrong(text, pair=(min(a, b), max(a, b))))
    return found


def opponents(one: Index, other: Index) -> Flags:
    """Return which pairs are of two opponents: models 0 and 1, 2 and 3, and so on."""
    return np.asarray(one // 2 == other // 2)

"""What the figures of a report are drawn from: who is decided over whom, the e-process along the rows, N* beside its uncertainty."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.pairs import Index
from monitor.report.build import ReportView
from monitor.report.evidence_path import evidence_path
from monitor.report.pair_table import Floats, PairTable

POINTS: Final = 160
"""Points of a path at most: more cannot be seen."""


@dataclass(frozen=True)
class EvidenceCurve:
    """ln e of a pair after n shared items, along the rows of the score matrix."""

    n: NDArray[np.int64]
    log_e: Floats


@dataclass(frozen=True)
class PairChart:
    """What is drawn of one neighbouring pair."""

    path: EvidenceCurve
    log_threshold: float
    """ln 1/alpha_j of the pair; infinite for a pair without a place in the family."""
    anytime_required_n: float
    required_n_low: float
    required_n_high: float


@dataclass(frozen=True)
class ChartData:
    """What is drawn of one benchmark."""

    matrix: NDArray[np.int8]
    """Shape (models, models), by rank: +1 where the row's model is decided family-wise to be better, -1 where the column's is."""
    pairs: list[PairChart | None]
    """Of each neighbouring pair, in the order of ranks; None for a pair without 0/1 scores on shared items."""
    skipped: list[int]
    """Items that each model was asked and not scored on, by rank."""


def chart_data(view: ReportView) -> ChartData:
    """Compute what the figures need; only the formats that draw them pay for it."""
    table = view.table
    benchmark = table.benchmark
    size = table.ranking.size
    matrix = np.zeros((size, size), np.int8)
    if not view.void and size > 1:
        first, second = np.triu_indices(size, 1)
        sides = table.decided_anytime["anytime_family"]
        matrix[first, second], matrix[second, first] = sides, -sides
    at = np.flatnonzero(table.adjacent)
    drawn = at[table.n[at] > 0] if benchmark.binary else at[:0]
    found = dict(zip(drawn.tolist(), _pairs(table, drawn), strict=True))
    return ChartData(matrix, [found.get(q) for q in at.tolist()], benchmark.skipped[table.ranking].tolist())


def _pairs(table: PairTable, at: Index) -> list[PairChart]:
    if at.size == 0:
        return []
    from stats.bootstrap import required_n_interval
    from stats.eprocess import anytime_required_n

    spec = table.benchmark.spec
    n, wins, losses = table.n[at], table.wins[at], table.losses[at]
    low, high = required_n_interval(n, wins, losses, alpha=spec.alpha, power=spec.power)
    anytime = anytime_required_n(n, wins, losses, spec.alpha, spec.power, spec.mixture)
    columns = zip(
        (_path(table, q) for q in at.tolist()), table.log_family_threshold[at], anytime, low, high, strict=True
    )
    return [PairChart(path, *(float(x) for x in numbers)) for path, *numbers in columns]


def _path(table: PairTable, q: int) -> EvidenceCurve:
    """Follow a pair from no evidence on, along a committed order, or else the order in which the items were first seen.

    The latter is one order among many: where a path ends does not depend on it, how it gets there does.
    """
    n, log_e = evidence_path(table.benchmark, int(table.a[q]), int(table.b[q]), POINTS)
    return EvidenceCurve(np.concatenate([[0], n]), np.concatenate([[0.0], log_e]))

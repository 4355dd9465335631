"""The pairs of a live benchmark for whoever wants some of them: filtered, sorted, and reported only where they are listed."""

from collections.abc import Callable
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.pairs import Index
from monitor.report.build import gap_bounds, hold_reason, pair_rows, superseded_rows
from monitor.report.clusters import ClusterColumns, cluster_columns
from monitor.report.intervals import graded_intervals
from monitor.report.pair_table import Floats, PairTable, Sides
from monitor.report.standings import ranking_of
from monitor.report.statuses import STATUSES, settled, status_codes
from schemas.report import PairReport, Status

Sort = Literal["rank", "gap", "log_e", "resolution_ratio"]
Procedure = Literal[
    "fixed_n", "bonferroni", "holm", "benjamini_hochberg", "clustered", "anytime", "anytime_family", "e_bh"
]


class LivePairs:
    """The pairs of a benchmark as they are now; use it before the benchmark changes.

    Attributes
    ----------
    table : PairTable
        Every pair of the current models, by rank.
    hold_reason : str or None
        Why no anytime verdict counts.
    models : list of str
        By rank.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark
        self.table = PairTable(benchmark, ranking_of(benchmark))
        self.hold_reason = hold_reason(benchmark)
        self.models = [benchmark.contestants[k].model for k in self.table.ranking.tolist()]

    @cached_property
    def clusters(self) -> ClusterColumns | None:
        """What the clusters of the items change."""
        return cluster_columns(self.table, np.arange(self.table.pair.size))

    @cached_property
    def statuses(self) -> NDArray[np.int8]:
        """Index into `STATUSES` of each pair, the status that `report` gives it."""
        return status_codes(self.table, np.arange(self.table.pair.size), self.hold_reason, *self._family_bounds())

    def with_status(self, status: Status) -> NDArray[np.bool_]:
        """Say for each pair whether it has a status."""
        return np.asarray(self.statuses == STATUSES.index(status))

    @property
    def _void(self) -> bool:
        """Whether decisions that were made do not count."""
        return self.hold_reason is not None and not self.benchmark.standing

    def _family_bounds(self) -> tuple[Floats, Floats]:
        """Bounds of the gap at alpha_j of the pairs that they may show to be equivalent; nan elsewhere."""
        table, margin = self.table, self.benchmark.spec.margin
        low, high = np.full(table.pair.size, np.nan), np.full(table.pair.size, np.nan)
        if margin is None or self.hold_reason is not None or not table.bets:
            return low, high
        near = settled(table, np.arange(table.pair.size)) & np.isfinite(table.log_family_threshold) & (table.n > 0)
        if self.benchmark.binary:
            n, b, c, _, _ = table.evidence
            near &= np.abs(b - c) < margin * n  # the interval holds the gap that it is an interval of
        at = np.flatnonzero(near)
        threshold = table.log_family_threshold[at]
        if self.benchmark.binary:
            low[at], high[at] = gap_bounds(table, at, np.exp(-threshold))
        else:
            bounds = graded_intervals(table, at, threshold)
            low[at], high[at] = bounds["gap_family_low"], bounds["gap_family_high"]
        return low, high

    def sides(self, procedure: Procedure) -> Sides:
        """Which of each pair a procedure decides to be better; all 0 where it is not computed, or does not count."""
        table = self.table
        none = np.zeros(table.pair.size, np.int8)
        if procedure == "clustered":
            return none if self.clusters is None else self.clusters.decided
        if procedure in {"anytime", "anytime_family"}:
            return none if self._void else table.decided_anytime[procedure]
        if procedure == "e_bh":
            return table.decided_e_bh if table.bets and self.hold_reason is None else none
        return table.decided_fixed[procedure]

    def place(self, model: str) -> int | None:
        """0-based rank of a model, or None if there is none of that name."""
        return self.models.index(model) if model in self.models else None

    def of_model(self, model: str) -> NDArray[np.bool_]:
        """Say for each pair whether a model is one of the two."""
        place = self.place(model)
        if place is None:
            return np.zeros(self.table.pair.size, bool)
        contestant = self.table.ranking[place]
        return np.asarray((self.table.a == contestant) | (self.table.b == contestant))

    def sort(self, listed: Index, by: Sort, *, descending: bool) -> Index:
        """Sort pairs; those without a number come last, equal ones by rank."""
        keys: dict[Sort, Callable[[], NDArray[np.float64]]] = {
            "rank": lambda: np.arange(self.table.pair.size, dtype=np.float64),
            "gap": lambda: np.where(self.table.n > 0, self.table.moments[0], np.nan),
            "log_e": self._log_e,
            "resolution_ratio": self._resolution_ratio,
        }
        key = keys[by]()[listed]
        return listed[np.argsort(-key if descending else key, kind="stable")]

    def _log_e(self) -> NDArray[np.float64]:
        if not self.table.bets:
            return np.full(self.table.pair.size, np.nan)
        return np.where(self.table.n > 0, self.table.log_e, np.nan)

    def _resolution_ratio(self) -> NDArray[np.float64]:
        n, n_star = self.table.n, self.table.n_star
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((n > 0) & (n_star > 0), n / n_star, np.nan)

    def rows(self, listed: Index) -> list[PairReport]:
        """Report pairs, in the order given."""
        return pair_rows(self.table, self.clusters or cluster_columns(self.table, listed), listed, self.hold_reason)

    def superseded(self) -> list[PairReport]:
        """Report the pairs of older epochs that were decided."""
        return superseded_rows(self.benchmark, self.table.ranking, self.hold_reason)

    def decided_matrix(self) -> NDArray[np.int8]:
        """Family-wise decisions over ranks, shape (models, models): +1 where the row is better than the column, -1 where it is worse."""
        return self._matrix(self.sides("anytime_family"), -1)

    def status_matrix(self) -> NDArray[np.int8]:
        """Index into `STATUSES` over ranks, shape (models, models); -1 on the diagonal."""
        matrix = self._matrix(self.statuses, 1)
        np.fill_diagonal(matrix, -1)
        return matrix

    def _matrix(self, values: NDArray[np.int8], sign: int) -> NDArray[np.int8]:
        size = len(self.models)
        matrix = np.zeros((size, size), np.int8)
        upper = np.triu_indices(size, 1)
        matrix[upper] = values
        matrix.T[upper] = sign * values
        return matrix

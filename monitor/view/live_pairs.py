"""The pairs of a live benchmark: filtered, sorted, and reported where they are displayed."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import BoardView, Flags, Floats, Sides
from monitor.view.items.hardness import ItemColumns, item_columns
from monitor.view.pairs.clusters import cluster_columns, required_n_by_procedure
from monitor.view.pairs.intervals import least_wins, pair_board
from monitor.view.pairs.rows import STATUSES, pair_rows, status_codes, superseded_rows
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.moments import VerdictTimes
from monitor.words.pair_page import pair_words
from schemas.results.report import PairReport, Status
from stats.numerics.pairs import Index

Sort = Literal["rank", "gap", "log_e", "resolution_ratio"]
Procedure = Literal[
    "fixed_n", "bonferroni", "holm", "benjamini_hochberg", "clustered", "anytime", "anytime_family", "e_bh"
]


class LivePairs:
    """The current pairs of a benchmark; use it before the benchmark changes."""

    def __init__(self, benchmark: BoardView) -> None:
        self.benchmark = benchmark
        self.table = PairTable(benchmark)
        self.models = [benchmark.contestants[k].model for k in self.table.ranking.tolist()]

    @property
    def hold_reason(self) -> str | None:
        """Why no further anytime verdict is given, or None."""
        return self.table.hold_reason

    @cached_property
    def items(self) -> ItemColumns:
        """Every item, over all models."""
        return item_columns(self.table.benchmark, self.table.ranking)

    @cached_property
    def statuses(self) -> NDArray[np.int8]:
        """Status of each pair, as an index into `STATUSES`."""
        return status_codes(self.table, np.arange(self.table.pairs.size))

    @cached_property
    def verdict_times(self) -> VerdictTimes:
        """When each verdict fell."""
        return VerdictTimes.of(self.table)

    def with_status(self, status: Status) -> Flags:
        """Return which pairs have a status."""
        return np.asarray(self.statuses == STATUSES.index(status))

    def sides(self, procedure: Procedure) -> Sides:
        """Return the side that a procedure decides for each pair; all 0 where it is not computed, or does not count."""
        if procedure == "clustered":
            clusters = cluster_columns(self.table, np.zeros(0, np.int64))
            sides = clusters.decided if clusters is not None else None
        else:
            sides = self.table.decided(procedure)
        return np.zeros(self.table.pairs.size, np.int8) if sides is None else sides

    def place(self, model: str) -> int | None:
        """Return the 0-based rank of a model, or None if there is no such model."""
        return self.models.index(model) if model in self.models else None

    def of_model(self, model: str) -> Flags:
        """Return which pairs a model is in."""
        place = self.place(model)
        if place is None:
            return np.zeros(self.table.pairs.size, bool)
        contestant = self.table.ranking[place]
        return np.asarray((self.table.pairs.a == contestant) | (self.table.pairs.b == contestant))

    def sort(self, displayed: Index, by: Sort, *, descending: bool) -> Index:
        """Sort pairs; pairs without a value come last, equal ones by rank."""
        table = self.table
        blank = np.full(table.pairs.size, np.nan)
        keys: dict[Sort, Callable[[], Floats]] = {
            "rank": lambda: np.arange(table.pairs.size, dtype=np.float64),
            "gap": lambda: np.where(table.pairs.n > 0, table.kind.moments[0], np.nan),
            "log_e": lambda: np.where(table.pairs.n > 0, table.kind.log_e, np.nan) if table.kind.bets else blank,
            "resolution_ratio": lambda: table.kind.resolution_ratio,
        }
        key = keys[by]()[displayed]
        return displayed[np.argsort(-key if descending else key, kind="stable")]

    def rows(self, displayed: Index) -> list[PairReport]:
        """Report pairs, in the order given."""
        clusters = cluster_columns(self.table, displayed)
        needed = required_n_by_procedure(self.table, clusters, displayed)
        return pair_rows(self.table, clusters, needed, displayed)

    def of_page(self, at: Index) -> dict[str, Any]:
        """Return what the page of a pair needs besides its path: what is missing, the lead that decides, and the words."""
        least, missing = least_wins(self.table, int(at[0])), self.table.pairs.counted_missing
        (pair,) = self.rows(at)
        differing = sum(own for (own,) in self.table.kind.counts(at) if own is not None)
        return {
            "missing": None if missing is None else int(missing[at[0]]),
            "lead_needed": None if least is None else 2 * least - differing,
            "words": pair_words(pair, pair_board(self.table), least),
        }

    def superseded(self) -> list[PairReport]:
        """Report the pairs of older epochs that were decided."""
        return superseded_rows(self.benchmark)

    def decided_matrix(self) -> NDArray[np.int8]:
        """Return family-wise decisions over ranks, shape (models, models): +1 where the row is better than the column, -1 where worse."""
        sides = self.sides("anytime_family")
        return self.table.pairs.matrix(sides, -sides)

    def status_matrix(self) -> NDArray[np.int8]:
        """Return an index into `STATUSES` over ranks, shape (models, models); -1 on the diagonal."""
        matrix = self.table.pairs.matrix(self.statuses, self.statuses)
        np.fill_diagonal(matrix, -1)
        return matrix

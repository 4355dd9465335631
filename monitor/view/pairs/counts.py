"""The pairs of a leaderboard: who is compared, on how many items, and what is missing."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import BoardView
from schemas.records.scores import SCORE_UNIT
from stats.numerics.pairs import Index, pair_index, ranked_pairs

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Sides = NDArray[np.int8]  # +1: model_a is decided to be better; -1: model_b; 0: undecided

ALL = slice(None)


@dataclass
class PairCounts:
    """Counts of every pair of the models of a ranking, or of the older epochs of two models; a is the better-ranked of the two."""

    drawn: BoardView  # the board that is shown; `benchmark` is the one whose items describe it
    ranking: Index
    assumed_items: int | None = None
    superseded: tuple[Index, Index] | None = None
    a: Index = field(init=False)
    b: Index = field(init=False)
    adjacent: Flags = field(init=False)
    listed = 0
    """Pairs of the list that is made part by part: what is not computed for a long list is not computed for its parts."""

    def __post_init__(self) -> None:
        self.benchmark = self.drawn.described()
        if self.superseded is not None:
            self.a, self.b = self.superseded
            self.adjacent = np.zeros(self.a.size, bool)
            return
        first, second = ranked_pairs(self.ranking.size)
        self.a, self.b = self.ranking[first], self.ranking[second]
        self.adjacent = second == first + 1

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return self.a.size

    @property
    def asserted(self) -> bool:
        """Whether the items read are taken as the whole benchmark."""
        return self.assumed_items is not None

    @cached_property
    def pair(self) -> Index:
        """Index of each pair in the state."""
        return pair_index(np.minimum(self.a, self.b), np.maximum(self.a, self.b))

    @cached_property
    def flip(self) -> Flags:
        """Whether a is the second contestant of the pair in the state."""
        return np.asarray(self.a > self.b)

    @cached_property
    def n(self) -> Index:
        """Shared items."""
        return self.benchmark.sums().n[self.pair].astype(np.int64)

    @cached_property
    def wins(self) -> Index:
        """Items that only a has right."""
        return np.where(self.flip, self.benchmark.sums().c[self.pair], self.benchmark.sums().b[self.pair]).astype(
            np.int64
        )

    @cached_property
    def losses(self) -> Index:
        """Items that only b has right."""
        return np.where(self.flip, self.benchmark.sums().b[self.pair], self.benchmark.sums().c[self.pair]).astype(
            np.int64
        )

    @property
    def completes(self) -> bool:
        """Whether verdicts are about all items of the benchmark, in any order: policy completion, or complete files."""
        return self.asserted or self.benchmark.spec.order.policy == "completion"

    @cached_property
    def missing(self) -> Index | None:
        """Items that a pair does not share yet; of a committed order, items after its prefix. None where their number is not known."""
        if self.benchmark.committed is not None:
            return self.benchmark.committed.size - self.benchmark.committed.prefix(self.a, self.b)
        items = self.assumed_items if self.assumed_items is not None else self.benchmark.spec.items
        if not self.asserted and self.benchmark.order_trusted and self.benchmark.too_many_items:
            return None
        return None if items is None else np.maximum(items - self.n, 0)

    @cached_property
    def ended(self) -> Flags:
        """Whether the runs of both models have ended; files that are taken as complete hold whole runs."""
        if self.asserted:
            return np.ones(self.size, bool)
        flags = self.benchmark.ended_flags()
        return flags[self.a] & flags[self.b]

    @cached_property
    def ignored(self) -> Index:
        """Missing items of pairs of ended runs that the declaration ignores; 0 elsewhere."""
        spec = self.benchmark.spec
        if self.missing is None or spec.missing == "worst" or (spec.order.policy == "trusted" and not self.asserted):
            return np.zeros(self.size, np.int64)
        lacking = self.missing if spec.items is None else np.maximum(spec.items - self.n, 0)
        return np.where(self.ended, lacking, 0)

    @cached_property
    def counted_missing(self) -> Index | None:
        """Missing items that are not ignored."""
        return None if self.missing is None else np.where(self.ignored > 0, 0, self.missing)

    @property
    def known(self) -> bool:
        """Whether what one model scored bounds what the pair lacks of the other: where 0/1 scores of all items decide; see `Spec.known`."""
        whole = self.completes and self.benchmark.committed is None and self.benchmark.battles is None
        return whole and self.benchmark.binary and (self.asserted or self.benchmark.spec.known)

    @cached_property
    def threats(self) -> tuple[Index, Index]:
        """Missing items that may still go against a, and those that may go against b, ignored ones among them."""
        assert self.missing is not None
        if not self.known:
            return self.missing, self.missing
        wrong, right = self.benchmark.scored - (total := self.benchmark.total // SCORE_UNIT), total
        items, lead = self.n + self.missing, self.wins - self.losses
        against_a = items - right[self.a] - wrong[self.b] + lead
        against_b = items - right[self.b] - wrong[self.a] - lead
        return np.clip(against_a, 0, self.missing), np.clip(against_b, 0, self.missing)

    @cached_property
    def exposed(self) -> Index:
        """Missing items that may still go against the leader, ignored ones among them."""
        (for_a, for_b), lead = self.threats, self.wins - self.losses
        return np.where(lead > 0, for_a, np.where(lead < 0, for_b, np.maximum(for_a, for_b)))

    @cached_property
    def at_risk(self) -> Index:
        """Missing items that verdicts count against the leader."""
        return np.where(self.ignored > 0, 0, self.exposed)

    @cached_property
    def left(self) -> Index | None:
        """Items that may still come."""
        return None if self.missing is None else np.where(self.ended, 0, self.missing)

    @cached_property
    def complete(self) -> Flags:
        """Whether no item is missing."""
        return np.zeros(self.size, bool) if self.missing is None else self.missing == 0

    def matrix(self, upper: NDArray[Any], lower: NDArray[Any]) -> NDArray[Any]:
        """Arrange values of the pairs by rank, shape (models, models): `upper` at (a, b), `lower` at (b, a), 0 on the diagonal."""
        models, start = self.ranking.size, 0
        matrix = np.zeros((models, models), upper.dtype)
        for rank in range(models - 1):
            end = start + models - 1 - rank
            matrix[rank, rank + 1 :] = upper[start:end]
            matrix[rank + 1 :, rank] = lower[start:end]
            start = end
        return matrix


def json_numbers(values: NDArray[Any]) -> list[float | None]:
    """Return numbers as JSON has them: None where there is no finite number."""
    finite = np.isfinite(values)
    listed: list[float | None] = values.tolist()
    for place in np.flatnonzero(~finite).tolist():
        listed[place] = None
    return listed

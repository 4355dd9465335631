"""Pairs of graded scores, and of clusters with weights: the log capital of every bet, in fixed point.

Each bet has one whole number, so that no chunking, order or restart changes it. An item of a cluster with a weight enters the bets with its
difference times u_k = v_k / max v (`stats.clusters.weighted`), in units of `SCORE_UNIT`: whole numbers too.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Codes, Counts, grown
from schemas.records.declaration import Spec, Weights
from schemas.records.scores import ONE, SCORE_UNIT, ZERO, RowKey
from schemas.records.text import shorten
from stats.clusters.weighted import bet_scales
from stats.evidence.graded import LAMBDAS, histogram_capital, initial_capital, log_increments
from stats.numerics.pairs import Index, pair_count

BETS: Final = 2 * len(LAMBDAS)
_NAMED: Final = 5
_SLAB_CELLS: Final = 2_000_000
_SPARE: Final = 1 / 4
"""Of a capital that grows: copying it takes long, and spare rows take no memory before they are used."""

Capital = NDArray[np.int64]
Differences = NDArray[np.int64]  # D in units of `SCORE_UNIT`, shape (pairs, items)


class GradedPairs:
    """Capital and lead of each pair, in the order of pair indices."""

    ROUNDING = 2
    """Units by which rounding moves the lead at most with each item: every score is rounded, and the mean of repeats once more."""

    def __init__(self) -> None:
        self.capital = initial_capital((0,))  # shape (pairs, 2, L), see `stats.evidence.graded`: 832 bytes a pair
        self.lead = np.zeros(0, np.int64)  # sum of D in units of `SCORE_UNIT`

    def grow(self, contestants: int) -> None:
        """Make room for the pairs of all contestants."""
        pairs = pair_count(contestants)
        self.capital = grown(self.capital, pairs, *self.capital.shape[1:], spare=_SPARE)
        self.lead = grown(self.lead, pairs)

    def rebuild(self, codes: Codes, values: NDArray[np.int64], i: Index, j: Index) -> None:
        """Compute the state from a whole matrix of items."""
        self.capital, self.lead = capital_of(codes, values, i, j)

    def bets(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the loop that weights change; see `monitor.engine.loop.layout.Bets`."""
        none, shared = np.zeros(0, np.int64), np.zeros((0, 0), np.int32)
        return {"cluster": none, "share": np.zeros(0), "size": none, "most": np.full(1, SCORE_UNIT), "shared": shared}

    def add(self, pair: Index, difference: Index) -> None:
        """Add items, each with its pair and D in units of `SCORE_UNIT`."""
        if not pair.size:
            return
        pairs, place = np.unique(pair, return_inverse=True)
        distinct, kind = np.unique(difference, return_inverse=True)
        np.add.at(self.lead, pair, difference)
        counts = np.zeros((pairs.size, distinct.size), np.int64)
        np.add.at(counts, (place, kind), 1)
        self.capital[pairs] += histogram_capital(distinct / SCORE_UNIT, counts)


def capital_gained(differences: Differences) -> Capital:
    """Add up the log increments of items by pair, shape (pairs, 2, L). Where a pair does not share an item its difference is 0."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - only graded scores need it

    pair, item = np.nonzero(differences)
    distinct, index = np.unique(np.append(differences[pair, item], 0), return_inverse=True)
    steps = log_increments(distinct / SCORE_UNIT).reshape(distinct.size, BETS)
    counts = csr_array((np.ones(pair.size, np.int64), (pair, index[:-1])), shape=(differences.shape[0], distinct.size))
    return np.asarray(counts @ steps).reshape(differences.shape[0], 2, len(LAMBDAS))


def capital_of(
    codes: Codes,
    values: NDArray[np.int64],
    i: Index,
    j: Index,
    weigh: Callable[[Differences, slice], Differences] | None = None,
) -> tuple[Capital, Differences]:
    """Return capital and lead of pairs from a whole matrix of items; `weigh` turns differences of items into those that bet."""
    capital, lead = initial_capital((i.size,)), np.zeros(i.size, np.int64)
    step = max(1, _SLAB_CELLS // max(1, codes.shape[0]))
    for start in range(0, i.size, step):
        some = slice(start, start + step)
        differences = differences_of(codes[:, i[some]].T, codes[:, j[some]].T, values)
        if weigh is not None:
            differences = weigh(differences, slice(None))
        capital[some] = capital_gained(differences)
        lead[some] = differences.sum(axis=1)
    return capital, lead


def differences_of(first: Codes, second: Codes, values: NDArray[np.int64]) -> Differences:
    """Return D of shared items and 0 elsewhere, shape (pairs, items), from codes of that shape."""
    return np.where((first >= ZERO) & (second >= ZERO), values[first] - values[second], 0)


# --- clusters with weights ----------------------------------------------------------------------------------------------------------------


def weight_of(weights: Weights, name: str) -> float:
    """Return the declared weight of a cluster, before weights are divided by their sum."""
    return 1.0 if isinstance(weights, str) else weights[name]


def unweighted_reason(spec: Spec, cluster: str | None) -> str | None:
    """Return why an item of a cluster has no weight under a declaration with weights, and what to do; None if it has one."""
    if cluster is None:
        return "the item has no cluster, and weights count each cluster; send its cluster (for files: --cluster FIELD)"
    known = spec.clusters if isinstance(spec.weights, str) else spec.weights
    if known is None or cluster in known:
        return None
    names = ", ".join(map(shorten, list(known)[:_NAMED])) + (", ..." if len(known) > _NAMED else "")
    return f"cluster {shorten(cluster)} has no weight; correct it, or declare a weight for it ({names} have one)"


class Weighting:
    """The clusters of a benchmark by name, their weights and sizes, and the cluster of each item."""

    def __init__(self, weights: Weights, sizes: dict[str, int]) -> None:
        self.names = sorted(sizes)
        self.size = np.array([sizes[name] for name in self.names], np.int64)
        declared = np.array([weight_of(weights, name) for name in self.names])
        self.weight = declared / declared.sum()
        scales, self.largest = bet_scales(self.weight, self.size)
        self.unit = np.rint(scales * SCORE_UNIT).astype(np.int64)
        self.most = self.unit + 1  # what an item can move the lead by, rounded up: even the smallest weight leaves room
        self.worst = log_increments(-self.unit / SCORE_UNIT)[:, 0]  # shape (clusters, L)
        self._place = {name: k for k, name in enumerate(self.names)}
        self._cluster = np.zeros(0, np.int64)
        self._items = 0
        self.count = np.zeros(len(self.names), np.int64)  # items of each cluster so far
        self.exceeded = ""  # the first cluster with more items than declared; empty without one

    @classmethod
    def of(cls, spec: Spec) -> "Weighting | None":
        """Return the declared weights, where the sizes of the clusters are declared too."""
        return None if spec.weights is None or spec.clusters is None else cls(spec.weights, spec.clusters)

    def enter(self, keys: Sequence[RowKey]) -> None:
        """Look up the clusters of new items; `keys` are those of all items."""
        self._cluster = grown(self._cluster, len(keys))
        for item in range(self._items, len(keys)):
            place = self._place[keys[item].cluster or ""]
            self._cluster[item] = place
            self.count[place] += 1
            if self.count[place] > self.size[place] and not self.exceeded:
                self.exceeded = self.names[place]
        self._items = len(keys)

    @property
    def cluster(self) -> Index:
        """The cluster of each item."""
        return self._cluster[: self._items]

    def weigh(self, differences: Differences, items: Index | slice) -> Differences:
        """Return differences of items, shape (pairs, items), as they enter the bets."""
        share = self.unit[self.cluster[items]] / SCORE_UNIT
        return np.rint(differences * share).astype(np.int64)

    def counted(self, joined: NDArray[np.bool_]) -> Counts:
        """Count the items of each pair by cluster, shape (pairs, clusters), from which of them it shares."""
        of_cluster = (self.cluster[:, None] == np.arange(len(self.names))).astype(np.float32)
        # Exact: fewer than 2^24 items in a slab.
        return np.asarray(joined.astype(np.float32) @ of_cluster).astype(np.int32)

    def lost(self, shared: Counts) -> NDArray[np.int64]:
        """Return the log increments of what is missing at its worst, shape (pairs, 1, L), from the shared items by cluster."""
        left = np.maximum(self.size - shared, 0)
        return np.asarray(left @ self.worst)[..., None, :]

    def room(self, shared: Counts) -> NDArray[np.int64]:
        """Return how far missing items can move the lead of pairs, in units, from their shared items by cluster."""
        return np.asarray(np.maximum(self.size - shared, 0) @ self.most)

    def pairs_of(
        self, codes: Codes, values: NDArray[np.int64], i: Index, j: Index
    ) -> tuple[Capital, NDArray[np.int64], Counts]:
        """Return capital, lead, and shared items by cluster of pairs from a whole matrix of items."""
        shared, wins, losses = np.zeros((3, i.size, len(self.names)), np.int64)
        contestants, of = np.unique(np.concatenate([i, j]), return_inverse=True)
        a, b = of[: i.size], of[i.size :]
        for k in range(len(self.names)):
            some = codes[np.flatnonzero(self.cluster == k)][:, contestants]
            scored, right = (some >= ZERO).astype(np.float64), (some == ONE).astype(np.float64)
            met, only = scored.T @ scored, right.T @ (scored - right)
            shared[:, k], wins[:, k], losses[:, k] = met[a, b], only[a, b], only[b, a]
        if codes.max(initial=0) <= ONE:  # scores of 0 and 1: every item of a cluster adds one of two increments
            capital = wins @ self._increments(1) + losses @ self._increments(-1)
            return capital.reshape(-1, 2, len(LAMBDAS)), (wins - losses) @ self.unit, shared.astype(np.int32)
        capital, lead = capital_of(codes, values, i, j, weigh=self.weigh)
        return capital, lead, shared.astype(np.int32)

    def _increments(self, side: int) -> NDArray[np.int64]:
        """Return the log increments of an item on which only the first (1) or the second (-1) model is right, shape (clusters, bets)."""
        return log_increments(side * self.unit / SCORE_UNIT).reshape(self.unit.size, BETS)


class WeightedPairs(GradedPairs):
    """Capital and lead of each pair on weighted differences, and its shared items by cluster."""

    ROUNDING = 3  # as for any graded scores, and the weight and its product are rounded too

    def __init__(self, weighting: Weighting) -> None:
        super().__init__()
        self.weighting = weighting
        self.shared = np.zeros((0, len(weighting.names)), np.int32)

    def grow(self, contestants: int) -> None:
        """Make room for the pairs of all contestants."""
        super().grow(contestants)
        self.shared = grown(self.shared, pair_count(contestants), self.shared.shape[1])

    def rebuild(self, codes: Codes, values: NDArray[np.int64], i: Index, j: Index) -> None:
        """Compute the state from a whole matrix of items."""
        self.capital, self.lead, self.shared = self.weighting.pairs_of(codes, values, i, j)

    def bets(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the loop that weights change."""
        w, worst = self.weighting, np.ascontiguousarray(self.weighting.worst)
        return {"shared": self.shared, "share": w.unit / SCORE_UNIT, "size": w.size, "most": w.most, "worst": worst}

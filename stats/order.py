"""The order in which items arrive: committed permutations, and a diagnostic of trusted orders.

Nothing here reads a score. A committed permutation is a function of a seed and the item ids alone (`committed_order`);
the algorithm and its test vectors are in docs/how-to/committed-order.md. The diagnostic (`order_diagnostic`, `OrderState`)
tests whether a model's items arrived in an exchangeable order, with respect to their clusters and their place in the
benchmark. It can refute a trusted order and never confirm one: outcome-dependent delay leaves no trace in it.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.numerics.checks import FloatArray, IntArray, aligned, finite, level, non_negative
from stats.numerics.special import betainc, stdtr

_NUMBER = re.compile(r"([0-9]+)")
FIRST_LOOK = 32
"""Items of a model at the first look of the diagnostic; every later look has twice as many."""


def permutation_key(seed: str, item_id: str) -> bytes:
    """Return the sort key of an item in the committed order: SHA-256 of seed, a zero byte and item id, in UTF-8 (32 bytes).

    Raises
    ------
    ValueError
        For a seed with a zero character (two seeds could then give one order), or text that UTF-8 cannot encode.

    Examples
    --------
    >>> permutation_key("2026-leaderboard", "item-1").hex()[:16]
    '110fade31f03356b'
    """
    if "\0" in seed:
        raise ValueError("seed must not contain the zero character: it separates the seed from the item id")
    try:
        return hashlib.sha256(f"{seed}\0{item_id}".encode()).digest()
    except UnicodeEncodeError as error:
        raise ValueError(f"seed and item_id must be encodable as UTF-8: {error}") from None


def committed_order(seed: str, item_ids: Sequence[str]) -> IntArray:
    """Return the permutation of the items that the seed commits to: indices into item_ids, first item first.

    Items are sorted by `permutation_key`, bytes compared as unsigned numbers; so the order of a subset is the order of
    the whole without the others, and does not depend on how item_ids is sorted. Unpredictable without the seed.

    Examples
    --------
    >>> committed_order("2026-leaderboard", ["item-3", "item-1", "item-5"]).tolist()
    [1, 2, 0]
    """
    _distinct(item_ids)
    keys = [permutation_key(seed, item) for item in item_ids]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def committed_items(seed: str, item_ids: Sequence[str], unit_of: Mapping[str, str] | None = None) -> list[str]:
    """Return the items in the committed order of their units; those of a unit together, as listed. An item of no unit is one on its own.

    Examples
    --------
    >>> committed_items("2026-leaderboard", ["item-3", "item-1", "item-5"])
    ['item-1', 'item-5', 'item-3']
    >>> committed_items("2026-leaderboard", ["a", "item-1", "b"], {"a": "item-3", "b": "item-3"})
    ['item-1', 'a', 'b']
    """
    members: dict[str, list[str]] = {}
    for item in item_ids:
        members.setdefault((unit_of or {}).get(item, item), []).append(item)
    units = list(members)
    return [item for place in committed_order(seed, units).tolist() for item in members[units[place]]]


def item_places(item_ids: Sequence[str]) -> IntArray:
    """Return the place of each item in the natural order of the ids ("q2" before "q10"): what arrival is correlated with.

    It is a function of the ids alone, not of the order in which they are listed. So a file that is read from its start is found as long as
    its ids count up, and a list in random run order, whose items arrive as listed, stays unsuspected: its own order is no evidence.

    Examples
    --------
    >>> item_places(["q10", "q2", "q1"]).tolist()
    [2, 1, 0]
    """
    _distinct(item_ids)
    keys = [(_natural_key(item), item) for item in item_ids]
    places = np.empty(len(keys), dtype=np.int64)
    places[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return places


def _natural_key(item_id: str) -> tuple[str | tuple[int, str], ...]:
    """Return text and numbers in turn, numbers as their length and digits."""
    parts = _NUMBER.split(item_id)
    return tuple((len(part.lstrip("0")), part.lstrip("0")) if k % 2 else part for k, part in enumerate(parts))


def _distinct(item_ids: Sequence[str]) -> None:
    if len(set(item_ids)) != len(item_ids):
        ordered = sorted(item_ids)
        twice = next(a for a, b in pairwise(ordered) if a == b)
        raise ValueError(f"item_ids must be distinct: {twice!r} occurs twice")


def succession_p(successions: ArrayLike, same: ArrayLike, like_pairs: ArrayLike) -> FloatArray:
    """Return the one-sided p-value that same-cluster successions are no more frequent than in an exchangeable order.

    Given the clusters of n items, a random order puts two of one cluster next to each other with probability
    pi = sum_g n_g (n_g - 1) / (n (n - 1)), so same-cluster successions have mean (n - 1) pi exactly. The tail is taken
    from Binomial(n - 1, pi): for large n its variance is that of the permutation distribution when clusters are equal,
    and above it when they are not, so the p-value errs on the safe side.

    Parameters
    ----------
    successions
        n - 1, the pairs of consecutive items.
    same
        those among them whose two items share a cluster.
    like_pairs
        sum_g n_g (n_g - 1) / 2, the pairs of items that share a cluster.

    Examples
    --------
    >>> round(float(succession_p(7, 6, 12)), 4)  # eight items of two clusters, in two blocks
    0.0274
    """
    m, r, like = non_negative(successions=successions, same=same, like_pairs=like_pairs)
    pi = np.minimum(2 * like / np.maximum(m * (m + 1), 1), 1)
    return np.where(r > 0, betainc(np.maximum(r, 1), np.maximum(m - r, 0) + 1, pi), 1.0)


def rank_correlation_p(n: ArrayLike, correlation: ArrayLike) -> FloatArray:
    """Return the two-sided p-value of the correlation of arrival with item position: t with n - 2 degrees of freedom.

    For ranks this is the usual approximation to the permutation distribution of Spearman's rho.

    Examples
    --------
    >>> round(float(rank_correlation_p(32, 0.5)), 5)
    0.00357
    """
    aligned(n=n, correlation=correlation)
    (size,), (r,) = non_negative(n=n), finite(correlation=correlation)
    r = np.clip(r, -1, 1)  # rounding may take a perfect correlation beyond 1
    free = np.maximum(size - 2, 1)
    with np.errstate(divide="ignore"):
        t = np.abs(r) * np.sqrt(free / (1 - r * r))
    return np.where(size > 2, 2 * stdtr(free, -t), 1.0)


def arrival_correlation(n: ArrayLike, position: ArrayLike, square: ArrayLike, moment: ArrayLike) -> FloatArray:
    """Return the correlation of arrival (1, ..., n) with item position; 0 where positions do not vary.

    Parameters
    ----------
    n
        items of a model.
    position, square, moment
        sums over them of x, of x^2 and of t x: position x of the item that arrived as number t.

    Examples
    --------
    >>> round(float(arrival_correlation(4, 6, 14, 20)), 6)  # positions 0, 1, 2, 3 in this order
    1.0
    """
    (size,), (x, xx, tx) = non_negative(n=n), finite(position=position, square=square, moment=moment)
    size = np.maximum(size, 1)
    scatter = (xx - x * x / size) * (size**3 - size) / 12
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scatter > 0, (tx - x * (size + 1) / 2) / np.sqrt(scatter), 0.0)


def order_test(
    models: ArrayLike, items: ArrayLike, same: ArrayLike, like_pairs: ArrayLike, correlation: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return p-values of models at a look, corrected for all models, all looks and both tests.

    Look k of model j (both from 1) has the share 1 / (2 j (j+1) k (k+1)) of alpha in each test; all shares sum to 1.

    Parameters
    ----------
    models
        model index, registration order from 0.
    items
        items of the model at the look: `FIRST_LOOK` times a power of 2.
    same, like_pairs
        see `succession_p`.
    correlation
        of arrival with item position, 0 where there is none.

    Returns
    -------
    tuple of ndarray
        of the cluster successions, and of the item positions; compare each with alpha.

    Examples
    --------
    >>> [round(float(p), 4) for p in order_test(0, 32, 20, 150, 0.5)]
    [0.0007, 0.0285]
    """
    n, factor = np.asarray(items, np.float64), inverse_share(models, items)
    return succession_p(n - 1, same, like_pairs) * factor, rank_correlation_p(n, correlation) * factor


def inverse_share(models: ArrayLike, items: ArrayLike) -> FloatArray:
    """Return the factor on a p-value at a look in `order_test`: the inverse of its share of alpha.

    Examples
    --------
    >>> float(inverse_share(0, 32)), float(inverse_share(1, 64))
    (8.0, 72.0)
    """
    (j,), n = non_negative(models=models), np.asarray(items, np.float64)
    look = np.log2(n / FIRST_LOOK) + 1
    return np.asarray(2.0 * (j + 1) * (j + 2) * look * (look + 1))


class OrderFinding(NamedTuple):
    """The strongest evidence against an exchangeable order."""

    p_value: float
    """Smallest p-value so far, corrected for all models, looks and both tests; valid however often it is read."""
    suspect: bool
    """p_value <= alpha."""
    statistic: str
    """ "cluster successions" or "item position"; empty while no model has reached the first look."""
    model: int
    """Index of the model concerned, -1 for none."""
    items: int
    """Items of that model at the look."""
    observed: float
    """Same-cluster successions, or the correlation of arrival with position."""
    expected: float
    """The mean of `observed` under an exchangeable order."""


_NOTHING = OrderFinding(1.0, suspect=False, statistic="", model=-1, items=0, observed=0.0, expected=0.0)


class OrderState:
    """Running state of the diagnostic of one benchmark: O(1) a record, O(models x clusters) of memory.

    Each model is looked at when it has 32, 64, 128, ... items, for any chunking. Look k of model j
    (both from 1) has the share alpha / (2 j (j+1) k (k+1)) for each of two tests. All shares sum to alpha, so over the
    whole life of a benchmark the probability of suspecting an exchangeable order is at most alpha, under any dependence
    between models. Contiguous clusters are found at the first look that sees enough of the second cluster.

    The arrays are the whole state (a row a model), so storing them and setting them again resumes it.

    Parameters
    ----------
    alpha
        error rate of `finding.suspect`.

    Examples
    --------
    >>> state = OrderState()
    >>> state.update([0] * 64, [0] * 20 + [1] * 44)
    >>> state.finding.suspect, state.finding.statistic, state.finding.items
    (True, 'cluster successions', 64)
    """

    def __init__(self, alpha: float = 0.01) -> None:
        level(alpha=alpha)
        self.alpha = alpha
        self.finding = _NOTHING
        self.seen: IntArray = np.zeros(0, dtype=np.int64)
        self.last: IntArray = np.zeros(0, dtype=np.int64)
        self.same: IntArray = np.zeros(0, dtype=np.int64)
        self.like_pairs: IntArray = np.zeros(0, dtype=np.int64)
        self.counts: NDArray[np.int32] = np.zeros((0, 1), dtype=np.int32)
        self.position: FloatArray = np.zeros((3, 0))  # sums of x, x^2 and t x: position x, arrival t

    def update(self, models: ArrayLike, clusters: ArrayLike, positions: ArrayLike | None = None) -> None:
        """Fold records in arrival order, each (model, item) once.

        Parameters
        ----------
        models
            model index of each record, shape (E,), registration order from 0.
        clusters
            cluster index of each record's item, shape (E,); -1 for an item without one.
        positions
            place of each record's item in the benchmark, shape (E,), such as the index in its published order. Without
            it the second test does not run; give it always or never.
        """
        model = np.atleast_1d(np.asarray(models, dtype=np.int64))
        cluster = np.atleast_1d(np.asarray(clusters, dtype=np.int64)) + 1
        position = np.zeros(model.size) if positions is None else np.atleast_1d(np.asarray(positions, dtype=np.float64))
        if not model.shape == cluster.shape == position.shape or model.ndim != 1:
            raise ValueError(
                "models, clusters and positions must have one entry per record: "
                f"got {model.shape}, {cluster.shape} and {position.shape}"
            )
        if model.size == 0:
            return
        finite(positions=position)
        if model.min() < 0 or cluster.min() < 0:
            raise ValueError(f"models must be >= 0 and clusters >= -1: got {model.min()} and {cluster.min() - 1}")
        self._grow(int(model.max()) + 1, int(cluster.max()) + 1)
        by_model = np.argsort(model, kind="stable")
        model, cluster, position = model[by_model], cluster[by_model], position[by_model]
        while model.size:
            # Up to the next look of each model first, so that a look sees the same records for any chunking.
            place = self.seen[model] + np.arange(model.size) - np.searchsorted(model, model) + 1
            now = place <= self._next_look(self.seen)[model]
            self._fold(model[now], cluster[now], position[now], place[now])
            touched = np.unique(model[now])
            self._look(touched[self._next_look(self.seen[touched] - 1) == self.seen[touched]])
            model, cluster, position = model[~now], cluster[~now], position[~now]

    @staticmethod
    def _next_look(seen: IntArray) -> IntArray:
        """Return the items at the first look after `seen` items."""
        doublings = np.floor(np.log2(np.maximum(seen, 1) / FIRST_LOOK)).astype(np.int64) + 1
        return FIRST_LOOK << np.maximum(doublings, 0)

    def _grow(self, models: int, clusters: int) -> None:
        """Make room, by doubling, for so many models and cluster columns."""
        more = max(0, models - self.seen.size)
        for name in ("seen", "last", "same", "like_pairs"):
            setattr(self, name, np.pad(getattr(self, name), (0, more)))
        self.position = np.pad(self.position, ((0, 0), (0, more)))
        columns = self.counts.shape[1]
        wider = max(columns, clusters - columns) if clusters > columns else 0
        self.counts = np.pad(self.counts, ((0, more), (0, wider)))

    def _fold(self, model: IntArray, cluster: IntArray, position: FloatArray, place: IntArray) -> None:
        """Add records that are sorted by model and in arrival order within it."""
        first = np.diff(model, prepend=-1) != 0
        before = np.where(first, self.last[model], np.roll(cluster, 1))
        alike = (place > 1) & (cluster == before)
        np.add.at(self.same, model[alike], 1)
        final = np.roll(first, -1)
        self.last[model[final]] = cluster[final]
        cells, added = np.unique(model * self.counts.shape[1] + cluster, return_counts=True)
        row, column = np.divmod(cells, self.counts.shape[1])
        held = self.counts[row, column].astype(np.int64)
        np.add.at(self.like_pairs, row, added * held + added * (added - 1) // 2)
        self.counts[row, column] += added.astype(np.int32)
        np.add.at(self.seen, model, 1)
        for total, term in zip(self.position, (position, position**2, place * position), strict=True):
            np.add.at(total, model, term)

    def _look(self, models: IntArray) -> None:
        """Test the models that are exactly at a look, and keep the strongest finding."""
        if models.size == 0:
            return
        n = self.seen[models].astype(np.float64)
        same, like = self.same[models], self.like_pairs[models]
        correlation = arrival_correlation(n, *self.position[:, models])
        by_clusters, by_position = order_test(models, n, same, like, correlation)
        for statistic, corrected, observed, expected in (
            ("cluster successions", by_clusters, same, 2 * like / n),
            ("item position", by_position, correlation, np.zeros(n.size)),
        ):
            best = int(np.argmin(corrected))
            if corrected[best] < self.finding.p_value:
                value = float(corrected[best])
                self.finding = OrderFinding(
                    value,
                    value <= self.alpha,
                    statistic,
                    int(models[best]),
                    int(n[best]),
                    float(observed[best]),
                    float(expected[best]),
                )


def order_diagnostic(
    models: ArrayLike, clusters: ArrayLike, positions: ArrayLike | None = None, alpha: float = 0.01
) -> OrderFinding:
    """Test whether items arrived in an exchangeable order; reads no score.

    Two statistics per model: how often consecutive items share a cluster (more often than at random: blocks), and the
    correlation of arrival with the item's place in the benchmark (a file read from its start). Looks, corrections and
    error rate are those of `OrderState`, whose `update` gives the same answer from chunks: at most alpha over the whole
    life of a benchmark, all models together, however often it is read.

    Parameters
    ----------
    models, clusters, positions
        one entry per record in arrival order, each (model, item) once; see `OrderState.update`.
    alpha
        error rate.

    Examples
    --------
    >>> finding = order_diagnostic([0] * 100, [-1] * 100, range(100))
    >>> finding.suspect, finding.statistic, round(finding.observed, 6)
    (True, 'item position', 1.0)
    """
    state = OrderState(alpha)
    state.update(models, clusters, positions)
    return state.finding

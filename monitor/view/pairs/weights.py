"""A ranking by weighted clusters: the means of the models, the moments of the pairs, and the unweighted ranking next to it."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.graded import Weighting, weight_of
from monitor.view.board import BoardView, unweighted_ranking
from schemas.records.scores import SCORE_UNIT, ZERO
from schemas.results.report import WeightedCluster, WeightsReport
from stats.clusters.weighted import Stratified, stratified_moments, weighted_mean_interval
from stats.numerics.pairs import Index

Floats = NDArray[np.float64]


def weighting_of(benchmark: BoardView) -> Weighting | None:
    """Return the weights of a benchmark over the declared sizes of its clusters, or over the items read; None without weights."""
    # A cluster that has a weight and no item counts as one item that every model lacks.
    weights = benchmark.spec.weights
    if weights is None:
        return None
    if benchmark.weighting is not None and not benchmark.undeclared:
        return benchmark.weighting
    sizes = benchmark.spec.clusters
    if sizes is None:
        found = Counter(cluster for cluster in benchmark.item_clusters() if cluster is not None)
        names = found.keys() if isinstance(weights, str) else weights.keys()
        sizes = {name: max(1, found[name]) for name in names}
    if not sizes:
        return None
    weighting = Weighting({name: weight_of(weights, name) for name in sizes}, sizes)
    weighting.enter(benchmark.item_keys)
    return weighting


@dataclass
class WeightedScores:
    """The scores of the models of a benchmark by cluster."""

    benchmark: BoardView
    weighting: Weighting

    @cached_property
    def baseline(self) -> float:
        """Weighted mean of the baselines of a suite: the weighted mean x of scores counts as (x - baseline) / (1 - baseline); else 0."""
        # The weights are those of the gaps, weight / (1 - baseline) of each member: both sides of the equation are then the same.
        baselines = self.benchmark.baselines
        return float(self.weighting.weight @ [baselines.get(name, 0.0) for name in self.weighting.names])

    @property
    def gap_scale(self) -> float:
        """What a gap of 1 on every item counts."""
        return 1 / (1 - self.baseline)

    @property
    def item_scale(self) -> float:
        """What the mean of the differences that bet is multiplied by to give the gap."""
        return self.weighting.largest * self.gap_scale

    @cached_property
    def _values(self) -> Floats:
        """Scores in [0, 1], 0 where there is none, shape (items, contestants)."""
        return self.benchmark.item_values[self.benchmark.item_codes()] / SCORE_UNIT

    @cached_property
    def _present(self) -> Floats:
        return (self.benchmark.item_codes() >= ZERO).astype(np.float64)

    @cached_property
    def rows(self) -> list[Index]:
        """The items of each cluster."""
        return [np.flatnonzero(self.weighting.cluster == k) for k in range(len(self.weighting.names))]

    @cached_property
    def of_models(self) -> tuple[Floats, Floats, Floats]:
        """Scored items, and the sums of scores and of squared scores, shape (contestants, clusters) each."""
        n, s1, s2 = (
            np.stack([each[rows].sum(axis=0) for rows in self.rows], axis=1)
            for each in (self._present, self._values, self._values**2)
        )
        return n, s1, s2

    @cached_property
    def means(self) -> Floats:
        """Weighted mean score of each contestant; nan for one without a score in some cluster, unless such a member of a suite counts 0."""
        n, s1, _ = self.of_models
        return self.mean(np.maximum(n, self.benchmark.least_scored), s1)

    def mean(self, n: Floats, s1: Floats) -> Floats:
        """Return the weighted mean of scores from their numbers and sums by cluster, on the last axis; nan where a cluster has none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            # Sums in different orders must not break a tie.
            raw = ((s1 / n) * self.weighting.weight).sum(axis=-1)
            return np.asarray(np.round((raw - self.baseline) * self.gap_scale, 13))

    def interval(self, contestants: Index) -> tuple[Floats, Floats]:
        """Return the interval for the weighted mean of contestants, nan where there is none."""
        n, s1, s2 = (each[contestants] for each in self.of_models)
        low, high = weighted_mean_interval(n, s1, s2, self.weighting.weight, self.benchmark.spec.alpha)
        return (low - self.baseline) * self.gap_scale, (high - self.baseline) * self.gap_scale

    def of_pairs(self, a: Index, b: Index) -> tuple[Stratified, Floats, Floats]:
        """Return the moments of the gap of pairs, and the weighted means of both models on their shared items."""
        n, mean_a, mean_b, s1, s2 = np.zeros((5, a.size, len(self.rows)))
        for k, rows in enumerate(self.rows):
            values, present = self._values[rows], self._present[rows]
            shared, total, square = present.T @ present, values.T @ present, (values * values).T @ present
            product = values.T @ values
            n[:, k], mean_a[:, k], mean_b[:, k] = shared[a, b], total[a, b], total[b, a]
            s2[:, k] = np.maximum(square[a, b] + square[b, a] - 2 * product[a, b], 0)
        s1 = mean_a - mean_b
        moments = stratified_moments(n, s1, s2, self.weighting.weight)
        scaled = moments._replace(gap=moments.gap * self.gap_scale, variance=moments.variance * self.gap_scale**2)
        return scaled, self.mean(n, mean_a), self.mean(n, mean_b)

    def leads(self, a: Index, b: Index) -> tuple[Index, Index]:
        """Return the weighted sums of D of pairs, and how far what they lack can move them, in units of `SCORE_UNIT`."""
        lead, room = np.zeros((2, a.size), np.int64)
        for k, rows in enumerate(self.rows):
            values, present = self._values[rows] * SCORE_UNIT, self._present[rows]
            total, shared = values.T @ present, present.T @ present
            lead += np.rint((total[a, b] - total[b, a]) * (self.weighting.unit[k] / SCORE_UNIT)).astype(np.int64)
            room += np.maximum(self.weighting.size[k] - shared[a, b], 0).astype(np.int64) * self.weighting.most[k]
        return lead, room

    def gaps_by_cluster(self, a: Index, b: Index) -> Floats:
        """Return the gap of pairs in each cluster, shape (pairs, clusters); nan where they share none of its items."""
        gaps = np.full((a.size, len(self.rows)), np.nan)
        for k, rows in enumerate(self.rows):
            values, present = self._values[rows], self._present[rows]
            shared, total = present.T @ present, values.T @ present
            with np.errstate(divide="ignore", invalid="ignore"):
                gaps[:, k] = (total[a, b] - total[b, a]) / shared[a, b]
        return gaps

    def on(self, items: NDArray[np.bool_], contestants: Index) -> Floats:
        """Return the weighted means of contestants on some items that all of them have; nan where a cluster has none."""
        rows = [each[items[each]] for each in self.rows]
        n = np.array([each.size for each in rows], np.float64)
        s1 = np.stack([self._values[each][:, contestants].sum(axis=0) for each in rows], axis=1)
        return self.mean(n, s1)


def weighted_scores(benchmark: BoardView) -> WeightedScores | None:
    """Return the scores by cluster, where clusters are weighted; a board keeps them."""
    weighting = weighting_of(benchmark)
    return None if weighting is None else WeightedScores(benchmark, weighting)


def weights_report(scores: WeightedScores, ranking: Index) -> WeightsReport:
    """Report the weights of a benchmark, and how its ranking differs from the unweighted one."""
    weighting, benchmark = scores.weighting, scores.benchmark
    differs = int(np.count_nonzero(unweighted_ranking(benchmark, ranking) != ranking))
    unranked = int(np.count_nonzero(~np.isfinite(scores.means[ranking])))
    columns = weighting.names, weighting.weight.tolist(), weighting.size.tolist()
    return WeightsReport(
        equal=bool(np.ptp(weighting.weight) == 0),
        clusters=[WeightedCluster(cluster=c, weight=w, items=n) for c, w, n in zip(*columns, strict=True)],
        largest_item_weight=weighting.largest,
        unranked=unranked,
        places_differ=differs,
    )

"""The evidence of the pairs of a leaderboard as columns: resolution, tests, e-values and bounds."""

from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from monitor.engine.latch.committed import prefix_log_e
from monitor.engine.state.graded import GRADED_MIXTURE, GradedPairs, WeightedPairs, capital_of
from monitor.view.pairs.counts import Flags, Floats, PairCounts
from schemas.records.scores import SCORE_UNIT
from stats.clusters.weighted import stratified_p
from stats.evidence.curtailed import curtailed_log_p
from stats.evidence.eprocess import anytime_required_n, log_e_halves, log_leader_bound
from stats.evidence.graded import (
    MAX_ITEMS,
    graded_bound,
    graded_completion_bound,
    graded_log_e,
    graded_log_e_halves,
)
from stats.evidence.mixtures import parse_mixture
from stats.evidence.pair import PairEvidence, pair_evidence
from stats.fixed_n.mcnemar import exact_p, mid_p
from stats.fixed_n.resolution import mde, required_n, z_sum
from stats.numerics.pairs import Index
from stats.numerics.slabs import distinct_counts

Sides = NDArray[np.int8]
"""+1: model_a is decided to be better; -1: model_b; 0: undecided."""

ALL = slice(None)


def resolution_ratio(n: npt.ArrayLike, n_star: npt.ArrayLike) -> Floats:
    """Return q = n / N*: 0 where N* is infinite; nan where nothing is shared, or N* is 0 or nan.

    N* is 0 where D is the same on every shared item, so that its spread is unknown.

    >>> resolution_ratio([10, 10, 10, 0], [5.0, 0.0, np.inf, 5.0]).tolist()
    [2.0, nan, 0.0, nan]
    """
    items, needed = np.asarray(n, np.float64), np.asarray(n_star, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((items > 0) & (needed > 0), items / needed, np.nan)


def is_resolved(n: npt.ArrayLike, n_star: npt.ArrayLike) -> Flags:
    """Return whether q is defined and at least 1.

    >>> is_resolved([10, 10, 10], [5.0, 0.0, 11.0]).tolist()
    [True, False, False]
    """
    return np.asarray(resolution_ratio(n, n_star) >= 1)


class EvidenceColumns(PairCounts):
    """The evidence of every pair of the current models of a benchmark; each statistic is computed on first use."""

    def required_n(self, alpha: float | Floats, at: Index | slice = ALL, power: float | None = None) -> Floats:
        """Return N* at a level, fixed n, of some pairs; with the declared power unless another is given."""
        power = self.benchmark.spec.power if power is None else power
        if self.benchmark.binary:
            return required_n(self.n[at], self.wins[at], self.losses[at], alpha, power)
        # Only graded scores need it, and it would cost every start.
        from stats.fixed_n.resolution import required_n_paired  # noqa: PLC0415

        gap, sd = (moment[at] for moment in self.moments)
        known = np.isfinite(sd)
        needed = required_n_paired(np.where(known, gap, 0), np.where(known, sd, 0), alpha, power)
        return np.where(known, needed, np.nan)

    def anytime_required_n(self, at: Index) -> Floats:
        """Return N* of some pairs under the anytime boundary of the declared mixture."""
        spec = self.benchmark.spec
        return anytime_required_n(self.n[at], self.wins[at], self.losses[at], spec.alpha, spec.power, spec.mixture)

    def n_star(self, at: Index | slice = ALL) -> Floats:
        """Return N* of some pairs at the declared level."""
        return self.required_n(self.benchmark.spec.alpha, at)

    @cached_property
    def resolution_ratio(self) -> Floats:
        """The resolution ratio q at the declared level."""
        return resolution_ratio(self.n, self.n_star())

    def mde(self, at: Index) -> Floats:
        """Return the minimum detectable effect at the shared items of some pairs; without a spread of D, at that of the effect itself."""
        spec, n = self.benchmark.spec, self.n[at]
        gap, sd = (moment[at] for moment in self.moments)
        known, constant = np.isfinite(sd), sd == 0
        effect = np.where(known, mde(n, np.where(known, sd, 0), spec.alpha, spec.power), np.nan)
        one_way = constant & (gap != 0) & self.benchmark.binary
        k = z_sum(spec.alpha, spec.power) ** 2
        return np.where(one_way, np.sqrt(k / (n + k)), np.where(constant & (n > 0), np.nan, effect))

    # --- evidence ---------------------------------------------------------------------------------------------------------------------

    @property
    def bets(self) -> bool:
        """Whether there is an e-process: not for scores that turned out graded under a declaration of 0/1 scores, nor for a held suite."""
        if self.benchmark.suite is not None:
            return self.asserted or self.benchmark.spec.order.policy != "none"
        return self.benchmark.binary or self.benchmark.graded or self.asserted

    @property
    def mixture(self) -> str:
        """The declared mixture of 0/1 scores, or the fixed grid of graded ones."""
        return self.benchmark.spec.mixture if self.benchmark.binary or not self.bets else GRADED_MIXTURE

    @property
    def capital(self) -> NDArray[np.int64]:
        """Capital of each pair of graded scores, the bets on a first; shape (pairs, 2, L)."""
        return self._graded[0]

    @cached_property
    def _by_cluster(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Capital, lead and shared items by cluster of weighted pairs, the second model first where `flip`."""
        assert self.weighted is not None
        sums = None if self.benchmark.graded_sums is None else self.benchmark.graded_sums()
        if sums is not None and sums.shared is not None:
            return sums.capital[self.pair], sums.lead[self.pair], sums.shared[self.pair]
        first, second = np.minimum(self.a, self.b), np.maximum(self.a, self.b)
        benchmark, weighting = self.benchmark, self.weighted.weighting
        return weighting.pairs_of(benchmark.item_codes(), benchmark.item_values, first, second)

    @cached_property
    def room(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How far missing items can move the sum of D in units of `SCORE_UNIT`, and what of that sum is rounding."""
        assert self.missing is not None
        if self.weighted is None:
            room = np.minimum(self.missing.astype(np.int64), MAX_ITEMS) * SCORE_UNIT  # no lead is larger
            return room, GradedPairs.ROUNDING * self.n.astype(np.int64)
        return self.weighted.weighting.room(self._by_cluster[2]), WeightedPairs.ROUNDING * self.n.astype(np.int64)

    @cached_property
    def _graded(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Capital of graded scores, and the sum of D in units of `SCORE_UNIT`."""
        benchmark = self.benchmark
        if self.weighted is not None:
            capital, lead, _ = self._by_cluster
        elif benchmark.graded_sums is not None:
            sums = benchmark.graded_sums()
            capital, lead = sums.capital[self.pair], sums.lead[self.pair]
        elif benchmark.battles is not None:
            graded = GradedPairs()
            graded.grow(len(benchmark.contestants))
            graded.add(self.units.pair, self.units.difference)
            capital, lead = graded.capital[self.pair], graded.lead[self.pair]
        else:
            first, second = np.minimum(self.a, self.b), np.maximum(self.a, self.b)
            capital, lead = capital_of(benchmark.item_codes(), benchmark.item_values, first, second)
        return np.where(self.flip[:, None, None], capital[:, ::-1], capital), np.where(self.flip, -lead, lead)

    @cached_property
    def uniform(self) -> tuple[PairEvidence, NDArray[np.int32]] | None:
        """Exact tests and e-values from one integral, on all shared items; None for graded scores and other mixtures.

        They are of the distinct counts, which come with the place of each pair among them: millions of pairs have few.
        """
        mixture = parse_mixture(self.benchmark.spec.mixture)
        if not self.benchmark.binary or mixture.beta != (1.0, 1.0):
            return None
        wins, losses, place = distinct_counts(self.wins, self.losses)
        return pair_evidence(wins, losses, mixture), place

    @cached_property
    def p_exact(self) -> Floats:
        """Exact McNemar p-values."""
        if self.uniform is None:
            return exact_p(self.wins, self.losses)
        evidence, place = self.uniform
        return evidence.p_exact[place]

    def p_mid(self, at: Index) -> Floats:
        """Return mid-p values of some pairs."""
        if self.uniform is None:
            return mid_p(self.wins[at], self.losses[at])
        evidence, place = self.uniform
        return evidence.p_mid[place[at]]

    @cached_property
    def p_fixed(self) -> Floats:
        """P-values of the fixed-n decisions: the exact test of 0/1 scores, the paired t test of graded ones, stratified if weighted."""
        if self.stratified is not None:
            return stratified_p(self.stratified[0])
        if self.benchmark.binary:
            return self.p_exact
        # Only graded scores need scipy's t distribution, which takes long to load.
        from stats.fixed_n.ttest import paired_t_from_moments  # noqa: PLC0415

        return paired_t_from_moments(self.n, *self.moments)[1]

    @cached_property
    def evidence(self) -> tuple[Index, Index, Index, Index, Index]:
        """Counts n, b and c that verdicts use, then c at its worst and b at its best for a: these differ where items were skipped.

        Along a committed order they count the prefix, skipped items among n, until runs end whose missing items are ignored. Else they
        count all shared items.
        """
        committed = self.benchmark.committed
        shared = self.n, self.wins, self.losses, self.losses, self.wins
        if committed is None:
            return shared
        b, c, c_worst, b_best = (
            committed.sums[name][self.pair].astype(np.int64) for name in ("b", "c", "c_worst", "b_best")
        )
        flip = self.flip
        prefix = (
            committed.prefix(self.a, self.b),
            np.where(flip, c, b),
            np.where(flip, b, c),
            np.where(flip, b_best, c_worst),
            np.where(flip, c_worst, b_best),
        )
        judged_on_shared = self.ignored > 0
        n, b, c, c_worst, b_best = (np.where(judged_on_shared, *each) for each in zip(shared, prefix, strict=True))
        return n, b, c, c_worst, b_best

    @cached_property
    def log_e(self) -> Floats:
        """Logarithm of the two-sided mixture e-value at the current counts."""
        if not self.benchmark.binary:
            return graded_log_e(self.capital)
        if self.benchmark.committed is None and self.uniform is not None:
            evidence, place = self.uniform
            return evidence.log_e[place]
        return prefix_log_e(*self.evidence[1:], self.benchmark.spec.mixture)

    @cached_property
    def lasting_log_e(self) -> Floats:
        """Ln e that missing items cannot undo under policy completion, where the order of arrival may be anything; else ln e now."""
        if not self.completes:
            return self.log_e
        assert self.counted_missing is not None
        if not self.benchmark.binary:
            return np.maximum(*self._graded_bound(self.counted_missing, ALL))
        return log_leader_bound(self.wins, self.losses, self.counted_missing, self.benchmark.spec.mixture)

    @property
    def completes(self) -> bool:
        """Whether verdicts are about all items of the benchmark, in any order: policy completion, or complete files."""
        return self.asserted or self.benchmark.spec.order.policy == "completion"

    def log_e_halves(self, at: Index) -> tuple[Floats, Floats]:
        """Return the logarithms of the directional halves of some pairs: a is better, b is better."""
        if not self.benchmark.binary:
            return graded_log_e_halves(self.capital[at])
        if self.benchmark.committed is None and self.uniform is not None:
            evidence, place = self.uniform
            return evidence.log_e_a[place[at]], evidence.log_e_b[place[at]]
        _, b, c, c_worst, b_best = (column[at] for column in self.evidence)
        mixture = self.benchmark.spec.mixture
        return log_e_halves(b, c_worst, mixture)[0], log_e_halves(b_best, c, mixture)[1]

    def bound(self, missing: Index, at: Index | slice = ALL) -> tuple[Floats, Sides]:
        """Return the evidence of some pairs under policy completion with missing items at their worst, and the side it is for.

        Of a suite with committed orders: the largest evidence along them.
        """
        united = self.benchmark.united
        if united is not None and united.walked is not None:
            peak, side = united.walked[0][self.pair[at]], united.walked[1][self.pair[at]]
            return peak, np.where(self.flip[at], -side, side).astype(np.int8)
        if self.benchmark.binary:
            for_a, for_b = (-log_p for log_p in curtailed_log_p(self.wins[at], self.losses[at], missing))
        else:
            for_a, for_b = self._graded_bound(missing, at)
        return np.maximum(for_a, for_b), np.where(for_a >= for_b, 1, -1).astype(np.int8)

    def _graded_bound(self, missing: Index, at: Index | slice) -> tuple[Floats, Floats]:
        """Return what missing items leave of the evidence for a and for b, at their worst; weighted ones are those the pair lacks."""
        if self.weighted is None:
            # Repeats that nobody declared, or graded scores among 0/1 ones, may be of more items than a sum of bets can hold.
            held = self.n[at] + missing <= MAX_ITEMS
            for_a, for_b = graded_completion_bound(self.capital[at], np.where(held, missing, 0))
            return np.where(held, for_a, np.minimum(for_a, 0)), np.where(held, for_b, np.minimum(for_b, 0))
        return graded_bound((self.capital + self.weighted.weighting.lost(self._by_cluster[2]))[at])

"""The pairs of a leaderboard as columns: evidence, resolution, and decisions by procedure."""

from collections.abc import Callable
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from monitor.engine.latch.committed import prefix_log_e
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.codes import SCORE_UNIT
from monitor.engine.state.graded import GRADED_MIXTURE, GradedPairs, WeightedPairs, capital_of
from monitor.engine.state.pairs.index import Index
from monitor.report.pairs.counts import Flags, Floats, PairCounts
from monitor.report.sentences import hold_reason
from stats.clusters.weighted import stratified_p
from stats.evidence.curtailed import TOLERANCE, curtailed_log_p
from stats.evidence.eprocess import anytime_required_n, log_e_halves, log_leader_bound
from stats.evidence.graded import graded_bound, graded_completion_bound, graded_log_e, graded_log_e_halves
from stats.evidence.mixtures import parse_mixture
from stats.evidence.pair import PairEvidence, pair_evidence
from stats.evidence.settled import TIE, certain_side
from stats.families.error_control import benjamini_hochberg, e_bh, holm
from stats.families.stepwise import WHOLE, step_down, step_thresholds
from stats.fixed_n.mcnemar import exact_p, mid_p
from stats.fixed_n.resolution import mde, required_n, z_sum
from stats.numerics.slabs import distinct_counts

Sides = NDArray[np.int8]
"""+1: model_a is decided to be better; -1: model_b; 0: undecided."""

ALL = slice(None)

_FLOAT_ROUNDING: Final = 8
"""Units of `SCORE_UNIT` an item by which a sum of floats over at most `MAX_GRADED_ITEMS` scores may be wrong: more than their spacing."""


def resolution_ratio(n: npt.ArrayLike, n_star: npt.ArrayLike) -> Floats:
    """Return q = n / N*: 0 where N* is infinite; nan where nothing is shared, or N* is 0 or nan.

    N* is 0 where D is the same on every shared item, so that its spread is unknown.

    Examples
    --------
    >>> resolution_ratio([10, 10, 10, 0], [5.0, 0.0, np.inf, 5.0]).tolist()
    [2.0, nan, 0.0, nan]
    """
    items, needed = np.asarray(n, np.float64), np.asarray(n_star, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((items > 0) & (needed > 0), items / needed, np.nan)


def is_resolved(n: npt.ArrayLike, n_star: npt.ArrayLike) -> Flags:
    """Return whether q is defined and at least 1.

    Examples
    --------
    >>> is_resolved([10, 10, 10], [5.0, 0.0, 11.0]).tolist()
    [True, False, False]
    """
    return np.asarray(resolution_ratio(n, n_star) >= 1)


class PairTable(PairCounts):
    """Every pair of the current models of a benchmark; each statistic is computed on first use."""

    @classmethod
    def of(cls, benchmark: Benchmark, *, assert_complete: bool = False) -> Self:
        """Build the table; `assert_complete` takes the items read as the whole benchmark where no order policy was declared."""
        unknown = benchmark.spec.order.policy == "none" or bool(benchmark.undeclared)
        refuted = benchmark.too_many_items or benchmark.order_refuted
        fixed = benchmark.battles is None  # battles have no item count that files could complete
        assumed = assert_complete and fixed and unknown and not refuted and not benchmark.incomplete
        return cls(benchmark, (benchmark.spec.items or benchmark.items) if assumed else None)

    # --- whether decisions count ------------------------------------------------------------------------------------------------------

    @cached_property
    def hold_reason(self) -> str | None:
        """Why no further anytime verdict is given, or None."""
        return None if self.asserted else hold_reason(self.benchmark)

    @property
    def in_force(self) -> bool:
        """Whether the anytime decisions made so far count: what their order policy assumes has not proved wrong."""
        return self.asserted or self.benchmark.assumption_holds

    # --- resolution -------------------------------------------------------------------------------------------------------------------

    def required_n(self, alpha: float, at: Index | slice = ALL) -> Floats:
        """Return N* at a level, fixed n, of some pairs."""
        power = self.benchmark.spec.power
        if self.benchmark.binary:
            return required_n(self.n[at], self.wins[at], self.losses[at], alpha, power)
        # Only graded scores need it, and it would cost every start.
        from stats.fixed_n.resolution import required_n_paired  # noqa: PLC0415

        gap, sd = (moment[at] for moment in self.moments)
        known = np.isfinite(sd)
        found = required_n_paired(np.where(known, gap, 0), np.where(known, sd, 0), alpha, power)
        return np.where(known, found, np.nan)

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
        found = np.where(known, mde(n, np.where(known, sd, 0), spec.alpha, spec.power), np.nan)
        one_way = constant & (gap != 0) & self.benchmark.binary
        k = z_sum(spec.alpha, spec.power) ** 2
        return np.where(one_way, np.sqrt(k / (n + k)), np.where(constant & (n > 0), np.nan, found))

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
        sums = self.benchmark.graded_pairs
        if isinstance(sums, WeightedPairs):
            return sums.capital[self.pair], sums.lead[self.pair], sums.shared[self.pair]
        first, second = np.minimum(self.a, self.b), np.maximum(self.a, self.b)
        benchmark, weighting = self.benchmark, self.weighted.weighting
        return weighting.pairs_of(benchmark.item_codes(), benchmark.item_values, first, second)

    @cached_property
    def room(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How far missing items can move the sum of D in units of `SCORE_UNIT`, and what of that sum is rounding."""
        assert self.missing is not None
        if self.weighted is None:
            return self.missing * SCORE_UNIT, np.zeros(self.size, np.int64)
        return self.weighted.weighting.room(self._by_cluster[2]), self.n

    @cached_property
    def _graded(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Capital of graded scores, and the sum of D in units of `SCORE_UNIT`."""
        benchmark = self.benchmark
        if self.weighted is not None:
            capital, lead, _ = self._by_cluster
        elif benchmark.graded_pairs is not None:
            capital, lead = benchmark.graded_pairs.capital[self.pair], benchmark.graded_pairs.lead[self.pair]
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

        Along a committed order they count the prefix, skipped items among n; else all shared items.
        """
        committed = self.benchmark.committed
        if committed is None:
            return self.n, self.wins, self.losses, self.losses, self.wins
        b, c, c_worst, b_best = (
            committed.sums[name][self.pair].astype(np.int64) for name in ("b", "c", "c_worst", "b_best")
        )
        flip = self.flip
        return (
            committed.prefix(self.a, self.b),
            np.where(flip, c, b),
            np.where(flip, b, c),
            np.where(flip, b_best, c_worst),
            np.where(flip, c_worst, b_best),
        )

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
            return np.maximum(*self._graded_bound(self.counted_missing))
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

    # --- families ---------------------------------------------------------------------------------------------------------------------

    @cached_property
    def in_family(self) -> Flags:
        """Whether a pair is in the family whose error is controlled: all are, unless models or pairs were declared."""
        return self.benchmark.in_family(self.pair)

    @property
    def family_size(self) -> int:
        """How many pairs the fixed-n families hold."""
        return max(int(self.in_family.sum()), 1)

    @property
    def neighbours(self) -> int:
        """How many adjacent pairs there are, at least 1."""
        return max(int(self.adjacent.sum()), 1)

    @property
    def anytime_family_size(self) -> int:
        """Pairs that share alpha: the declared capacity; else the pairs of complete files, or those registered."""
        registered = int(np.count_nonzero(self.benchmark.family_index[self.pair]))
        return self.benchmark.spec.family.capacity or (self.family_size if self.shares_equally else registered)

    @property
    def decides_at_end(self) -> bool:
        """Whether decisions are computed from the scores, and not latched: of complete files, on all their items, and of suites.

        Of a suite they rest on evidence that never falls: the bound of policy completion, or the largest e along a committed order.
        """
        benchmark = self.benchmark
        if benchmark.suite is not None:
            return self.asserted or benchmark.assumption_holds
        declared = benchmark.complete_files and benchmark.spec.order.policy == "completion"
        return self.asserted or (declared and self.superseded is None and benchmark.assumption_holds)

    @property
    def shares_equally(self) -> bool:
        """Whether all pairs that were found share alpha equally: those of complete files, unless a family was declared."""
        live_suite = self.benchmark.suite is not None and not self.asserted
        return self.decides_at_end and not live_suite and self.benchmark.spec.family.capacity is None

    def family_weights(self, at: Index | slice = ALL) -> NDArray[np.int64]:
        """Return the weight of some pairs in the family, out of `WHOLE`, which no decision changes."""
        if self.shares_equally:
            return np.where(self.in_family[at], WHOLE // self.anytime_family_size, 0)
        return self.benchmark.family_weights(self.pair[at])

    def has_place(self, at: Index | slice = ALL) -> Flags:
        """Return which of some pairs have a place in the family: no other one gets a family-wise decision."""
        return self.family_weights(at) > 0

    def log_family_threshold(self, at: Index | slice = ALL) -> Floats:
        """Return the thresholds ln 1/alpha_j of some pairs; infinite for a pair without a place in the family."""
        if self.decides_at_end:
            return self._step_down[1][at]
        return self.benchmark.log_thresholds(self.pair[at])["anytime_family"]

    @cached_property
    def _step_down(self) -> tuple[Sides, Floats]:
        """Family-wise decisions at the end of complete files, and the threshold of each pair given the decisions of the others."""
        assert self.counted_missing is not None
        alpha, weights = self.benchmark.spec.alpha, self.family_weights()
        evidence, side = self._bound(self.counted_missing)
        decisions = step_down(evidence, weights, WHOLE, alpha)
        decided = np.zeros(self.size, bool)
        decided[decisions.pair] = True
        open_share = (decisions.open_weight + np.where(decided, weights, 0)).clip(min=1) / WHOLE
        threshold = step_thresholds(weights, WHOLE, alpha) + np.log(open_share)
        return np.where(decided, side, 0).astype(np.int8), threshold

    # --- decisions --------------------------------------------------------------------------------------------------------------------

    def decided(self, procedure: str) -> Sides | None:
        """Return the side that a procedure decides for each pair; None where it is not computed, or its decisions do not count.

        `clustered` is in `monitor.report.pairs.clusters`.
        """
        if procedure in {"anytime", "anytime_family"}:
            return self.anytime_decisions[procedure] if self.in_force else None
        if self.superseded is not None:
            return None
        if procedure == "e_bh":
            return self.e_decisions(e_bh)
        return self.fixed_n_decisions[procedure]

    def e_decisions(self, reject: Callable[[Floats, float], Flags]) -> Sides | None:
        """Return the decisions of a procedure on the current e-values of the family: revocable, never latched."""
        if not self.bets or self.hold_reason is not None:
            return None
        rejected = np.zeros(self.size, bool)
        if self.in_family.any():
            rejected[self.in_family] = reject(self.lasting_log_e[self.in_family], self.benchmark.spec.alpha)
        return self.towards_lead(rejected)

    def towards_lead(self, rejected: Flags) -> Sides:
        """Return the side of the current gap where equality is rejected, 0 elsewhere."""
        return np.where(rejected, np.sign(np.nan_to_num(self.moments[0])), 0).astype(np.int8)

    @cached_property
    def fixed_n_decisions(self) -> dict[str, Sides]:
        """Decisions of the fixed-n procedures (valid at a planned n only), from `p_fixed`."""
        alpha, p = self.benchmark.spec.alpha, self.p_fixed
        small = np.flatnonzero(
            (p <= alpha) & (self.n > 0)
        )  # of millions of pairs often few; no procedure rejects another one
        p, member = p[small], self.in_family[small]
        rejected = {
            "fixed_n": np.ones(small.size, bool),
            "bonferroni": member & (p * self.family_size <= alpha),
            "bonferroni_adjacent": self.adjacent[small] & (p * self.neighbours <= alpha),
        }
        for name, adjust in (("holm", holm), ("benjamini_hochberg", benjamini_hochberg)):
            rejected[name] = member.copy()
            rejected[name][member] = adjust(p[member], self.family_size) <= alpha
        lead = np.sign(self.moments[0][small]).astype(np.int8)
        decided = {name: np.zeros(self.size, np.int8) for name in rejected}
        for name, flags in rejected.items():
            decided[name][small] = np.where(flags, lead, 0)
        return decided

    @cached_property
    def anytime_decisions(self) -> dict[str, Sides]:
        """Anytime decisions made so far, in force or not: the latches, or the completion bound of complete files."""
        benchmark = self.benchmark
        if self.decides_at_end:
            assert self.counted_missing is not None
            bound, side = self._bound(self.counted_missing)
            alone = np.where(bound >= benchmark.limit - TOLERANCE, side, 0).astype(np.int8)
            return {"anytime": alone, "anytime_family": self._step_down[0]}
        sign = np.where(self.flip, -1, 1)
        return {name: (np.sign(latch[self.pair]) * sign).astype(np.int8) for name, latch in benchmark.latched.items()}

    @cached_property
    def settled(self) -> Sides:
        """Who leads on all items of the benchmark: a (1), b (-1), neither (`TIE`), or open (0)."""
        benchmark = self.benchmark
        if benchmark.suite is not None and not self.asserted and not benchmark.has_fixed_items:
            return np.zeros(self.size, np.int8)
        if self.asserted or benchmark.suite is not None:
            assert self.missing is not None
            if self.weighted is not None:
                if self.asserted:
                    lead, (room, rounding) = self._graded[1], self.room
                else:
                    (lead, room), rounding = self.weighted.leads(self.a, self.b), _FLOAT_ROUNDING * self.n
                side = np.where(np.abs(lead) > room + rounding, np.sign(lead), 0)
                side = np.where((room == 0) & (np.abs(lead) <= rounding), TIE, side)
                return np.where(self.n > 0, side, 0).astype(np.int8)
            lead, unit = (self.wins - self.losses, 1) if benchmark.binary else (self._graded[1], SCORE_UNIT)
            return np.where(self.n > 0, certain_side(lead, lead, self.missing, unit), 0).astype(np.int8)
        side = benchmark.claims["settled"].side[self.pair]
        if benchmark.undeclared or benchmark.too_many_items:
            return np.zeros(self.size, np.int8)
        return np.where(self.flip & (side != TIE), -side, side).astype(np.int8)

    @cached_property
    def settled_log_e(self) -> Floats:
        """Ln e that a pair is settled along a committed order; nan where it is settled for certain, and under other policies."""
        log_e, benchmark = np.full(self.size, np.nan), self.benchmark
        if benchmark.committed is not None:
            assert self.missing is not None
            bets = (self.settled == 0) & (self.n > 0) & (self.superseded is None)
            log_e[bets] = benchmark.settling.log_e(self.pair[bets], self.missing[bets])
        return np.where(np.isinf(log_e), np.nan, log_e)

    @cached_property
    def p_anytime(self) -> Floats:
        """What anytime verdicts rest on: the exact p at worst, or 1 / e; see `PairReport`."""
        if self.completes or self.decides_at_end:
            assert self.counted_missing is not None
            return np.minimum(1, np.exp(-self._bound(self.counted_missing)[0]))
        peak = np.abs(self.benchmark.claims["anytime_family"].peak[self.pair])
        return np.minimum(1, np.exp(-np.maximum(peak, self.log_e)))

    def _bound(self, missing: Index) -> tuple[Floats, Sides]:
        """Return the evidence of each pair under policy completion with some missing items at their worst, and the side it is for.

        Of a suite with committed orders: the largest evidence along them.
        """
        united = self.benchmark.united
        if united is not None and united.walked is not None:
            peak, side = united.walked[0][self.pair], united.walked[1][self.pair]
            return peak, np.where(self.flip, -side, side).astype(np.int8)
        if self.benchmark.binary:
            for_a, for_b = (-log_p for log_p in curtailed_log_p(self.wins, self.losses, missing))
        else:
            for_a, for_b = self._graded_bound(missing)
        return np.maximum(for_a, for_b), np.where(for_a >= for_b, 1, -1).astype(np.int8)

    def _graded_bound(self, missing: Index) -> tuple[Floats, Floats]:
        """Return what missing items leave of the evidence for a and for b, at their worst; weighted ones are those the pair lacks."""
        if self.weighted is None:
            return graded_completion_bound(self.capital, missing)
        return graded_bound(self.capital + self.weighted.weighting.lost(self._by_cluster[2]))

    @cached_property
    def decided_if_ignored(self) -> Sides:
        """Family-wise decisions that pairs of ended runs would have if what is missing were ignored."""
        counted, policy = self.counted_missing, self.benchmark.spec.order.policy
        # The shared items of a pair need not hold every cluster: without what is missing there is no weighted gap.
        if (
            counted is None
            or self.weighted is not None
            or not self.in_force
            or (policy in {"none", "trusted"} and not self.asserted)
        ):
            return np.zeros(self.size, np.int8)
        bound, side = self._bound(np.zeros(self.size, np.int64))
        reached = bound >= self.log_family_threshold() - TOLERANCE
        return np.where(self.ended & (counted > 0) & reached, side, 0).astype(np.int8)

    @property
    def rests_on_ends(self) -> bool:
        """Whether a verdict would be open, or a score, if runs went on whose end is assumed."""
        benchmark = self.benchmark
        if not benchmark.assumed_ended or self.asserted or self.hold_reason is not None:
            return False
        assumed = np.isin(np.arange(len(benchmark.contestants)), list(benchmark.assumed_ended))
        if benchmark.repeats is not None and benchmark.repeats.waits(assumed):
            return True
        among, undecided = assumed[self.a] | assumed[self.b], self.anytime_decisions["anytime_family"] == 0
        if self.missing is None:
            return bool((among & undecided).any())
        bound, _ = self._bound(self.missing)
        by_end = (self.ignored > 0) & (bound < self.log_family_threshold())
        return bool((among & (self.missing > 0) & (undecided | by_end)).any())

"""The pairs of a leaderboard: the family, and decisions by procedure."""

from collections.abc import Callable
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import BoardView
from monitor.view.kinds.found import kind_of
from monitor.view.pairs.cluster_sums import pair_t
from monitor.view.pairs.counts import ALL, Flags, Floats, PairCounts, Sides
from monitor.view.reasons import held
from monitor.words.order import because
from schemas.records.text import Sentence
from schemas.results.reasons import Fact
from stats.clusters.robust import holm_rejects
from stats.evidence.settled import TIE
from stats.families.error_control import WHOLE, benjamini_hochberg, e_bh, holm, step_down, step_thresholds
from stats.numerics.checks import TOLERANCE
from stats.numerics.pairs import Index


class PairTable:
    """Every pair of the current models of a benchmark: its counts (`pairs`), what its kind of score shows (`kind`), and decisions."""

    # Each statistic is computed on first use. `superseded`: of two models by older epochs.

    def __init__(
        self,
        benchmark: BoardView,
        assumed_items: int | None = None,
        *,
        one_look: bool = False,
        superseded: tuple[Index, Index] | None = None,
    ) -> None:
        self.described_from, self.benchmark = benchmark, benchmark.described()
        self.assumed_items, self.one_look, self.superseded = assumed_items, one_look, superseded
        self.asserted = assumed_items is not None  # whether the items read are taken as the whole benchmark
        self._kind = kind_of(benchmark)
        ranking = self.ranking if superseded is None else np.zeros(0, np.int64)
        self.pairs = PairCounts(benchmark, ranking, assumed_items, superseded)
        self.kind = self._kind(self.pairs)

    @classmethod
    def of(cls, benchmark: BoardView, *, assert_complete: bool = False) -> Self:
        """Build the table; `assert_complete` is for files: the items read are the whole benchmark where no order policy was declared."""
        unknown = benchmark.spec.order.policy == "none" or bool(benchmark.undeclared)
        refuted = benchmark.too_many_items or benchmark.order_refuted or benchmark.unknown_units
        reading = benchmark.reading
        # Of an item that was not read the weight is not known.
        whole = reading.whole and not benchmark.incomplete and not (benchmark.spec.weights and benchmark.unread)
        shared = benchmark.united is not None and benchmark.united.shares_items
        files = kind_of(benchmark).has_end
        assumed = assert_complete and files and unknown and not (refuted or shared) and whole
        items = (benchmark.spec.items or benchmark.items + benchmark.unread) if assumed else None
        return cls(benchmark, items, one_look=assert_complete)

    @cached_property
    def ranking(self) -> Index:
        """Current contestants from the best to the worst, ties by name."""
        return self._kind.ranking(self.described_from)

    # --- whether decisions count ------------------------------------------------------------------------------------------------------

    @cached_property
    def held(self) -> list[Fact]:
        """Why no further anytime verdict is given; nothing where one may be."""
        return [] if self.asserted else held(self.benchmark)

    @property
    def hold_reason(self) -> Sentence | None:
        """The same as a clause, or None."""
        return because(self.held)

    @property
    def in_force(self) -> bool:
        """Whether the anytime decisions made so far count: what their order policy assumes has not proved wrong."""
        return self.asserted or self.benchmark.assumption_holds

    @property
    def policy(self) -> str:
        """The order policy under which the pairs are decided: complete files are one look at the end."""
        return "completion" if self.asserted else self.benchmark.spec.order.policy

    @property
    def item_count(self) -> int:
        """How many items, or declared units, the benchmark has: declared, assumed of complete files, or seen so far."""
        return int(self.benchmark.spec.items or self.assumed_items or self.benchmark.items)

    # --- families ---------------------------------------------------------------------------------------------------------------------

    @cached_property
    def in_family(self) -> Flags:
        """Whether a pair is in the family whose error is controlled: all are, unless models or pairs were declared."""
        return self.benchmark.in_family(self.pairs.pair)

    @property
    def family_size(self) -> int:
        """How many pairs the fixed-n families hold."""
        return max(int(self.in_family.sum()), 1)

    @property
    def neighbours(self) -> int:
        """How many adjacent pairs there are, at least 1."""
        return max(int(self.pairs.adjacent.sum()), 1)

    @cached_property
    def generation_sizes(self) -> dict[int, int]:
        """How many of the pairs are in each family: every generation of scores is one, with its own alpha; see `PairState.families`."""
        members = self.pairs.pair[self.in_family]
        return {family: own.size for family, own in self.benchmark.by_family(members)}

    @property
    def anytime_family_size(self) -> int:
        """Pairs that share alpha: the declared capacity; else the pairs of complete files in the largest family, or those registered."""
        if self.kind.shares_equally:
            return max(self.generation_sizes.values(), default=1)
        registered = int(np.count_nonzero(self.benchmark.family_index()[self.pairs.pair]))
        return self.benchmark.spec.family.capacity or registered

    def family_weights(self, at: Index | slice = ALL) -> NDArray[np.int64]:
        """Return the weight of some pairs in the family, out of `WHOLE`, which no decision changes."""
        if not self.kind.shares_equally:
            return self.benchmark.family_weights(self.pairs.pair[at])
        pair, weights = self.pairs.pair[at], np.zeros(self.in_family[at].shape, np.int64)
        for family, own in self.benchmark.by_family(pair):
            weights[own] = WHOLE // self.generation_sizes.get(family, 1)
        return np.where(self.in_family[at], weights, 0)

    def has_place(self, at: Index | slice = ALL) -> Flags:
        """Return which of some pairs have a place in the family: no other one gets a family-wise decision."""
        return self.family_weights(at) > 0

    def log_family_threshold(self, at: Index | slice = ALL) -> Floats:
        """Return the thresholds ln 1/alpha_j of some pairs; infinite for a pair without a place in the family."""
        if self.kind.decides_at_end:
            return self._step_down[1][at]
        return self.benchmark.family_thresholds(self.pairs.pair[at])

    @cached_property
    def _step_down(self) -> tuple[Sides, Floats]:
        """Family-wise decisions at the end of complete files, and the threshold of each pair given the decisions of the others."""
        alpha, weights = self.benchmark.spec.alpha, self.family_weights()
        evidence, side = self.kind.bound(self.pairs.at_risk)
        decided, threshold = np.zeros(self.pairs.size, bool), step_thresholds(weights, WHOLE, alpha)
        for _, own in self.benchmark.by_family(self.pairs.pair):
            decisions = step_down(evidence[own], weights[own], WHOLE, alpha)
            decided[own[decisions.pair]] = True
            open_weight = decisions.open_weight + np.where(decided[own], weights[own], 0)
            threshold[own] += np.log(open_weight.clip(min=1) / WHOLE)
        return np.where(decided, side, 0).astype(np.int8), threshold

    # --- decisions --------------------------------------------------------------------------------------------------------------------

    def decided(self, procedure: str) -> Sides | None:
        """Return the side that a procedure decides for each pair; None where it is not computed, or its decisions do not count."""
        # `clustered` is in `monitor.view.pairs.clusters`.
        if procedure in {"anytime", "anytime_family"}:
            return self.anytime_decisions[procedure] if self.in_force else None
        if self.superseded is not None:
            return None
        if procedure == "e_bh":
            return self._e_bh
        return self.fixed_n_decisions[procedure]

    @cached_property
    def clustered(self) -> Sides | None:
        """The side that the cluster-robust test decides for each pair, by Holm's procedure; None where it is not computed for all pairs."""
        found = pair_t(self.kind)
        if found is None:
            return None
        rejected, members = np.zeros(self.pairs.size, bool), self.in_family
        t, df = (column[members] for column in found)
        rejected[members] = holm_rejects(t, df, self.family_size, self.benchmark.spec.alpha)
        return self.towards_lead(rejected)

    @cached_property
    def _e_bh(self) -> Sides | None:
        return self.e_decisions(e_bh)

    def e_decisions(self, reject: Callable[[Floats, float], Flags]) -> Sides | None:
        """Return the decisions of a procedure on the current e-values of the family: revocable, never latched."""
        if not self.kind.bets or self.held:
            return None
        rejected = np.zeros(self.pairs.size, bool)
        if self.in_family.any():
            rejected[self.in_family] = reject(self.kind.lasting_log_e[self.in_family], self.benchmark.spec.alpha)
        return self.towards_lead(rejected)

    def towards_lead(self, rejected: Flags) -> Sides:
        """Return the side of the current gap where equality is rejected, 0 elsewhere."""
        side = np.zeros(self.pairs.size, np.int8)
        side[rejected] = np.sign(np.nan_to_num(self.kind.moments[0][rejected]))
        return side

    @cached_property
    def fixed_n_decisions(self) -> dict[str, Sides]:
        """Decisions of the fixed-n procedures (valid at a planned n only), from `p_fixed`."""
        alpha, p = self.benchmark.spec.alpha, self.kind.p_fixed
        small = np.flatnonzero(
            (p <= alpha) & (self.pairs.n > 0)
        )  # of millions of pairs often few; no procedure rejects another one
        p, member = p[small], self.in_family[small]
        rejected = {
            "fixed_n": np.ones(small.size, bool),
            "bonferroni": member & (p * self.family_size <= alpha),
            "bonferroni_adjacent": self.pairs.adjacent[small] & (p * self.neighbours <= alpha),
        }
        for name, adjust in (("holm", holm), ("benjamini_hochberg", benjamini_hochberg)):
            rejected[name] = member.copy()
            rejected[name][member] = adjust(p[member], self.family_size) <= alpha
        lead = np.sign(self.kind.moments[0][small]).astype(np.int8)
        decided = {name: np.zeros(self.pairs.size, np.int8) for name in rejected}
        for name, flags in rejected.items():
            decided[name][small] = np.where(flags, lead, 0)
        return decided

    @cached_property
    def anytime_decisions(self) -> dict[str, Sides]:
        """Anytime decisions made so far, in force or not: the latches, or the completion bound of complete files."""
        benchmark = self.benchmark
        if self.kind.decides_at_end:
            bound, side = self.kind.bound(self.pairs.at_risk)
            alone = np.where(bound >= benchmark.limit - TOLERANCE, side, 0).astype(np.int8)
            return {"anytime": alone, "anytime_family": self._step_down[0]}
        pair, sign = self.pairs.pair, np.where(self.pairs.flip, np.int8(-1), np.int8(1))
        return {name: np.sign(latch[pair]).astype(np.int8) * sign for name, latch in benchmark.latched.items()}

    @cached_property
    def settled(self) -> Sides:
        """Who leads on all items of the benchmark: a (1), b (-1), neither (`TIE`), or open (0)."""
        benchmark, leads = self.benchmark, self.kind.leads
        if leads is not None:
            lead, room, rounding = leads
            side = np.where(np.abs(lead) > room + rounding, np.sign(lead), 0)
            side = np.where((room == 0) & (np.abs(lead) <= rounding), TIE, side)
            return np.where(self.pairs.n > 0, side, 0).astype(np.int8)
        side = benchmark.claims["settled"]().side[self.pairs.pair]
        if benchmark.undeclared or benchmark.too_many_items or benchmark.reading.hold:
            return np.zeros(self.pairs.size, np.int8)
        return np.where(self.pairs.flip & (side != TIE), -side, side).astype(np.int8)

    @cached_property
    def settled_log_e(self) -> Floats:
        """Ln e that a pair is settled along a committed order; nan where it is settled for certain, and under other policies."""
        log_e = self.kind.settled_log_e((self.settled == 0) & (self.pairs.n > 0) & (self.superseded is None))
        return np.where(np.isinf(log_e), np.nan, log_e)

    def p_anytime(self, at: Index) -> Floats:
        """Return what anytime verdicts on some pairs rest on: the exact p at worst, or 1 / e; see `PairReport`."""
        if self.pairs.completes or self.kind.decides_at_end:
            return np.exp(-np.maximum(self.kind.bound(self.pairs.at_risk[at], at)[0], 0))
        peak = np.abs(self.benchmark.claims["anytime_family"]().peak[self.pairs.pair[at]])
        return np.minimum(1, np.exp(-np.maximum(peak, self.kind.anytime_evidence(at))))

    def decided_if_ignored(self, at: Index) -> Sides:
        """Return the family-wise decisions that pairs of ended runs would have if what is missing were ignored."""
        counted, policy = self.pairs.counted_missing, self.benchmark.spec.order.policy
        nobody, taken = np.zeros(at.size, np.int8), policy in {"none", "trusted"} and not self.asserted
        rest = None if counted is None or not self.in_force or taken else self.kind.without_missing(at)
        if counted is None or rest is None:
            return nobody
        bound, side = rest
        reached = bound >= self.log_family_threshold(at) - TOLERANCE
        return np.where(self.pairs.ended[at] & (counted[at] > 0) & reached, side, 0).astype(np.int8)

    @property
    def rests_on_ends(self) -> bool:
        """Whether a verdict would be open, or a score, if runs went on whose end is assumed."""
        benchmark = self.benchmark
        if not benchmark.assumed_ended or self.asserted or self.held:
            return False
        assumed = np.isin(np.arange(len(benchmark.contestants)), list(benchmark.assumed_ended))
        if benchmark.waits(assumed):
            return True
        among, undecided = assumed[self.pairs.a] | assumed[self.pairs.b], self.anytime_decisions["anytime_family"] == 0
        if self.pairs.missing is None:
            return bool((among & undecided).any())
        bound, _ = self.kind.bound(self.pairs.exposed)
        by_end = (self.pairs.ignored > 0) & (bound < self.log_family_threshold())
        return bool((among & (self.pairs.missing > 0) & (undecided | by_end)).any())

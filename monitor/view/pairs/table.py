"""The pairs of a leaderboard: sums over clusters, the family, and decisions by procedure."""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import ALL, BoardView, Flags, Floats, PairCounts, Sides
from monitor.view.kinds.kind import FEW, SLAB_CELLS, Kind, kind_of
from monitor.view.reasons import held
from monitor.words.order import because
from schemas.records.text import Sentence
from schemas.results.reasons import Fact
from stats.clusters.robust import clustered_t, holm_rejects
from stats.evidence.settled import TIE
from stats.families.error_control import WHOLE, benjamini_hochberg, e_bh, holm, step_down, step_thresholds
from stats.numerics.checks import TOLERANCE
from stats.numerics.pairs import Index

CELL_BUDGET: Final = 20_000_000
"""Pairs times clusters up to which cluster sums are computed for every pair; above it only for the displayed pairs."""

_BLOCK_PAIRS: Final = 12_288
"""Pairs whose sums of all clusters are computed at a time: they stay in the processor's cache."""


class ClusterSums(NamedTuple):
    """Sums of some pairs by cluster, shape (pairs, clusters) each."""

    names: list[str]
    label: Index  # cluster of each row that bets; -1 for one without a cluster
    n: Floats
    s1: Floats
    s2: Floats


def labels(benchmark: BoardView) -> tuple[list[str], Index]:
    """Return the clusters by name, and the place of each item's cluster among them: -1 for an item without one."""
    of_item = benchmark.item_clusters()
    names = sorted({name for name in of_item if name is not None})
    place: dict[str | None, int] = {name: g for g, name in enumerate(names)} | {None: -1}
    return names, np.array([place[name] for name in of_item], np.int64)


def cluster_sums(kind: Kind, at: Index) -> ClusterSums | None:
    """Return the sums of the pairs `at` over each cluster."""
    # Items without a cluster are omitted. None unless there are at least two clusters, and the sums fit the budget.
    names, label = labels(kind.benchmark)
    groups = len(names)
    if groups < 2 or groups * at.size > CELL_BUDGET:
        return None
    few = at.size <= FEW * kind.pairs.size
    n, s1, s2 = np.zeros((3, groups, at.size))
    a, b = kind.pairs.a[at], kind.pairs.b[at]
    for g, (x, scored) in enumerate(_by_cluster(kind, label, groups)):
        for start in range(0, x.shape[0] if few else 0, max(1, SLAB_CELLS // max(1, at.size))):
            # Sums over all pairs are products of matrices of all models.
            slab = slice(start, start + max(1, SLAB_CELLS // max(1, at.size)))
            values, present = x[slab], scored[slab]
            shared = present[:, a] * present[:, b]
            difference = (values[:, a] - values[:, b]) * shared
            for sums, each in ((n, shared), (s1, difference), (s2, difference * difference)):
                sums[g] += each.sum(axis=0)
        if not few:
            on_shared = x.T @ scored
            squares = kind.squares(x, scored)
            n[g], s1[g] = (scored.T @ scored)[a, b], on_shared[a, b] - on_shared[b, a]
            s2[g] = squares[a, b] + squares[b, a] - 2 * (x.T @ x)[a, b]
    constant = kind.constant()
    if constant is not None:
        same, gap = (each[at] for each in constant)
        s1[:, same] = gap[same] * n[:, same]
        s2[:, same] = gap[same] ** 2 * n[:, same]
    # Statistics run over pairs, which lie side by side.
    return ClusterSums(names, label, n.T, s1.T, np.maximum(s2, 0).T)


def _by_cluster(kind: Kind, label: Index, groups: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield scores and presence in the rows of each cluster."""
    x, scored = kind.scores
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(groups + 1))
    for start, end in pairwise(bounds.tolist()):
        rows = order[start:end]
        yield x[rows], scored[rows]


def pair_t(kind: Kind) -> tuple[Floats, Floats] | None:
    """Return t of the cluster-robust test of every pair and its degrees of freedom; None without clusters, or beyond the budget."""
    names, label = labels(kind.benchmark)
    groups, ranking = len(names), kind.pairs.ranking
    if groups < 2 or groups * kind.pairs.size > CELL_BUDGET:
        return None
    parts = [_Cluster.of(x[:, ranking], scored[:, ranking]) for x, scored in _by_cluster(kind, label, groups)]
    constant = kind.constant()
    t, df = np.zeros((2, kind.pairs.size))
    models, start = ranking.size, 0
    step = max(1, _BLOCK_PAIRS // models)
    for first in range(0, models - 1, step):
        better = slice(first, min(first + step, models - 1))
        n, s1 = np.zeros((2, groups, better.stop - first, models - first))
        for g, part in enumerate(parts):
            part.add(better, n[g], s1[g])
        upper = np.arange(first, models) > np.arange(better.start, better.stop)[:, None]
        some = slice(start, start := start + int(np.count_nonzero(upper)))
        if constant is not None:
            same, gap = np.zeros(upper.shape, bool), np.zeros(upper.shape)
            same[upper], gap[upper] = (each[some] for each in constant)
            s1 = np.where(same, gap * n, s1)  # as in `cluster_sums`
        t[some], df[some] = (each[upper] for each in clustered_t(*(np.moveaxis(each, 0, -1) for each in (n, s1))))
    return t, df


class _Cluster(NamedTuple):
    """The scores of a cluster by rank: sums over the items that every model has, and the rows of the others."""

    items: int
    scores: Floats
    values: Floats
    present: Floats

    @classmethod
    def of(cls, values: Floats, present: Floats) -> Self:
        """Split the rows."""
        whole = present.all(axis=1)
        return cls(int(np.count_nonzero(whole)), values[whole].sum(axis=0), values[~whole], present[~whole])

    def add(self, better: slice, n: Floats, s1: Floats) -> None:
        """Add shared items and sums of D: of the ranks `better` with each from the first of them on."""
        later = slice(better.start, None)
        n += self.items
        s1 += self.scores[better, None] - self.scores[later]
        if len(self.values):
            values, present = self.values[:, later], self.present[:, later]
            n += self.present[:, better].T @ present
            s1 += self.values[:, better].T @ present - self.present[:, better].T @ values


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

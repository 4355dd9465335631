"""The pairs of a leaderboard as columns: counts from the state, statistics over arrays, verdicts by procedure."""

from dataclasses import dataclass, field
from functools import cached_property
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import log_thresholds
from monitor.engine.latch.committed import prefix_log_e
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.counts import ONE, ZERO
from monitor.engine.state.graded import GRADED_MIXTURE, capital_of
from monitor.engine.state.pairs import Index, pair_index
from stats.eprocess import anytime_required_n, log_completion_bound, log_e_halves
from stats.evidence import PairEvidence, pair_evidence
from stats.families import benjamini_hochberg, e_bh, holm
from stats.graded import graded_completion_bound, graded_log_e, graded_log_e_halves
from stats.mcnemar import exact_p, mid_p
from stats.mixtures import parse_mixture
from stats.paired import moments, moments_from_sums
from stats.resolution import mde, required_n

Floats = NDArray[np.float64]
Sides = NDArray[np.int8]
"""+1: model_a is decided to be better; -1: model_b; 0: undecided."""

_SLAB_ROWS: Final = 8_192


@dataclass
class PairTable:
    """Every pair of the current models of a benchmark; a is the better-ranked of the two.

    Attributes
    ----------
    a, b : arrays of int64, shape (pairs,)
        Contestants.
    rank : array of int64, shape (pairs,)
        0-based rank of a; a pair is adjacent when b is the next.
    assumed_items : int or None
        The item count that is asserted (files that are complete as they are), when nothing was declared.
    superseded : tuple of two arrays of int64, optional
        Contestants of the pairs, when those are pairs of an older epoch instead of the pairs of the ranking.
    """

    benchmark: Benchmark
    ranking: Index
    assumed_items: int | None = None
    superseded: tuple[Index, Index] | None = None
    a: Index = field(init=False)
    b: Index = field(init=False)
    adjacent: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        if self.superseded is not None:
            self.a, self.b = self.superseded
            self.adjacent = np.zeros(self.a.size, bool)
            return
        first, second = np.triu_indices(self.ranking.size, 1)
        self.a, self.b = self.ranking[first], self.ranking[second]
        self.adjacent = second == first + 1

    @property
    def asserted(self) -> bool:
        """Whether completeness is asserted."""
        return self.assumed_items is not None

    # --- counts -----------------------------------------------------------------------------------------------------------------------

    @cached_property
    def pair(self) -> Index:
        """Index of each pair in the state."""
        return pair_index(np.minimum(self.a, self.b), np.maximum(self.a, self.b))

    @cached_property
    def flip(self) -> NDArray[np.bool_]:
        """Whether a is the second contestant of the pair as the state holds it."""
        return np.asarray(self.a > self.b)

    @cached_property
    def n(self) -> NDArray[np.int64]:
        """Shared items."""
        return self.benchmark.n[self.pair].astype(np.int64)

    @cached_property
    def wins(self) -> NDArray[np.int64]:
        """Items that a alone has right."""
        return np.where(self.flip, self.benchmark.c[self.pair], self.benchmark.b[self.pair]).astype(np.int64)

    @cached_property
    def losses(self) -> NDArray[np.int64]:
        """Items that b alone has right."""
        return np.where(self.flip, self.benchmark.b[self.pair], self.benchmark.c[self.pair]).astype(np.int64)

    @cached_property
    def sums(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean score of a and of b on the shared items, and the sums of D and of D^2 over them, from the rows."""
        x, scored = self.scores
        contestants = x.shape[1]
        on_shared = np.zeros((contestants, contestants))
        squares = np.zeros((contestants, contestants))
        products = np.zeros((contestants, contestants))
        for start in range(0, x.shape[0], _SLAB_ROWS):
            values, present = x[start : start + _SLAB_ROWS], scored[start : start + _SLAB_ROWS]
            on_shared += values.T @ present
            products += values.T @ values
            squares += on_shared_squares(values, present) if not self.benchmark.binary else 0
        if self.benchmark.binary:
            squares = on_shared
        a, b = self.a, self.b
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_a, mean_b = on_shared[a, b] / self.n, on_shared[b, a] / self.n
        return mean_a, mean_b, on_shared[a, b] - on_shared[b, a], squares[a, b] + squares[b, a] - 2 * products[a, b]

    @cached_property
    def scores(self) -> tuple[Floats, Floats]:
        """Scores in [0, 1] (0 where there is none) and presence, of the rows that bet, shape (rows, contestants)."""
        benchmark = self.benchmark
        codes = benchmark.item_codes()
        if benchmark.binary:
            return (codes == ONE).astype(np.float64), (codes >= ZERO).astype(np.float64)
        return benchmark.item_values[codes] / benchmark.unit, (codes >= ZERO).astype(np.float64)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Gap and standard deviation of D."""
        if self.benchmark.binary:
            return moments(self.n, self.wins, self.losses)
        _, _, s1, s2 = self.sums
        return moments_from_sums(self.n, s1, np.maximum(s2, 0))

    # --- resolution -------------------------------------------------------------------------------------------------------------------

    def required_n(self, alpha: float, listed: Index | slice = slice(None)) -> Floats:
        """N* at a level, fixed n, of all pairs or some."""
        power = self.benchmark.spec.power
        if self.benchmark.binary:
            return required_n(self.n[listed], self.wins[listed], self.losses[listed], alpha, power)
        from stats.resolution import required_n_paired

        gap, sd = self.moments
        return required_n_paired(gap[listed], sd[listed], alpha, power)

    @cached_property
    def n_star(self) -> Floats:
        """N* at the declared level."""
        return self.required_n(self.benchmark.spec.alpha)

    @cached_property
    def mde(self) -> Floats:
        """Minimum detectable effect at the shared items of each pair."""
        return mde(self.n, self.moments[1], self.benchmark.spec.alpha, self.benchmark.spec.power)

    def resolved(self, n_star: Floats) -> NDArray[np.bool_]:
        """Whether q = n / N* >= 1; not where N* is 0, as D is the same on every shared item: that tells nothing of its spread."""
        return np.asarray(self.n >= n_star) & (n_star > 0)

    @cached_property
    def anytime_n_star(self) -> Floats:
        """N* under the anytime boundary of the declared mixture."""
        spec = self.benchmark.spec
        return anytime_required_n(self.n, self.wins, self.losses, spec.alpha, spec.power, spec.mixture)

    # --- graded scores ---------------------------------------------------------------------------------------------------------------

    @property
    def bets(self) -> bool:
        """Whether there is an e-process: not for scores that turned out graded under a declaration of 0/1 scores."""
        return self.benchmark.binary or self.benchmark.graded or self.asserted

    @property
    def mixture(self) -> str:
        """What the bets are of: the declared mixture of 0/1 scores, or the fixed grid of graded ones."""
        return self.benchmark.spec.mixture if self.benchmark.binary or not self.bets else GRADED_MIXTURE

    @cached_property
    def capital(self) -> NDArray[np.int64]:
        """Capital of each pair, the bets on a first; shape (pairs, 2, L)."""
        benchmark = self.benchmark
        if benchmark.graded_pairs is not None:
            capital = benchmark.graded_pairs.capital[self.pair]
        else:
            first, second = np.minimum(self.a, self.b), np.maximum(self.a, self.b)
            capital, _ = capital_of(benchmark.item_codes(), benchmark.item_values, benchmark.unit, first, second)
        return np.where(self.flip[:, None, None], capital[:, ::-1], capital)

    # --- evidence ---------------------------------------------------------------------------------------------------------------------

    @cached_property
    def uniform(self) -> PairEvidence | None:
        """The exact tests and the e-values together, where one integral gives both: of all shared items, under the uniform mixture."""
        mixture = parse_mixture(self.benchmark.spec.mixture)
        if not self.benchmark.binary or mixture.beta != (1.0, 1.0):
            return None
        return pair_evidence(self.wins, self.losses, mixture)

    @cached_property
    def p_exact(self) -> Floats:
        """Exact McNemar p-values."""
        return exact_p(self.wins, self.losses) if self.uniform is None else self.uniform.p_exact

    def p_mid(self, listed: Index) -> Floats:
        """Mid-p values of some pairs."""
        return mid_p(self.wins[listed], self.losses[listed]) if self.uniform is None else self.uniform.p_mid[listed]

    @cached_property
    def p_fixed(self) -> Floats:
        """P-values that the fixed-n decisions rest on: the exact test of 0/1 scores, the paired t test of graded ones."""
        if self.benchmark.binary:
            return self.p_exact
        from stats.ttest import paired_t

        _, _, s1, s2 = self.sums
        return paired_t(self.n, s1, np.maximum(s2, 0))[1]

    @cached_property
    def evidence(self) -> tuple[NDArray[np.int64], ...]:
        """What verdicts rest on: n, b, c, and b's worst and best case (`c_worst`, `b_best`), which differ where items were skipped.

        Along a committed order these are the counts of the prefix, skipped items among n; else those of all shared items.
        """
        committed = self.benchmark.committed
        if committed is None:
            return self.n, self.wins, self.losses, self.losses, self.wins
        b, c, c_worst, b_best = (
            committed.sums[name][self.pair].astype(np.int64) for name in ("b", "c", "c_worst", "b_best")
        )
        n = committed.prefix(self.a, self.b)
        flip = self.flip
        return (
            n,
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
            return self.uniform.log_e
        _, b, c, c_worst, b_best = self.evidence
        return prefix_log_e(b, c, c_worst, b_best, self.benchmark.spec.mixture)

    @cached_property
    def log_e_halves(self) -> tuple[Floats, Floats]:
        """Logarithms of the directional halves: a is better, b is better."""
        if not self.benchmark.binary:
            return graded_log_e_halves(self.capital)
        if self.benchmark.committed is None and self.uniform is not None:
            return self.uniform.log_e_a, self.uniform.log_e_b
        _, b, c, c_worst, b_best = self.evidence
        mixture = self.benchmark.spec.mixture
        if c_worst is c:
            return log_e_halves(b, c, mixture)
        return log_e_halves(b, c_worst, mixture)[0], log_e_halves(b_best, c, mixture)[1]

    @cached_property
    def missing(self) -> NDArray[np.int64] | None:
        """Items a pair does not share yet (of a committed order: that lie behind its prefix), where the item count is known."""
        if self.benchmark.committed is not None:
            return self.benchmark.committed.size - self.evidence[0]
        items = self.assumed_items if self.assumed_items is not None else self.benchmark.spec.items
        return None if items is None else np.maximum(items - self.n, 0)

    # --- families ---------------------------------------------------------------------------------------------------------------------

    @cached_property
    def in_family(self) -> NDArray[np.bool_]:
        """Whether a pair is one of those over which error is controlled: all of them, unless pairs were declared beforehand."""
        declared = self.benchmark.spec.family.pairs
        if declared is None:
            return np.ones(self.pair.size, bool)
        from monitor.engine.latch.base import declared_pairs

        return np.isin(self.pair, declared_pairs(self.benchmark))

    @property
    def family_size(self) -> int:
        """How many pairs the fixed-n families hold."""
        return max(int(self.in_family.sum()), 1)

    @property
    def anytime_family_size(self) -> int:
        """Pairs that share alpha: of a declared capacity; else all compared where completeness is asserted, or those registered."""
        benchmark = self.benchmark
        return benchmark.spec.family.capacity or (self.family_size if self.asserted else benchmark.registered)

    @cached_property
    def log_family_threshold(self) -> Floats:
        """Return ln 1/alpha_j of each pair; infinite for a pair without a place in the family."""
        spec = self.benchmark.spec
        if self.asserted and spec.family.capacity is None:
            return np.where(self.in_family, log(self.anytime_family_size / spec.alpha), np.inf)
        return log_thresholds(self.benchmark, self.pair)["anytime_family"]

    def direction(self) -> Sides:
        """Side of the current gap."""
        return np.sign(self.moments[0]).astype(np.int8)

    def _by_p(self, adjusted: Floats) -> Sides:
        return np.where((adjusted <= self.benchmark.spec.alpha) & (self.n > 0), self.direction(), 0).astype(np.int8)

    @cached_property
    def decided_fixed(self) -> dict[str, Sides]:
        """Decisions of the fixed-n procedures (valid at a planned n only), from `p_fixed`."""
        inside = self.in_family
        adjusted = {"fixed_n": self.p_fixed}
        for name, adjust in (("holm", holm), ("benjamini_hochberg", benjamini_hochberg)):
            values = np.ones(inside.size)
            values[inside] = adjust(self.p_fixed[inside]) if inside.any() else 1.0
            adjusted[name] = values
        adjusted["bonferroni"] = np.where(inside, np.minimum(self.p_fixed * self.family_size, 1), 1.0)
        neighbours = max(int(self.adjacent.sum()), 1)
        adjusted["bonferroni_adjacent"] = np.where(self.adjacent, np.minimum(self.p_fixed * neighbours, 1), 1.0)
        return {name: self._by_p(values) for name, values in adjusted.items()}

    @cached_property
    def decided_anytime(self) -> dict[str, Sides]:
        """Decisions of the anytime procedures: the latches, or, where completeness is asserted, the completion bound as it stands."""
        benchmark = self.benchmark
        if self.assumed_items is not None:
            assert self.missing is not None
            if benchmark.binary:
                for_a, for_b = log_completion_bound(self.wins, self.losses, self.missing, benchmark.spec.mixture)
            else:
                for_a, for_b = graded_completion_bound(self.capital, self.missing)
            bound, side = np.maximum(for_a, for_b), np.where(for_a >= for_b, 1, -1)
            thresholds = {
                "anytime": np.full(bound.shape, -log(benchmark.spec.alpha)),
                "anytime_family": self.log_family_threshold,
            }
            return {name: np.where(bound >= limit, side, 0).astype(np.int8) for name, limit in thresholds.items()}
        sign = np.where(self.flip, -1, 1)
        return {name: (np.sign(latch[self.pair]) * sign).astype(np.int8) for name, latch in benchmark.latched.items()}

    @cached_property
    def decided_e_bh(self) -> Sides:
        """e-BH on the current e-values: revocable, never latched."""
        inside = self.in_family
        rejected = np.zeros(inside.size, bool)
        if inside.any():
            rejected[inside] = e_bh(self.log_e[inside], self.benchmark.spec.alpha)
        return np.where(rejected, self.direction(), 0).astype(np.int8)


def on_shared_squares(values: Floats, present: Floats) -> Floats:
    """Sum of squared scores of one model over the items it shares with another, shape (contestants, contestants)."""
    return np.asarray((values * values).T @ present)

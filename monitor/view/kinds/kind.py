"""What every kind of score answers about a board and its pairs."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from monitor.engine.kinds.repeats import Repeats
from monitor.engine.state.codes import Codes
from monitor.view.board import ALL, BoardView, Flags, Floats, PairCounts, Sides, unweighted_ranking
from schemas.records.scores import SCORE_UNIT, ZERO
from schemas.results.reasons import Fact, Reason, fact
from schemas.results.report import RepeatsReport, SuiteMemberState, WeightsReport
from stats.fixed_n.means import mean_interval
from stats.fixed_n.resolution import mde
from stats.numerics.pairs import Index

MOST_PAIRS: Final = 100_000
"""Pairs up to which intervals of graded scores and chances are computed: each takes a pass over its items."""

SLAB_ROWS: Final = 8_192

SLAB_CELLS: Final = 4_000_000  # scores of pairs that are compared at a time

FEW: Final = 0.01  # share of the pairs up to which their sums are computed one by one

Bounds = tuple[Floats, Floats]
Sums = tuple[Floats, Floats, Floats, Floats]
"""Mean score of a and of b on the shared items (weighted, if clusters are), and the sums of D and of D^2 over them."""

_ONE_EACH: Final = RepeatsReport(min=1, mean=1.0, max=1)


class Walk(NamedTuple):
    """The items of a path: codes of both contestants in order, and the number of items at each point kept."""

    order: str
    x: Codes
    y: Codes
    kept: Index
    items: Index


class Course(NamedTuple):
    """A path at the points kept: the gap, ln e with its halves, and the interval; None for what its kind has not."""

    gap: Floats
    log_e: Floats | None
    log_e_a: Floats | None
    log_e_b: Floats | None
    gap_low: Floats | None
    gap_high: Floats | None


class Kind(ABC):
    """The pairs of a board by the kind of its scores; each statistic is computed on first use."""

    # The defaults fit scores of items that count the same.
    unit: ClassVar = "item"
    right_or_wrong: ClassVar = False  # whether an item is
    marginless: ClassVar[str | None] = None  # what of these scores gives a margin no meaning
    member_state: ClassVar[SuiteMemberState] = "counts"  # as a member of a suite
    has_end: ClassVar = True  # whether there is a last item, so that files may hold all items, and a pair share them

    def __init__(self, pairs: PairCounts) -> None:
        self.pairs, self.benchmark = pairs, pairs.benchmark

    @classmethod
    def ranking(cls, drawn: BoardView) -> Index:
        """Return the current contestants of a board from the best to the worst, ties by name; one without a score comes last."""
        benchmark = drawn.described()
        return unweighted_ranking(benchmark, current(benchmark))

    @classmethod
    def repeats_of(cls, benchmark: BoardView, contestants: Any) -> RepeatsReport | None:  # noqa: ANN401 - an index of any kind
        """Return how many scored repeats the items of some contestants have; None without a score."""
        if not isinstance(benchmark.by_item, Repeats):
            return _ONE_EACH if benchmark.scored[contestants].sum() else None
        repeats = benchmark.by_item.members or benchmark.by_item
        return counted(repeats.count[: len(repeats.keys), contestants])

    def repeats(self, contestant: int) -> RepeatsReport | None:
        """Report how many scored repeats the items of a model have."""
        return self.repeats_of(self.benchmark, contestant)

    def means_of(self, models: Index) -> tuple[Floats, Floats, Floats]:
        """Return the mean scores that rank models, and their intervals; nan without one."""
        means, total, scored = self.plain_means(models)
        known, bounds = scored > 0, np.full((2, models.size), np.nan)
        if known.any():
            bounds[:, known] = mean_interval(total[known], scored[known], self.benchmark.spec.alpha)
        return means, bounds[0], bounds[1]

    def plain_means(self, models: Index) -> tuple[Floats, Floats, Index]:
        """Return the mean score of each model over its own items, nan without one; the sum, and the number of items."""
        scored = self.benchmark.scored[models]
        total = self.benchmark.total[models] / SCORE_UNIT
        return np.divide(total, scored, out=np.full(models.size, np.nan), where=scored > 0), total, scored

    def unweighted(self, models: Index) -> tuple[list[float | None], list[int | None]]:
        """Return the means and ranks that models would have without weights; None where they have none."""
        return [None] * models.size, [None] * models.size

    def weights(self, ranking: Index) -> WeightsReport | None:
        """Report the weights, and how the ranking differs from the unweighted one."""
        return None

    def rated(self, ranking: Index) -> Fact | None:
        """Return the highest rating, in place of a lead on all items."""
        return None

    def coverage(self, scored: Index, items: int) -> Floats:
        """Return the share of the items that models have."""
        return np.minimum(scored / items, 1.0) if items else (scored > 0).astype(np.float64)

    def unmet(self, *, ended: bool, waits: bool) -> Fact:
        """Return that a pair shares nothing, and whether its runs have ended or items wait until they have."""
        return fact(Reason.NOTHING_SHARED, ended=ended, waits=waits)

    def sums_on(self, items: Flags, models: Index) -> Floats:
        """Return the sums of the scores of models on some items that all of them have, in units; nan without a mean."""
        values = self.benchmark.item_values
        return np.asarray(values[self.benchmark.item_codes()[items][:, models]].sum(axis=0))

    def compared_on(self, models: Index, *, about_all: bool) -> Flags:
        """Return on which items each model is compared, shape (models, items); equal rows: on the same. `about_all`: of the benchmark."""
        if about_all and not self.pairs.ignored.any():
            return np.ones((models.size, 1), bool)
        return np.asarray((self.benchmark.item_codes()[:, models] >= ZERO).T)

    def lacking(self, models: Index, share: float) -> Flags:
        """Return which models have less than a share of the items of the model that has most."""
        # A model whose missing items are ignored lacks none: its pairs are judged on the items that they share.
        pairs, scored = self.pairs, self.benchmark.scored[models]
        lacks = scored < share * scored.max(initial=0)
        if pairs.counted_missing is not None and pairs.ignored.any():
            at_worst = np.zeros(len(self.benchmark.contestants), bool)
            for side in (pairs.a, pairs.b):
                at_worst[side[pairs.counted_missing > 0]] = True
            lacks &= at_worst[models]
        return np.asarray(lacks)

    def right(self, models: Index) -> Flags | None:
        """Return which of the items that all of some models have each one has right; None unless right items are all that counts."""
        return None

    @property
    @abstractmethod
    def scores(self) -> tuple[Floats, Floats]:
        """Scores in [0, 1] (0 where there is none) and presence, of the rows that bet, shape (rows, contestants)."""

    @abstractmethod
    def squares(self, values: Floats, present: Floats) -> Floats:
        """Return the sums of squared scores of one model over the items it shares with another, shape (contestants, contestants)."""

    @cached_property
    def sums(self) -> Sums:
        """What the scores of all pairs add up to; see `Sums`."""
        return self.add_up()

    def add_up(self) -> Sums:
        """Return the sums, from the scores."""
        x, scored = self.scores
        contestants = x.shape[1]
        on_shared, squares, products = np.zeros((3, contestants, contestants))
        for start in range(0, x.shape[0], SLAB_ROWS):
            values, present = x[start : start + SLAB_ROWS], scored[start : start + SLAB_ROWS]
            on_shared += values.T @ present
            products += values.T @ values
            squares += self.squares(values, present)
        a, b, n = self.pairs.a, self.pairs.b, self.pairs.n
        with np.errstate(divide="ignore", invalid="ignore"):
            means = on_shared[a, b] / n, on_shared[b, a] / n
        return *means, on_shared[a, b] - on_shared[b, a], squares[a, b] + squares[b, a] - 2 * products[a, b]

    def means(self, at: Index) -> tuple[Floats, Floats]:
        """Return the mean score of a and of b on the items that they share, of some pairs."""
        return self.sums[0][at], self.sums[1][at]

    @property
    @abstractmethod
    def moments(self) -> tuple[Floats, Floats]:
        """Gap and standard deviation of D; a standard deviation of 0 is exact: D is the same on every shared item."""

    def constant(self) -> tuple[Flags, Floats] | None:
        """Return which pairs have one D on every shared item, and the gaps: their sums carry rounding noise. None for exact sums."""
        return None

    @property
    def cluster_weights(self) -> Floats | None:
        """What each cluster counts, by name; None where items count the same."""
        return None

    def counts(self, at: Index) -> tuple[list[int | None], list[int | None]]:
        """Return the items that only a and only b has right, of some pairs; None where scores are not right or wrong."""
        return [None] * at.size, [None] * at.size

    def tests(self, at: Index, means: tuple[Floats, Floats]) -> dict[str, Floats]:
        """Return the tests of counts of some pairs with their means, and the correlation of right answers; nan without counts."""
        return dict.fromkeys(("p_chi2", "p_exact", "p_mid", "rho"), np.full(at.size, np.nan))

    def win_matrices(self) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return the prompts on which models met, and those that the model of the row won, by rank; None for scores of items."""
        return None

    @property
    @abstractmethod
    def p_fixed(self) -> Floats:
        """P-values of the fixed-n decisions."""

    @abstractmethod
    def required_n(self, alpha: float | Floats, at: Index | slice = ALL, power: float | None = None) -> Floats:
        """Return N* at a level, fixed n, of some pairs; with the declared power unless another is given."""

    def anytime_required_n(self, at: Index) -> Floats | None:
        """Return N* of some pairs under the anytime boundary of the declared mixture; None where there is no such number."""
        return None

    def n_star(self, at: Index | slice = ALL) -> Floats:
        """Return N* of some pairs at the declared level."""
        return self.required_n(self.benchmark.spec.alpha, at)

    @cached_property
    def resolution_ratio(self) -> Floats:
        """The resolution ratio q at the declared level."""
        return resolution_ratio(self.pairs.n, self.n_star())

    def mde(self, at: Index) -> Floats:
        """Return the minimum detectable effect at the shared items of some pairs; nan without a spread of D."""
        spec, n = self.benchmark.spec, self.pairs.n[at]
        sd = self.moments[1][at]
        known = np.isfinite(sd)
        effect = np.where(known, mde(n, np.where(known, sd, 0), spec.alpha, spec.power), np.nan)
        return np.where((sd == 0) & (n > 0), np.nan, effect)

    @property
    @abstractmethod
    def bets(self) -> bool:
        """Whether there is an e-process."""

    @property
    def mixture(self) -> str:
        """The mixture of the bets."""
        return self.benchmark.spec.mixture

    @property
    def look(self) -> float:
        """The share of alpha for the exact test of all items, at the end of a committed order; 0 without one."""
        return 0.0

    def log_e_threshold(self, threshold: Floats | float) -> Floats:
        """Return from which ln e on bets alone reach a threshold, with their share of alpha."""
        return np.asarray(threshold - np.log1p(-self.look))

    @property
    def policy(self) -> str:
        """The order policy on which verdicts rest, as assumptions name it."""
        return "completion" if self.pairs.asserted else self.benchmark.spec.order.policy

    @property
    def decides_at_end(self) -> bool:
        """Whether decisions are computed from the scores, and not latched: of complete files, on all their items."""
        pairs, benchmark = self.pairs, self.benchmark
        declared = benchmark.complete_files and benchmark.spec.order.policy == "completion"
        return pairs.asserted or (declared and pairs.superseded is None and benchmark.assumption_holds)

    @property
    def shares_equally(self) -> bool:
        """Whether all pairs that are found share alpha equally: those of complete files, unless a family was declared."""
        return self.decides_at_end and self.benchmark.spec.family.capacity is None

    @property
    def leads(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
        """The lead of a, how far missing items can move it, and its rounding, all in one unit; None where leads are latched."""
        return self.lead if self.pairs.asserted else None

    @property
    @abstractmethod
    def lead(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The same of complete files."""

    def settled_log_e(self, open_pairs: Flags) -> Floats:
        """Return ln e that pairs which are open are settled along a committed order; nan elsewhere."""
        return np.full(open_pairs.size, np.nan)

    @property
    @abstractmethod
    def log_e(self) -> Floats:
        """Logarithm of the two-sided mixture e-value at the current counts."""

    def anytime_evidence(self, at: Index) -> Floats:
        """Return what anytime verdicts on some pairs rest on now, if not on the exact test at N alone."""
        return np.asarray(self.log_e[at])

    @cached_property
    def lasting_log_e(self) -> Floats:
        """Ln e that missing items cannot undo under policy completion, where the order of arrival may be anything; else ln e now."""
        if not self.pairs.completes:
            return self.log_e
        return self.log_e_at_worst(self.pairs.at_risk)

    @abstractmethod
    def log_e_at_worst(self, missing: Index) -> Floats:
        """Return ln e with missing items at their worst."""

    @abstractmethod
    def log_e_halves(self, at: Index) -> tuple[Floats, Floats]:
        """Return the logarithms of the directional halves of some pairs: a is better, b is better."""

    def bound(self, missing: Index, at: Index | slice = ALL) -> tuple[Floats, Sides]:
        """Return the evidence of some pairs under policy completion with missing items at their worst, and the side it is for."""
        for_a, for_b = self.halves_at_worst(missing, at)
        return np.maximum(for_a, for_b), np.where(for_a >= for_b, 1, -1).astype(np.int8)

    @abstractmethod
    def halves_at_worst(self, missing: Index, at: Index | slice) -> tuple[Floats, Floats]:
        """Return what missing items leave of the evidence for a and for b."""

    def without_missing(self, at: Index) -> tuple[Floats, Sides] | None:
        """Return `bound` of some pairs if what is missing were ignored; None where the rest alone has no gap."""
        return self.bound(np.zeros(at.size, np.int64), at)

    def gap_bounds(self, at: Index, *levels: Floats) -> list[Bounds]:
        """Return the anytime-valid bounds of the gap of some pairs at each level (one alpha a pair); nan where alpha is 0."""
        return [self._at_end(at, alpha) for alpha in levels] if self.pairs.completes else self.bounds_now(at, *levels)

    def _at_end(self, at: Index, alpha: Floats) -> Bounds:
        """Return the interval of complete benchmarks, missing items at their worst: it holds in any order of arrival."""
        missing = self.pairs.counted_missing
        assert missing is not None
        low, high = np.full((2, at.size), np.nan)
        placed = np.flatnonzero((alpha > 0) & (self.pairs.n[at] > 0))
        some = at[placed]
        low[placed], high[placed] = self.bounds_at_worst(some, missing[some], alpha[placed])
        return low, high

    @abstractmethod
    def bounds_now(self, at: Index, *levels: Floats) -> list[Bounds]:
        """Return the bounds as results come in."""

    @abstractmethod
    def bounds_at_worst(self, at: Index, missing: Index, alpha: Floats) -> Bounds:
        """Return the bounds with missing items at their worst."""

    def near(self, at: Index, margin: float) -> Flags:
        """Return which of some pairs may be closer than a margin, before their intervals are computed."""
        return np.ones(at.size, bool)

    def items_to_decision(self, at: Index, threshold: Floats) -> Floats:
        """Return the items until the family-wise decision at the present estimate; nan where there is no estimate."""
        return np.full(at.size, np.nan)

    def decision_probability(self, at: Index, placed: Flags, threshold: Callable[[Index], Floats]) -> Floats:
        """Return the probability of a family-wise decision by the last item, at the present thresholds; nan where it is not computed."""
        # `placed`: which pairs have a place in the family.
        return np.full(at.size, np.nan)

    def reachable(self, at: Index, left: Index) -> Flags:
        """Return which pairs may be decided if every item that they may still share is won by one of the two."""
        return np.ones(at.size, bool)

    @abstractmethod
    def course(self, walk: Walk) -> Course:
        """Return the path of the only pair along its items."""

    def opinions(self, at: Index, seed: int) -> dict[str, Floats]:
        """Return the second opinions on counts of some pairs that share items."""
        return {}

    def drawn_again(self) -> bool:
        """Return whether items that count the same may be drawn again for second opinions."""
        return True

    def by_category(self) -> bool:
        """Return whether each item is right or wrong, so that the items of a category can be counted."""
        return False


def current(benchmark: BoardView) -> Index:
    """Return the contestants that are the newest epoch of their model."""
    return np.flatnonzero(benchmark.current()) if benchmark.contestants else np.empty(0, np.int64)


def counted(counts: NDArray[Any]) -> RepeatsReport | None:
    """Return the numbers of repeats of the items that have any."""
    some = counts[counts > 0]
    return RepeatsReport(min=int(some.min()), mean=float(some.mean()), max=int(some.max())) if some.size else None


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


def kind_of(benchmark: BoardView) -> type[Kind]:
    """Return the kind of the scores that a board is described with."""
    kind: type[Kind] = benchmark.kind_of(benchmark)
    return kind


def repeats_of(benchmark: BoardView) -> RepeatsReport | None:
    """Return how many scored repeats the items have that describe a board; None without a score."""
    described = benchmark.described()
    return kind_of(described).repeats_of(described, slice(len(described.contestants)))


def has_repeats(benchmark: BoardView) -> bool:
    """Return whether a score is, or may be, the mean of several repeats."""
    counts = repeats_of(benchmark)
    return benchmark.spec.repeats != 1 or (counts is not None and counts.max > 1)

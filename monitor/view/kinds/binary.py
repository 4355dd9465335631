"""Scores 0 and 1 of items that count the same: b and c describe a pair."""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.committed import item_steps
from monitor.view.board import ALL, Flags, Floats
from monitor.view.kinds.kind import FEW, MOST_PAIRS, SLAB_CELLS, Bounds, Course, Kind, Walk
from schemas.records.scores import ONE, ZERO
from stats.evidence.curtailed import curtailed_log_p, items_to_curtailed_decision, items_to_exact_decision
from stats.evidence.eprocess import anytime_required_n, log_e_halves, log_leader_bound, prefix_log_e
from stats.evidence.growth import expected_items_to_decision
from stats.evidence.pair import PairEvidence, pair_evidence
from stats.fixed_n import bootstrap
from stats.fixed_n.mcnemar import chi2_p, corrected_p, exact_p, mid_p
from stats.fixed_n.resolution import correlation, hoeffding_bounds, moments, required_n, z_sum
from stats.intervals.completion_gap import completion_interval
from stats.intervals.confidence import gap_interval
from stats.numerics.checks import distinct_counts
from stats.numerics.mixtures import parse_mixture
from stats.numerics.pairs import Index
from stats.planning.racing import Counts, may_be_decided


class Binary(Kind):
    """Pairs of right and wrong answers."""

    right_or_wrong: ClassVar = True

    def right(self, models: Index) -> Flags | None:
        codes = self.benchmark.item_codes()[:, models]
        return np.asarray(codes[(codes >= ZERO).all(axis=1)] == ONE)

    @cached_property
    def scores(self) -> tuple[Floats, Floats]:
        codes = self.benchmark.item_codes()
        return (codes == ONE).astype(np.float64), (codes >= ZERO).astype(np.float64)

    def squares(self, values: Floats, present: Floats) -> Floats:
        return np.asarray(values.T @ present)

    def means(self, at: Index) -> tuple[Floats, Floats]:
        if at.size > FEW * self.pairs.size:
            return super().means(at)
        codes, n = self.benchmark.item_codes(), self.pairs.n[at]
        sums = np.zeros((2, at.size))
        step = max(1, SLAB_CELLS // max(1, codes.shape[0]))
        for start in range(0, at.size, step):
            some = slice(start, start + step)
            a, b = codes[:, self.pairs.a[at[some]]], codes[:, self.pairs.b[at[some]]]
            shared = (a >= ZERO) & (b >= ZERO)
            sums[:, some] = [np.count_nonzero(shared & (each == ONE), axis=0) for each in (a, b)]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_a, mean_b = sums / n
        return mean_a, mean_b

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        return moments(self.pairs.n, self.pairs.wins, self.pairs.losses)

    def counts(self, at: Index) -> tuple[list[int | None], list[int | None]]:
        return self.pairs.wins[at].tolist(), self.pairs.losses[at].tolist()

    def tests(self, at: Index, means: tuple[Floats, Floats]) -> dict[str, Floats]:
        n, wins, losses = self.pairs.n[at], self.pairs.wins[at], self.pairs.losses[at]
        rho = np.full(at.size, np.nan)
        shared = n > 0
        right_a, right_b = (np.rint(mean[shared] * n[shared]) for mean in means)
        rho[shared] = correlation(n[shared], wins[shared], losses[shared], right_a, right_b)
        return {"p_chi2": chi2_p(wins, losses), "p_exact": self.p_exact[at], "p_mid": self.p_mid(at), "rho": rho}

    @cached_property
    def uniform(self) -> tuple[PairEvidence, NDArray[np.int32]] | None:
        """Exact tests and e-values from one integral, on all shared items; None for other mixtures."""
        # They are of the distinct counts, which come with the place of each pair among them: millions of pairs have few.
        mixture = parse_mixture(self.benchmark.spec.mixture)
        if mixture.beta != (1.0, 1.0):
            return None
        wins, losses, place = distinct_counts(self.pairs.wins, self.pairs.losses)
        return pair_evidence(wins, losses, mixture), place

    @cached_property
    def p_exact(self) -> Floats:
        """Exact McNemar p-values."""
        if self.uniform is None:
            return exact_p(self.pairs.wins, self.pairs.losses)
        evidence, place = self.uniform
        return evidence.p_exact[place]

    def p_mid(self, at: Index) -> Floats:
        """Return mid-p values of some pairs."""
        if self.uniform is None:
            return mid_p(self.pairs.wins[at], self.pairs.losses[at])
        evidence, place = self.uniform
        return evidence.p_mid[place[at]]

    @property
    def p_fixed(self) -> Floats:
        return self.p_exact

    def required_n(self, alpha: float | Floats, at: Index | slice = ALL, power: float | None = None) -> Floats:
        power = self.benchmark.spec.power if power is None else power
        return required_n(self.pairs.n[at], self.pairs.wins[at], self.pairs.losses[at], alpha, power)

    def anytime_required_n(self, at: Index) -> Floats:
        spec, pairs = self.benchmark.spec, self.pairs
        alpha = spec.alpha * (1 - self.look)
        return anytime_required_n(pairs.n[at], pairs.wins[at], pairs.losses[at], alpha, spec.power, spec.mixture)

    def mde(self, at: Index) -> Floats:
        spec, n = self.benchmark.spec, self.pairs.n[at]
        gap, sd = (moment[at] for moment in self.moments)
        k = z_sum(spec.alpha, spec.power) ** 2
        return np.where((sd == 0) & (gap != 0), np.sqrt(k / (n + k)), super().mde(at))

    @property
    def bets(self) -> bool:
        return True

    @property
    def lead(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        return self.pairs.wins - self.pairs.losses, self.pairs.exposed, 0 * self.pairs.n

    def settled_log_e(self, open_pairs: Flags) -> Floats:
        log_e, committed = super().settled_log_e(open_pairs), self.benchmark.committed
        if committed is not None:
            assert self.pairs.missing is not None
            pair, missing = self.pairs.pair[open_pairs], self.pairs.missing[open_pairs]
            log_e[open_pairs] = self.benchmark.settling.log_e(pair, missing, committed.sums)
        return log_e

    @cached_property
    def evidence(self) -> tuple[Index, Index, Index, Index, Index]:
        """Counts n, b and c that verdicts use, then c at its worst and b at its best for a: these differ where items were skipped."""
        # Along a committed order they count the prefix, skipped items among n, until runs end whose missing items are ignored. Else they
        # count all shared items.
        pairs, committed = self.pairs, self.benchmark.committed
        shared = pairs.n, pairs.wins, pairs.losses, pairs.losses, pairs.wins
        if committed is None:
            return shared
        b, c, c_worst, b_best = (
            committed.sums[name][pairs.pair].astype(np.int64) for name in ("b", "c", "c_worst", "b_best")
        )
        flip = pairs.flip
        prefix = (
            committed.prefix(pairs.a, pairs.b),
            np.where(flip, c, b),
            np.where(flip, b, c),
            np.where(flip, b_best, c_worst),
            np.where(flip, c_worst, b_best),
        )
        judged_on_shared = pairs.ignored > 0
        n, b, c, c_worst, b_best = (np.where(judged_on_shared, *each) for each in zip(shared, prefix, strict=True))
        return n, b, c, c_worst, b_best

    @cached_property
    def log_e(self) -> Floats:
        if self.benchmark.committed is None and self.uniform is not None:
            evidence, place = self.uniform
            return evidence.log_e[place]
        return prefix_log_e(*self.evidence[1:], self.benchmark.spec.mixture)

    @property
    def look(self) -> float:
        return 0.0 if self.benchmark.committed is None else self.benchmark.spec.look or 0.0

    def anytime_evidence(self, at: Index) -> Floats:
        look, committed = self.look, self.benchmark.committed
        evidence = super().anytime_evidence(at)
        if not look or committed is None:
            return evidence
        n, b, c, c_worst, b_best = (column[at] for column in self.evidence)
        left = committed.size - n
        for_a, for_b = curtailed_log_p(b, c_worst + left, 0)[0], curtailed_log_p(b_best + left, c, 0)[1]
        return np.asarray(np.maximum(evidence + np.log1p(-look), np.log(look) - np.minimum(for_a, for_b)))

    def log_e_at_worst(self, missing: Index) -> Floats:
        return log_leader_bound(self.pairs.wins, self.pairs.losses, missing, self.benchmark.spec.mixture)

    def log_e_halves(self, at: Index) -> tuple[Floats, Floats]:
        if self.benchmark.committed is None and self.uniform is not None:
            evidence, place = self.uniform
            return evidence.log_e_a[place[at]], evidence.log_e_b[place[at]]
        _, b, c, c_worst, b_best = (column[at] for column in self.evidence)
        mixture = self.benchmark.spec.mixture
        return log_e_halves(b, c_worst, mixture)[0], log_e_halves(b_best, c, mixture)[1]

    def halves_at_worst(self, missing: Index, at: Index | slice) -> tuple[Floats, Floats]:
        for_a, for_b = (-log_p for log_p in curtailed_log_p(self.pairs.wins[at], self.pairs.losses[at], missing))
        return for_a, for_b

    def bounds_now(self, at: Index, *levels: Floats) -> list[Bounds]:
        alpha = np.concatenate(levels)  # all levels at once: of a hundred pairs most of the time goes into calls
        placed = np.flatnonzero(alpha > 0)
        low, high = np.full((2, alpha.size), np.nan)
        counts = Counts(*(column[np.tile(at, len(levels))[placed]] for column in self.evidence))
        low[placed], high[placed] = self._interval(counts, alpha[placed])
        return list(zip(*(bound.reshape(len(levels), at.size) for bound in (low, high)), strict=True))

    def _interval(self, counts: Counts, alpha: Floats) -> Bounds:
        """Return the interval of the bets, and of the look within that: each has its share of alpha."""
        n, b, c, c_worst, b_best = counts
        look, mixture, bets = self.look, self.benchmark.spec.mixture, alpha * (1 - self.look)
        low, high = gap_interval(n, b, c_worst, bets, mixture)
        skipped = np.flatnonzero((c_worst != c) | (b_best != b))
        if skipped.size:
            high[skipped] = gap_interval(n[skipped], b_best[skipped], c[skipped], bets[skipped], mixture)[1]
        if look and self.benchmark.committed is not None:
            items = self.benchmark.committed.size
            low = np.maximum(low, completion_interval(items, b, c_worst, items - n, alpha * look)[0])
            high = np.minimum(high, completion_interval(items, b_best, c, items - n, alpha * look)[1])
        return low, high

    def bounds_at_worst(self, at: Index, missing: Index, alpha: Floats) -> Bounds:
        pairs = self.pairs
        counts = pairs.n[at] + missing, pairs.wins[at], pairs.losses[at]
        if not pairs.known:
            return completion_interval(*counts, missing, alpha)
        low, high = (
            completion_interval(*counts, np.minimum(missing, open_items[at]), alpha) for open_items in pairs.threats
        )
        return low[0], high[1]

    def near(self, at: Index, margin: float) -> Flags:
        n, b, c, _, _ = (column[at] for column in self.evidence)
        return np.asarray(np.abs(b - c) < margin * n)

    def items_to_decision(self, at: Index, threshold: Floats) -> Floats:
        """Return the items until the decision; more than are missing is an extrapolation."""
        # It is of the test that decides: of all items of a benchmark that is as large, or of bets. Nan where missing items count at their
        # worst and will not come.
        pairs, spec = self.pairs, self.benchmark.spec
        n, wins, losses, _, _ = (column[at] for column in self.evidence)
        if pairs.missing is None or (spec.order.policy in {"committed", "trusted"} and not pairs.asserted):
            look = self.look
            bets = expected_items_to_decision(n, wins, losses, self.log_e_threshold(threshold), spec.mixture)
            if not look or pairs.left is None:
                return bets
            needed = threshold - np.log(look)
            return np.minimum(bets, items_to_curtailed_decision(n, wins, losses, pairs.left[at], needed))
        assert pairs.left is not None
        left = pairs.left[at]
        within = items_to_curtailed_decision(n, wins, losses, left, threshold)
        beyond = np.maximum(items_to_exact_decision(n, wins, losses, threshold), left + 1)
        lost = np.zeros(left.shape, bool) if pairs.missing is None else pairs.at_risk[at] > left
        return np.where(lost, np.nan, np.where(np.isfinite(within), within, beyond))

    def decision_probability(self, at: Index, placed: Flags, threshold: Callable[[Index], Floats]) -> Floats:
        chance, pairs = np.full(at.size, np.nan), self.pairs
        if pairs.left is None or pairs.counted_missing is None or max(at.size, pairs.listed) > MOST_PAIRS:
            return chance
        coming = placed & (pairs.left[at] > 0) & (pairs.n[at] > 0)
        some = at[coming]
        if some.size == 0:
            return chance
        # Complete files, which have no such pair, do not load it.
        from stats.planning.forecast import (  # noqa: PLC0415
            anytime_decision_probability,
            completion_decision_probability,
        )

        needed, left = threshold(some), pairs.left[some]
        n, wins, losses, _, _ = (column[some] for column in self.evidence)
        if pairs.completes:
            lost = np.maximum(pairs.at_risk[some] - left, 0)
            chance[coming] = completion_decision_probability(n, wins, losses, left, needed, lost)
        else:
            look, mixture = self.look, self.benchmark.spec.mixture
            chance[coming] = anytime_decision_probability(n, wins, losses, left, self.log_e_threshold(needed), mixture)
            if look:  # one of them at least: what only the other one decides is little
                lost = np.maximum(pairs.counted_missing[some] - left, 0)
                at_end = completion_decision_probability(n, wins, losses, left, needed - np.log(look), lost)
                chance[coming] = np.maximum(chance[coming], at_end)
        return chance

    def reachable(self, at: Index, left: Index) -> Flags:
        lost = None
        if self.pairs.completes:
            assert self.pairs.counted_missing is not None
            lost = np.minimum(self.pairs.counted_missing, np.minimum(*self.pairs.threats))[at] - left
        counts, spec, look = Counts(*(column[at] for column in self.evidence)), self.benchmark.spec, self.look
        may = may_be_decided(counts, left, spec.alpha * (1 - look), spec.mixture, lost)
        if look and self.benchmark.committed is not None:
            lost = np.maximum(self.benchmark.committed.size - counts.n - left, 0)
            may |= may_be_decided(counts, left, spec.alpha * look, spec.mixture, lost)
        return may

    def course(self, walk: Walk) -> Course:
        n, spec = walk.kept, self.benchmark.spec
        b, c, c_worst, b_best = walk_counts(walk)
        if spec.order.policy == "completion":
            assert self.pairs.counted_missing is not None
            items = int(self.pairs.n[0] + self.pairs.counted_missing[0])
            low, high = completion_interval(items, b, c, items - n, spec.alpha)
        else:
            low, high = self._interval(Counts(n, b, c, c_worst, b_best), np.full(n.size, spec.alpha))
        halves = log_e_halves(b, c_worst, spec.mixture)[0], log_e_halves(b_best, c, spec.mixture)[1]
        return Course((b - c) / n, prefix_log_e(b, c, c_worst, b_best, spec.mixture), *halves, low, high)

    def opinions(self, at: Index, seed: int) -> dict[str, Floats]:
        spec, pairs = self.benchmark.spec, self.pairs
        n, wins, losses = pairs.n[at], pairs.wins[at], pairs.losses[at]
        rho = hoeffding_bounds(*self.means(at))
        # Each pair on its own: what is drawn for it then does not depend on which model came first.
        counts = np.stack([n, wins, losses], axis=1).tolist()
        intervals = [
            bootstrap.required_n_interval(*each, alpha=spec.alpha, power=spec.power, seed=seed) for each in counts
        ]
        needed = np.array(intervals, np.float64).T
        known = np.where(self.n_star(at) == 0, np.nan, 1.0)  # no spread, no N*
        return {
            "rho_low": rho[0],
            "rho_high": rho[1],
            "p_corrected": corrected_p(wins, losses),
            "required_n_low": needed[0] * known,
            "required_n_high": needed[1] * known,
            "anytime_required_n": self.anytime_required_n(at) * known,
        }

    def by_category(self) -> bool:
        return True


def walk_counts(walk: Walk) -> tuple[Index, Index, Index, Index]:
    """Return b, c, c_worst and b_best (see `monitor.engine.state.committed`) at the points kept."""
    steps = item_steps(walk.x, walk.y)
    b, c, c_worst, b_best = (
        np.cumsum(steps[name], dtype=np.int64)[walk.kept - 1] for name in ("b", "c", "c_worst", "b_best")
    )
    return b, c, c_worst, b_best

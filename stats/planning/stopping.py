"""When a comparison is decided: exact laws of the deciding item, for the procedures that may be read at any time.

An item is won by A with probability ``rate_b``, by B with ``rate_c``, and is a tie otherwise. Both laws are about the decision for A.

- The e-process (order policies `trusted` and `committed`) sees discordant items only. The law of the discordant item at which it reaches
  its threshold comes from a recursion over (b, c); the number of items up to that one follows by thinning.
- The curtailed exact test (`completion`) has no path: A is decided by item t exactly when the wins and ties among these t items suffice.
"""

from functools import lru_cache
from math import cosh, inf, log, sqrt

import numpy as np

from stats.evidence.eprocess import log_e_of_counts
from stats.fixed_n.power import MOST_ITEMS, REACH, binomial_outcomes, critical_count, first_items, rate_pair, upper_tail
from stats.numerics.checks import BoolArray, FloatArray, IntArray, level, non_negative
from stats.numerics.mixtures import Mixture, parse_mixture
from stats.numerics.special import betainc

_EXACT = 8_192
"""Discordant items that are followed one by one."""
_HALVED = 512
"""Steps of a walk after which its doubled probabilities are scaled back."""
_COARSE = 64
"""Steps between those for which a boundary is searched over its whole range."""
_SLACK = 1e-9  # evidence this close to a threshold reaches it, as in the engine
_CLOSED = 1e-9  # probability that is omitted
_STEEPEST = 0.25  # a longer stride than this many standard deviations of the drift is not taken


class AnytimeLaw:
    """The law of the item at which the e-process decides for A.

    Parameters
    ----------
    rate_b, rate_c : float
        Probabilities that an item is won by A and by B.
    threshold_log : float
        ln(1/alpha), or ln(1/alpha_j) in a family.
    mixture : str or Mixture

    Notes
    -----
    The recursion is over paths of a fair coin, weighted afterwards by their likelihood ratio: one recursion serves every pair of rates. It
    is exact for the first 8,192 discordant items. After those it takes strides of s = 2 wins or losses, each for s^2 = 4 discordant items,
    after four times as many of s = 4, and so on, with a boundary that is lower by (s - 1)/2, half of what a stride overshoots. Next to
    a recursion that is exact throughout, this changes a probability by less than .002.

    Examples
    --------
    >>> law = AnytimeLaw(0.11, 0.09, np.log(20))
    >>> law.quantile(0.5), law.quantile(0.8), round(law.by(8489), 3)
    (4885.0, 8489.0, 0.8)
    """

    def __init__(
        self, rate_b: float, rate_c: float, threshold_log: float, mixture: str | Mixture = "beta(1,1)"
    ) -> None:
        self._rates = rate_pair(rate_b, rate_c)
        if not 0 < threshold_log < inf:
            raise ValueError(f"threshold_log must be above 0 and finite, got {threshold_log}")
        self._discordance = sum(self._rates)
        self._lead = (self._rates[0] - self._rates[1]) / max(self._discordance, 1e-300)
        self._walk = _walk(float(threshold_log), parse_mixture(mixture))
        self._levels = 0
        self._when = self._mass = self._cumulative = np.zeros(0)
        self._open = 1.0
        self._extend()

    def by(self, items: float) -> float:
        """Return the probability that A is decided by item ``items``."""
        (n,) = non_negative(items=items)
        while self._longest < self._reach(float(n)) and self._extend():
            pass
        return self._thinned(float(n))

    def quantile(self, probability: float) -> float:
        """Return the first item by which A is decided with at least this probability, infinite if there is none."""
        (target,) = (float(x) for x in level(probability=probability))
        if self._lead <= 0:
            return inf
        while True:
            steps = np.flatnonzero(self._cumulative >= target)
            if steps.size:
                middle = float(self._when[steps[0]]) / self._discordance
                high = middle + REACH * sqrt(middle * (1 - self._discordance) / self._discordance) + REACH
                while high <= MOST_ITEMS and self._longest < self._reach(high) and self._extend():
                    pass
                return first_items(self._thinned, target, middle)
            if self._longest > MOST_ITEMS or not self._extend():
                return inf

    @property
    def _longest(self) -> float:
        return float(self._when[-1])

    def _reach(self, items: float) -> float:
        """Return more discordant items than this many items will have."""
        mean = items * self._discordance
        return mean + REACH * sqrt(mean * (1 - self._discordance)) + REACH

    def _extend(self) -> bool:
        """Follow the walk for another level; return whether there is anything to follow."""
        stride = 2**self._levels
        if self._open < _CLOSED or (self._levels and not 0 < stride * abs(self._lead) <= _STEEPEST):
            return False
        for_a, for_b = (arrivals.mass(self._lead) for arrivals in self._walk.level(self._levels))
        self._levels += 1
        self._when = np.concatenate([self._when, self._walk.when(self._levels - 1)])
        self._mass = np.concatenate([self._mass, for_a])
        self._cumulative = np.minimum(np.cumsum(self._mass), 1)
        self._open -= float(for_a.sum() + for_b.sum())
        return True

    def _thinned(self, items: float) -> float:
        """Return the probability of a decision among so many items, each of which is discordant with some probability."""
        mean = items * self._discordance
        if mean <= 0:
            return 0.0
        spread = REACH * sqrt(mean * (1 - self._discordance)) + 1
        first, last = np.searchsorted(self._when, [mean - spread, mean + spread])
        certain = float(self._cumulative[first - 1]) if first else 0.0
        when = self._when[first:last]
        when = when[when <= items]
        reached = betainc(when, items - when + 1, self._discordance) if self._discordance < 1 else np.ones(when.shape)
        return min(certain + float(self._mass[first : first + when.size] @ reached), 1.0)


class _Arrivals:
    """Paths of a fair walk that end at one boundary of a level, by step: their probability, and the lead there."""

    def __init__(self, mass: FloatArray, lead: FloatArray, total: FloatArray, earlier: int) -> None:
        with np.errstate(divide="ignore"):
            self._log_fair = np.log(mass)
        self._lead, self._total, self._earlier = lead, total, earlier

    def mass(self, lead: float) -> FloatArray:
        """Return their probability where an item goes to A with probability (1 + lead) / 2."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._earlier:
                log_ratio = self._lead * np.arctanh(lead) - self._log_mean(float(np.arctanh(lead)))
            else:
                ahead, behind = (self._total + self._lead) / 2, (self._total - self._lead) / 2
                log_ratio = np.where(ahead > 0, ahead * np.log1p(lead), 0)
                log_ratio += np.where(behind > 0, behind * np.log1p(-lead), 0)
            return np.asarray(np.exp(self._log_fair + log_ratio))

    def _log_mean(self, tilt: float) -> FloatArray:
        """Return ln of the mean of exp(tilt x lead) over fair walks, after each step of the level."""
        before = 0.0
        for number in range(self._earlier):
            stride = 2.0**number
            before += _steps(number) * log(cosh(tilt * stride)) + log((1 + cosh(2 * tilt * stride)) / 2)
        step = np.arange(1, _steps(self._earlier) + 1)
        return np.asarray(before + step * log(cosh(tilt * 2.0**self._earlier)))


def _steps(level: int) -> int:
    """Return the strides of a level: up to four times the items of the level before."""
    return _EXACT if level == 0 else 3 * _EXACT // 4 - 1


class _FairWalk:
    """A fair walk between the two boundaries of an e-process, level by level: each level has strides twice as long."""

    def __init__(self, threshold: float, mixture: Mixture) -> None:
        self._threshold, self._mixture = threshold, mixture
        self._alive = np.ones(1)  # probabilities of the leads lowest, lowest + 2 stride, ...
        self._lowest, self._total, self._stride = 0.0, 0.0, 1
        self._levels: list[tuple[FloatArray, tuple[_Arrivals, _Arrivals]]] = []

    def when(self, number: int) -> FloatArray:
        """Return the discordant items after each step of a level."""
        return self._levels[number][0]

    def level(self, number: int) -> tuple[_Arrivals, _Arrivals]:
        """Return where the walk crosses in a level, for A and for B."""
        while len(self._levels) <= number:
            if self._levels:
                self._lengthen_stride()
            self._levels.append(self._follow())
        return self._levels[number][1]

    def _lengthen_stride(self) -> None:
        """Put the walk on a lattice that is half as dense; what lies between is split, which adds the variance of some items."""
        kept = np.zeros((self._alive.size + 2) // 2 + 1)
        even, odd = self._alive[::2], self._alive[1::2]
        kept[: even.size] += even
        kept[: odd.size] += odd / 2
        kept[1 : odd.size + 1] += odd / 2
        self._alive = kept
        self._total += 2.0 * self._stride**2
        self._stride *= 2

    def _follow(self) -> tuple[FloatArray, tuple[_Arrivals, _Arrivals]]:
        """Walk to four times the items of all levels so far."""
        stride, begin, steps = self._stride, self._total, _steps(len(self._levels))
        step = np.arange(1.0, steps + 1)
        total: FloatArray = begin + step * float(stride) ** 2
        lowest: FloatArray = self._lowest - step * float(stride)  # the lead of a path that has only gone down
        top, bottom = self._boundary(total, lowest, 1), self._boundary(total, lowest, -1)
        won: list[float] = []
        lost: list[float] = []
        low, high = 0, self._alive.size - 1  # the places of paths that go on: ups since the lowest lead
        now, after = np.zeros((2, self._alive.size + steps + 3))  # place p is at p + 1, next to zeros on both sides
        at_now, at_after = (x.data.cast("B").cast("d") for x in (now, after))  # faster at one number
        now[1 : high + 2] = self._alive
        for most, least in zip(top.tolist(), bottom.tolist(), strict=True):
            # Twice the probabilities, halved every so many steps: a power of two costs no digit.
            np.add(now[low + 1 : high + 3], now[low : high + 2], after[low + 1 : high + 3])
            high += 1
            mass = 0.0
            while high >= most:
                mass += at_after[high + 1]
                high -= 1
            won.append(mass)
            mass = 0.0
            while low <= least:
                mass += at_after[low + 1]
                low += 1
            lost.append(mass)
            at_after[low] = at_after[high + 2] = 0.0
            now, after, at_now, at_after = after, now, at_after, at_now
            if len(won) % _HALVED == 0:
                now[low + 1 : high + 2] *= 0.5**_HALVED
        mass_of = np.array([won, lost]) * 0.5 ** (np.arange(steps) % _HALVED + 1)
        self._alive = now[low + 1 : high + 2] * 0.5 ** (steps % _HALVED)
        self._total, self._lowest = float(total[-1]), float(lowest[-1] + 2 * stride * low)
        arrivals = []
        for reached, place in zip(mass_of, (top, bottom), strict=True):
            lead: FloatArray = np.clip(lowest + 2 * stride * place, -total, total)
            arrivals.append(_Arrivals(reached, lead, total, len(self._levels)))
        return total - (stride**2 - 1) / 2, (arrivals[0], arrivals[1])

    def _boundary(self, total: FloatArray, lowest: FloatArray, side: int) -> IntArray:
        """Return the places at which the e-process reaches its threshold, after each step: the least for A, or the most for B."""
        stride = self._stride
        none = np.floor(-lowest / (2 * stride)).astype(np.int64)  # no lead, so no evidence
        if side < 0:
            none += 1
        far = np.where(side > 0, np.ceil((total - lowest) / (2 * stride)), np.floor((-total - lowest) / (2 * stride)))
        low, high = none, far.astype(np.int64) + side
        coarse = np.arange(0, total.size, _COARSE)
        edge = self._search(total[coarse], lowest[coarse], side, low[coarse], high[coarse])
        lead = np.interp(total, total[coarse], lowest[coarse] + 2 * stride * edge)  # nearly straight in between
        near = np.rint((lead - lowest) / (2 * stride)).astype(np.int64)
        for guess in (near - side, near + side):
            inside = (guess - low) * side > 0
            inside &= (high - guess) * side > 0
            reached = self._reached(total, lowest + 2 * stride * guess + side * (stride - 1) / 2)
            low, high = np.where(inside & ~reached, guess, low), np.where(inside & reached, guess, high)
        return self._search(total, lowest, side, low, high)

    def _search(self, total: FloatArray, lowest: FloatArray, side: int, low: IntArray, high: IntArray) -> IntArray:
        """Return the first places on the way from ``low`` to ``high`` at which the threshold is reached, by bisection."""
        low, high = low.copy(), high.copy()
        while (at := np.flatnonzero(np.abs(high - low) > 1)).size:
            middle = (low[at] + high[at]) // 2
            reached = self._reached(total[at], lowest[at] + 2 * self._stride * middle + side * (self._stride - 1) / 2)
            high[at[reached]], low[at[~reached]] = middle[reached], middle[~reached]
        return high

    def _reached(self, total: FloatArray, lead: FloatArray) -> BoolArray:
        lead = np.clip(lead, -total, total)
        evidence = log_e_of_counts((total + lead) / 2, (total - lead) / 2, self._mixture)
        return np.asarray(evidence >= self._threshold - _SLACK)


@lru_cache(maxsize=64)
def _walk(threshold: float, mixture: Mixture) -> _FairWalk:
    return _FairWalk(threshold, mixture)


class CompletionLaw:
    """The law of the item at which the exact test over N items, curtailed, decides for A; items arrive in random order.

    Parameters
    ----------
    items : int
        N, the items of the benchmark.
    rate_b, rate_c : float
        Probabilities that an item is won by A and by B.
    alpha : float
        Two-sided level, alpha or alpha_j.

    Notes
    -----
    Counting the missing items against A, c + missing is N less the wins and ties of A. So A is decided by item t exactly when its wins
    among these t items reach the critical number of wins among N - ties: a sum over the number of ties.

    Examples
    --------
    >>> law = CompletionLaw(4012, 0.11, 0.09, 0.05)
    >>> round(law.by(4012), 3), law.quantile(0.5)
    (0.8, 3990.0)
    """

    def __init__(self, items: float, rate_b: float, rate_c: float, alpha: float = 0.05) -> None:
        (n,), (a,) = non_negative(items=items), level(alpha=alpha)
        self._items, self._alpha = float(n), float(a)
        self._rates = rate_pair(rate_b, rate_c)

    def by(self, items: float) -> float:
        """Return the probability that A is decided by item ``items``."""
        (n,) = non_negative(items=items)
        seen, discordance = min(float(n), self._items), sum(self._rates)
        if discordance == 0:
            return 0.0
        ties, weight = binomial_outcomes(seen, 1 - discordance)
        counted = self._items - ties
        k = critical_count(counted, self._alpha)
        decided = upper_tail(counted - np.maximum(k, 0), seen - ties, self._rates[0] / discordance)
        return float(weight @ np.where(k >= 0, decided, 0.0))

    def quantile(self, probability: float) -> float:
        """Return the first item by which A is decided with at least this probability, infinite if even N items are too few."""
        (target,) = (float(x) for x in level(probability=probability))
        if self.by(self._items) < target:
            return inf
        return first_items(self.by, target, self._items)

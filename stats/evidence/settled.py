"""Settled: which model leads on *these N items*, by sampling them without replacement.

The claim is the sign of the sum of D over the N items of a benchmark and nothing beyond them. It is certain once the items left cannot
bring the sum back to 0. Along a committed order, a permutation drawn before the first score, it is known sooner: with S the sum so far
and R items left, the next D has mean mu = -S / R if the whole sums to 0, so the bets

    e+ = mean over lambda of prod_t (1 + min(lambda, 1 / (1 + mu_t)) (D_t - mu_t)),    e- the same with -D and -mu,

are test martingales, and e+ is a supermartingale as long as A's total is at most B's. The two-sided e is their mean, infinite once certain.
Settled at 1/alpha at any time; in a family by the same step-down as decisions (`stats.families.error_control`) on 1 / (largest e so far).

A skipped score may be any score: e+ takes the lowest D that it allows, e- the highest, and each half has a sum of its own.

The state of a pair is a capital per bet and two sums in whole units, so that the values are a function of its items in their order and of
nothing else: no division into calls changes them.

References
----------
Waudby-Smith & Ramdas, "Confidence sequences for sampling without replacement", NeurIPS 2020.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray

LAMBDAS: tuple[float, ...] = tuple(0.01 * 2**k for k in range(7))
"""The bets: .01, .02, .04, ..., .64, equally weighted in either direction."""

TIE = 2
"""The side of a benchmark that is complete and sums to 0."""

_BETS = np.array(LAMBDAS)[:, None]
_PAIRS = 4_096  # at most so many pairs at a time,
_CELLS = 131_072  # and so many capitals (1 MB): they stay in cache
_FEW_SUMS, _FEW_CAPITALS = 256, 128
_EVERY = 64  # items between checks of the range of the capital: an item multiplies it by at most 2.28
_SMALL, _LARGE = 1e-250, 1e250
_FOREVER = 2**62


class SettledState(NamedTuple):
    """Bets of pairs on the sum over their benchmark.

    Attributes
    ----------
    capital : ndarray, shape (P, 2, L)
        Capital of each bet, in favour of A and of B; 1 at the start.
    lead : ndarray of int64, shape (P, 2)
        Sums of the lowest and of the highest D so far, in units.
    """

    capital: FloatArray
    lead: IntArray


class SettledSteps(NamedTuple):
    """Evidence of pairs along some items.

    Attributes
    ----------
    state : SettledState
        The state after the last item.
    log_e : ndarray, shape (P,)
        ln e after the last item.
    largest : ndarray, shape (P,)
        Largest ln e after any of these items; ln e of the state for a pair without one.
    halves : ndarray, shape (T, 2, P)
        e+ / 2 and e- / 2 after each item, whose sum is e: infinite once certain, constant after the last item of a pair.
    """

    state: SettledState
    log_e: FloatArray
    largest: FloatArray
    halves: FloatArray

    def logs(self, some: IntArray | slice = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return ln e+ / 2 and ln e- / 2 of some pairs, shape (pairs, T); ``np.logaddexp`` of the two is ln e, up to rounding."""
        halves = np.ascontiguousarray(self.halves[:, :, some].transpose(1, 2, 0))
        with np.errstate(divide="ignore"):
            np.log(halves, out=halves)
        return halves[0], halves[1]


def settled_start(pairs: int) -> SettledState:
    """Return the state of pairs before their first item.

    Examples
    --------
    >>> settled_start(3).capital.shape
    (3, 2, 7)
    """
    return SettledState(np.ones((pairs, 2, len(LAMBDAS))), np.zeros((pairs, 2), np.int64))


def settled_steps(
    state: SettledState,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    left: npt.ArrayLike,
    steps: npt.ArrayLike | None = None,
    unit: int = 1,
) -> SettledSteps:
    """Follow pairs over their next items.

    Parameters
    ----------
    state : SettledState
        State before these items; it is not changed.
    low, high : array_like of int, shape (P, T)
        The lowest and the highest D of each item, in units; they differ where a score is skipped.
    left : array_like of int, shape (P,) or ()
        Items of the benchmark that are left before these: N less the items walked.
    steps : array_like of int, shape (P,), optional
        How many of the T items each pair has; all by default. The others are ignored.
    unit : int
        The integer that is a score of 1: 1 for 0/1 scores.

    Examples
    --------
    >>> d = np.array([[1, 0, 1, -1, 0, 1, 1, 0, 0, 1, 1, 0, -1, 1, 0, 1]])
    >>> settled_steps(settled_start(1), d, d, 40).log_e.round(6).tolist()
    [0.966313]
    """
    given = _Items.of(state, low, high, left, steps, unit)
    capital, lead = np.empty_like(state.capital), np.empty_like(state.lead)
    last, largest = np.zeros(given.pairs), np.zeros(given.pairs)
    halves = np.empty((given.low.shape[1], 2, given.pairs))
    for part in given.slabs():
        walk = _Walk(state, given, part)
        for times in walk.blocks():
            both = halves[times, :, part]
            walk.bet(times, both)
            np.maximum(largest[part], (both[:, 0] + both[:, 1]).max(axis=0), out=largest[part])
        capital[part], lead[part] = walk.state()
        now = walk.now()
        halves[walk.longest :, :, part] = now
        last[part] = now.sum(axis=0)
    with np.errstate(divide="ignore"):
        return SettledSteps(SettledState(capital, lead), np.log(last), np.log(largest), halves)


def settled_log_e(
    differences: npt.ArrayLike, items: int, highest: npt.ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ln e against "both models have the same total on the N items of this benchmark", after each item.

    Parameters
    ----------
    differences : array_like, shape (T,) or (P, T)
        D = x_A - x_B in [-1, 1] along a random order, T <= N; the lowest one where a score is skipped.
    items : int
        N, the items of the benchmark.
    highest : array_like, optional
        The highest D where a score is skipped.

    Returns
    -------
    log_e, log_e_plus, log_e_minus : ndarray
        Natural logarithms of (e+ + e-) / 2, e+ ("A leads") and e-, in the shape of ``differences``; reject at 1/alpha at any t.

    Notes
    -----
    Differences are rounded to 12 decimals, as sums of scores are kept.

    Examples
    --------
    >>> log_e, plus, minus = settled_log_e([0.5, -0.25, 1, 0, 0.3, -1, 0.75, 0.2, 0.2, -0.1], 15)
    >>> [round(float(x[-1]), 6) for x in (plus, minus, log_e)]
    [0.458159, -0.412143, 0.114841]
    """
    lowest = np.asarray(differences, np.float64)
    if lowest.ndim == 0 or lowest.shape[-1] > items:
        raise ValueError(f"items must be at least the number of differences {lowest.shape[-1:]}: got {items}")
    largest = lowest if highest is None else np.broadcast_to(np.asarray(highest, np.float64), lowest.shape)
    for value in (lowest, largest):
        if not (np.abs(value) <= 1).all():
            raise ValueError("differences must lie in [-1, 1]; leave out what is not a number")
    unit = 10**12
    low, high = (np.rint(x.reshape(-1, x.shape[-1]) * unit).astype(np.int64) for x in (lowest, largest))
    halves = settled_steps(settled_start(low.shape[0]), low, high, items, unit=unit).logs()
    for_a, for_b = (x.reshape(lowest.shape) for x in halves)
    return np.logaddexp(for_a, for_b), for_a + np.log(2), for_b + np.log(2)


def _accumulate(operation: np.ufunc, values: npt.NDArray[Any], few: int) -> None:
    """Accumulate over the first axis in place: rows of a few values by one call, as one call a row would take longer."""
    if values[0].size <= few:
        operation.accumulate(values, axis=0, out=values)
        return
    for before, after in pairwise(values):
        operation(before, after, out=after)


class _Items(NamedTuple):
    """Checked items of pairs; arrays with the pairs on the leading axis."""

    low: IntArray
    high: IntArray
    left: IntArray
    steps: IntArray
    unit: int

    @classmethod
    def of(
        cls,
        state: SettledState,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        left: npt.ArrayLike,
        steps: npt.ArrayLike | None,
        unit: int,
    ) -> "_Items":
        lowest, highest, pairs = np.asarray(low), np.asarray(high), state.lead.shape[0]
        if lowest.shape != highest.shape or lowest.ndim != 2 or lowest.shape[0] != pairs:
            raise ValueError(f"low and high must have shape ({pairs}, items), got {lowest.shape} and {highest.shape}")
        if lowest.size and (lowest.dtype.kind != "i" or highest.dtype.kind != "i"):
            raise ValueError("low and high must be integers: differences in units")
        remaining = np.broadcast_to(np.asarray(left, np.int64), (pairs,))
        count = np.broadcast_to(np.asarray(lowest.shape[1] if steps is None else steps, np.int64), (pairs,))
        if (count < 0).any() or (count > lowest.shape[1]).any() or (remaining < count).any():
            raise ValueError("steps must lie between 0 and the items given, and left must be at least as many")
        return cls(lowest, highest, remaining, count, unit)

    @property
    def pairs(self) -> int:
        return self.left.size

    def slabs(self) -> Iterator[slice]:
        yield from (slice(start, start + _PAIRS) for start in range(0, self.pairs, _PAIRS))


class _Walk:
    """The bets of a slab of pairs, with the pairs on the last axis."""

    def __init__(self, state: SettledState, given: _Items, part: slice) -> None:
        capital = np.moveaxis(state.capital[part], 0, -1)
        # Whole numbers below 2^53 are exact as floats too, and those need no conversion at every item.
        self._kind = np.float64 if given.unit == 1 else np.int64
        self.lead = np.ascontiguousarray(state.lead[part].T, self._kind)
        self.unit = given.unit
        self._moves = np.ascontiguousarray(np.stack([given.low[part].T, given.high[part].T], axis=1))
        self._left, self._steps = given.left[part], given.steps[part]
        self.longest, self._everybody = int(self._steps.max(initial=0)), int(self._steps.min(initial=_FOREVER))
        self._block = max(1, min(_EVERY, self.longest, _CELLS // max(1, capital.size)))
        # The capital before a block of items and after each of them.
        self._path = np.empty((self._block + 1, *capital.shape))
        self._path[0] = capital
        self._leads: npt.NDArray[Any] = np.empty((self._block + 1, *self.lead.shape), self._kind)
        self._stopped = bool((capital == _LARGE).any())

    def blocks(self) -> Iterator[slice]:
        """Return stretches of items whose capitals stay in cache."""
        size = self._block
        yield from (slice(start, min(start + size, self.longest)) for start in range(0, self.longest, size))

    def bet(self, times: slice, halves: FloatArray) -> None:
        """Write e+ / 2 and e- / 2 after each of some items, shape (T, 2, P); without an item a pair keeps its own."""
        size = times.stop - times.start
        step = np.arange(times.start, times.stop)[:, None]
        moves = self._moves[times].astype(self._kind)
        left = self._left - step
        rest = left - 1
        if times.stop > self._everybody:
            left, rest = np.maximum(left, 1), np.maximum(rest, self._left - self._steps)
            moves *= (step < self._steps)[:, None]
        leads = self._leads[: size + 1]
        leads[0], leads[1:] = self.lead, moves
        _accumulate(np.add, leads, _FEW_SUMS)
        # For A the mean of D under the null is -S / R with the lowest S; for B all signs turn.
        mean = leads[:-1] * (1 / (left * float(self.unit)))[:, None]
        lowest, highest = float(mean.min()), float(mean.max())
        if lowest < -1 or highest > 1:
            np.clip(mean, -1, 1, out=mean)
        surprise = mean + moves if self.unit == 1 else mean + moves / float(self.unit)
        if times.stop > self._everybody:
            surprise *= (step < self._steps)[:, None]
        np.negative(surprise[:, 1], out=surprise[:, 1])
        path = self._path[: size + 1]
        factors = path[1:]
        if min(lowest, -highest) < 1 - 1 / LAMBDAS[-1]:
            np.negative(mean[:, 1], out=mean[:, 1])
            # 1 + mu = 1 - mean; bets are below 1, so only a limit below 1 limits them.
            np.minimum(_BETS, 1 / np.maximum(1 - mean, 0.5)[:, :, None], out=factors)
            factors *= surprise[:, :, None]
            factors += 1
            np.maximum(factors, 0, out=factors)  # 1 - 1, rounded
        else:
            np.multiply(_BETS, surprise[:, :, None], out=factors)
            factors += 1
        if self._stopped:
            factors[:, path[0] == _LARGE] = 1
        _accumulate(np.multiply, path, _FEW_CAPITALS)
        self._keep_in_range(factors, rest)
        near = max(-lowest, highest) >= 1 - 2 / int(left.min())  # one item from certain
        self._write_halves(factors, leads[1:] if near else None, rest, halves)
        path[0], self.lead = path[-1], leads[-1].copy()

    def _keep_in_range(self, path: FloatArray, left: IntArray) -> None:
        """Stop bets of very large capital, and drop those of very small capital: at places of the order, so that calls do not matter."""
        due = np.flatnonzero((left & (_EVERY - 1)) == 0)
        if not due.size:
            return
        times, pairs = np.divmod(due, left.shape[1])
        capital = path[times, :, :, pairs]
        for outside, value in ((capital > _LARGE, _LARGE), ((capital < _SMALL) & (capital > 0), 0.0)):
            for at, side, bet in zip(*np.nonzero(outside), strict=True):
                path[times[at] :, side, bet, pairs[at]] = value
                self._stopped |= value > 0

    def now(self) -> FloatArray:
        """Return e+ / 2 and e- / 2 after the last item, shape (2, P)."""
        halves = np.empty((1, *self.lead.shape))
        self._write_halves(self._path[:1], self.lead[None], (self._left - self._steps)[None], halves)
        return np.asarray(halves[0])

    def state(self) -> SettledState:
        """Return the state after the last item."""
        return SettledState(np.moveaxis(self._path[0], -1, 0), self.lead.T.astype(np.int64))

    def _write_halves(self, path: FloatArray, leads: npt.NDArray[Any] | None, rest: IntArray, out: FloatArray) -> None:
        """Write halves, infinite where ``leads`` are certain."""
        np.sum(path, axis=2, out=out)
        out *= 0.5 / len(LAMBDAS)
        if leads is not None:
            room = rest * self.unit
            out[:, 0][leads[:, 0] > room] = np.inf
            out[:, 1][leads[:, 1] < -room] = np.inf

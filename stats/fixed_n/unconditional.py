"""The exact unconditional test of a gap: what the score test (Tango) claims of a p-value, made true.

Against "A is right alone at most ``gap`` more often than B is",

    p = sup over q of P(score statistic >= the observed one),    q the probability that one of the two is right alone,

the other one's being fixed by the gap. The set of tables with a statistic at least as large keeps a table if a loss becomes a tie or a tie
becomes a win (`_Tail`), so no smaller gap gives more than this one, and missing items at their worst give the largest p.
"""

from functools import lru_cache

import numpy as np

from stats.fixed_n.tango import score_z
from stats.numerics.checks import FloatArray, IntArray
from stats.numerics.special import betainc, gammaln

_NOTHING = 1e-300
_LARGEST = 20.0  # a statistic; p of a larger one is that of this one, far below any alpha
_ROUNDING = 1e-9  # a table this close to the observed statistic counts as equal, which only raises p
_DEVIATIONS = 6.5  # beyond these, and as many as the statistic has, a probability is below 1e-9 of p
_ROWS = 12  # probabilities at a time, so that their sums share a window of tables
_CELL = 0.4  # width of a cell at first, in standard deviations of the estimate of q


def tolerance(items: int) -> float:
    """Return by which share p may exceed the exact one, which it is never below: what keeps a p of a million items at some seconds.

    Examples
    --------
    >>> [round(tolerance(items), 6) for items in (2_000, 20_000, 200_000, 1_000_000)]
    [0.0001, 0.001, 0.01, 0.25]
    """
    return float(np.clip(5e-8 * items * max(1.0, items / 200_000), 1e-4, 1.0))


@lru_cache(maxsize=4_096)
def unconditional_p(items: int, wins: int, losses: int, gap: float) -> float:
    """Return the exact unconditional p-value against "the gap is at most `gap`", for one look; 1 where the observed gap is not above it.

    Parameters
    ----------
    items, wins, losses : int
        Items, and those that A alone, B alone has right; a missing item is a loss.
    gap : float
        In (-1, 1).

    Notes
    -----
    log P(table) is concave in q, so it lies below its tangent. Summed over the tail, the tangent at q is the probability of the tail under
    another multinomial distribution, times a constant; it is convex, so its ends bound P over a cell around q. Cells are halved until no
    bound exceeds the largest P by more than `tolerance`.

    Examples
    --------
    >>> [round(unconditional_p(*case), 4) for case in ((25, 0, 0, -0.1), (133, 0, 0, -0.02), (300, 6, 6, -0.03))]
    [0.0718, 0.0681, 0.0141]
    """
    z = float(score_z(items, wins, losses, gap))
    if z <= _ROUNDING:
        return 1.0
    tail = _Tail(items, gap, min(z, _LARGEST))
    most = 1 + tolerance(items)
    count = int(np.ceil(np.pi * np.sqrt(items) / max(_CELL, np.sqrt(6 * np.log(most))))) + 1
    edges = np.linspace(0, np.pi / 2, count)
    cells = np.stack([edges[:-1], edges[1:]])
    largest, bound = 0.0, 0.0
    while cells.size:
        middle = cells.mean(axis=0)
        at, above = tail.cells(middle, cells)
        largest = max(largest, float(at.max()))
        open_ = above > max(largest * most, _NOTHING)
        bound = max(bound, float(above[~open_].max(initial=0.0)))
        low, high, middle = *cells[:, open_], middle[open_]
        cells = np.stack([np.concatenate([low, middle]), np.concatenate([middle, high])])
    return min(max(bound, largest) * (1 + _ROUNDING), 1.0)


class _Tail:
    """The tables of N items with a statistic of at least z against a gap: with c losses, those with `first[c]` wins or more.

    `first` grows by at least 1 with c. So P(B >= first | c losses), of wins B, is that of one loss more plus a few probabilities of single
    tables; `ways` holds ln of their numbers of arrangements, and sums of them replace a beta function for each c.
    """

    def __init__(self, items: int, gap: float, z: float) -> None:
        self.items, self.gap, self.z = items, gap, z
        lead = np.arange(np.floor(items * gap) + 1, items + 1)
        most = _most_losses(items, gap, z, lead)
        losses = np.arange(int(most.max()) + 1)
        self.first = (losses + lead[np.searchsorted(most, losses)]).clip(min=0).astype(np.int64)
        after = np.append(self.first[1:], items - losses[-1])
        count = np.maximum(after - self.first, 0) + 1
        self.start = np.concatenate([[0], np.cumsum(count)])
        self.losses = np.repeat(losses, count)
        step = np.arange(self.start[-1]) - np.repeat(self.start[:-1], count)
        self.wins: IntArray = np.repeat(self.first, count) - 1 + step
        self.ties: IntArray = items - 1 - self.losses - self.wins
        self.one_win = step == 0
        inside = (self.wins >= 0) & (self.ties >= 0)
        wins, ties = np.maximum(self.wins, 0), np.maximum(self.ties, 0)
        self.ways = np.where(inside, gammaln(wins + ties + 1) - gammaln(wins + 1) - gammaln(ties + 1), -np.inf)
        self.loss_ways = gammaln(items + 1) - gammaln(losses + 1) - gammaln(items - losses + 1)

    def cells(self, middle: FloatArray, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return P in the middle of cells, and an upper bound of P over each, in angles: sin^2 of one is q over the largest q."""
        at, low, high = ((1 - abs(self.gap)) / 2 * np.sin(x) ** 2 for x in (middle, *ends))
        right, wrong = at + max(self.gap, 0), at + max(-self.gap, 0)
        tie = 1 - right - wrong
        above = np.zeros(at.size)
        for end in (low, high):
            shift = end - at
            log_tilted = np.stack(
                [np.log(right) + shift / right, np.log(wrong) + shift / wrong, np.log(tie) - 2 * shift / tie]
            )
            log_sum = np.logaddexp.reduce(log_tilted, axis=0)
            tilted = np.exp(log_tilted - log_sum)
            with np.errstate(over="ignore"):
                scale = np.exp(self.items * log_sum)
            above = np.maximum(above, scale * self.chance(tilted[0], tilted[1]))
        return self.chance(right, wrong), above

    def chance(self, right: FloatArray, wrong: FloatArray) -> FloatArray:
        """Return the probability of the tail where A alone is right with probability `right`, B alone with `wrong`."""
        out = np.empty(right.size)
        order = np.argsort(wrong)
        for start in range(0, order.size, _ROWS):
            rows = order[start : start + _ROWS]
            out[rows] = self._chance(right[rows, None], wrong[rows, None])
        return out

    def _chance(self, right: FloatArray, wrong: FloatArray) -> FloatArray:
        mean = self.items * wrong
        reach = (_DEVIATIONS + self.z) * (np.sqrt(mean * (1 - wrong)) + 1)
        low = int(np.clip(np.floor((mean - reach).min()), 0, self.first.size - 1))
        high = int(np.clip(np.ceil((mean + reach).max()), low, self.first.size - 1))
        losses = np.arange(low, high + 1)
        log_chance = self.loss_ways[low : high + 1] + losses * np.log(wrong) + (self.items - losses) * np.log1p(-wrong)
        at_most = np.cumsum(np.exp(log_chance), axis=1)
        win = right / (1 - wrong)
        some = slice(self.start[low], self.start[high + 1])
        single = np.exp(self.ways[some] + self.wins[some] * np.log(win) + self.ties[some] * np.log1p(-win))
        single = np.where(self.one_win[some], win, 1) * single
        total = (single * at_most[:, self.losses[some] - low]).sum(axis=1)
        if high + 1 < self.first.size:
            wins, rest = self.first[high + 1], self.items - high - 1
            total += at_most[:, -1] * (betainc(wins, rest - wins + 1, win[:, 0]) if wins else 1.0)
        return np.asarray(total)


def _most_losses(items: int, gap: float, z: float, lead: FloatArray) -> FloatArray:
    """Return for each lead b - c the most losses with which the statistic reaches z, -1 for none; it never falls with the lead.

    A statistic of z fixes the variance, so q; the equation that q solves (`stats.fixed_n.tango`) is then linear in the losses.
    """
    slack = gap * (1 - gap)
    distance = lead - items * gap
    variance = distance**2 / (items * z**2)
    least = max(0.0, -gap)
    q = np.maximum((variance - slack) / 2, least)
    factor = 2 * items * q + (2 * items - lead) * gap - lead
    losses = q * factor / (2 * q + slack)
    # Without losses the equation has a second root, q = 0, that is the likeliest q only where the factor is not negative.
    possible = (variance * (1 + _ROUNDING) >= 2 * least + slack) & (factor >= -_ROUNDING * items)
    losses = np.where(possible, losses + _ROUNDING * np.maximum(losses, 1), -1)
    losses = np.minimum(np.floor(losses), np.floor((items - lead) / 2))
    return np.asarray(np.maximum.accumulate(losses))

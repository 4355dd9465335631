"""The e-process of one pair along its shared items, and the interval closing in: recomputed from the rows."""

from math import log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.benchmark import Benchmark
from monitor.engine.counts import ONE, ZERO, Codes
from monitor.engine.latches import log_thresholds
from monitor.engine.pairs import Index, pair_index
from stats.confidence import gap_interval
from stats.eprocess import log_e_halves, log_e_value
from stats.graded import graded_log_e, graded_log_e_halves, initial_capital, log_increments

ORDER: Final = "as stored: first-seen order of the items"
"""How the items of a path are ordered: not as the latch saw them, so a path need not cross where the latch closed."""

Floats = NDArray[np.float64]


class PairPath(NamedTuple):
    """A path; shape (points,) each. Graded scores have no interval; ln e is None where they were not declared.

    Attributes
    ----------
    n : array of int64
        Shared items so far.
    gap : array
        Mean score of the first model less that of the second on them.
    log_e, log_e_a, log_e_b : array or None
        Two-sided mixture, and its halves in favour of the first and of the second.
    gap_low, gap_high : array or None
        Anytime-valid interval for the gap, at alpha.
    log_threshold : float
        ln 1/alpha.
    log_family_threshold : float
        ln 1/alpha_j; infinite for a pair without a place in its family.
    """

    n: Index
    gap: Floats
    log_e: Floats | None
    log_e_a: Floats | None
    log_e_b: Floats | None
    gap_low: Floats | None
    gap_high: Floats | None
    log_threshold: float
    log_family_threshold: float


def pair_path(benchmark: Benchmark, one: int, other: int, points: int) -> PairPath:
    """Compute the path of a pair.

    Parameters
    ----------
    benchmark : Benchmark
    one, other : int
        Two contestants; gaps and halves are named from the first.
    points : int
        How many points to keep at most, evenly spaced in n; the last item is always among them.
    """
    x, y, kept = _shared(benchmark, one, other, points)
    n = kept.astype(np.int64)
    spec = benchmark.spec
    pair = pair_index(np.array([min(one, other)]), np.array([max(one, other)]))
    family = float(log_thresholds(benchmark, pair)["anytime_family"][0])
    if not benchmark.binary:
        values = benchmark.item_values
        d = values[x] - values[y]
        gap = np.cumsum(d)[kept - 1] / (benchmark.unit * n)
        e: tuple[Floats | None, Floats | None, Floats | None] = (None, None, None)
        if benchmark.graded:
            e = _graded_evidence(d / benchmark.unit, kept)
        return PairPath(n, gap, e[0], e[1], e[2], None, None, -log(spec.alpha), family)
    wins, losses = _discordant(x, y, kept)
    for_one, for_other = log_e_halves(wins, losses, spec.mixture)
    low, high = gap_interval(n, wins, losses, spec.alpha, spec.mixture)
    log_e = log_e_value(wins, losses, spec.mixture)
    return PairPath(n, (wins - losses) / n, log_e, for_one, for_other, low, high, -log(spec.alpha), family)


def evidence_path(benchmark: Benchmark, one: int, other: int, points: int) -> tuple[Index, Floats]:
    """Compute n and ln e alone along the path of a pair scored 0 or 1; see `pair_path`."""
    x, y, kept = _shared(benchmark, one, other, points)
    wins, losses = _discordant(x, y, kept)
    return kept, log_e_value(wins, losses, benchmark.spec.mixture)


def _shared(benchmark: Benchmark, one: int, other: int, points: int) -> tuple[Codes, Codes, Index]:
    """Return the codes of two contestants on the items they share, and how many items to keep a point at."""
    scores = benchmark.item_codes()[:, [one, other]]
    x, y = scores[(scores >= ZERO).all(axis=1)].T
    return x, y, np.unique(np.linspace(1, x.size, min(points, x.size)).round().astype(np.int64))


def _graded_evidence(differences: Floats, kept: Index) -> tuple[Floats, Floats, Floats]:
    """Return ln e and its halves at some items of a path of graded scores; holds the capital of no more items than it keeps."""
    distinct, index = np.unique(differences, return_inverse=True)
    steps = log_increments(distinct)
    capital = initial_capital((kept.size,))
    standing, start = capital[0].copy(), 0
    for k, stop in enumerate(kept.tolist()):
        counts = np.bincount(index[start:stop], minlength=distinct.size)
        standing += np.tensordot(counts, steps, axes=1)
        capital[k], start = standing, stop
    return graded_log_e(capital), *graded_log_e_halves(capital)


def _discordant(x: Codes, y: Codes, kept: Index) -> tuple[Index, Index]:
    return np.cumsum((x == ONE) & (y == ZERO))[kept - 1], np.cumsum((x == ZERO) & (y == ONE))[kept - 1]

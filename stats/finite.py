"""The finite benchmark: which model leads on *these N items*, by sampling them without replacement.

This is another question than the one of the mixture e-process: it makes no claim about items outside the benchmark. In
exchange the answer comes much sooner, and is certain once the last item has arrived. It needs a random order of items.
"""

import numpy as np
from numpy.typing import ArrayLike

from stats.checks import FloatArray, between

_LAMBDAS = np.arange(2, 100, 2) / 100
_ROUNDING = 1e-12  # a total of graded scores is not exactly 0 when it should be


def finite_log_e(
    differences: ArrayLike, items: int, lambdas: ArrayLike = _LAMBDAS
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log e-value, after each item, against "both models have the same mean on the N items of this benchmark".

    Under a total of 0, the mean of the next difference given the S so far is mu_t = -S / (N - t + 1), so

        e+ = mean over lambda of prod_t (1 + lambda (D_t - mu_t)),    e- the same with -lambda,

    are martingales, and e+ a supermartingale as long as A's total is at most B's. A bet is cut to 1 / (1 + mu_t) (for
    -lambda to 1 / (1 - mu_t)) where more would risk a negative capital. Once the items left cannot bring the total back
    to 0, the half concerned is infinite: the null has become impossible.

    Parameters
    ----------
    differences
        D = x_A - x_B in [-1, 1] in the order of arrival, shape (T,) or (P, T) with T <= N. The order must be random.
    items
        N, the items of the benchmark that both models will have.
    lambdas
        bets in (0, 1], equally weighted; .02, .04, ..., .98 by default.

    Returns
    -------
    log_e, log_e_plus, log_e_minus
        natural logs of (e+ + e-) / 2, e+ ("A leads") and e-, in the shape of differences; reject at 1/alpha at any t.

    Raises
    ------
    ValueError
        For a difference that is nan or outside [-1, 1], fewer items than differences, bets outside (0, 1].

    References
    ----------
    Waudby-Smith & Ramdas, "Confidence sequences for sampling without replacement", NeurIPS 2020.

    Examples
    --------
    >>> _, plus, _ = finite_log_e([1, 1, -1, 1, 0, 1], 10, lambdas=[0.5])
    >>> np.exp(plus).round(6).tolist()
    [1.5, 2.333333, 1.458333, 2.291667, 2.673611, 4.545139]
    """
    (d,) = between(-1, 1, differences=differences)
    (bets,) = between(0, 1, lambdas=lambdas)
    if d.ndim == 0 or d.shape[-1] > items:
        raise ValueError(f"items must be at least the number of differences {d.shape[-1:]}: got {items}")
    if bets.ndim != 1 or bets.size == 0 or bets.min() == 0:
        raise ValueError("lambdas must be a list of bets in (0, 1]: found an empty one, a 0 or more than one axis")
    left = items - np.arange(d.shape[-1])
    total = np.cumsum(d, axis=-1)
    mu = np.clip(-(total - d) / left, -1, 1)
    halves = []
    for sign in (1.0, -1.0):
        limit = 1 / np.maximum(1 + sign * mu, 0.5)  # bets are at most 1, so a limit beyond 2 limits nothing
        capital = np.full(d.shape, -np.inf)
        for bet in bets:
            with np.errstate(divide="ignore"):  # a lost bet at the limit costs this lambda all it has
                steps = np.log1p(np.maximum(sign * np.minimum(bet, limit) * (d - mu), -1))
            capital = np.logaddexp(capital, np.cumsum(steps, axis=-1))
        impossible = np.logical_or.accumulate(sign * total > left - 1 + _ROUNDING * items, axis=-1)
        halves.append(np.where(impossible, np.inf, capital - np.log(bets.size)))
    return np.logaddexp(*halves) - np.log(2), halves[0], halves[1]

"""The evidence of whole counts by lookups, nearly: where it matters, and need be computed, is then known for a tenth of the time."""

from functools import lru_cache
from math import log

import numpy as np
import numpy.typing as npt

from stats.evidence.mixtures import Mixture, parse_mixture
from stats.numerics.checks import FloatArray
from stats.numerics.special import betaln, gammaln

ROUGH = 1e-6
"""How far a value may be from `stats.log_e_value`, in nats."""

_MOST = 1 << 21  # from here on tables do not pay, and their differences lose digits
_LARGEST = 1e4


def rough_log_e(b: npt.NDArray[np.int32], c: npt.NDArray[np.int32], mixture: str | Mixture) -> FloatArray | None:
    """Return ln e up to `ROUGH`; None for mixtures without tables, and for very large counts.

    Parameters
    ----------
    b, c : ndarray of int32, of one shape
        Discordant counts, not negative (not checked).
    mixture : str or Mixture
        Tables exist for Beta mixtures with parameters up to 10,000.

    Examples
    --------
    >>> rough_log_e(np.array([1680], np.int32), np.array([1454], np.int32), "beta(1,1)").round(4).tolist()
    [4.3537]
    >>> rough_log_e(np.array([1680], np.int32), np.array([1454], np.int32), "grid98") is None
    True
    """
    prior = parse_mixture(mixture)
    if prior.beta is None or max(prior.beta) > _LARGEST:
        return None
    most = int(b.max(initial=0)) + int(c.max(initial=0))
    if most >= _MOST:
        return None
    of_b, of_c, of_both = _tables(*prior.beta, 1 << most.bit_length())
    value = of_b.take(b, mode="clip")
    value += of_c.take(c, mode="clip")
    value -= of_both.take(b + c, mode="clip")
    return np.asarray(value)


@lru_cache(maxsize=4)
def _tables(p: float, q: float, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ln Gamma of b + p, of c + q, and of their sum less (b + c) ln 2 and the norm, for all counts below a size."""
    count = np.arange(size, dtype=np.float64)
    both = gammaln(count + (p + q)) - count * log(2) + float(betaln(p, q))
    return gammaln(count + p), gammaln(count + q), both

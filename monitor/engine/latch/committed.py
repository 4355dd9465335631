"""The evidence along a committed order.

For the first model a skipped item bets the lowest difference it allows, for the second one the highest. So the evidence is the sum of two
parts: e+ at (b, c_worst) and e- at (b_best, c), each with its weight in the mixture. With nothing skipped it is e(b, c).
"""

import numpy as np
from numpy.typing import NDArray

from stats.evidence.eprocess import log_completion_bound, log_e_value

Counts = NDArray[np.int32] | NDArray[np.int64]


def prefix_log_e(b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str) -> NDArray[np.float64]:
    """Return ln of the two-sided evidence."""
    log_e = log_e_value(b, c, mixture)
    skipped = np.nonzero((c_worst != c) | (b_best != b))
    if skipped[0].size:
        log_e[skipped] = np.logaddexp(*_halves(b[skipped], c[skipped], c_worst[skipped], b_best[skipped], mixture))
    return log_e


def _halves(
    b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ln of the two parts of the evidence, for the first model and for the second; their sum is the e-value."""
    return log_completion_bound(b, c_worst, 0, mixture)[0], log_completion_bound(b_best, c, 0, mixture)[1]

"""Codes of the score matrix: one small integer for each distinct score."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

ABSENT, SKIPPED, ZERO, ONE = 0, 1, 2, 3
"""Code 2 + k is entry k of the score table, which starts with 0 and 1."""

MILLION: Final = 1_000_000
"""Scores are kept in millionths: sums are then exact integers in any order of adding."""

NARROW: Final = 254
"""Distinct scores that fit into one byte, next to `ABSENT` and `SKIPPED`."""

Codes = NDArray[np.uint8] | NDArray[np.uint32]
Counts = NDArray[np.int32]

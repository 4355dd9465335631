"""A difference of scores as text: one format for every surface, from which its sign can be read."""

from math import floor, log10
from typing import Final

_NOISE: Final = 5e-10
"""Points below which a difference is the error of floating-point sums: two runs on a thousand million items differ by more."""

_OPEN: Final = 1e-300  # an end of an interval that is closer to 0 than this is 0 itself, which the interval excludes


def points(gap: float, digits: int = 2) -> str:
    """Format a difference of scores in percentage points, with its sign.

    A difference other than 0 has as many digits as its first one needs, and an end of an interval at 0 that excludes it is `> 0` or `< 0`,
    so no interval of a decided pair reads as if it touched 0.

    >>> points(0.0118), points(-0.0), points(0.00004), points(-0.00004), points(0.004, digits=0)
    ('+1.18', '0.00', '+0.004', '-0.004', '+0.4')
    >>> points(5e-324), points(-1e-307)
    ('> 0', '< 0')
    """
    if 0 < abs(gap) < _OPEN:
        return "> 0" if gap > 0 else "< 0"
    value = 100 * gap
    if abs(value) < _NOISE:
        return f"{0:.{digits}f}"
    text = f"{value:+.{digits}f}"
    return text if float(text) else f"{value:+.{max(digits, -floor(log10(abs(value))))}f}"


def size(gap: float, digits: int = 2) -> str:
    """Format the size of a difference of scores in percentage points, without its sign.

    >>> size(-0.0118), size(-0.00004)
    ('1.18', '0.004')
    """
    return points(abs(gap), digits).removeprefix("+")

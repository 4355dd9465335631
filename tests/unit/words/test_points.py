"""Differences of scores as text: nobody reads another sign than the number has."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.words.numbers import interval
from monitor.words.points import points, size

gaps = st.one_of(
    st.floats(-1, 1).filter(lambda gap: not 0 < abs(gap) < 1e-300),
    st.builds(lambda sign, power: sign * 10.0**power, st.sampled_from([-1, 1]), st.floats(-11, 0)),
)


@given(gaps, st.integers(0, 3))
@example(0.00004, 2)
@example(0.0000096, 2)
@example(0.00005, 2)
def test_the_sign_can_be_read(gap, digits):
    text = points(gap, digits)
    shown = 0 if abs(gap) < 5e-12 else gap
    assert (float(text) > 0, float(text) < 0) == (shown > 0, shown < 0)
    assert text[0] in "+-" if shown else text[0] == "0"
    assert abs(float(text) - 100 * gap) <= 0.5 * 10.0**-digits * (1 + 1e-9)
    assert abs(float(size(gap, digits))) == abs(float(text))
    assert "e" not in text


@given(gaps, gaps)
@example(float(np.finfo(float).tiny), 0.3)
@example(-0.3, -float(np.finfo(float).tiny))
@example(1e-300, 1.0)
def test_an_interval_touches_zero_exactly_when_it_reads_so(one, other):
    low, high = sorted(0.0 if 1e-300 <= abs(end) < 5e-12 else end for end in (one, other))
    first, second = (float({"> 0": 1, "< 0": -1}.get(end, end)) for end in interval(low, high).strip("[]").split(", "))
    assert (first <= 0 <= second) == (low <= 0 <= high)

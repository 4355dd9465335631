"""The numbers of keys against a dictionary, whatever the sizes of the parts in which they come."""

import numpy as np
import pytest

from monitor.engine.state.key_index import KeyIndex


@pytest.mark.parametrize("seed", range(4))
def test_numbers_are_those_of_a_dictionary(seed):
    rng = np.random.default_rng(seed)
    index, known = KeyIndex(), {}
    for size in rng.integers(0, 40, 60).tolist():
        keys = rng.integers(0, 600, size).astype(np.int64) << 30
        assert index.find(keys).tolist() == [known.get(key, -1) for key in keys.tolist()]
        numbers = index.numbers(keys).tolist()
        known |= dict(zip(keys.tolist(), numbers, strict=True))
        assert len(set(known.values())) == len(known) == index.size
    low = np.array([0, 5, 300]) << 30
    high = low + (50 << 30)
    numbers, ranges = index.between(low, high)
    expected = [(k, n) for k in range(3) for key, n in known.items() if low[k] <= key < high[k]]
    assert sorted(zip(ranges.tolist(), numbers.tolist(), strict=True)) == sorted(expected)

"""The owner of a benchmark is where Kafka's own producers put its key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.logs.owner import owner

# From the tests of the Java client (UtilsTest.testMurmur2).
JAVA = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), JAVA.items())
@pytest.mark.parametrize("partitions", [1, 2, 3, 12, 64])
def test_it_agrees_with_the_java_client(key, hashed, partitions):
    assert owner(key, partitions) == (hashed & 0x7FFFFFFF) % partitions


@given(st.text(), st.integers(1, 1000))
def test_it_is_a_partition(benchmark, partitions):
    assert 0 <= owner(benchmark, partitions) < partitions

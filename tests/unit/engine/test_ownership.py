"""The owner of a benchmark: the same as for any producer that uses the Java client's partitioner."""

import pytest
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.partitioner import murmur2 as of_aiokafka
from hypothesis import given
from hypothesis import strategies as st

from schemas.records.ownership import murmur2, owner


@pytest.mark.parametrize(
    ("data", "expected"),
    [  # from Apache Kafka's UtilsTest
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_published_vectors(data, expected):
    assert murmur2(data) == expected & 0xFFFFFFFF


@given(st.binary(max_size=70))
def test_the_hash_of_aiokafka(data):
    assert murmur2(data) == of_aiokafka(data) & 0xFFFFFFFF


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30), st.integers(1, 200))
def test_the_partition_of_aiokafka(name, partitions):
    everywhere = list(range(partitions))
    assert owner(name, partitions) == DefaultPartitioner()(name.encode(), everywhere, everywhere)

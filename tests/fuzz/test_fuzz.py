"""The kept corpus, whole and mutated, against every target."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, TOOL_TARGETS, seeds

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
SEEDS = {name: seeds(name) for name in TARGETS}
PIECES = [
    b"",
    b"\n", b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf", b'"', b"\\", b"\\ud800", b"{", b"}", b"[" * 200, b"]", b",", b":", b"null", b"NaN",
    b"-Infinity", b"1e999", b"-0.0", b"1e-320", b"1.0000000001", b"9" * 400, b"true", b'"1"', b'"declare":"bench",', b'"score":0,',
    b'"events":[', b'"epoch":-1,', b'"repeat":1e3,', b"\xe2\x80\xae", b"\x1b[2J", b"9999-12-31T23:59:60Z", b"\t", b";",
]  # fmt: skip


@st.composite
def mutants(draw, name):
    """A seed, or two spliced, with some pieces put in, cut out and turned over."""
    seeds = SEEDS[name]
    data = draw(st.sampled_from(seeds))
    if draw(st.booleans()):
        other = draw(st.sampled_from(seeds))
        data = data[: draw(st.integers(0, len(data)))] + other[draw(st.integers(0, len(other))) :]
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.sampled_from([0, 0, 1, 2, 8, 60])))
        data = data[:start] + draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4))) + data[stop:]
    return data


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_does_no_harm(name):
    assert SEEDS[name]
    for data in SEEDS[name]:
        TARGETS[name](data)


@pytest.mark.fault(
    "attacks",
    "mutations of a kept corpus against every reader of input",
    "a documented refusal; good records next to it count",
)
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_like_the_corpus_does_any_harm(name):
    @settings(
        max_examples=2_000 if SLOW else 12 if name in TOOL_TARGETS else 60,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(mutants(name))
    def run(data):
        TARGETS[name](data)

    run()

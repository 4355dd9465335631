"""A few streams of each late choice; `python -m tests.calibration.provenance` makes more, and keeps the counts."""

import json
from math import sqrt

import pytest

from tests.calibration import provenance
from tests.calibration.streams import ALPHA

LARGEST = {
    "the best-looking pair of 20 models declared as the family, completion": 0.5,
    "the same, by a flag of `report`, completion": 0.5,
    "wrong answers null, run again until right, filled, completion": 0.9,
    "two runs joined by an alias, right answers first, completion": 0.9,
    "a gate, 8 points worse, a retried run sorts first, `--conflicts first`, files": 0.2,
}
"""Attacks that have to work, at this rate at least: else they attack nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("name", provenance.ATTACKS)
def test_a_few_streams(name):
    found = provenance.measure(name, 6)
    assert found["unnamed"] == 0
    if not found["named"]:
        assert found["false"] <= 2  # more: once in 450 at a rate of .05


@pytest.mark.smoke
def test_the_kept_rates_are_refused_or_named():
    kept = json.loads(provenance.KEPT.read_text(encoding="utf-8"))
    assert kept.keys() == provenance.ATTACKS.keys(), "run `python -m tests.calibration.provenance`"
    for name, found in kept.items():
        rate, runs = found["false"] / found["runs"], found["runs"]
        assert found["unnamed"] == 0
        assert found["named"] or rate <= ALPHA + 2 * sqrt(ALPHA * (1 - ALPHA) / runs), name
        assert rate >= LARGEST.get(name, 0), name

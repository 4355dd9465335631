"""A small version of the simulation of the sequential gate; the full one is `python -m tests.calibration.gate`."""

import json
from math import sqrt

from tests.calibration import gate


def test_the_simulation_is_the_loop_of_the_gate():
    for run in range(2):
        assert gate.simulate(0.13, 0.0, run) == gate.by_blocks(0.13, 0.0, run)


def test_equal_models_pass_early_and_a_drop_of_the_margin_does_not():
    equal, worse = gate.measure(0.04, 0.0, 40), gate.measure(0.04, -gate.MARGIN, 40)
    assert equal["pass"] >= 36
    assert equal["median"] <= 420
    assert worse["pass"] <= 7


def test_the_rates_that_the_documentation_shows():
    kept = json.loads(gate.KEPT.read_text())
    equal = kept["4% discordant, equal models"]
    assert equal["runs"] >= 2000
    assert equal["pass"] / equal["runs"] >= 0.98
    assert equal["median"] <= 360
    for share in (4, 13):
        worse = kept[f"{share}% discordant, worse by exactly the margin"]
        assert worse["pass"] / worse["runs"] <= 0.05 + 2 * sqrt(0.05 * 0.95 / worse["runs"])

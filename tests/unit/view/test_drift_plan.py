"""Plans of sentinels: what the noise of runs finds."""

import numpy as np
import pytest

from monitor.view.drift_plan import Noise, noise_of, planned
from monitor.words.drift_plan import unfound

BOUND = {"years": 5, "runs_a_year": 365, "monitors": 1}


def runs_of(levels, items=100, seed=0):
    rng = np.random.default_rng(seed)
    right = rng.beta(1.4, 0.6, items)
    return [{str(k): float(rng.random() < p) for k, p in enumerate(np.clip(right + level, 0, 1))} for level in levels]


def test_the_noise_of_runs_is_that_of_their_items_and_what_whole_runs_share():
    steady = noise_of(runs_of(np.zeros(60)))
    assert steady.variance == pytest.approx(0.14, abs=0.03)
    assert steady.shocks < 0.02
    assert noise_of(runs_of(np.random.default_rng(1).normal(0, 0.1, 60))).shocks > 0.04
    with pytest.raises(ValueError, match="two runs"):
        noise_of(runs_of([0.0]))


def test_a_short_history_never_finds_a_small_drop_on_few_items():
    plan = planned(Noise(0.14), [50, 1000], [14], [0.08, 0.04], **BOUND, price=0.002)
    few, many = plan.watches
    assert [each.least_history for each in few.drops] == [7, 27]
    assert few.drops[1].median is None
    assert many.drops[1].median is not None
    assert many.cost_a_year == pytest.approx(730)
    (sentence,) = unfound(plan)
    assert all(part in sentence for part in ("14", "4 points", "50", "27"))

"""Suites through the engine: models whose weighted scores are equal, and one look at evidence that never falls.

With 100 streams of 20 pairs each: see docs/decisions/0031-verdicts-of-suites.md.
"""

import numpy as np
import pytest

from monitor.view.pairs.table import PairTable
from monitor.view.partition_view import board_views
from monitor.view.ranking.suite import suite_board
from schemas.records.suites import Member, Suite
from tests.calibration.streams import UNEVEN
from tests.calibration.test_engine_calibration import most
from tests.fold_log import FoldLog, packed

MODELS, STREAMS = 40, 10
SUITE = Suite("overall", dict.fromkeys(UNEVEN, Member()), distinct=True)


def wrong(seed, gap, policy):
    """Return how many of the pairs of opponents are decided: the odd model is worse in one member and better by as much in another."""
    rng, log = np.random.default_rng([31, seed]), FoldLog()
    side, names = np.where(np.arange(MODELS) % 2, -0.5, 0.5), [f"m{k}" for k in range(MODELS)]
    for (name, size), tilt in zip(UNEVEN.items(), (gap, -gap, 0), strict=True):
        ids = [str(k) for k in range(size)]
        order = (
            {"items": size}
            if policy == "completion"
            else {"item_ids": ids, "order": {"policy": policy, "seed": f"{name}{seed}"}}
        )
        scores = rng.random((size, MODELS)) < rng.uniform(0.3, 0.7, (size, 1)) + tilt * side
        log.send({"declare": name, **order}, packed(scores, names, items=ids, benchmark=name))
    table = PairTable(suite_board(SUITE, board_views([log.partition]), assert_complete=False))
    assert table.hold_reason is None
    return int(np.count_nonzero(table.anytime_decisions["anytime"][table.pairs.a // 2 == table.pairs.b // 2]))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["completion", "committed"])
@pytest.mark.parametrize("gap", [0, 0.1, 0.24])
def test_models_of_equal_weighted_score_are_decided_within_alpha(gap, policy):
    assert sum(wrong(seed, gap, policy) for seed in range(STREAMS)) <= most(STREAMS * MODELS // 2)

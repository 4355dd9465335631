"""A replay against plain loops: exact tests by scipy, e-values by the closed form, and Holm's step-down written out."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.replay import replay
from tests.fold_log import FoldLog

MODELS, ITEMS = 5, 300


def scores(seed=4, skill=(0.72, 0.66, 0.6, 0.56, 0.3)):
    rng = np.random.default_rng(seed)
    return (rng.random((ITEMS, MODELS)) < np.array(skill)).astype(int)


def table(matrix, **declared):
    log = FoldLog({"declare": "b", **declared})
    log.send(
        *(
            {"benchmark": "b", "item_id": f"q{i}", "model": f"m{k}", "score": int(score)}
            for i, row in enumerate(matrix)
            for k, score in enumerate(row)
        )
    )
    return PairTable.of(board_view(log.partition.benchmarks["b"]))


def expected(matrix, order, seed, alpha=0.05):
    """Calls and decisions of each pair of columns, in `order` of rank, at each look."""
    shuffled = matrix[np.random.default_rng(seed).permutation(len(matrix))][:, order]
    looks = sorted({round(k * ITEMS / 120) for k in range(1, 121)})
    pairs = [(i, j) for j in range(MODELS) for i in range(j)]
    called, decided = {pair: [] for pair in pairs}, dict.fromkeys(pairs)
    largest = dict.fromkeys(pairs, -math.inf)
    for look in looks:
        lead = {}
        for i, j in pairs:
            b = int(((shuffled[:look, i] == 1) & (shuffled[:look, j] == 0)).sum())
            c = int(((shuffled[:look, i] == 0) & (shuffled[:look, j] == 1)).sum())
            lead[i, j] = (b > c) - (b < c)
            small = b + c > 0 and binomtest(b, b + c).pvalue < 0.05
            called[i, j].append(lead[i, j] if small else 0)
            log_e = (b + c) * math.log(2) + math.lgamma(b + 1) + math.lgamma(c + 1) - math.lgamma(b + c + 2)
            largest[i, j] = max(largest[i, j], log_e)
        while True:
            undecided = [pair for pair in pairs if decided[pair] is None]
            met = [pair for pair in undecided if largest[pair] >= math.log(len(undecided) / alpha)]
            if not met:
                break
            for pair in met:
                decided[pair] = look, lead[pair]
    return looks, called, decided


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_replay_is_what_plain_loops_give(seed):
    matrix = scores()
    found = table(matrix)
    looks, called, decided = expected(matrix, found.ranking, seed)
    answer = replay(found, seed)
    assert (answer.items, answer.looks, answer.pairs) == (ITEMS, len(looks), 10)
    undone = {
        pair: sum(before not in {0, now} for before, now in zip([0, *sides], sides, strict=False))
        for pair, sides in called.items()
    }
    assert (answer.undone, answer.undone_pairs) == (sum(undone.values()), sum(map(bool, undone.values())))
    assert answer.called == sum(
        now not in {0, before} for sides in called.values() for before, now in zip([0, *sides], sides, strict=False)
    )
    assert answer.decided == sum(each is not None for each in decided.values()) > 0
    for k, step in enumerate(answer.steps):
        assert (step.model_a, step.model_b) == tuple(f"m{found.ranking[place]}" for place in (k, k + 1))
        assert step.undone == undone[k, k + 1]
        assert (step.decided_at, step.decided_side) == (decided[k, k + 1] or (None, 0))
        at_looks = [0] * len(looks)
        for start, end, side in step.called:
            for place, look in enumerate(looks):
                if start <= look and (end is None or look < end):
                    at_looks[place] = side
        assert at_looks == called[k, k + 1]


@pytest.mark.parametrize(
    ("matrix", "declared", "reason"),
    [
        (scores()[:, :1], {}, "boards of 2 to 100 models are replayed"),
        (scores(), {"scores": "graded"}, "only scores 0 and 1 with equal weights are replayed"),
    ],
)
def test_a_board_that_is_not_replayed_has_a_reason(matrix, declared, reason):
    answer = replay(table(matrix, **declared))
    assert (answer.reason, answer.steps) == (reason, [])

"""How often one look verifies wrong top models: at most alpha, exactly for two models, and for ties of more by simulation.

RANKWATCH_SLOW=1 takes 4,000 boards of each case in place of 200, in minutes; their rates then have a standard error of at most .0035.
"""

import os
from itertools import product
from math import comb

import numpy as np
import pytest

from stats.fixed_n.verified import top_set

RUNS = 4_000 if os.environ.get("RANKWATCH_SLOW") == "1" else 200
ALPHA = 0.05
ITEMS = 12


@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.5])
def test_of_two_equal_models_one_is_verified_at_most_alpha_of_the_time(alpha):
    """Every outcome of twelve items: only the first, only the second, or both alike with probabilities q, q and 1 - 2 q."""
    for q in (0.1, 0.3, 0.5):
        wrong = 0.0
        for first, second in product(range(ITEMS + 1), repeat=2):
            alike = ITEMS - first - second
            if alike >= 0 and top_set([[1, 0]] * first + [[0, 1]] * second + [[1, 1]] * alike, 1).p <= alpha:
                wrong += comb(ITEMS, alike) * comb(first + second, first) * q ** (first + second) * (1 - 2 * q) ** alike
        assert 0 < wrong <= alpha + 1e-12


def shared(rng, items, scale, truth):
    """Draw models that find the same items hard, to different degrees."""
    hard = rng.random((items, 1))
    return np.where(rng.random((items, len(truth))) < scale, hard, rng.random((items, len(truth)))) < truth


def opposed(rng, items, _scale, truth):
    """Draw two models that are never right together, and independent ones."""
    x = rng.random((items, len(truth)))
    x[:, 1] = 1 - x[:, 0]
    return x < truth


CASES = [
    (shared, 1_000, 0.7, (0.6, 0.6, 0.3), 1),
    (shared, 200, 0.7, (0.6, 0.6, 0.3), 1),
    (shared, 1_000, 0.3, (0.6,) * 3, 1),
    (shared, 1_000, 0.3, (0.6,) * 6, 1),
    (shared, 1_000, 0.3, (0.6,) * 4, 2),
    (opposed, 1_000, 0.0, (0.5, 0.5, 0.5), 1),
    (opposed, 1_000, 0.0, (0.5, 0.5, 0.5), 2),
    (shared, 1_000, (0.9, 0.9, 0.1), (0.5, 0.5, 0.5), 2),
]


@pytest.mark.parametrize("draw", CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}-{len(case[3])}-top{case[4]}")
def test_ties_are_verified_at_most_alpha_of_the_time(draw):
    make, items, scale, truth, size = draw
    rng = np.random.default_rng([items, size, len(truth)])
    tied = np.array(truth) == truth[0]
    assert tied.sum() > size  # so no set of this size is the best one
    wrong = sum(top_set(make(rng, items, scale, np.array(truth)), size).p <= ALPHA for _ in range(RUNS))
    print(f"\n{wrong / RUNS:.4f} ({np.sqrt(wrong * (RUNS - wrong) / RUNS) / RUNS:.4f})", end="")
    assert wrong / RUNS <= ALPHA + 4 * np.sqrt(ALPHA * (1 - ALPHA) / RUNS)

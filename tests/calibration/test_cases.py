"""`gate --per-case`: it passes with a case below its floor, or fails with none, with a chance of alpha at most: exactly."""

import numpy as np
import pytest
from scipy.stats import binom

from stats.gates.cases import below_p, case_bounds


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("floor", [0.5, 0.8, 0.95])
def test_a_case_at_its_floor_passes_or_fails_with_a_chance_of_alpha_at_most(floor, k, alpha):
    answer = floor ** (1 / k)
    for repeats in (*range(k, 40), 60, 100, 200):
        right, of = np.arange(repeats + 1.0), np.full(repeats + 1, float(repeats))
        chance = binom.pmf(right, repeats, answer - 1e-9)
        low, high = case_bounds(right, of, k, alpha)
        assert chance[low >= floor].sum() <= alpha
        chance = binom.pmf(right, repeats, answer + 1e-9)
        assert chance[below_p(right, of, floor, k) <= alpha].sum() <= alpha
        assert chance[high <= floor].sum() <= alpha

"""Step-down procedures against exhaustive closed tests, and against a monitor that looks after every single event."""

from itertools import combinations, pairwise
from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stats import (
    family_weights,
    log_e_value,
    spending_alpha,
    step_down,
    step_thresholds,
)
from stats.families.error_control import WHOLE
from tests.published_pairs import B, C
from tests.stats_reference import partition_bound, step_down_events, transitive_step_down


def partitions(items):
    """Yield every partition of a list into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for others in partitions(rest):
        yield [[first], *others]
        for k in range(len(others)):
            yield [*others[:k], [first, *others[k]], *others[k + 1 :]]


def within(groups):
    return {pair for group in groups for pair in combinations(sorted(group), 2)}


def rejected_by(sets, p, w, alpha):
    """Return the hypotheses that closed testing with weighted Bonferroni tests rejects, over the given true sets."""
    failing = [s for s in sets if s and not any(p[j] <= alpha * w[j] / sum(w[i] for i in s) for j in s)]
    return {j for j in p if not any(j in s for s in failing)}


def symmetric(values, models):
    matrix = np.zeros((models, models))
    for (i, j), value in values.items():
        matrix[i, j] = matrix[j, i] = value
    return matrix


def test_reference_values():
    found = step_down(log_e_value(B, C), family_weights(np.arange(1, 10), 9))
    assert found.pair.tolist() == [0, 1, 3, 6]
    assert found.open_weight == WHOLE - 4 * (WHOLE // 9)
    left = WHOLE
    for bound in (180, 160, 140, 120, 100):
        assert_allclose(np.exp(step_thresholds(WHOLE // 9, left)), bound, rtol=1e-12)
        left -= WHOLE // 9
    log_e = np.sort(log_e_value(B, C))[::-1]
    assert (log_e[:5] >= np.log([180, 160, 140, 120, 100])).tolist() == [True, True, True, True, False]


def test_weights_are_those_of_the_levels_and_never_exceed_the_whole():
    j = np.arange(1, 5000)
    assert_allclose(family_weights(j) / WHOLE, spending_alpha(j, 0.05) / 0.05, rtol=1e-12)
    # Under any order of registration each place is taken once; the weights of models to come are less than 1/(2 k) and the integral.
    weights = family_weights(np.random.default_rng(1).permutation(np.arange(1, 1_999_001)))
    rest = (np.log(20.5) / np.log(1_999_020.5) + 1 / 2_000) / 2
    assert sum(weights.tolist()) + int(rest * WHOLE) <= WHOLE
    assert family_weights([1, 45, 46], 45).tolist() == [WHOLE // 45, WHOLE // 45, 0]
    assert family_weights(np.arange(1, 12_497_501), 12_497_500).sum() <= WHOLE
    assert_allclose(step_thresholds(family_weights(3), WHOLE, 0.1), -np.log(spending_alpha(3, 0.1)), rtol=1e-12)
    assert step_thresholds(0) == np.inf


@pytest.mark.parametrize("size", [1, 2, 5, 7])
def test_it_is_the_closed_test_with_weighted_bonferroni(size):
    rng = np.random.default_rng(size)
    every = [set(s) for k in range(1, size + 1) for s in combinations(range(size), k)]
    counts = set()
    for _ in range(150):
        units = (
            rng.multinomial(2**40, rng.dirichlet(np.ones(size))) * 2**22
            if rng.random() < 0.5
            else family_weights(np.arange(1, size + 1), size)
        )
        p = np.exp(-rng.exponential(4, size))
        expected = rejected_by(every, dict(enumerate(p)), dict(enumerate(units / WHOLE)), 0.1)
        found = step_down(-np.log(p), units, alpha=0.1)
        assert set(found.pair.tolist()) == expected
        assert found.open_weight == WHOLE - units[found.pair].sum()
        assert (-np.log(p[found.pair]) >= found.threshold_log - 1e-12).all()
        counts.add(len(expected))
    assert len(counts) > min(size, 3)


def one_by_one(before, units, rows, open_weight):
    """Step down after every event."""
    best, open_pairs, found = np.array(before), np.ones(len(before), bool), []
    for when in np.unique(rows[1]):
        for of, at, evidence in zip(*rows, strict=True):
            if at == when:
                best[of] = max(best[of], evidence)
        result = step_down(np.where(open_pairs, best, 0), np.where(open_pairs, units, 0), open_weight)
        open_weight, open_pairs[result.pair] = result.open_weight, False
        found += [
            (pair, when, threshold) for pair, threshold in zip(result.pair.tolist(), result.threshold_log, strict=True)
        ]
    return found, open_weight, best


@pytest.mark.parametrize("capacity", [None, 12])
def test_events_are_decided_as_if_one_looked_after_each_and_chunks_do_not_matter(capacity):
    rng = np.random.default_rng(8)
    cascades = decided_late = 0
    for _ in range(60):
        pairs, size = 12, 60
        units = family_weights(np.arange(1, pairs + 1), capacity)
        rows = (rng.integers(0, pairs, size), rng.integers(0, 25, size), rng.normal(4, 2.5, size))
        zeros = np.zeros(pairs)
        expected, left, _ = one_by_one(zeros, units, rows, WHOLE)
        found = step_down_events(zeros, units, rows)
        assert list(zip(found.pair.tolist(), found.when.tolist(), strict=True)) == [x[:2] for x in expected]
        assert_allclose(found.threshold_log, [x[2] for x in expected], rtol=1e-14)
        assert found.open_weight == left
        # The same events in calls of their own, the pairs decided so far left out.
        best, units_left, left, pieces = zeros.copy(), units.copy(), WHOLE, []
        cuts = [0, *np.sort(rng.choice(np.arange(1, 25), 15, replace=False)).tolist(), 25]
        for low, high in pairwise(cuts):
            part = tuple(x[(rows[1] >= low) & (rows[1] < high)] for x in rows)
            result = step_down_events(best, units_left, part, left)
            np.maximum.at(best, part[0], part[2])
            units_left[result.pair], left = 0, result.open_weight
            pieces += list(zip(result.pair.tolist(), result.when.tolist(), strict=True))
            decided_late += int(np.isin(result.pair, part[0], invert=True).sum())
        assert pieces == [x[:2] for x in expected]
        cascades += sum(a[1] == b[1] for a, b in pairwise(expected))
    assert cascades > 10
    assert decided_late > 0  # pairs without an event of their own were decided by the decisions of others


def test_nothing_to_decide():
    none = np.zeros(0)
    assert step_down(none, np.zeros(0, int)).pair.size == 0
    found = step_down_events([0.0], [WHOLE], (none, none, none))
    assert (found.pair.size, found.when.size, found.open_weight) == (0, 0, WHOLE)
    assert step_down([np.inf, np.inf], [0, WHOLE]).pair.tolist() == [1]


@pytest.mark.parametrize("models", [2, 3, 4, 5])
def test_the_partition_bound_is_at_least_the_largest_weight_and_never_rises(models):
    rng = np.random.default_rng(models)
    every = [within(groups) for groups in partitions(list(range(models)))]
    pairs = list(combinations(range(models), 2))
    tight = 0
    for trial in range(40):
        weights = {pair: 1.0 if trial % 2 else rng.exponential() for pair in pairs}
        undecided, last = set(pairs), None
        for gone in rng.permutation(len(pairs)).tolist():
            at = sorted(undecided)
            graph = symmetric(dict.fromkeys(at, 1), models) > 0
            bound = dict(
                zip(at, partition_bound(symmetric(weights, models), graph, tuple(np.transpose(at))), strict=True)
            )
            for pair in at:
                exact = max(sum(weights[x] for x in s) for s in every if pair in s and s <= undecided)
                assert exact <= bound[pair] + 1e-12
                assert bound[pair] <= sum(weights[x] for x in undecided) + 1e-12
                tight += bound[pair] < exact + 1e-9
                assert last is None or bound[pair] <= last[pair] + 1e-12
            last = bound
            undecided.discard(pairs[gone])
    assert tight > 100 * (models > 2)


@pytest.mark.parametrize("models", [3, 4, 5])
def test_the_transitive_step_down_lies_between_holm_and_the_exhaustive_closed_test(models):
    rng = np.random.default_rng(40 + models)
    every = [within(groups) for groups in partitions(list(range(models)))]
    pairs = list(combinations(range(models), 2))
    more = 0
    for trial in range(300):
        share = np.full(len(pairs), 1 / len(pairs)) if trial % 2 else rng.dirichlet(np.ones(len(pairs)))
        w = dict(zip(pairs, share.tolist(), strict=True))
        p = dict(zip(pairs, np.exp(-rng.exponential(4, len(pairs))).tolist(), strict=True))
        evidence = symmetric({pair: -log(value) for pair, value in p.items()}, models)
        decided = transitive_step_down(evidence, symmetric(w, models), np.zeros((models, models), bool), alpha=0.1)
        assert_array_equal(decided, decided.T)
        found = {pair for pair in pairs if decided[pair]}
        units = np.floor(share * WHOLE).astype(np.int64)
        holm = {pairs[k] for k in step_down([-log(p[pair]) for pair in pairs], units, alpha=0.1).pair.tolist()}
        closed = rejected_by(every, p, w, 0.1)
        assert holm <= found <= closed
        more += len(found) - len(holm)
        # With nothing known about hypotheses to come, they count in full.
        half = transitive_step_down(
            evidence, symmetric(w, models) / 2, np.zeros((models, models), bool), later=0.5, alpha=0.1
        )
        assert not (half & ~decided).any()
    assert more > 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: step_down([1.0], [1.0]), "weights must be integers"),
        (lambda: step_down([1.0, 2.0], [1]), "lists of one length"),
        (lambda: step_down([np.nan], [1]), "evidence must not be NaN"),
        (lambda: step_down([1.0], [1], alpha=2), "alpha must lie strictly"),
        (lambda: step_down([1.0], [-1]), "weights must be non-negative"),
        (lambda: family_weights(0), "j must lie in"),
        (lambda: partition_bound(np.ones((2, 3)), np.ones((2, 3)), ([0], [1])), "square matrices"),
        (lambda: partition_bound(np.ones((2, 2)), np.zeros((2, 2)), ([0], [1])), "pairs must be undecided"),
        (lambda: partition_bound([[0, 1], [2, 0]], np.ones((2, 2)), ([0], [1])), "symmetric"),
        (
            lambda: transitive_step_down([[0.0]], np.ones((2, 2)), np.zeros((2, 2))),
            "evidence must be a symmetric matrix",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

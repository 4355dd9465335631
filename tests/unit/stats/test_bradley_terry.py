"""Ratings from battles against a second implementation, which shares no code: minorisation-maximisation, and explicit loops."""

import numpy as np
import pytest

from stats.battles.agreement import agreement
from stats.battles.bradley_terry import bradley_terry, groups_of


def oracle(battles, models, steps=20_000):
    """Fit strengths by Hunter's minorisation-maximisation, one battle at a time in plain Python."""
    wins, met = [0.0] * models, {}
    for i, j, y in battles:
        wins[i] += y
        wins[j] += 1 - y
        met[min(i, j), max(i, j)] = met.get((min(i, j), max(i, j)), 0) + 1
    worth = [1.0] * models
    for _ in range(steps):
        share = [0.0] * models
        for (i, j), n in met.items():
            each = n / (worth[i] + worth[j])
            share[i] += each
            share[j] += each
        new = [w / s for w, s in zip(wins, share, strict=True)]
        scale = np.exp(np.mean(np.log(new)))
        new = [w / scale for w in new]
        moved = max(abs(np.log(x / y)) for x, y in zip(new, worth, strict=True))
        worth = new
        if moved < 1e-10:
            break
    return np.log(worth)


def stream(rng, models, count, *, ties=0.2, bias=0.0):
    strength = rng.normal(0, 1, models)
    pairs = np.array([rng.choice(models, 2, replace=False) for _ in range(count)])
    shown = rng.choice([-1, 1], count)
    p = 1 / (1 + np.exp(-(strength[pairs[:, 0]] - strength[pairs[:, 1]] + bias * shown)))
    y = np.where(rng.random(count) < ties, 0.5, rng.random(count) < p)
    return pairs[:, 0], pairs[:, 1], y, shown


@pytest.mark.parametrize("seed", range(2))
def test_strengths_agree_with_a_second_implementation(seed):
    i, j, y, _ = stream(np.random.default_rng(seed), 5, 200)
    fit = bradley_terry(i, j, y, 5)
    expected = oracle(list(zip(i.tolist(), j.tolist(), y.tolist(), strict=True)), 5)
    assert np.abs(fit.strength - expected).max() < 1e-6


def test_position_and_errors_agree_with_a_clustered_logistic_regression():
    from statsmodels.api import GLM, families

    i, j, y, shown = stream(np.random.default_rng(7), 4, 500, ties=0.0, bias=0.4)
    prompt = np.arange(500) // 3
    fit = bradley_terry(i, j, y, 4, shown=shown, cluster=prompt)
    design = np.zeros((500, 4))
    for k in range(1, 4):
        design[:, k - 1] = (i == k).astype(float) - (j == k)
    design[:, 3] = shown
    model = GLM(y, design, family=families.Binomial()).fit(
        tol=1e-13, cov_type="cluster", cov_kwds={"groups": prompt, "use_correction": False}
    )
    clusters = np.unique(prompt).size
    errors = model.bse * np.sqrt(clusters / (clusters - 1))
    assert np.allclose(fit.strength[1:] - fit.strength[0], model.params[:3], atol=1e-6)
    assert np.allclose(fit.error(anchor=0)[1:], errors[:3], atol=1e-6)
    assert fit.position == pytest.approx(model.params[3], abs=1e-6)
    assert np.sqrt(fit.covariance[-1, -1]) == pytest.approx(errors[3], abs=1e-6)


def test_the_strongest_lead_of_a_group_is_found():
    fit = bradley_terry([0] * 100_000, [1] * 100_000, [1.0] * 99_999 + [0.0], 2)
    assert fit.strength[0] - fit.strength[1] == pytest.approx(np.log(99_999), abs=1e-6)


def test_a_position_that_always_wins_has_no_value_and_ratings_go_without_it():
    fit = bradley_terry([0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1], 2, shown=[1, 1, 1, 1])
    assert fit.position == 0.0  # the order never varies against the winner's place
    fit = bradley_terry([0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], 2, shown=[1, -1, 1, -1])
    assert np.isnan(fit.position)
    assert fit.strength.tolist() == [0, 0]


def test_islands_groups_and_levels():
    # 0 and 1 beat each other; both beat 2, which never won. 3 and 4 never met the others, 5 met nobody.
    found = groups_of([0, 1, 0, 1, 3], [1, 0, 2, 2, 4], [1, 1, 1, 1, 0.5], 6)
    assert found.island.tolist() == [0, 0, 0, 1, 1, 2]
    assert found.level.tolist() == [0, 0, 1, 0, 0, 0]
    assert found.group[0] == found.group[1] != found.group[2]
    assert found.group[3] == found.group[4]


def test_battles_between_groups_have_no_part_in_strengths():
    inside = bradley_terry([0, 1, 0], [1, 0, 1], [1, 1, 0.5], 3).strength
    beyond = bradley_terry([0, 1, 0, 0], [1, 0, 1, 2], [1, 1, 0.5, 1], 3).strength
    assert np.allclose(inside, beyond)


@pytest.mark.parametrize(
    ("battles", "text"),
    [
        (([0], [0], [1]), "itself"),
        (([0], [2], [1]), "numbers of models"),
        (([0], [1], [1.5]), "points"),
        (([0, 1], [1], [1]), "one length"),
    ],
)
def test_wrong_battles_are_refused(battles, text):
    with pytest.raises(ValueError, match=text):
        bradley_terry(*battles, 2)


def test_agreement_is_that_of_krippendorffs_example():
    # Krippendorff, "Computing Krippendorff's alpha-reliability": nominal data of four observers, alpha .743.
    table = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    cells = [(u, k, label) for k, row in enumerate(table) for u, label in enumerate(row) if label is not None]
    found = agreement(*zip(*cells, strict=True))
    assert found.alpha == pytest.approx(0.743, abs=5e-4)
    assert found.units.sum() == 40  # the last unit has one judge


def test_judges_without_a_common_unit_have_no_agreement():
    found = agreement([0, 1], [0, 1], [0, 0])
    assert np.isnan(found.alpha)
    assert found.units.tolist() == [0, 0]

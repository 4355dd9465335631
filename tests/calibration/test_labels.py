"""A judge corrected by labels of people: how often reports decide falsely, and how often they find a gap.

A run takes a few worlds of some cells; RANKWATCH_SLOW=1 takes 300 of every cell, in minutes. Settings: people find 30 % of the items
different, and label every `every`-th one; the judge scores each answer, right with the probability `accuracy`, and passes a failing
answer of A with the probability `bias`.
"""

import os

import numpy as np
import pytest

from monitor.view.labels import LabelledScores
from stats.fixed_n.mcnemar import exact_p

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
WORLDS = 300 if SLOW else 12
LEVEL = 0.05


def world(rng, items, gap, accuracy, bias, differ=0.3):
    """Scores of people and of the judge, shape (items, 2)."""
    kind, same = rng.random(items), rng.random(items) < 0.65
    better = (differ + gap) / 2
    people = np.stack(
        [np.where(kind < differ, kind < better, same), np.where(kind < differ, kind >= better, same)], axis=1
    )
    judge = np.where(rng.random((items, 2)) < accuracy, people, ~people)
    judge[:, 0] |= ~people[:, 0] & (rng.random(items) < bias)
    return people.astype(float), judge.astype(float)


def scores(people, judge, every):
    part = people[::every]
    return LabelledScores([str(k) for k in range(len(people))], every, judge, part, ~np.isnan(part).any(axis=1))


def exact_zero(people, rng):
    """Scores whose total is the same for both models, by as few changes as that takes."""
    people = people.copy()
    lead = int((people[:, 0] - people[:, 1]).sum())
    won = np.flatnonzero(people[:, 0] - people[:, 1] == np.sign(lead))
    people[rng.permutation(won)[: abs(lead)], :] = 1
    return people


def decides(evidence):
    return evidence.side if evidence.p <= LEVEL else 0


def shares(labels, every, gap, accuracy, bias, worlds, seed):
    """Shares of worlds in which the judge alone, the claim on items of this kind, and that on these items are decided; and for A."""
    rng = np.random.default_rng([seed, labels, every, int(100 * accuracy), int(100 * bias), int(100 * gap)])
    found = []
    for _ in range(worlds):
        people, judge = world(rng, labels * every, gap, accuracy, bias)
        d = judge[:, 0] - judge[:, 1]
        alone = float(exact_p(int((d > 0).sum()), int((d < 0).sum()))) <= LEVEL
        of_these = exact_zero(people, rng) if not gap else people
        found.append(
            (
                int(alone),
                decides(scores(people, judge, every).decided()),
                decides(scores(of_these, judge, every).settled()),
            )
        )
    return np.array(found)


NULL = [(0.95, 0.0), (0.95, 0.08), (0.95, 0.2), (0.8, 0.2)]
"""Accuracy and bias of judges of models that people find equal."""

GAPS = [
    (200, 10, 0.1, 0.99, 0.0, 0.93, 0.98),
    (200, 10, 0.1, 0.95, 0.0, 0.63, 0.89),
    (200, 10, 0.1, 0.9, 0.0, 0.42, 0.66),
    (200, 10, 0.1, 0.8, 0.0, 0.33, 0.55),
    (200, 10, 0.1, 0.65, 0.0, 0.23, 0.31),
    (200, 10, 0.1, 0.95, 0.08, 0.68, 0.78),
    (200, 3, 0.1, 0.95, 0.0, 0.60, 0.95),
    (500, 10, 0.06, 0.95, 0.0, 0.72, 0.86),
]
"""Labels, every, gap, accuracy and bias, with the shares decided in 120 worlds of the reference: of this kind, and of these items."""


@pytest.mark.full
@pytest.mark.parametrize(("accuracy", "bias"), NULL)
def test_equal_models_are_decided_as_rarely_as_stated(accuracy, bias):
    found = shares(200, 10, 0.0, accuracy, bias, WORLDS, 1) != 0
    print(accuracy, bias, found.mean(axis=0).round(3))
    room = 3 * np.sqrt(LEVEL * (1 - LEVEL) / WORLDS)
    assert found[:, 1:].mean(axis=0).max() <= LEVEL + room
    if bias == 0.2:
        assert found[:, 0].mean() > 0.9


@pytest.mark.full
@pytest.mark.parametrize(("labels", "every", "gap", "accuracy", "bias", "kind", "these"), GAPS if SLOW else GAPS[:2])
def test_gaps_are_found_as_often_as_in_the_reference(labels, every, gap, accuracy, bias, kind, these):
    found = shares(labels, every, gap, accuracy, bias, WORLDS, 2)
    rate = (found == 1).mean(axis=0)
    print(labels, every, gap, accuracy, bias, rate.round(3), (found == -1).mean(axis=0).round(3))
    for share, expected in zip(rate[1:], (kind, these), strict=True):
        assert abs(share - expected) <= 3.5 * np.sqrt(expected * (1 - expected) * (1 / WORLDS + 1 / 120))
    assert (found[:, 1:] == -1).mean() <= 0.02


@pytest.mark.full
def test_labels_that_were_chosen_by_their_scores_decide_nothing_as_only_the_first_without_a_gap_count():
    """People label where the judge finds A better: labels out of order wait for the item that is left out."""
    rng = np.random.default_rng(3)
    for _ in range(WORLDS):
        people, judge = world(rng, 2_000, 0.0, 0.95, 0.2)
        people[judge[:, 0] <= judge[:, 1]] = np.nan
        chosen = scores(people, judge, 10)
        assert chosen.count <= 20
        assert decides(chosen.decided()) == decides(chosen.settled()) == 0

"""Scores by category against sums by hand, and verdicts by category against the tests of a benchmark of these items alone."""

import random

import numpy as np
import pytest

from monitor.serve.api.routes.category_page import category_page
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.items.categories import category_gaps, category_scores
from monitor.view.live_pairs import LivePairs
from monitor.view.pairs.table import PairTable
from stats import exact_p, log_e_value
from tests.fold_log import FoldLog

MODELS = {"alpha": 0.9, "bravo": 0.6, "charlie": 0.55, "delta": 0.1}
SIZES = {"big": 90, "mid": 60, "small": 8}


def made(policy, items=None, seed=3, bare=5, **spec):
    """A benchmark of three categories and `bare` items without one; scores by (model, item), and categories by item."""
    rng = random.Random(seed)
    category = {f"{name} {k}": name for name, size in SIZES.items() for k in range(size)} | {
        f"bare {k}": None for k in range(bare)
    }
    scores = {(model, item): int(rng.random() < skill) for model, skill in MODELS.items() for item in category}
    for item in ("big 0", "big 1", "mid 7"):
        del scores["bravo", item]
    sent = [
        {"benchmark": "bench", "item_id": item, "model": model, "score": score}
        | ({"cluster": category[item]} if category[item] else {})
        for (model, item), score in scores.items()
    ]
    rng.shuffle(sent)
    log = FoldLog({"declare": "bench", "items": items, "order": {"policy": policy}, **spec})
    log.send(*sent)
    return PairTable(board_view(log.bench)), scores, category


def by_hand(table, scores, category, name, baseline):
    """Shared items, wins and losses of each model against the baseline in a category."""
    for place in table.ranking.tolist():
        model = table.benchmark.contestants[place].model
        both = [
            (scores[model, item], scores[baseline, item])
            for item, own in category.items()
            if own == name and (model, item) in scores and (baseline, item) in scores
        ]
        yield model, len(both), sum(x > y for x, y in both), sum(x < y for x, y in both)


def test_the_scores_of_a_category_are_means_over_its_items():
    table, scores, category = made("trusted")
    found = category_scores(table)
    assert found.names == ["big", "mid", "small"]
    assert found.items.tolist() == list(SIZES.values())
    for row, place in enumerate(table.ranking.tolist()):
        model = table.benchmark.contestants[place].model
        for column, name in enumerate(found.names):
            values = [scores[model, item] for item, own in category.items() if own == name and (model, item) in scores]
            assert found.scored[row, column] == len(values)
            assert found.mean[row, column] == pytest.approx(np.mean(values), abs=1e-15)


@pytest.mark.parametrize("policy", ["trusted", "completion"])
@pytest.mark.parametrize("baseline", range(4))
def test_a_verdict_is_that_of_the_items_of_the_category_alone(policy, baseline):
    table, scores, category = made(policy, items=sum(SIZES.values()) + 5 if policy == "completion" else None)
    columns = category_scores(table)
    found = category_gaps(table, columns, baseline)
    assert found.comparisons == 6 * 3
    threshold = np.log(18 / 0.05)
    own = table.benchmark.contestants[table.ranking[baseline]].model
    decided = 0
    for column, (name, size) in enumerate(SIZES.items()):
        for row, (model, n, wins, losses) in enumerate(by_hand(table, scores, category, name, own)):
            if model == own:
                assert found.side[row, column] == 0
                continue
            missing = size - n if policy == "completion" else 0
            p_better, p_worse = exact_p(wins, losses + missing), exact_p(wins + missing, losses)
            evidence = (
                log_e_value(wins, losses) if policy == "trusted" else -np.log(p_better if wins > losses else p_worse)
            )
            expected = int(np.sign(wins - losses)) if evidence >= threshold else 0
            assert (found.n[row, column], found.side[row, column]) == (n, expected)
            assert found.gap[row, column] == pytest.approx((wins - losses) / n, abs=1e-12)
            decided += expected != 0
    assert decided > 0


def test_items_that_have_not_arrived_count_against_every_category():
    complete, *_ = made("completion", items=sum(SIZES.values()) + 5)
    early, *_ = made("completion", items=sum(SIZES.values()) + 5 + 80)
    decided = [np.abs(category_gaps(table, category_scores(table), 0).side).sum() for table in (complete, early)]
    assert decided[0] > decided[1]


@pytest.mark.parametrize("policy", ["trusted", "completion"])
def test_inside_a_category_items_count_the_same_whatever_the_categories_weigh(policy):
    plain, *_ = made(policy, items=sum(SIZES.values()) if policy == "completion" else None, bare=0)
    weighted, *_ = made(policy, bare=0, weights={"big": 1, "mid": 1, "small": 5}, clusters=SIZES)
    names = [[t.benchmark.contestants[k].model for k in t.ranking.tolist()] for t in (plain, weighted)]
    for model in MODELS:
        one, other = (
            category_gaps(t, category_scores(t), order.index(model))
            for t, order in zip((plain, weighted), names, strict=True)
        )
        assert other.why is None
        same = [names[1].index(name) for name in names[0]]
        assert (other.side[same] == one.side).all()
        assert np.abs(one.side).sum() > 0


def test_the_view_of_categories_shows_the_means_that_rank():
    table, *_ = made("trusted", bare=0, weights={"big": 1, "mid": 1, "small": 5}, clusters=SIZES)
    page = category_page(LivePairs(table.benchmark), None, 10)
    assert page.mean == [m.mean for m in benchmark_report(table.benchmark).models]
    assert page.mean == sorted(page.mean, reverse=True)


@pytest.mark.parametrize(
    ("policy", "spec", "why"), [("none", {}, "order"), ("trusted", {"scores": "graded"}, "scores between 0 and 1")]
)
def test_what_has_no_verdict_gets_a_profile_and_a_reason(policy, spec, why):
    table, *_ = made(policy, **spec)
    found = category_gaps(table, category_scores(table), 0)
    assert found.side is None
    assert why in found.why
    assert np.isfinite(found.gap).all()

"""Items described over all models, against plain Python; and where two models differ."""

import random
from statistics import correlation

import numpy as np
import pytest

from monitor.serve.api.routes.item_page import ItemChoice, item_page
from monitor.view.from_state import board_view
from monitor.view.items.hardness import FEW_MODELS, in_order, item_columns, selected, two_models
from monitor.view.live_pairs import LivePairs
from tests.fold_log import FoldLog

MODELS = [f"m{k:02}" for k in range(12)]


def state(seed, choices=(0, 1), absent=0.1):
    rng = random.Random(seed)
    records = [
        {"benchmark": "bench", "item_id": f"i{i}", "model": model, "score": rng.choice(choices), "cluster": f"c{i % 3}"}
        for i in range(60)
        for k, model in enumerate(MODELS)
        if rng.random() > absent
    ]
    log = FoldLog({"declare": "bench", "items": 60, **({} if set(choices) <= {0, 1} else {"scores": "graded"})})
    log.send(*records)
    return log.bench, records


@pytest.mark.parametrize("choices", [(0, 1), (0, 0.25, 1)])
def test_items_are_described_as_by_hand(choices):
    bench, records = state(1, choices)
    live = LivePairs(board_view(bench))
    columns = item_columns(board_view(bench), live.table.ranking)
    scores = {(r["item_id"], r["model"]): r["score"] for r in records}
    means = {m: np.mean([s for (_, model), s in scores.items() if model == m]) for m in MODELS}
    for k, key in enumerate(bench.item_keys):
        own = {m: scores[key.item, m] for m in live.models if (key.item, m) in scores}
        assert columns.scored[k] == len(own)
        assert columns.right[k] == sum(s == 1 for s in own.values())
        assert columns.mean[k] == pytest.approx(np.mean(list(own.values())))
        if len(own) >= FEW_MODELS and len(set(own.values())) > 1:
            by_hand = correlation(list(own.values()), [means[m] for m in own])
            assert columns.correlation[k] == pytest.approx(by_hand)
        else:
            assert np.isnan(columns.correlation[k])


def test_an_item_that_only_the_best_model_fails_is_suspicious():
    records = [
        {"benchmark": "bench", "item_id": f"i{i}", "model": m, "score": int(k >= i if i < 12 else k > 0)}
        for i in range(13)
        for k, m in enumerate(MODELS[::-1])
    ]
    # m00 has the best mean, and is wrong on the last item alone.
    records[-12:] = [{**r, "score": int(r["model"] != "m00")} for r in records[-12:]]
    log = FoldLog({"declare": "bench", "items": 13})
    log.send(*records)
    live = LivePairs(board_view(log.bench))
    assert live.models[0] == "m00"
    columns = live.items
    assert [log.bench.item_keys[k].item for k in np.flatnonzero(columns.suspicious)] == ["i12"]
    assert log.bench.item_keys[in_order(columns, np.arange(13), "suspicious")[0]].item == "i12"


def test_the_groups_of_two_models_are_their_two_by_two_table():
    bench, _ = state(3)
    live = LivePairs(board_view(bench))
    page = item_page(live, ItemChoice(live.models[2], live.models[7], "differ", None, None, "hardest", 0, 7))
    first, second = (live.table.ranking[k] for k in (2, 7))
    (place,) = np.flatnonzero((live.table.pairs.a == first) & (live.table.pairs.b == second))
    table = live.table
    assert (page.two.only_a, page.two.only_b) == (table.pairs.wins[place], table.pairs.losses[place])
    assert page.two.only_a + page.two.only_b + page.two.both_right + page.two.both_wrong == table.pairs.n[place]
    for groups in (page.two.by_cluster, page.two.by_right):
        assert sum(g.only_a for g in groups) == page.two.only_a
        assert sum(g.only_b for g in groups) == page.two.only_b
        assert sum(g.items for g in groups) == table.pairs.n[place]
    assert page.total == page.counts["differ"] == page.two.only_a + page.two.only_b
    assert len(page.items) == 7
    assert [item.mean for item in page.items] == sorted(item.mean for item in page.items)
    assert all(item.scores[2] != item.scores[7] for item in page.items)


def test_the_pages_hold_each_item_once_and_the_filters_what_they_name():
    bench, _ = state(4)
    live = LivePairs(board_view(bench))
    seen, start = [], 0
    while True:
        page = item_page(live, ItemChoice(None, None, "all", "c1", None, "easiest", start, start + 9))
        seen += [item.item_id for item in page.items]
        if page.next_cursor is None:
            break
        start = int(page.next_cursor)
    assert sorted(seen) == sorted(key.item for key in bench.item_keys if key.cluster == "c1")
    found = item_page(live, ItemChoice(None, None, "all", None, "I5", "item", 0, 100))
    assert {item.item_id for item in found.items} == {"i5", *(f"i{k}" for k in range(50, 60))}
    columns = live.items
    assert (columns.mean[selected(columns, None, "all_wrong")] == 0).all()
    two = two_models(board_view(bench), 0, 1)
    assert not (two.where("only_a") & two.where("only_b")).any()

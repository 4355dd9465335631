"""Committed permutations against their test vectors, the order diagnostic against brute force and known orders."""

import hashlib
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom, spearmanr

from stats.order import (
    FIRST_LOOK,
    OrderState,
    committed_order,
    item_places,
    order_diagnostic,
    permutation_key,
    rank_correlation_p,
    succession_p,
)

# The vectors of docs/how-to/committed-order.md, made with coreutils: printf '%s\0%s' "$seed" "$item" | sha256sum
VECTORS = [
    ("", "", "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
    ("2026-leaderboard", "item-1", "110fade31f03356b89e3a1756c2472e35ebdb19f159f626fbd5f0acf753ba842"),
    ("2026-leaderboard", "item-2", "23550943fcac90cd1055829f35201793ec3a0429c7ff6a5bed54baeeb57ae435"),
    ("2026-leaderboard", "item-10", "e1e07da2bb95a63dc8a778965d20a0f65a31d2cca4979fff3be5266fb0360504"),
    ("Größe", "Frage 7: ½?", "22d08d5b5f533e5322789a0a56b48c5d785f3e1d9f340bf3d53220fece34cfd7"),
]


@pytest.mark.parametrize(("seed", "item", "key"), VECTORS)
def test_permutation_keys_are_the_published_vectors(seed, item, key):
    assert permutation_key(seed, item).hex() == key


def test_committed_order_is_the_published_vector():
    items = [f"item-{k}" for k in range(1, 11)]
    assert [items[k] for k in committed_order("2026-leaderboard", items)] == [
        "item-1",
        "item-2",
        "item-8",
        "item-4",
        "item-5",
        "item-3",
        "item-7",
        "item-6",
        "item-9",
        "item-10",
    ]


def test_committed_order_does_not_depend_on_how_items_are_listed_or_which_are_left_out():
    items = [f"q{k}" for k in range(500)]
    order = [items[k] for k in committed_order("s", items)]
    reversed_items = items[::-1]
    assert [reversed_items[k] for k in committed_order("s", reversed_items)] == order
    some = items[100:300]
    assert [some[k] for k in committed_order("s", some)] == [item for item in order if item in set(some)]
    assert order != [items[k] for k in committed_order("t", items)]
    assert sorted(order) == sorted(items)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: permutation_key("a\0b", "x"), "seed"),
        (lambda: permutation_key("a", "\ud800"), "UTF-8"),
        (lambda: committed_order("s", ["a", "b", "a"]), "'a' occurs twice"),
        (lambda: OrderState(alpha=0.0), "alpha"),
        (lambda: order_diagnostic([0, 0], [1]), "one entry per record"),
        (lambda: order_diagnostic([0, -1], [1, 1]), "models"),
        (lambda: order_diagnostic([0, 1], [1, -2]), "clusters"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_mean_number_of_successions_is_the_one_of_all_orders():
    labels = (0, 0, 0, 1, 1, 2)
    observed = np.mean([sum(a == b for a, b in pairwise(p)) for p in permutations(labels)])
    like = 3 + 1 + 0
    assert_allclose(observed, 5 * 2 * like / (6 * 5))


def test_succession_p_is_a_binomial_tail():
    assert_allclose(succession_p(99, [0, 10, 40], 800), [1, *binom.sf([9, 39], 99, 1600 / 9900)])
    assert succession_p(99, 99, 100 * 99 / 2) == 1  # one cluster only


def test_rank_correlation_p_is_the_one_of_spearman():
    x = np.random.default_rng(2).permutation(50)
    result = spearmanr(np.arange(50), x)
    assert_allclose(rank_correlation_p(50, result.statistic), result.pvalue)
    assert rank_correlation_p(50, 1.0) == 0
    assert rank_correlation_p(2, 1.0) == 1


def test_the_statistics_of_a_look_are_those_of_its_items():
    rng = np.random.default_rng(11)
    labels, places = rng.integers(0, 4, 128), rng.permutation(128).astype(float)
    places[:40] = np.sort(places[:40])
    labels[:64] = np.sort(labels[:64])
    state = OrderState()
    state.update(np.zeros(128), labels, places)
    head = labels[:64]
    same = int((head[1:] == head[:-1]).sum())
    assert state.finding.statistic == "cluster successions"
    assert state.finding.items == 64
    assert state.finding.observed == same
    sizes = np.bincount(head)
    pi = (sizes * (sizes - 1)).sum() / (64 * 63)
    assert_allclose(state.finding.expected, 63 * pi)
    assert_allclose(state.finding.p_value, binom.sf(same - 1, 63, pi) * 2 * (1 * 2) * (2 * 3))


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.full), 7, 100, 5000])
def test_chunks_do_not_matter(size):
    rng = np.random.default_rng(4)
    model = rng.choice(5, 5000, p=[0.4, 0.3, 0.2, 0.07, 0.03])
    cluster, place = rng.integers(-1, 9, 5000), rng.random(5000)
    late = model == 3
    place[late] = np.sort(place[late])
    whole = order_diagnostic(model, cluster, place)
    state = OrderState()
    for start in range(0, 5000, size):
        cut = slice(start, start + size)
        state.update(model[cut], cluster[cut], place[cut])
    assert state.finding == whole
    assert (whole.suspect, whole.model, whole.statistic) == (True, 3, "item position")


def test_nothing_is_said_before_the_first_look():
    finding = order_diagnostic(np.zeros(FIRST_LOOK - 1), np.arange(FIRST_LOOK - 1) // 8, np.arange(FIRST_LOOK - 1))
    assert (finding.suspect, finding.model, finding.p_value) == (False, -1, 1.0)
    assert order_diagnostic([], []).suspect is False


def test_block_orders_are_found_and_interleaved_ones_are_not():
    labels = np.repeat(np.arange(14), 100)
    assert order_diagnostic(np.zeros(1400), labels).suspect
    assert not order_diagnostic(np.zeros(1400), np.tile(np.arange(14), 100)).suspect
    assert not order_diagnostic(np.zeros(1400), np.random.default_rng(0).permutation(labels)).suspect
    # One cluster only: nothing to see, which is not to say that nothing is wrong.
    assert not order_diagnostic(np.zeros(400), np.zeros(400, dtype=int)).suspect


def test_a_file_read_from_either_end_is_found():
    for place in (np.arange(64), -np.arange(64)):
        finding = order_diagnostic(np.zeros(64), np.full(64, -1), place)
        assert finding.suspect
        assert finding.statistic == "item position"
        assert_allclose(abs(finding.observed), 1)


def test_one_suspicious_model_among_many_is_found():
    rng = np.random.default_rng(0)
    model = np.repeat(np.arange(50), 512)
    cluster = np.concatenate([rng.permutation(np.repeat(np.arange(8), 64)) for _ in range(50)])
    assert not order_diagnostic(model, cluster).suspect
    cluster[model == 37] = np.repeat(np.arange(8), 64)
    finding = order_diagnostic(model, cluster)
    assert (finding.suspect, finding.model) == (True, 37)


def test_key_is_plain_sha256():
    assert permutation_key("s", "i") == hashlib.sha256(b"s\x00i").digest()


def test_a_stored_state_resumes():
    rng = np.random.default_rng(6)
    model, cluster, place = rng.integers(0, 3, 900), rng.integers(0, 5, 900), rng.random(900)
    place[model == 1] = np.sort(place[model == 1])
    whole, first, resumed = OrderState(), OrderState(), OrderState()
    whole.update(model, cluster, place)
    first.update(model[:450], cluster[:450], place[:450])
    vars(resumed).update({name: np.copy(x) if isinstance(x, np.ndarray) else x for name, x in vars(first).items()})
    resumed.update(model[450:], cluster[450:], place[450:])
    assert resumed.finding == whole.finding
    assert whole.finding.items == 256  # a look that only the second half reaches


def test_the_page_on_the_committed_order_shows_these_vectors():
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "committed-order.md").read_text(encoding="utf-8")
    for seed, item, key in VECTORS:
        assert f"| {f'`{seed}`' if seed else '(empty)'} | {f'`{item}`' if item else '(empty)'} | `{key}` |" in page
    assert "item-1 item-2 item-8 item-4 item-5 item-3 item-7 item-6 item-9 item-10" in page


def test_places_follow_the_ids_and_not_their_list():
    ids = [f"q{k}" for k in range(200)]
    assert item_places(ids).tolist() == list(range(200))
    shuffled = np.random.default_rng(0).permutation(200)
    assert item_places([ids[k] for k in shuffled]).tolist() == shuffled.tolist()
    names = ["b", "a10", "a9", "a09", "", "10", "9", "a9b2", "1" * 5000, "a9b10"]
    in_order = [names[k] for k in np.argsort(item_places(names))]
    assert in_order == ["", "9", "10", "1" * 5000, "a09", "a9", "a9b2", "a9b10", "a10", "b"]
    assert item_places([]).size == 0
    with pytest.raises(ValueError, match="'x' occurs twice"):
        item_places(["x", "y", "x"])


def test_a_list_in_random_run_order_is_not_suspected_and_a_file_read_from_its_start_is():
    rng = np.random.default_rng(7)
    ids = np.array([f"item-{k}" for k in range(512)])
    models = np.repeat(np.arange(3), 512)
    none = np.full(models.size, -1)
    suspected = 0
    for _ in range(100):
        listed = ids[rng.permutation(512)]
        suspected += order_diagnostic(
            models, none, np.tile(item_places(listed), 3)
        ).suspect  # three models run it as listed
    assert suspected <= 100 * 0.01 + 3 * np.sqrt(100 * 0.01)
    assert order_diagnostic(models, none, np.tile(item_places(ids), 3)).suspect
    listed = ids[rng.permutation(512)]
    by_id = np.argsort(item_places(listed))  # a random list, and a harness that runs by id
    assert order_diagnostic(models, none, np.tile(item_places(listed)[by_id], 3)).suspect

"""The look at the end of a committed order: never beyond alpha, by enumeration and through the engine, and what it gains.

RANKWATCH_SLOW=1 takes 2,000 boards of each attack in place of 20. RANKWATCH_DATA names a folder with real boards.
"""

import gzip
import json
import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from monitor.view.from_state import board_view
from monitor.view.pairs.intervals import family_alpha
from monitor.view.pairs.table import PairTable
from schemas.results.changes import KINDS
from stats.evidence.curtailed import curtailed_log_p
from stats.evidence.eprocess import prefix_log_e
from stats.order import committed_items
from tests.fold_log import FoldLog

RUNS = 2_000 if os.environ.get("RANKWATCH_SLOW") == "1" else 20
ALPHA = 0.05


def peaks(x, y, look, shares=None):
    """Return the largest evidence of each pair after each item; scores along the order, nan for a skip, shape (items, pairs)."""
    early, late = (np.log1p(-look), np.log(look)) if shares is None else shares
    steps = (x == 1) & (y == 0), (x == 0) & (y == 1), (x != 1) & (y != 0), (x != 0) & (y != 1)
    b, c, c_worst, b_best = (np.cumsum(each, axis=0) for each in steps)
    left = np.arange(len(x) - 1, -1, -1)[:, None]
    log_p = np.minimum(curtailed_log_p(b, c_worst + left, 0)[0], curtailed_log_p(b_best + left, c, 0)[1])
    bets = prefix_log_e(b, c, c_worst, b_best, "beta(1,1)") + early
    return np.maximum.accumulate(np.maximum(bets, late - log_p), axis=0)


# --- enumeration --------------------------------------------------------------------------------------------------------------------------

SIGNS = np.array(list(product((1, 0, -1), repeat=8))).T
"""All outcomes of eight items of two models: who is right alone, if anyone."""


def error_over_level(signs, look, shares=None):
    """Return the chance of p <= a over a, at the worst level a, where signs of items that differ are equally likely."""
    p = np.sort(np.exp(-peaks((signs > 0) * 1.0, (signs < 0) * 1.0, look, shares)[-1].clip(0)))
    return float((np.arange(1, p.size + 1) / p.size / p)[np.append(np.diff(p) > 1e-12, True)].max())


@pytest.mark.parametrize("look", [0.05, 0.2, 0.5, 0.95])
def test_no_level_is_exceeded_over_all_outcomes(look):
    """Whichever of eight items differ, and at every level at once: p of the two together is a p-value."""
    differs = (2 ** np.arange(8)) @ np.abs(SIGNS)
    assert max(error_over_level(SIGNS[:, differs == each], look) for each in range(1, 256)) <= 1 + 1e-9
    assert error_over_level(np.array(list(product((1, -1), repeat=12))).T, look) <= 1 + 1e-9


def test_without_shares_of_alpha_it_would_be_exceeded():
    """The planted error: both tests at all of alpha err more often than the level says."""
    assert error_over_level(np.array(list(product((1, -1), repeat=12))).T, 0.2, (0.0, 0.0)) > 1.1


def test_no_skip_adds_evidence():
    """Nothing that anyone leaves out, whatever it would have been, makes a decision: at any item, for either model."""
    rng = np.random.default_rng(5)
    x, y = (rng.random((2, 40, 400)) < 0.6).astype(float)
    whole = peaks(x, y, 0.3)
    for share in (0.05, 0.3, 0.9):
        fewer = [np.where(rng.random(x.shape) < share * (each == 0), np.nan, each) for each in (x, y)]
        assert (peaks(*fewer, 0.3) <= whole + 1e-9).all()


# --- through the engine -------------------------------------------------------------------------------------------------------------------


def board(scores, look, alpha=ALPHA, shuffle=None, **more):
    """Fold scores along a committed order, nan for a skip and infinity for an item that a model lacks; other events after them."""
    items, models = scores.shape
    ids, names = [f"i{k}" for k in range(items)], [f"m{k}" for k in range(models)]
    declared = {"order": {"policy": "committed", "seed": "s"}, "item_ids": ids, "look": look, "alpha": alpha}
    log = FoldLog({"declare": "bench", "family": {"models": names}} | declared)
    events = [
        {"benchmark": "bench", "item_id": item, "model": name, "score": None if np.isnan(score) else int(score)}
        for item, row in zip(committed_items("s", ids), scores, strict=True)
        for name, score in zip(names, row, strict=True)
        if not np.isinf(score)
    ]
    if shuffle is not None:
        events = [events[k] for k in shuffle.permutation(len(events)).tolist()]
    log.send({"events": events + more.get("again", lambda events: [])(events)})
    return log


def decided(log):
    """Return who is decided to be better than whom."""
    side = log.bench.claims["anytime_family"].side
    names = [contestant.model for contestant in log.bench.contestants]
    pairs = [(i, j) for j in range(len(names)) for i in range(j)]
    return {
        (names[i], names[j]) if s > 0 else (names[j], names[i]) for (i, j), s in zip(pairs, side, strict=False) if s
    }


def recomputed(scores, look, alpha):
    """Return the pairs decided by Holm on min(p of the bets / (1 - look), p of the last item / look) after each item."""
    pairs = [(i, j) for j in range(scores.shape[1]) for i in range(j)]
    done = np.zeros(len(pairs), bool)
    for row in peaks(*(scores[:, [pair[side] for pair in pairs]] for side in (0, 1)), look):
        while (new := ~done & (row >= np.log(max((~done).sum(), 1) / alpha) - 1e-12)).any():
            done |= new
    lead = [np.nansum(scores[:, i] == 1) - np.nansum(scores[:, j] == 1) for i, j in pairs]
    sides = [pair if ahead > 0 else pair[::-1] for pair, ahead in zip(pairs, lead, strict=True)]
    return {(f"m{i}", f"m{j}") for (i, j), each in zip(sides, done.tolist(), strict=True) if each}


@pytest.mark.parametrize("look", [0.1, 0.2, 0.5, 0.9])
def test_the_engine_decides_what_a_plain_recomputation_decides(look):
    """Pairs that the bets decide and pairs that the look does share one family, which steps down over both."""
    rng = np.random.default_rng(int(look * 10))
    found = 0
    for run in range(4):
        items, models, alpha = int(rng.integers(10, 160)), int(rng.integers(2, 7)), rng.choice([0.05, 0.2, 0.4])
        scores = (rng.random((items, models)) < rng.random(models)).astype(float)
        if run % 2 == 0:
            scores[rng.random(scores.shape) < 0.05] = np.nan
        got = decided(board(scores, look, alpha))
        assert got == decided(board(scores, look, alpha, shuffle=rng)) == recomputed(scores, look, alpha)
        found += len(got)
    assert found


def rounds(rng, lead):
    """Return the item up to which a producer runs who looks after every tenth: to where the lead is largest."""
    return int(np.abs(lead[::10]).argmax()) * 10 + 1


def stopped(rng, scores):
    """End all runs at the largest lead of the first two models."""
    scores[rounds(rng, np.cumsum(scores[:, 0] - scores[:, 1])) :] = np.inf
    return scores


def stragglers(rng, scores):
    """Let every other model run to the end, and the others up to where they look best against the first."""
    for k in range(1, scores.shape[1], 2):
        scores[rounds(rng, np.cumsum(scores[:, k] - scores[:, 0])) :, k] = np.inf
    return scores


def holes(rng, scores):
    """Never report the wrong answers to the last tenth of the items of every other model."""
    tail = scores[len(scores) * 9 // 10 :, ::2]
    tail[tail == 0] = np.inf
    return scores


def losses_skipped(rng, scores):
    """Skip a third of the wrong answers of every other model."""
    some = scores[:, ::2]
    some[(some == 0) & (rng.random(some.shape) < 1 / 3)] = np.nan
    return scores


def contradicted(events):
    """Send wrong answers again as right ones: conflicts, which do not count; and all else twice."""
    return [event | {"score": 1} for event in events if event["score"] == 0] + events[::3]


ATTACKS = {
    "as it comes": (lambda _rng, scores: scores, {}),
    "stopped at the best lead": (stopped, {}),
    "every other model stopped at its best": (stragglers, {}),
    "wrong answers missing at the end": (holes, {}),
    "a third of wrong answers skipped": (losses_skipped, {}),
    "conflicts and duplicates": (lambda _rng, scores: scores, {"again": contradicted}),
}


@pytest.mark.full
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("models", [2, 5])
def test_equal_models_are_decided_at_most_alpha_of_the_time(models, attack):
    rng, (change, more) = np.random.default_rng(models), ATTACKS[attack]
    wrong = 0
    for _ in range(RUNS):
        hard = rng.random((120, 1)) < 0.4  # items on which all agree
        scores = np.where(hard, 1.0, rng.random((120, models)) < 0.5)
        wrong += bool(decided(board(change(rng, scores), 0.2, **more)))
    print(
        f"\n{attack}, {models} models: {wrong / RUNS:.4f} ({np.sqrt(wrong * (RUNS - wrong) / RUNS) / RUNS:.4f})", end=""
    )
    assert wrong / RUNS <= ALPHA + 4 * np.sqrt(ALPHA * (1 - ALPHA) / RUNS)


def separated(look, lacking=0):
    """31 against 12 of 100 items: p = .0054 with all in, and bets that never suffice; the first model may lack the last items."""
    scores = np.zeros((100, 2))
    scores[:31, 0], scores[31:43, 1] = 1, 1
    scores = scores[np.random.default_rng(3).permutation(100)]
    scores[len(scores) - lacking :, 0] = np.inf
    return board(scores, look)


def test_it_decides_at_the_last_item_what_bets_do_not():
    logs = [separated(look) for look in (0.0, 0.2, 0.5)]
    assert [bool(decided(log)) for log in logs] == [False, True, True]
    change = logs[1].changes["anytime_family", "decided"]
    assert change.mixture == "bets, or exact test at N"
    assert change.evidence.log_e >= change.evidence.log_threshold == pytest.approx(np.log(20))


def test_items_that_a_model_lacks_count_against_the_leader():
    assert not decided(separated(0.5, lacking=10))


def test_neither_the_look_nor_the_items_change_after_a_score():
    """Nor does a share that looks better at the end replace the one that was declared."""
    log = separated(0.2)
    before = decided(log)
    ids = list(log.bench.spec.item_ids)
    same = {"declare": "bench", "order": {"policy": "committed", "seed": "s"}, "family": {"models": ["m0", "m1"]}}
    log.send(same | {"item_ids": ids, "look": 0.9})
    log.send(same | {"item_ids": ids, "look": 0.9, "version": 2})
    log.send(same | {"item_ids": ids[:50], "look": 0.2})
    assert len(log.letters) == 3
    assert decided(log) == before
    assert log.bench.spec.look == 0.2


@pytest.mark.parametrize("look", [0.0, 0.2, 0.6])
def test_the_view_agrees_with_the_verdicts(look):
    """p, interval and verdict of a pair say the same, of bets and of the look; the interval has no more than its level."""
    rng, at_end = np.random.default_rng(8), 0
    for run in range(6):
        scores = (rng.random((150, 4)) < [0.55, 0.5, 0.45, 0.3]).astype(float)
        scores[rng.random(scores.shape) < (0.02, 0)[run % 2]] = np.nan
        log = board(scores if run < 4 else scores[:140], look)
        table = PairTable(board_view(log.bench))
        at, kind = np.arange(table.pairs.size), table.kind
        alone, level = np.full(at.size, ALPHA), family_alpha(table, at)
        sides = log.bench.claims["anytime"].side[table.pairs.pair] * np.where(table.pairs.flip, -1, 1)
        assert ((table.p_anytime(at) <= ALPHA + 1e-12) == (sides != 0)).all()
        now = kind.anytime_evidence(at) >= -np.log(ALPHA) - 1e-12
        for low, high in kind.gap_bounds(at, alone):
            assert (((low > 0) | (high < 0)) == now).all()
        assert all((low <= high).all() for low, high in kind.gap_bounds(at, alone, level))
        at_end += int((now & (kind.log_e[at] < kind.log_e_threshold(-np.log(ALPHA)))).sum())
        change = [each for each in log.bench.changes.values() if each.kind == KINDS[0]]
        assert all(each.evidence.log_e >= each.evidence.log_threshold - 1e-12 for each in change)
    assert bool(at_end) == bool(look)


REAL = {
    "MMLU-Pro": ("mmlu_pro/events.jsonl.gz", 302.0, 305.0),
    "gsm8k": ("zeroeval/events.jsonl.gz", 602.2, 621.8),
    "math-l5": ("zeroeval/events.jsonl.gz", 612.3, 627.2),
    "cruxeval-o": ("zeroeval/events.jsonl.gz", 971.2, 990.5),
}
"""Decided pairs in the mean over orders: of bets alone, and with a look of .2."""


@pytest.mark.data
@pytest.mark.skipif(os.environ.get("RANKWATCH_SLOW") != "1", reason="six orders of four boards: RANKWATCH_SLOW=1")
@pytest.mark.parametrize("name", REAL)
def test_what_it_gains_on_real_boards(name):
    path, *expected = REAL[name]
    file = Path(os.environ.get("RANKWATCH_DATA", "")) / path
    if not file.is_file():
        pytest.skip("RANKWATCH_DATA has no such board")
    cells = {}
    with gzip.open(file) as lines:
        for each in map(json.loads, lines):
            if each["benchmark"] == name or "mmlu" in path:
                cells.setdefault(each["model"], {}).setdefault(each["item_id"], each["score"])
    most = max(map(len, cells.values()))
    items = next(list(column) for column in cells.values() if len(column) == most)
    models = [model for model, column in cells.items() if column.keys() == set(items) and None not in column.values()]
    table = np.array([[float(cells[model][item] >= 1) for model in models] for item in items])
    pairs = len(models) * (len(models) - 1) // 2
    found = np.array(
        [
            [len(decided(board(table[np.random.default_rng(seed).permutation(most)], look))) for look in (0.0, 0.2)]
            for seed in range(6)
        ]
    )
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    print(f"\n{name}, {pairs} pairs: {found.mean(axis=0)} ({error})", end="")
    assert (found[:, 1] > found[:, 0]).all()
    assert (np.abs(found.mean(axis=0) - expected) <= 4 * np.hypot(error, 1.4)).all()

"""What one model scored bounds what a pair lacks of the other: against all ways that open scores of small boards may go."""

import random
from functools import cache
from math import comb

import numpy as np
import pytest

from monitor.view.from_state import board_view
from monitor.view.gates.comparison import compare_with_margin
from monitor.view.gates.margin import Margin
from monitor.view.live_pairs import LivePairs
from monitor.view.pairs.table import PairTable
from stats.evidence.margin import excess_p
from tests.fold_log import STRIDE, FoldLog, event
from tests.loop_streams import compare, stream

ITEMS, ALPHA, PAIRS = 5, 0.3, ("xy", "xz", "yz")


@cache
def exact(b, c):
    """The exact two-sided p of A, 1 where it does not lead."""
    return min(1.0, 2 * sum(comb(b + c, k) for k in range(b, b + c + 1)) / 2 ** (b + c)) if b > c else 1.0


def endings(scores, models):
    """All (b, c) of all items, over every completion of what the two models lack."""
    found = {(0, 0)}
    for item in range(ITEMS):
        first, second = ((0, 1) if (own := scores.get((item, m))) is None else (own,) for m in models)
        found = {(b + (x > y), c + (x < y)) for b, c in found for x in first for y in second}
    return found


def folded(seed):
    """A board of three models whose scores come in random order, in chunks and over restarts, some null at first; and its events."""
    rng = random.Random(seed)
    skill = {m: rng.choice([0, 0.1, 0.5, 0.9, 1]) for m in "xyz"}
    events = [(item, m, int(rng.random() < skill[m])) for item in range(ITEMS) for m in "xyz"]
    events += [(item, m, None) for item, m, _ in events if rng.random() < 0.1]
    rng.shuffle(events)
    events = events[: rng.randint(8, len(events))]
    log, left = FoldLog({"declare": "bench", "items": ITEMS, "known": True, "alpha": ALPHA}), list(events)
    while left:
        size = rng.choice([1, 1, 2, 5])
        log.send(*(event(*each) for each in left[:size]))
        del left[:size]
        if rng.random() < 0.3:
            log.restart()
    return log, events


def first_places(events):
    """The place of the event from which on all endings of a pair decide it, and settle it; and the scores at the end."""
    scores, found = {}, {}
    for place, (item, model, score) in enumerate(events):
        if scores.get((item, model)) is None:
            scores[item, model] = score
        for pair in PAIRS:
            ends, gaps = endings(scores, pair), {b - c for b, c in endings(scores, pair)}
            whole = all(scores.get((k, m)) is not None for k in range(ITEMS) for m in pair)
            if any(all(exact(*end[::side]) <= ALPHA + 1e-12 for end in ends) for side in (1, -1)):
                found.setdefault((pair, "anytime"), place)
            if min(gaps) > 0 or max(gaps) < 0 or (whole and gaps == {0}):
                found.setdefault((pair, "settled"), place)
    return found, scores


def test_a_pair_is_decided_at_the_score_from_which_all_endings_decide_it():
    missing = 0
    for seed in range(24):
        log, events = folded(seed)
        latched = {}
        for field, change in log.bench.changes.items():
            claim, kind = field.split(":")[1:]
            if (claim, kind) in {("anytime", "decided"), ("settled", "settled")}:
                latched[change.model_a + change.model_b, claim] = int(change.id.split("-")[0]) // STRIDE - 1
                missing += claim == "anytime" and change.evidence.n < ITEMS
        expected, _ = first_places(events)
        assert latched == expected, seed
    assert missing > 5


def test_what_is_shown_of_a_pair_is_the_worst_of_all_endings():
    margin, open_p = Margin(0.5), 0
    for seed in range(12):
        log, events = folded(seed)
        view, (_, scores) = board_view(log.bench), first_places(events)
        table = PairTable.of(view)
        at = np.arange(table.pairs.size)
        rows = LivePairs(view).rows(at)
        for row, p in zip(rows, table.p_anytime(at), strict=True):
            ends = endings(scores, row.model_a + row.model_b)
            sides = [max(exact(*end[::side]) for end in ends) for side in (1, -1)]
            if not row.n:
                continue
            assert p == pytest.approx(min(sides))
            assert (row.gap_low > 0, row.gap_high < 0) == tuple(each <= ALPHA + 1e-12 for each in sides)
            gate = compare_with_margin(table, row, row.model_a, row.model_b, margin)
            worst = max(float(excess_p(ITEMS, b, c, -0.5)) for b, c in ends)
            assert gate.p_not_worse == pytest.approx(worst)
            open_p += len(ends) > 1 and min(sides) < 1
    assert open_p > 2


@pytest.mark.full
@pytest.mark.parametrize("seed", range(301, 901, 30))
def test_streams_of_known_scores_agree_with_the_oracle(seed):
    assert stream(seed)[0]["known"]
    compare(seed)

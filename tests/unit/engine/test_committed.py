"""Verdicts along a committed order: worked examples; the laws are in tests/property."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from monitor.engine.report import benchmark_report
from schemas.events import Declaration
from stats import committed_order, log_e_halves, log_e_value
from tests.fold_log import FoldLog, event

SEED = "2026-leaderboard"
IDS = [f"item-{k}" for k in range(1, 61)]
ORDER = [IDS[k] for k in committed_order(SEED, IDS)]
SPEC = {"declare": "bench", "order": {"policy": "committed", "seed": SEED}, "item_ids": IDS}


def pair_events(scores):
    """Events of items in the committed order: scores are (of a, of b)."""
    return [event(ORDER[k], m, x) for k, both in enumerate(scores) for m, x in zip("ab", both, strict=True)]


def test_nothing_counts_behind_the_first_item_that_is_missing():
    log = FoldLog(SPEC)
    events = pair_events([(1, 0)] * 30)
    log.send(*events[1:])  # all but the first score of a
    assert log.bench.changes == {}
    assert benchmark_report(log.bench).pairs[0].status == "collecting"
    start = log.partition.off
    log.send(events[0])
    change = log.changes["anytime", "decided"]
    assert change.id.startswith(f"{start}-")
    # The prefix jumps from 0 to 30; the verdict is that of the first item at which it is reached.
    first = next(n for n in range(1, 31) if log_e_value(n, 0) >= math.log(20))
    assert (change.evidence.n, change.evidence.b, change.evidence.c) == (first, first, 0)
    assert change.order_policy == "committed"
    assert "Assumes that the items are a sample, taken in the order that the seed committed to." in change.sentence


def test_the_way_of_a_jump_counts_and_so_does_its_turn():
    # After ten wins come thirty losses: the end of the jump alone would decide for b.
    log = FoldLog(SPEC)
    events = pair_events([(1, 0)] * 10 + [(0, 1)] * 30)
    log.send(*events[1:])
    log.send(events[0])
    assert log.changes["anytime", "decided"].after == "a"
    turned = log.changes["anytime", "reversed"]
    assert (turned.after, turned.evidence.b, turned.evidence.c) == ("b", 10, 11)


@pytest.mark.parametrize(
    ("scores", "for_a", "for_b"),
    [
        # b, c_worst; b_best, c
        ([(1, 0), (1, 1), (0, 0)], (1, 0), (1, 0)),
        ([(1, 0), (None, None)], (1, 1), (2, 0)),
        ([(1, 0), (1, None)], (1, 0), (2, 0)),
        ([(1, 0), (0, None)], (1, 1), (1, 0)),
        ([(1, 0), (None, 1)], (1, 1), (1, 0)),
        ([(1, 0), (None, 0)], (1, 0), (2, 0)),
    ],
)
def test_a_skip_bets_the_lowest_for_one_and_the_highest_for_the_other(scores, for_a, for_b):
    log = FoldLog(SPEC)
    log.send(*pair_events(scores))
    sums = {name: int(values[0]) for name, values in log.bench.committed.sums.items()}
    assert ((sums["b"], sums["c_worst"]), (sums["b_best"], sums["c"])) == (for_a, for_b)
    pair = benchmark_report(log.bench).pairs[0]
    flip = pair.model_a == "b"
    plus, minus = float(log_e_halves(*for_a)[0]), float(log_e_halves(*for_b)[1])
    assert (pair.log_e_b if flip else pair.log_e_a) == pytest.approx(plus)
    assert (pair.log_e_a if flip else pair.log_e_b) == pytest.approx(minus)
    assert pair.log_e == pytest.approx(np.logaddexp(plus, minus) - math.log(2))


def test_skips_make_a_decision_later_never_sooner():
    def decided_at(scores):
        log = FoldLog(SPEC)
        log.send(*pair_events(scores))
        change = log.changes.get(("anytime", "decided"))
        return None if change is None else change.evidence.n + change.evidence.missing

    plain = decided_at([(1, 0)] * 60)
    skipped = decided_at([(None, 0) if k % 4 == 0 else (1, None) if k % 4 == 1 else (1, 0) for k in range(60)])
    worst = decided_at([(None, None) if k % 2 else (1, 0) for k in range(60)])
    assert plain < skipped
    assert worst is None


def test_the_interval_excludes_0_exactly_when_the_evidence_decides():
    for wins in range(4, 12):
        log = FoldLog(SPEC)
        log.send(*pair_events([(1, 0)] * wins + [(None, 1)] * 2 + [(1, 1)] * 5))
        log.send(*[event(item, m, 0) for item in ORDER[-9:] for m in "ab"])  # behind a gap: they count for nothing here
        pair = benchmark_report(log.bench).pairs[0]
        assert (pair.gap_low > 0) == (pair.log_e >= math.log(20))


def test_the_end_of_the_list_exhausts_a_pair_skips_or_not():
    log = FoldLog(SPEC)
    log.send(*pair_events([(1, 1), (None, 0)] * 30))
    assert benchmark_report(log.bench).pairs[0].status == "exhausted"


def test_an_item_that_is_not_listed_is_refused_and_loses_nothing_else():
    log = FoldLog(SPEC)
    log.send(event(ORDER[0], "a", 1), event("item-61", "c", 1), event(ORDER[0], "b", 0))
    (letter,) = log.letters
    assert letter.field == "item_id"
    assert "none of the 60 that were declared" in letter.reason
    assert log.bench.counters["rejected"] == 1
    assert [c.model for c in log.bench.contestants] == ["a", "b"]
    assert log.bench.committed.sums["b"].tolist() == [1]


@pytest.mark.parametrize(
    "change",
    [{"order": {"policy": "committed", "seed": "another"}}, {"item_ids": IDS[::-1]}, {"item_ids": IDS[:-1]}],
)
def test_a_later_seed_or_list_is_refused(change):
    log = FoldLog(SPEC)
    log.send(SPEC | {"order": {"policy": "committed", "seed": "changed my mind before the first score"}})
    log.send(SPEC)
    log.send(event(ORDER[0], "a", 1))
    log.send(SPEC | change)
    (letter,) = log.letters
    assert "can no longer be declared: verdicts would rest on a choice made after seeing data" in letter.reason
    assert log.bench.spec.order.seed == SEED
    assert len(log.bench.spec.item_ids) == 60


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"order": {"policy": "committed", "seed": "s"}}, "rankwatch order --format json"),
        ({"order": "committed"}, "needs a seed and the items"),
        ({"order": {"policy": "committed", "seed": "a\0b"}, "item_ids": IDS}, "U+0000"),
        ({"item_ids": ["a", "b", "a"]}, "1 are repeated"),
        ({"item_ids": ["a", "b"], "items": 3}, "items 3 is not the number of item_ids, 2"),
        ({"item_ids": []}, "at least 1 item"),
        ({"item_ids": ["a\nb"]}, "forbidden character U+000A"),
    ],
)
def test_declarations_that_cannot_be_right(spec, says):
    with pytest.raises(ValidationError) as refused:
        Declaration.model_validate({"declare": "bench", **spec})
    assert says in str(refused.value)


def test_a_list_implies_the_item_count_and_completion():
    spec = Declaration.model_validate({"declare": "bench", "item_ids": IDS}).spec()
    assert (spec.items, spec.order.policy) == (60, "completion")

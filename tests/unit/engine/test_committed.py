"""Verdicts along a committed order: worked examples; the laws are in tests/property."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.pairs.evidence_path import COMMITTED, POINTS, chart_data, pair_path
from monitor.view.pairs.table import PairTable
from monitor.words.assumptions import TEXTS
from schemas.records.declaration import Declaration
from stats import committed_order, log_e_halves, log_e_value
from tests.fold_log import FoldLog, event

SEED = "2026-leaderboard"
IDS = [f"item-{k}" for k in range(1, 61)]
ORDER = [IDS[k] for k in committed_order(SEED, IDS)]
SPEC = {"declare": "bench", "order": {"policy": "committed", "seed": SEED}, "item_ids": IDS}


def pair_events(scores):
    """Events of items in the committed order: scores are (of a, of b)."""
    return [event(ORDER[k], m, x) for k, both in enumerate(scores) for m, x in zip("ab", both, strict=True)]


def test_nothing_counts_after_the_first_item_that_is_missing():
    log = FoldLog(SPEC)
    events = pair_events([(1, 0)] * 30)
    log.send(*events[1:])  # all but the first score of a
    assert log.bench.changes == {}
    assert benchmark_report(board_view(log.bench)).pairs[0].status == "collecting"
    start = log.partition.off
    log.send(events[0])
    change = log.changes["anytime", "decided"]
    assert change.id.startswith(f"{start}-")
    # The prefix jumps from 0 to 30; the verdict is that of the first item at which it is reached.
    first = next(n for n in range(1, 31) if log_e_value(n, 0) >= math.log(20))
    assert (change.evidence.n, change.evidence.b, change.evidence.c) == (first, first, 0)
    assert change.order_policy == "committed"
    assert change.assumptions[0] == {"code": "committed", "offset": 0}
    assert (
        f"Assumes that {TEXTS['committed']} (offset 0 of the log), and that {TEXTS['independent']}." in change.sentence
    )


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
    pair = benchmark_report(board_view(log.bench)).pairs[0]
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


def test_the_interval_excludes_0_exactly_when_the_pair_is_decided():
    for wins in range(4, 12):
        log = FoldLog(SPEC)
        log.send(*pair_events([(1, 0)] * wins + [(None, 1)] * 2 + [(1, 1)] * 5))
        log.send(*[event(item, m, 0) for item in ORDER[-9:] for m in "ab"])  # after a gap: they count for nothing here
        pair = benchmark_report(board_view(log.bench)).pairs[0]
        assert (pair.gap_low > 0) == (pair.decided.anytime is not None) == (("anytime", "decided") in log.changes)


def test_the_end_of_the_list_exhausts_a_pair_skips_or_not():
    log = FoldLog(SPEC)
    log.send(*pair_events([(1, 1), (None, 0)] * 30))
    assert benchmark_report(board_view(log.bench)).pairs[0].status == "exhausted"


def test_an_item_that_is_not_listed_is_refused_and_loses_nothing_else():
    log = FoldLog(SPEC)
    log.send(event(ORDER[0], "a", 1), event("item-61", "c", 1), event(ORDER[0], "b", 0))
    (letter,) = log.letters
    assert letter.field == "item_id"
    assert "not in the declared list of 60" in letter.reason
    assert log.bench.counters["rejected"] == 1
    assert [c.model for c in log.bench.contestants] == ["a", "b"]
    assert log.bench.committed.sums["b"].tolist() == [1]


@pytest.mark.parametrize(
    "change",
    [{"order": {"policy": "committed", "seed": "another"}}, {"item_ids": IDS[::-1]}, {"item_ids": IDS[:-1]}],
)
def test_a_later_seed_or_list_is_refused(change):
    log = FoldLog(SPEC)
    log.send(SPEC | change)  # before the first score
    log.send(event("unknown", "a", 1))
    log.send(SPEC | change)  # after a rejected one
    log.send(SPEC)
    log.send(event(ORDER[0], "a", 1))
    log.send(SPEC | change)
    log.send(SPEC | change | {"version": 2})
    *first, rejected, second, third, fourth = log.letters
    assert rejected.field == "item_id"
    assert {letter.field for letter in (*first, second, third, fourth)} <= {"order", "item_ids", "items"}
    assert all("has committed to a seed and its items at offset 0 of the log" in letter.reason for letter in first)
    assert log.bench.spec.order.seed == SEED
    assert len(log.bench.spec.item_ids) == 60


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"order": {"policy": "committed", "seed": "s"}}, "rankwatch order --format json"),
        ({"order": "committed"}, "needs a seed and the items"),
        ({"order": {"policy": "committed", "seed": "a\0b"}, "item_ids": IDS}, "U+0000"),
        ({"item_ids": ["a", "b", "a"]}, "item_ids repeats 1 ids"),
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


def skipping_stream(seed):
    """Sixty items of three models in an order of their own, some skipped, some not there yet; and who answers what."""
    rng = np.random.default_rng(seed)
    scores = {
        (item, m): None if rng.random() < 0.06 else int(rng.random() < skill)
        for item in IDS
        for m, skill in (("a", 0.9), ("b", 0.45), ("c", 0.4))
    }
    late = {(ORDER[52], "b"), (ORDER[40], "c")}
    sent = [key for key in scores if key not in late]
    rng.shuffle(sent)
    return scores, [event(item, m, scores[item, m]) for item, m in map(tuple, sent)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("one", "other", "prefix"), [("a", "b", 52), ("b", "c", 40), ("c", "a", 40)])
def test_a_path_is_the_evidence_item_by_item_of_the_committed_order(seed, one, other, prefix):
    scores, events = skipping_stream(seed)
    log = FoldLog(SPEC)
    log.send(*events)
    names = [c.model for c in log.bench.contestants]
    path = pair_path(board_view(log.bench), names.index(one), names.index(other), 1_000)
    assert path.order == COMMITTED
    assert path.n.tolist() == list(range(1, prefix + 1))
    b = c = c_worst = b_best = 0
    for k, item in enumerate(ORDER[:prefix]):
        x, y = scores[item, one], scores[item, other]
        b, c = b + ((x, y) == (1, 0)), c + ((x, y) == (0, 1))
        c_worst += x in {0, None} and y in {1, None}
        b_best += x in {1, None} and y in {0, None}
        assert path.log_e_a[k] == pytest.approx(log_e_halves(b, c_worst)[0])
        assert path.log_e_b[k] == pytest.approx(log_e_halves(b_best, c)[1])
        assert path.gap_low[k] <= path.gap[k] <= path.gap_high[k]
    assert np.logaddexp(path.log_e_a, path.log_e_b) - math.log(2) == pytest.approx(path.log_e)


@pytest.mark.parametrize("seed", range(4))
def test_a_path_crosses_where_its_verdict_fell_and_ends_at_the_report(seed):
    _, events = skipping_stream(seed)
    log = FoldLog(SPEC)
    log.send(*events)
    names = [c.model for c in log.bench.contestants]
    crossed = 0
    for pair in benchmark_report(board_view(log.bench), pairs="all").pairs:
        path = pair_path(board_view(log.bench), names.index(pair.model_a), names.index(pair.model_b), 1_000)
        ends = [getattr(path, name)[-1] for name in ("log_e", "log_e_a", "log_e_b", "gap_low", "gap_high")]
        assert ends == pytest.approx([pair.log_e, pair.log_e_a, pair.log_e_b, pair.gap_low, pair.gap_high], abs=1e-9)
        assert (path.log_e.max() >= path.log_threshold) == (pair.decided.anytime is not None)
        for change in log.bench.changes.values():
            if {change.model_a, change.model_b} == {pair.model_a, pair.model_b} and change.kind == "decided":
                at = int(np.argmax(path.log_e >= change.evidence.log_threshold - 1e-12))
                walked = change.evidence.n + change.evidence.missing
                if change.procedure == "anytime":
                    assert (path.n[at], path.log_threshold) == (walked, change.evidence.log_threshold)
                # The threshold in a family may fall to the evidence after it was reached.
                assert path.n[at] <= walked
                assert change.evidence.log_threshold <= change.evidence.log_e <= path.log_e.max() + 1e-9
                crossed += 1
    assert crossed


def test_a_chart_follows_the_path_of_its_pair():
    _, events = skipping_stream(1)
    log = FoldLog(SPEC)
    log.send(*events)
    table = PairTable(board_view(log.bench))
    charts = chart_data(table).pairs
    assert charts
    for chart, a, b in zip(
        charts, table.pairs.a[table.pairs.adjacent].tolist(), table.pairs.b[table.pairs.adjacent].tolist(), strict=True
    ):
        path = pair_path(board_view(log.bench), a, b, POINTS)
        assert np.array_equal(chart.curve.n, [0, *path.n])
        assert np.array_equal(chart.curve.log_e, [0, *path.log_e])


def test_a_pair_is_settled_by_others_that_become_certain_outside_their_prefixes():
    """A chunk that moves no prefix may still lower the thresholds of pairs with evidence."""
    log = FoldLog(SPEC | {"family": {"models": ["a", "b", "c"]}})
    for k in range(45):
        log.send(event(ORDER[k], "a", 1), event(ORDER[k], "b", int(k >= 5)))
    (peak,) = log.bench.claims["settled"].peak[:1]
    assert math.log(20) < abs(peak) < math.log(60)
    assert not log.bench.claims["settled"].side[0]
    log.send(*(event(ORDER[k], "c", 0) for k in range(1, 45)))  # without the first item c has no prefix
    settled = {change.model_a + change.model_b: change for change in log.bench.changes.values()}
    assert set(settled) == {"ab", "ac", "bc"}
    assert (settled["ab"].after, settled["ab"].evidence.n) == ("a", 45)

"""Repeats, and the end of runs: what bets, what is held, what is refused."""

import numpy as np
import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.words.assumptions import TEXTS
from schemas.records.scores import SCORE_UNIT
from tests.fold_log import FoldLog, event


def board(seed, *, labels=tuple(range(97)), least=1, most=96, models="abc", items=8):
    """Unequal numbers of repeats, with any labels, in any order."""
    rng = np.random.default_rng(seed)
    events = [
        event(item, model, int(rng.random() < 0.5), repeat=int(label))
        for item in range(items)
        for model in models
        for label in rng.choice(labels, rng.integers(least, most + 1), replace=False)
    ]
    return [events[k] for k in rng.permutation(len(events)).tolist()]


def expected(events):
    """Mean of each model, and per pair n, gap and sd of D, of items that are the mean of all their repeats."""
    table = {}
    for each in events:
        table.setdefault(each["model"], {}).setdefault(each["item_id"], []).append(each["score"])
    means = {model: {item: np.mean(x) for item, x in items.items()} for model, items in table.items()}
    pairs = {}
    for a, x in means.items():
        for b, y in means.items():
            d = [x[item] - y[item] for item in x.keys() & y.keys()]
            pairs[a, b] = len(d), np.mean(d), np.std(d)
    return {model: np.mean(list(x.values())) for model, x in means.items()}, pairs


def complete_report(events):
    log = FoldLog()
    log.send({"events": events})
    log.partition.end_all_runs()
    return benchmark_report(board_view(log.bench), pairs="all", assert_complete=True)


@pytest.mark.parametrize("seed", range(12))
def test_files_read_as_complete_use_the_mean_of_all_repeats(seed):
    events = board(seed)
    means, pairs = expected(events)
    report = complete_report(events)
    for model in report.models:
        assert model.mean == pytest.approx(means[model.model], abs=1e-12)
        assert 1 <= model.repeats.min < model.repeats.mean < model.repeats.max <= 96
        assert model.run_ended
    for pair in report.pairs:
        n, gap, sd = pairs[pair.model_a, pair.model_b]
        assert (pair.n, pair.gap, pair.sd) == (n, pytest.approx(gap, abs=1e-12), pytest.approx(sd, abs=1e-12))
    assert "repeats" in {each["code"] for each in report.order.facts}


@pytest.mark.parametrize(
    ("declaration", "items", "code"),
    [({"items": 30}, 40, "too_many_items"), ({"order": "trusted"}, 600, "order_refuted")],
    ids=["too many items", "suspect order"],
)
def test_an_undeclared_repeat_does_not_undo_what_refutes_the_declaration(declaration, items, code):
    log = FoldLog({"declare": "bench", **declaration})
    events = [event(k, m, int(m == "a"), cluster=f"c{k // 100}") for k in range(items) for m in "ab"]
    for more in ([], [event(5, "b", 1, repeat=1)]):
        log.send({"events": events + more})
        events = []
        report = benchmark_report(board_view(log.bench), pairs="all", assert_complete=True)
        assert report.order.policy == log.bench.spec.order.policy
        assert [pair.status for pair in report.pairs] == ["invalidated"]
        assert report.order.facts[0]["code"] == code


def test_the_first_repeat_alone_does_not_name_the_better_model():
    """Means .75 and .25 on four repeats, of which the first is wrong for the better model."""
    events = [
        event(item, model, int((k > 0) == (model == "a")), repeat=k)
        for item in range(100)
        for model in "ab"
        for k in range(4)
    ]
    report = complete_report(events)
    assert [(m.model, m.mean) for m in report.models] == [("a", 0.75), ("b", 0.25)]
    (pair,) = report.pairs
    assert (pair.decided.anytime_family, pair.gap) == ("a", 0.5)
    assert "4 repeats an item: a score is their mean" in report.order.reason
    assert TEXTS["repeated"] in pair.reason


@pytest.mark.parametrize("repeats", [1, 2, "all"])
def test_a_verdict_on_means_of_repeats_names_what_it_assumes(repeats):
    log = FoldLog({"declare": "bench", "items": 30, "repeats": repeats})
    counts = range(1 if repeats == 1 else 2)
    log.send(*(event(item, model, int(model == "a"), repeat=k) for item in range(30) for model in "ab" for k in counts))
    log.send({"ended": "bench"})
    (pair,) = benchmark_report(board_view(log.bench), pairs="all").pairs
    for sentence in (log.changes["anytime_family", "decided"].sentence, pair.reason):
        assert (TEXTS["repeated"] in sentence) == (repeats != 1)


def test_more_items_than_declared_hold_a_report_with_undeclared_repeats_too():
    log = FoldLog({"declare": "bench", "items": 20})
    log.send(*(event(item, model, int(model == "a"), repeat=k) for item in range(30) for model in "ab" for k in (0, 1)))
    log.partition.end_all_runs()
    report = benchmark_report(board_view(log.bench), pairs="all", assert_complete=True)
    over = {"code": "too_many_items", "benchmark": "bench", "declared": 20, "arrived": 30}
    assert report.order.facts == [over]
    assert report.pairs[0].decided.anytime_family is None


def test_labels_are_names():
    log = FoldLog({"declare": "bench", "repeats": 2, "items": 3})
    log.send(
        event(1, "a", 1, repeat=5), event(1, "b", 0, repeat=1), event(1, "b", 0, repeat=2), event(1, "a", 0, repeat=1)
    )
    assert (log.bench.items, log.bench.n[0], log.bench.graded_pairs.lead[0]) == (1, 1, SCORE_UNIT // 2)
    one = FoldLog({"declare": "bench", "items": 3})
    one.send(event(1, "a", 1, repeat=8), event(1, "b", 0, repeat=1), event(2, "a", None), event(2, "a", 1, repeat=3))
    assert (one.bench.items, one.bench.n[0], one.bench.b[0], one.bench.undeclared) == (2, 1, 1, "")
    assert one.bench.scored.tolist()[:2] == [2, 1]
    assert not one.bench.skipped.any()


def test_an_undeclared_repeat_holds_the_benchmark_and_withdraws_decisions():
    log = FoldLog({"declare": "bench", "items": 20, "family": {"policy": "capacity", "size": 1}})
    log.send(*(event(k, model, int(model == "a")) for k in range(18) for model in "ab"))
    assert log.changes["anytime", "decided"].after == "a"
    log.send(event(17, "b", 1, repeat=1))
    reason = "b has 2 repeats of item 17, and 1 is declared; declare as many as the items have (repeats: R), or all (repeats: all)"
    assert reason in log.changes["anytime", "invalidated"].sentence
    for _ in range(2):
        report = benchmark_report(board_view(log.bench), pairs="all")
        assert report.order.reason == reason
        assert {p.status for p in report.pairs} == {"invalidated"}
        assert [(m.model, m.mean) for m in report.models] == [("a", 1.0), ("b", pytest.approx(0.5 / 18, abs=1e-12))]
        log.restart()


def test_the_end_of_a_run_lets_incomplete_items_bet():
    log = FoldLog({"declare": "bench", "repeats": "all", "items": 2})
    log.send(*(event(1, "a", k % 2, repeat=k) for k in range(3)), event(1, "b", 0), event(2, "b", None))
    assert (log.bench.n[0], log.bench.scored.sum()) == (0, 0)
    (pair,) = benchmark_report(board_view(log.bench)).pairs
    assert pair.reason == "a and b share no items yet: their items count when both runs have ended (repeats: all)."
    log.send({"ended": "bench"})
    assert (log.bench.n[0], log.bench.graded_pairs.lead[0]) == (1, 333_333_333_333)
    assert log.bench.skipped.tolist()[:2] == [0, 1]
    log.restart()
    assert log.bench.graded_pairs.lead[0] == 333_333_333_333


def test_a_new_cell_of_an_ended_run_is_refused_and_a_duplicate_is_not():
    log = FoldLog({"declare": "bench", "items": 3})
    log.send(event(1, "a", 1), event(2, "a", None), event(1, "b", 0), {"ended": "bench", "model": "a"})
    for _ in range(2):
        log.send(
            event(1, "a", 1),
            event(1, "a", 0),
            event(2, "a", None),
            event(2, "a", 1),
            event(9, "a", 1),
            event(3, "b", 1),
        )
        log.restart()
    assert log.bench.counters == {"events": 3 + 2 * 4, "duplicates": 5, "conflicts": 2, "filled": 0, "rejected": 4}
    assert {x.reason for x in log.letters} == {"the run of a has ended; send changed scores under a new epoch"}
    assert log.bench.items == 3  # 1, 2 and b's item 3: the refused one left no name


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"ended": "bench", "model": "c"}, "c has no scores in epoch 0"),
        ({"ended": "nothing"}, "nothing has no scores yet"),
        ({"ended": "bench", "model": "a", "epoch": 1}, "a has no scores in epoch 1"),
        ({"ended": "bench", "model": "a", "base": 0}, "base 0 is not older than epoch 0"),
    ],
)
def test_an_end_of_no_run_is_a_dead_letter(record, problem):
    log = FoldLog()
    log.send(event(1, "a", 1), record)
    (letter,) = log.letters
    assert problem in letter.reason
    assert not log.bench.ended


def test_a_partial_regrade_inherits_what_it_does_not_replace():
    log = FoldLog({"declare": "bench", "items": 10})
    log.send(*(event(k, model, int(model == "a")) for k in range(10) for model in "ab"))
    log.send(
        event(3, "a", 0, epoch=1), event(4, "a", 0, epoch=1), {"ended": "bench", "model": "a", "epoch": 1, "base": 0}
    )
    for _ in range(2):
        report = benchmark_report(board_view(log.bench))
        assert [(m.model, m.items, m.mean, m.run_ended) for m in report.models] == [
            ("a", 10, 0.8, True),
            ("b", 10, 0.0, False),
        ]
        log.restart()


@pytest.mark.parametrize(("missing", "decided"), [("worst", None), ("ignorable", "a")])
def test_ended_runs_are_judged_with_nothing_missing_where_that_was_declared(missing, decided):
    log = FoldLog({"declare": "bench", "items": 40, "missing": missing})
    log.send(*(event(k, model, int(model == "a")) for k in range(20) for model in "ab"))
    assert not log.changes
    log.send({"ended": "bench", "model": "a"}, {"ended": "bench", "model": "b"})
    (pair,) = benchmark_report(board_view(log.bench)).pairs
    assert pair.decided.anytime_family == decided
    assert pair.status == ("decided" if decided else "exhausted")
    if decided:
        assert (
            "and that the run was not ended because of its scores" in log.changes["anytime_family", "decided"].sentence
        )
    else:
        assert "It would be decided for a if missing items were ignored (missing: ignorable)" in pair.reason

"""What becomes of events: which score counts, what is counted, what is refused."""

import json

import numpy as np
import pytest

from monitor.engine.chunk_fold import usage_of
from monitor.engine.fold import locate
from monitor.engine.limits import BUDGET, Limits
from monitor.engine.state.codes import NARROW
from monitor.view.from_state import board_view
from schemas.records.columns import EventList
from schemas.records.scores import SCORE_UNIT
from tests.fold_log import FoldLog, counts_of, event


def counters(log, name="bench"):
    return tuple(log[name].counters[key] for key in ("events", "duplicates", "conflicts", "rejected"))


def score(log, item, model, *, repeat=0, epoch=0):
    """The score that counts, in units; "skipped", or None."""
    benchmark = log.bench
    row = [(r.item, r.repeat) for r in benchmark.rows].index((str(item), repeat))
    code = int(benchmark.matrix()[row, [tuple(c) for c in benchmark.contestants].index((model, epoch))])
    return [None, "skipped", *benchmark.table.code_of][code]


def together_and_apart(records, *, limits=None):
    """The same records as one chunk, one a chunk, and one a chunk with a restart after each."""
    whole, apart, restarted = (FoldLog(limits=limits) for _ in range(3))
    whole.send(*records)
    for record in records:
        apart.send(record)
        restarted.send(record)
        restarted.restart()
    return whole, apart, restarted


# --- which score counts -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [1, 2])
def test_the_first_score_wins_and_the_rest_is_counted(chunks):
    log = FoldLog()
    records = [event(1, "m", 1), event(1, "m", 0), event(1, "m", 1.0), event(1, "m", 0), event(1, "m", None)]
    for part in np.array_split(np.arange(5), chunks):
        log.send(*(records[k] for k in part))
    assert score(log, 1, "m") == SCORE_UNIT
    assert counters(log) == (5, 1, 3, 0)
    assert (log.bench.scored[0], log.bench.total[0], log.bench.skipped[0]) == (1, SCORE_UNIT, 0)


def test_a_conflicting_score_moves_no_pair():
    log = FoldLog()
    log.send(event(1, "a", 1), event(1, "b", 0))
    assert counts_of(log.bench, "a", "b") == (1, 1, 0)
    log.send(event(1, "b", 1), event(1, "a", 0))
    assert counts_of(log.bench, "a", "b") == (1, 1, 0)
    assert counters(log) == (4, 0, 2, 0)


def test_a_skip_is_stored_and_shares_nothing():
    log = FoldLog()
    log.send(event(1, "a", None), event(1, "b", 1), event(1, "a", None))
    assert score(log, 1, "a") == "skipped"
    assert counters(log) == (3, 1, 0, 0)
    assert (log.bench.skipped[0], log.bench.scored[0]) == (1, 0)
    assert counts_of(log.bench, "a", "b") == (0, 0, 0)
    assert log.bench.items == 1


def test_a_score_after_a_skip_fills_it():
    """A failed sample that is run again is neither a duplicate nor a conflict; a skip after a score is a conflict."""
    records = [event(1, "b", 0), event(1, "a", None), event(1, "a", None), event(1, "a", 1), event(1, "a", None)]
    for log in together_and_apart([*records, event(1, "a", 1), event(1, "a", 0)]):
        assert score(log, 1, "a") == SCORE_UNIT
        assert counters(log) == (7, 2, 2, 0)
        assert (log.bench.skipped.tolist()[:2], log.bench.scored.tolist()[:2]) == ([0, 0], [1, 1])
        assert counts_of(log.bench, "a", "b") == (1, 1, 0)
        assert log.bench.arrival.state[:, 0].tolist() == [1, 1]


def test_a_skip_of_a_committed_order_has_bet_and_stays():
    declaration = {"declare": "bench", "order": {"policy": "committed", "seed": "s"}, "item_ids": ["1", "2"]}
    for log in together_and_apart([declaration, event(1, "a", None), event(1, "a", 1), event(2, "a", 1)]):
        assert score(log, 1, "a") == "skipped"
        assert counters(log) == (3, 0, 1, 0)


def test_true_one_and_one_point_nought_are_the_same_score():
    log = FoldLog()
    log.send(*(event(1, "m", x) for x in (True, 1, 1.0)), *(event(2, "m", x) for x in (0.0, False, 0)))
    assert counters(log) == (6, 4, 0, 0)
    assert (score(log, 1, "m"), score(log, 2, "m")) == (SCORE_UNIT, 0)
    assert log.bench.binary


@pytest.mark.parametrize("tiny", ["-0.0", "-0", "1e-320", "4e-13", "0e5"])
def test_a_score_below_half_a_unit_is_0(tiny):
    log = FoldLog()
    log.send(json.dumps(event(1, "m", 0)).replace('"score": 0', f'"score": {tiny}').encode(), event(1, "m", 0))
    assert counters(log) == (2, 1, 0, 0)
    assert score(log, 1, "m") == 0
    assert log.bench.binary


def test_graded_scores_are_stored_with_twelve_decimals():
    log = FoldLog()
    third = 333_333_333_333
    log.send(event(1, "m", 1 / 3), event(1, "m", third / 1e12), event(1, "m", 0.333333), event(2, "m", 1 - 4e-13))
    assert (score(log, 1, "m"), score(log, 2, "m")) == (third, SCORE_UNIT)
    assert counters(log) == (4, 1, 1, 0)
    assert not log.bench.binary
    assert log.bench.total[0] == SCORE_UNIT + third
    log.restart()
    assert (score(log, 1, "m"), score(log, 2, "m")) == (third, SCORE_UNIT)


# --- repeats and epochs -----------------------------------------------------------------------------------------------------------------


def test_an_epoch_of_a_model_is_a_contestant_and_the_latest_is_current():
    log = FoldLog()
    log.send(event(1, "a", 1), event(1, "b", 0), event(1, "a", 0, epoch=2), event(1, "a", 1, epoch=1))
    assert [tuple(c) for c in log.bench.contestants] == [("a", 0), ("b", 0), ("a", 2), ("a", 1)]
    assert board_view(log.bench).current().tolist() == [False, True, True, False]
    assert counts_of(log.bench, ("a", 0), "b") == (1, 1, 0)
    assert counts_of(log.bench, ("a", 2), "b") == (1, 0, 0)
    assert counters(log) == (4, 0, 0, 0)
    # Pairs of one model with itself are no hypotheses. Epoch 1 of a comes after epoch 2 and shares no place with b.
    assert log.bench.registered.total() == 2
    assert log.bench.comparable(np.arange(log.bench.pairs)).sum() == 3


# --- codes ------------------------------------------------------------------------------------------------------------------------------


def graded_scores(count, start=0):
    """Events of distinct scores strictly between 0 and 1, item by item for two models."""
    return [event(k, model, (k + 1) / 1000) for k in range(start, start + count) for model in "ab"]


@pytest.mark.parametrize("restart", [False, True])
def test_codes_become_wider_with_the_255th_score(restart):
    log = FoldLog()
    narrow = log.send(*graded_scores(NARROW - 2))
    assert narrow.benchmarks[0].width == log.bench.width == 1
    assert narrow.benchmarks[0].columns is None
    if restart:
        log.restart()
    wide = log.send(event(900, "a", 0.9001), event(900, "b", 1), event(0, "a", 0.5)).benchmarks[0]
    assert wide.width == log.bench.width == 4
    assert wide.cells is None
    assert wide.columns.dtype == np.uint32
    assert wide.columns.shape == (2, NARROW - 1)
    assert wide.columns[0, -1] == 2 + NARROW
    after = log.send(event(901, "a", 0.9001)).benchmarks[0]
    assert after.columns is None
    assert after.width == 4
    assert [x.tolist() for x in after.cells] == [[NARROW - 1], [0], [2 + NARROW]]
    for _ in range(2):
        assert score(log, 0, "a") == 1_000_000_000
        assert score(log, 900, "a") == score(log, 901, "a") == 900_100_000_000
        assert counts_of(log.bench, "a", "b")[0] == NARROW - 1
        assert counters(log) == (2 * NARROW, 0, 1, 0)
        log.restart()


def test_graded_items_are_shared_but_never_discordant_for_nought_or_one():
    log = FoldLog()
    log.send(
        event(1, "a", 0.5), event(1, "b", 0), event(2, "a", 1), event(2, "b", 0.25), event(3, "a", 1), event(3, "b", 0)
    )
    assert counts_of(log.bench, "a", "b") == (3, 1, 0)


# --- refusals ---------------------------------------------------------------------------------------------------------------------------

HOSTILE = ["", "x" * 201, "a\nb", "\x1b[31m", "\u202egpt", "\u2028", "\ufeff", "\x00"]


@pytest.mark.parametrize("field", ["benchmark", "item_id", "model", "cluster"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_and_the_rest_is_folded(field, name):
    records = [event(1, "a", 1), event(2, "b", 0) | {field: name}, event(3, "a", 0), event(4, "b", 1)]
    for log in together_and_apart(records):
        assert counters(log)[0] == 3
        assert [r.item for r in log.bench.rows] == ["1", "3", "4"]
        assert [c.model for c in log.bench.contestants] == ["a", "b"]
        (letter,) = log.letters
        assert (letter.offset, letter.field) == (10, field)
        assert letter.found.isprintable()
        assert len(letter.found) < 120
        total = counters(log)[3] + log.partition.counters["rejected"]
        assert total == 1


@pytest.mark.parametrize("bad", ["1.2", "-0.1", "Infinity", "1e400", '"1.2"', '"x"', "[1]", "{}"])
def test_what_is_no_score_is_refused_and_the_rest_is_folded(bad):
    broken = json.dumps(event(2, "a", 7)).replace('"score": 7', f'"score": {bad}').encode()
    for log in together_and_apart([event(1, "a", 1), broken, event(3, "a", 0)]):
        assert counters(log) == (2, 0, 0, 1)
        assert [r.item for r in log.bench.rows] == ["1", "3"]
        (letter,) = log.letters
        assert (letter.offset, letter.field, letter.benchmark) == (10, "score", "bench")


def test_the_cluster_is_that_of_the_event_which_names_the_item():
    records = [event(1, "a", 1, cluster="x"), event(1, "b", 1, cluster="y"), event(1, "c", 0.5, cluster="\x07")]
    for log in together_and_apart(records):
        assert counters(log) == (3, 0, 0, 0)
        assert [r.cluster for r in log.bench.rows] == ["x"]


@pytest.mark.parametrize(
    ("limits", "records", "field", "says"),
    [
        (Limits(contestants=2), [event(1, m, 1) for m in "abc"], "model", "beyond the limit of 2 models"),
        (Limits(contestants=2), [event(1, "a", 1, epoch=k) for k in range(3)], "model", "beyond the limit of 2 models"),
        (Limits(rows=2), [event(k, "a", 1) for k in range(3)], "item_id", "beyond the limit of 2 items"),
        (Limits(rows=2), [event(1, "a", 1, repeat=k) for k in range(3)], "item_id", "beyond the limit of 2 items"),
        (Limits(values=3), [event(k, "a", k / 10) for k in (1, 0, 2)], "score", "beyond the limit of 3 different scores"),
        (Limits(budget=BUDGET._replace(pairs=1)), [event(1, m, 1) for m in "abc"], "model", "to 3 pairs of models, and its budget is 1"),
        (Limits(budget=BUDGET._replace(rows=2)), [event(k, "a", 1) for k in range(3)], "item_id", "3 items, and its budget is 2"),
        (Limits(budget=BUDGET._replace(cells=3)), [event(1, "a", 1), event(2, "a", 1), event(1, "b", 1)], "model", "to 4 cells"),
        (Limits(benchmarks=2), [event(1, "a", 1, benchmark=b) for b in ("x", "bench", "z")], "benchmark", "limit of 2 benchmarks"),
    ],
    ids=["models", "epochs", "items", "repeats", "scores", "all pairs", "all items", "all cells", "benchmarks"],
)  # fmt: skip
def test_a_limit_refuses_what_is_new_and_takes_what_is_known(limits, records, field, says):
    for log in together_and_apart([*records, records[0], records[1]], limits=limits):
        (letter,) = log.letters
        assert (letter.offset, letter.field) == (20, field)
        assert says in letter.reason
        known = sum(b.counters["duplicates"] for b in log.partition.benchmarks.values())
        assert known == 2


@pytest.mark.parametrize("budget", [{"rows": 12}, {"cells": 30}, {"pairs": 9}])
def test_a_budget_of_several_benchmarks_refuses_the_same_events_however_the_log_is_chunked(budget):
    """Each event may take what is left from an event of another benchmark, so their order counts."""
    rng = np.random.default_rng(4)
    cells = [(b, k, m) for b in "xyz" for k in range(6) for m in "abcde"]
    records = [event(k, m, 1, benchmark=b) for b, k, m in (cells[place] for place in rng.permutation(len(cells)))]
    refused = []
    for log in together_and_apart(records, limits=Limits(budget=BUDGET._replace(**budget))):
        refused.append([letter.offset for letter in log.letters])
        total = [sum(x) for x in zip(*map(usage_of, log.partition.benchmarks.values()), strict=True)]
        assert tuple(total) == log.partition.usage
        assert all(taken <= most for taken, most in zip(total, log.partition.limits.budget, strict=True))
    assert refused[0] == refused[1] == refused[2]
    assert 0 < len(refused[0]) < len(records)


def calls_of(monkeypatch, name):
    """Count the calls of a function of `locate`."""
    calls, function = [], getattr(locate, name)
    monkeypatch.setattr(locate, name, lambda *args, **named: calls.append(args) or function(*args, **named))
    return calls


def test_events_of_an_epoch_are_looked_up_again_only_where_a_name_was_added(monkeypatch):
    log = FoldLog()
    log.send({"events": [event(k, "a", k % 2, epoch=1) for k in range(200)]})
    rows = EventList.rows
    calls = []
    monkeypatch.setattr(EventList, "rows", lambda *args: calls.append(args) or rows(*args))
    log.send({"events": [event(k, "b", k % 2, epoch=1) for k in range(200)]})
    assert len(calls) < 10
    assert log.bench.scored.tolist() == [200, 200]


def test_a_limit_of_cells_counts_the_models_that_are_new_only(monkeypatch):
    log = FoldLog(limits=Limits(budget=BUDGET._replace(cells=100_000)))
    log.send(*({"benchmark": "bench", "model": m, "item_ids": ["0"], "scores": [1]} for m in "ab"))
    calls = calls_of(monkeypatch, "_place")
    for m in "ab":
        names = [str(k) for k in range(1, 1_001)]
        log.send({"benchmark": "bench", "model": m, "item_ids": names, "scores": [1] * 1_000})
    assert not calls
    assert counts_of(log.bench, "a", "b") == (1_001, 0, 0)


def test_a_refused_event_leaves_no_name():
    log = FoldLog(limits=Limits(contestants=1))
    log.send(event(1, "a", 1), event("new", "b", 0.5), event("newer", "a", 2))
    assert [r.item for r in log.bench.rows] == ["1"]
    assert list(log.bench.table.code_of) == [0, SCORE_UNIT]
    assert log.bench.items == 1

"""Sentinels in the log: what closes a run, what is counted, and that verdicts are a function of the log."""

import numpy as np
import pytest

from monitor.view.drift import sentinel_of, shown
from monitor.words.drift import otherwise
from schemas.results.changes import DriftChange
from tests.drift_oracle import sentinel
from tests.fold_log import FoldLog, event

ITEMS = 30


def declaration(**drift):
    return {"declare": "bench", "items": ITEMS, "drift": {"seed": "s", "years": 1, "runs_per_year": 50} | drift}


def day(k):
    return f"2026-{8 + k // 28:02}-{1 + k % 28:02}"


def made(days, *, drop_at=10**9, judge_at=None, seed=0, drop=0.35, items=ITEMS, model="m"):
    """Events of each run: 0/1 scores, lower from a day on, with frozen answers where the judge may move."""
    rng = np.random.default_rng(seed)
    right, runs = rng.beta(7, 3, items), []
    for k in range(days):
        shift = drop if judge_at is not None and k >= judge_at else 0
        chance = np.clip(right - shift - (drop if k >= drop_at else 0), 0, 1)
        events = [event(f"q{i}", model, int(rng.random() < p), run=day(k)) for i, p in enumerate(chance)]
        if judge_at is not None:
            frozen = np.clip(right - shift, 0, 1)
            events += [
                event(f"q{i}", model, int(rng.random() < p), run=day(k), role="anchor") for i, p in enumerate(frozen)
            ]
        runs.append(events)
    return runs


def means(events, role=None):
    return {each["item_id"]: float(each["score"]) for each in events if each.get("role") == role}


def facts(log, model="m"):
    return shown(log.bench.sentinel.models[model])


def said(log):
    return [change for change in log.bench.changes.values() if isinstance(change, DriftChange)]


STREAMS = {
    "quiet": ({}, made(20)),
    "drop": ({}, made(30, drop_at=18, seed=1)),
    "rise": ({"direction": "both"}, made(30, seed=2)[::-1]),
    "judge": ({"judge": "j", "anchors": ITEMS}, made(30, judge_at=15, seed=3)),
    "both": ({"judge": "j", "anchors": ITEMS}, made(30, judge_at=15, drop_at=15, seed=4)),
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_fold_agrees_with_the_oracle_and_with_the_reading_of_files(name):
    drift, runs = STREAMS[name]
    log = FoldLog(declaration(**drift))
    log.send(*(each for run in runs for each in run))
    found = facts(log)
    rows = [(run[0]["run"], means(run), means(run, "anchor")) for run in runs]
    expected = sentinel("bench", "m", rows, seed="s", bound=50, items=ITEMS, both="direction" in drift)
    assert [run.p for run in found.runs] == pytest.approx(list(expected["model"][0].values()), abs=1e-12)
    for monitor in found.monitors:
        alarms = [(each.run, each.side, each.start) for each in monitor.alarms]
        assert alarms == expected[monitor.of][1]

    class Read:
        duplicates = conflicts = skipped = 0

        def __init__(self, name, fresh, frozen):
            self.name, self._means = name, {None: fresh, "anchor": frozen}

        def means(self, role=None):
            return self._means[role]

    read = sentinel_of("bench", "m", [Read(*row) for row in rows], log.bench.sentinel.settings, ordered_by="closing")
    assert read == found
    assert len(said(log)) == sum(len(monitor.alarms) for monitor in found.monitors)


@pytest.mark.parametrize("name", ["drop", "both"])
def test_chunks_and_restarts_change_nothing(name):
    drift, runs = STREAMS[name]
    events = [each for run in runs for each in run]
    events += [*events[40:70], event("q0", "m", 0, run="2027-01-01")]
    events.insert(400, {"change": "m", "benchmark": "bench", "reason": "new prompt"})
    whole = FoldLog(declaration(**drift))
    whole.send(*events)
    rng = np.random.default_rng(5)
    parts = FoldLog(declaration(**drift))
    sent = 0
    while sent < len(events):
        size = int(rng.integers(1, 120))
        parts.send(*events[sent : sent + size])
        sent += size
        if rng.random() < 0.5:
            parts.restart()
    parts.restart()
    assert facts(parts) == facts(whole)
    assert said(parts) == said(whole)
    assert parts.bench.counters == whole.bench.counters
    assert parts.store.state.benchmarks[0].run_lines == whole.store.state.benchmarks[0].run_lines
    assert np.array_equal(parts.store.state.benchmarks[0].run_scores, whole.store.state.benchmarks[0].run_scores)
    assert parts.bench.sentinel.dump() == whole.bench.sentinel.dump()


def test_a_run_enters_once_when_it_closes():
    first, second, third = made(3)
    log = FoldLog(declaration())
    log.send(*first)
    assert [run.run for run in facts(log).runs] == [day(0)]
    log.send(*first[:5], *second[:29])
    assert (facts(log).late, facts(log).repeated, facts(log).open) == (5, (day(0),), (day(1),))
    log.send(*third[:10])
    assert [(run.run, run.items, run.ranked) for run in facts(log).runs] == [(day(0), 30, True), (day(1), 29, True)]
    log.send({"run": day(2), "benchmark": "bench", "model": "m", "state": "ended"})
    assert (facts(log).incomplete, facts(log).runs[2].unranked) == (1, "incomplete")


def test_a_run_whose_start_was_declared_waits_for_its_end():
    first, second, _ = made(3)
    mark = {"benchmark": "bench", "model": "m"}
    log = FoldLog({**declaration(), "items": 31})
    log.send({**mark, "run": day(0), "state": "started"}, *first[:20], *second[:20], *first[20:])
    assert facts(log).open == (day(0), day(1))
    log.send({**mark, "run": day(0), "state": "ended"}, {**mark, "run": day(1), "state": "cancelled"})
    assert [(run.items, run.unranked) for run in facts(log).runs] == [(30, None), (20, "cancelled")]
    log.send({**mark, "run": day(1), "state": "started"}, *second[20:])
    assert (facts(log).cancelled, facts(log).late, facts(log).repeated) == (1, 10, (day(1),))


def test_runs_that_close_against_their_dates_are_named():
    runs = made(4)
    log = FoldLog(declaration())
    for k in (0, 2, 1, 3):
        log.send(*runs[k])
    assert facts(log).out_of_order == (day(1),)
    assert [run.run for run in facts(log).runs] == [day(k) for k in (0, 2, 1, 3)]


@pytest.mark.parametrize("missing", ["ignore", "fail"])
def test_a_first_run_without_fresh_answers_is_named_and_sets_no_size(missing):
    runs = made(10)
    log = FoldLog({"declare": "bench", "drift": {"seed": "s", "missing": missing}})
    mark = {"benchmark": "bench", "model": "m"}
    log.send({**mark, "run": "2026-07-29", "state": "started"}, {**mark, "run": "2026-07-29", "state": "ended"})
    log.send(*({**each, "role": "anchor", "run": "2026-07-30"} for each in runs[0]))
    log.send(*({**each, "score": None, "run": "2026-07-31"} for each in runs[0]))
    log.send(*(each for run in runs for each in run), {"ended": "bench"})
    found = facts(log)
    assert [run.run for run in found.runs if run.unranked == "incomplete"] == ["2026-07-29", "2026-07-30", "2026-07-31"]
    assert (found.items, found.skipped, found.monitors[0].ranked, log.letters) == (30, 30, 10, [])
    (named,) = [note for note in otherwise(found) if "2026-07-29" in note]
    assert "2026-07-31" in named
    log.restart()
    assert facts(log) == found


def test_a_run_that_becomes_incomplete_is_no_size_for_the_others():
    runs = made(10)
    log = FoldLog({"declare": "bench", "drift": {"seed": "s"}})
    log.send(*(each for run in runs[:5] for each in run), *runs[5][:10], *(each for run in runs[6:] for each in run))
    assert [run.unranked for run in facts(log).runs] == [None] * 5 + ["incomplete"] + [None] * 3


def test_an_announced_change_begins_a_history_and_a_run_of_both_is_not_ranked():
    runs = made(6)
    log = FoldLog(declaration())
    log.send(*(each for run in runs[:3] for each in run), *runs[3][:10])
    log.send({"change": "m", "benchmark": "bench"})
    log.send(*runs[3][10:], *runs[4], *runs[5])
    assert [run.unranked for run in facts(log).runs] == [None, None, None, "changed", None, None]
    assert (facts(log).monitors[0].segment, facts(log).monitors[0].ranked) == (day(4), 2)


def test_an_announced_change_makes_an_alarm_history_at_once_and_after_a_restart():
    runs = made(40, drop_at=18, seed=1)
    log = FoldLog(declaration())
    log.send(*(each for run in runs[:30] for each in run))
    (alarm,) = facts(log).monitors[0].alarms
    log.send({"change": "m", "benchmark": "bench", "reason": "new prompt"})
    for kept, outcome in ((0, "short"), (10, "quiet")):
        log.send(*(each for run in runs[30 : 30 + kept] for each in run))
        for _ in range(2):
            (monitor,) = facts(log).monitors
            assert (facts(log).outcome, monitor.alarms, monitor.earlier[0].run) == (outcome, (), alarm.run)
            assert monitor.changed == (day(30) if kept else None)
            log.restart()
    assert [change.run for change in said(log)] == [alarm.run]


def test_a_sentinel_is_declared_before_its_first_run_and_for_good():
    run = made(1)[0]
    late = FoldLog(run[0], declaration())
    assert "drift" in late.letters[0].reason
    log = FoldLog(declaration())
    log.send(*run[:3], declaration(), declaration(seed="t"), {**declaration(seed="t"), "version": 2})
    assert [letter.field for letter in log.letters] == ["drift", "drift"]
    assert log.bench.sentinel.settings.seed == "s"
    assert all("begin a sentinel of another name" in letter.reason for letter in log.letters)
    clash = FoldLog({**declaration(), "goal": "best"})
    assert "goal" in clash.letters[0].reason


def test_what_is_no_run_of_a_sentinel_is_refused_by_name():
    log = FoldLog(declaration(monitors=2))
    first = made(1)[0][0]
    log.send(*({**first, "model": name} for name in ("a", "b", "c")))
    log.send({key: value for key, value in first.items() if key != "run"})
    log.send({**first, "model": "a", "run": [1]})
    log.send({"run": "r", "benchmark": "bench", "model": "a", "state": "ended"}, {"change": "z", "benchmark": "bench"})
    log.send({"run": "r", "benchmark": "bench", "model": "a", "state": "paused"})
    log.send(event("1", "m", 1, benchmark="other"), {"change": "m", "benchmark": "other"})
    assert [letter.field for letter in log.letters] == ["model", "run", "run", "run", "change", "state", "run"]
    assert [letter.found for letter in log.letters[1:3]] == ["nothing", "[1]"]
    assert "sentinel" in log.letters[-1].reason


def test_repeats_of_an_item_are_averaged():
    events = made(2)
    again = [[{**each, "repeat": 1, "score": 1 - each["score"]} for each in run] for run in events]
    log = FoldLog({**declaration(), "repeats": 2})
    log.send(*events[0], *again[0], *events[1])
    assert [run.mean for run in facts(log).runs] == [0.5]
    assert facts(log).open == (day(1),)


def test_runs_that_vary_as_a_whole_are_held_where_items_are_declared_independent():
    rng = np.random.default_rng(1)
    log = FoldLog(declaration(assume="independent-items", years=1000, runs_per_year=100_000))
    right = rng.beta(7, 3, ITEMS)
    for k, shock in enumerate(rng.normal(0, 0.3, 42)):
        log.send(*(event(f"q{i}", "m", int(rng.random() < p + shock), run=day(k)) for i, p in enumerate(right)))
    assert facts(log).outcome == "held"
    assert [change.kind for change in said(log)] == ["drift.held"]

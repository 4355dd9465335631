"""Sentinels over HTTP: sent in parts, read as facts and words, and announced changes."""

import pytest

from tests.served import Served
from tests.unit.engine.test_sentinel import ITEMS, declaration, made


@pytest.fixture
def served():
    with Served() as server:
        yield server


def test_runs_that_were_posted_are_read_with_words(served):
    runs = made(30, judge_at=10**9, drop_at=18, seed=3)
    assert served.post([declaration(judge="j", anchors=ITEMS)]).status == 200
    for run in runs:
        assert served.post(run).json["accepted"] == 2 * ITEMS
    page = served.get("drift?benchmark=bench").json
    (sentinel,) = page["report"]["sentinels"]
    assert sentinel["outcome"] == "worse"
    assert len(sentinel["runs"]) == 30
    assert sum(run["log_sum"] is None for run in sentinel["runs"]) <= 3  # the first run of each history
    assert page["words"][0]["sign"] == "▼"
    (change,) = served.get("changes?benchmark=bench&words=true").json["changes"]
    assert (change["kind"], change["model"], change["judge_moved"]) == ("drift.worse", "m", False)
    (summary,) = served.get("summaries").json
    assert (summary["sentinel"], summary["models"]) == (True, 0)


def test_a_change_is_announced_of_a_known_model(served):
    served.post([declaration()])
    run = made(1)[0]
    served.post(run)
    answer = served.post([{"change": "m", "benchmark": "bench"}, {"change": "z", "benchmark": "bench"}])
    assert "z has no run" in answer.text
    served.post([{**each, "run": "2026-09-01"} for each in run])
    assert served.get("drift?benchmark=bench").json["report"]["settings"]["changes"] == ["2026-09-01"]


def test_a_benchmark_that_is_no_sentinel_has_no_drift(served):
    served.post([{"benchmark": "other", "item_id": "1", "model": "m", "score": 1}])
    assert served.get("drift?benchmark=other").status == 404
    assert served.get("drift?benchmark=none").status == 404
    assert "sentinel" in served.post([{"change": "m", "benchmark": "other"}]).text


def test_the_answer_names_what_a_sentinel_refuses(served):
    declared = declaration(strata="weekday", monitors=2)
    good, other = made(1)[0][0], {"run": "2026-09-01", "benchmark": "bench", "model": "m"}
    named = [
        good,
        {**good, "run": "friday"},
        {key: value for key, value in good.items() if key != "run"},
        {**good, "model": "n"},
        {**good, "model": "third"},
        {**other, "state": "started"},
        {**other, "state": "ended"},
        {**other, "run": "monday", "state": "started"},
        {**other, "run": "2026-09-02", "state": "ended"},
        {"change": "z", "benchmark": "bench"},
    ]
    # Declared in the same request, then known: the answer is the same.
    for before in ([declared], []):
        answer = served.post([*before, *named]).json
        assert [each["line"] - len(before) for each in answer["rejected"]] == [2, 3, 5, 8, 9, 10]
        assert (answer["accepted"], answer["ended"]) == (2, 2)
        assert [each["field"] for each in answer["rejected"]] == ["run", "run", "model", "run", "run", "change"]
    assert "does not begin with a date" in answer["rejected"][0]["reason"]
    (report,) = [each for each in served.get("summaries").json if each["benchmark"] == "bench"]
    assert report["rejected"] == 0

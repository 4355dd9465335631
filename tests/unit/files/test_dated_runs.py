import pytest

from monitor.files.dated_runs import DatedRuns, RunFault, date_in, name_of
from schemas.records.events import BattleFields, EventFields
from schemas.records.packed import Segment


def segment(path, *events):
    return Segment(
        [], [EventFields("qa", item, model, score, **more) for item, model, score, more in events], [], 0, 0, path
    )


def test_runs_are_in_the_order_of_their_dates():
    runs = DatedRuns()
    for path in ("b/2026-08-02.csv", "a/2026-08-10.csv", "z_20260801.csv"):
        runs.add(segment(path, ("q1", "m", 1.0, {})))
    (of, ordered_by) = runs.sentinels()["qa", "m"]
    assert ([run.name for run in of], ordered_by) == (["2026-08-01", "2026-08-02", "2026-08-10"], "date")


def test_without_dates_runs_are_in_the_order_in_which_they_came():
    runs = DatedRuns()
    runs.add(segment("all.jsonl", ("q1", "m", 1.0, {"run": "second"}), ("q1", "m", 0.0, {"run": "first"})))
    (of, ordered_by) = runs.sentinels()["qa", "m"]
    assert ([run.name for run in of], ordered_by) == (["second", "first"], "appearance")


def test_the_field_names_a_run_before_the_file_does():
    runs = DatedRuns()
    runs.add(segment("2026-08-01.jsonl", ("q1", "m", 1.0, {"run": 7}), ("q1", "m", 0.0, {})))
    assert [run.name for run in runs.sentinels()["qa", "m"][0]] == ["7", "2026-08-01"]


def test_a_run_that_two_files_hold_is_refused_with_both_names():
    runs = DatedRuns()
    runs.add(segment("a/2026-08-01.csv", ("q1", "m", 1.0, {})))
    with pytest.raises(RunFault, match=r"b/2026-08-01\.csv.*a/2026-08-01\.csv"):
        runs.add(segment("b/2026-08-01.csv", ("q1", "m", 1.0, {})))


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\u202eb", "a" * 201])
def test_the_name_of_a_run_is_shown_and_so_a_name_like_others(name):
    with pytest.raises(RunFault, match=r"all\.jsonl: the name of its run "):
        DatedRuns().add(segment("all.jsonl", ("q1", "m", 1.0, {"run": name})))
    with pytest.raises(RunFault, match="the name of its run "):
        DatedRuns().add(segment(f"runs/{name}.jsonl", ("q1", "m", 1.0, {})))


def test_battles_are_no_runs():
    battle = BattleFields("arena", "p1", model_a="x", model_b="y", winner="a")
    with pytest.raises(RunFault, match=r"votes\.jsonl: arena holds battles"):
        DatedRuns().add(Segment([], [battle], [], 0, 0, "votes.jsonl"))


def test_two_files_may_hold_other_items_of_one_run():
    runs = DatedRuns()
    runs.add(segment("a/2026-08-01.csv", ("q1", "m", 1.0, {})))
    runs.add(segment("b/2026-08-01.csv", ("q2", "m", 0.0, {})))
    (run,) = runs.sentinels()["qa", "m"][0]
    assert run.means() == {"q1": 1.0, "q2": 0.0}


def test_repeats_are_averaged_anchors_kept_apart_and_repeated_scores_counted():
    runs = DatedRuns()
    runs.add(
        segment(
            "r1.jsonl",
            ("q1", "m", 1.0, {}),
            ("q1", "m", 0.0, {"repeat": 1}),
            ("q1", "m", 1.0, {"role": "anchor"}),
            ("q1", "m", 1.0, {}),
            ("q1", "m", 0.0, {}),
            ("q2", "m", None, {}),
        )
    )
    (run,) = runs.sentinels()["qa", "m"][0]
    assert (run.means(), run.means("anchor")) == ({"q1": 0.5}, {"q1": 1.0})
    assert (run.duplicates, run.conflicts, run.skipped) == (1, 1, 1)


def test_the_nearest_date_names_a_file(tmp_path):
    assert name_of(tmp_path / "2026-08-03" / "model" / "samples_2026-08-04T06-07-08.9.jsonl") == "2026-08-04 06:07:08"
    assert name_of(tmp_path / "2026-08-03" / "model" / "samples.jsonl") == "2026-08-03"
    assert name_of(tmp_path / "run.7.jsonl") == "run"
    assert date_in("0.20261399") is None

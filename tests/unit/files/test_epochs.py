"""Epochs that a command gives to events that carry none."""

import pytest

from monitor.files.epochs import EpochRecord, Epochs
from monitor.files.runs import ends_of_runs
from monitor.view.from_files.runs import newer_runs
from schemas.records.events import Ended, EventFields
from schemas.records.packed import Segment
from tests.commands import write
from tests.fold_log import FoldLog, event


def segment(path, *models, epoch=0):
    events = [EventFields("b", f"i{k}", model, 1.0, epoch=epoch) for k, model in enumerate(models)]
    return Segment([], events, [], 100, 9, path, raw=b"as they are")


def epochs(_rule, dated):
    return [event.epoch for event in dated.events]


def test_a_number_is_the_epoch_of_events_without_one():
    rule = Epochs(3)
    assert epochs(rule, rule(segment("x", "m", "n"))) == [3, 3]
    assert epochs(rule, rule(segment("x", "m", epoch=1))) == [1]
    assert rule(segment("x", "m")).raw is None


def test_next_makes_each_group_of_files_a_generation_of_its_models():
    place = {"old/a": 0, "old/b": 0, "new/a": 1, "newest/a": 2}
    rule = Epochs("next", group=place.get)
    assert epochs(rule, rule(segment("old/a", "m", "n"))) == [0, 0]
    assert epochs(rule, rule(segment("old/b", "m", "late"))) == [0, 0]  # more of the same run
    assert epochs(rule, rule(segment("new/a", "m", "m", "other"))) == [1, 1, 0]
    assert epochs(rule, rule(segment("newest/a", "m", "n", "other"))) == [2, 1, 1]


def test_next_comes_after_the_state_and_after_epochs_in_the_files():
    rule = Epochs("next", newest=lambda benchmark: {"m": 4} if benchmark == "b" else {}, group={"x": 0, "y": 1}.get)
    assert epochs(rule, rule(segment("x", "m", "n"))) == [5, 0]
    assert epochs(rule, rule(segment("x", "m", "n"))) == [5, 0]
    assert epochs(rule, rule(segment("x", "m", "late", epoch=8))) == [8, 8]
    assert epochs(rule, rule(segment("y", "m", "n", "late"))) == [9, 1, 9]


def test_a_file_keeps_its_generation_across_restarts(tmp_path):
    """The models of a file, and the files of a command, are one generation even if the command stops halfway."""
    path, newest = tmp_path / "epochs.json", {"m": 0, "n": 0}
    rule = Epochs("next", newest=lambda _: dict(newest), record=EpochRecord(path))
    rule.begin(["x", "y"])
    assert epochs(rule, rule(segment("x", "m"))) == [1]
    newest["m"] = 1  # stored; then the command is stopped
    for flag in ("next", None, "next"):
        rule = Epochs(flag, newest=lambda _: dict(newest), record=EpochRecord(path))
        rule.begin(["x", "y"])
        assert epochs(rule, rule(segment("x", "n", "m"))) == [1, 1]
        assert epochs(rule, rule(segment("y", "m", "n", "new"))) == [1, 1, 0]
    rule = Epochs("next", newest=lambda _: dict(newest), record=EpochRecord(path))
    rule.begin(["x", "z"])
    assert epochs(rule, rule(segment("z", "m", "n"))) == [2, 1], "a file that no command has read is a new generation"
    assert epochs(rule, rule(segment("x", "m", "n"), rewritten=True)) == [2, 1], "so is a file with new contents"
    assert epochs(rule, rule(segment("x", "m", "n"), rewritten=True)) == [2, 1], "once a command"
    assert epochs(rule, rule(segment("y", "m", "n"))) == [1, 1]


def test_each_epoch_of_a_file_has_a_place_of_its_own(tmp_path):
    path = tmp_path / "epochs.json"

    def place(epoch):
        rule = Epochs(epoch, record=EpochRecord(path))
        rule.begin(["x"])
        return rule.place("x")

    assert [place(epoch) for epoch in (None, 2, None, "next", None, 3, 0, None)] == [
        "x",
        "x (epoch 2)",
        "x (epoch 2)",
        "x (epoch next)",
        "x (epoch next)",
        "x (epoch 3)",
        "x",
        "x",
    ]
    assert Epochs(None, record=EpochRecord(path, forget=True)).place("x") == "x"


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"version": 2}', '{"version": 1, "files": {"x": {"generation": 1}}, "generations": [{}]}'],
)
def test_a_damaged_record_of_epochs_is_named(tmp_path, text):
    path = tmp_path / "epochs.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"epochs.json is not a record of the epochs of files; delete it"):
        EpochRecord(path)


def test_the_ends_of_runs_name_each_run_once(tmp_path):
    lines = [
        {"benchmark": name, "item_id": f"i{k}", "model": model, "score": 1, "epoch": epoch}
        for k in range(2)
        for name, model, epoch in (("b", "m", 0), ("b", "m", 2), ("c", "n", 0))
    ]
    files = [write(tmp_path / name, lines) for name in ("x.jsonl", "y.jsonl")]
    ends = [Ended(ended="b", model="m"), Ended(ended="b", model="m", epoch=2), Ended(ended="c", model="n")]
    assert ends_of_runs(files) == ends
    assert ends_of_runs(files, epochs=Epochs(2)) == [ends[1], Ended(ended="c", model="n", epoch=2)]


def test_runs_of_a_newer_epoch_inherit_from_the_one_before(tmp_path):
    records = [{**event(0, model, 1), "epoch": epoch} for model, epoch in (("m", 5), ("n", 0), ("m", 0), ("m", 2))]
    path = write(tmp_path / "x.jsonl", records)
    ends = [(end.model, end.epoch, end.base) for end in ends_of_runs([path], inherit=True)]
    assert ends == [("m", 5, 4), ("n", None, None), ("m", None, None), ("m", 2, 1)]
    log = FoldLog(*records)
    newer = newer_runs(log.partition.benchmarks)
    assert [(end.ended, end.model, end.epoch, end.base) for end in newer] == [
        ("bench", "m", 2, 0),
        ("bench", "m", 5, 2),
    ]
    log.send(*(end.model_dump(exclude_none=True) for end in newer))
    assert not log.letters

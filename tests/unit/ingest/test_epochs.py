"""Epochs that a command gives to events that carry none."""

import pytest

from monitor.ingest.epochs import Epochs
from schemas.events import EventFields
from schemas.packed import Segment


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


@pytest.mark.parametrize(("start", "expected"), [(0, [5, 0]), (70, [4, 0])])
def test_next_comes_after_the_state_unless_the_file_was_read_before(start, expected):
    rule = Epochs("next", newest=lambda benchmark: {"m": 4} if benchmark == "b" else {})
    assert epochs(rule, rule(segment("x", "m", "n"), start)) == expected
    # What follows in the file belongs to the same run.
    assert epochs(rule, rule(segment("x", "m", "n"), 100)) == expected

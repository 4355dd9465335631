"""Aliases of models through the fold: declared before and after the first score, refused, and restored."""

import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from tests.fold_log import FoldLog, counts_of, event

DECLARED = {"declare": "bench", "items": 4, "aliases": {"new": "old"}}


def test_the_events_of_an_alias_count_as_those_of_its_model():
    log = FoldLog(DECLARED)
    log.send(event(1, "new", 1), event(1, "x", 0), event(2, "old", 1), event(2, "x", 0))
    log.send(event(1, "old", 1), event(2, "new", 0), event(3, "new", 1, epoch=1))
    assert [(c.model, c.epoch) for c in log.bench.contestants] == [("old", 0), ("x", 0), ("old", 1)]
    assert counts_of(log.bench, "old", "x") == (2, 2, 0)
    assert (log.bench.counters["duplicates"], log.bench.counters["conflicts"]) == (1, 1)
    log.restart()
    log.send(event(4, "new", 1), event(4, "x", 0))
    assert counts_of(log.bench, "old", "x") == (3, 3, 0)
    assert {m.model: m.aliases for m in benchmark_report(board_view(log.bench)).models} == {"old": ["new"], "x": []}


def test_an_alias_may_be_added_later_and_stays():
    log = FoldLog({"declare": "bench", "items": 4}, event(1, "old", 1), event(1, "x", 0))
    log.send(DECLARED, event(2, "new", 1), event(2, "x", 0), {"declare": "bench", "items": 4}, event(3, "new", 0))
    assert log.letters == []
    assert [c.model for c in log.bench.contestants] == ["old", "x"]
    log.restart()
    assert log.bench.spec.aliases == {"new": "old"}


@pytest.mark.parametrize("aliases", [{"new": "y"}, {"x": "old"}, {"old": "y"}, {"z": "new"}])
def test_an_alias_that_comes_too_late_or_of_an_alias_is_refused(aliases):
    log = FoldLog(DECLARED, event(1, "new", 1), event(1, "x", 0))
    log.send({"declare": "bench", "items": 4, "aliases": aliases}, event(2, "new", 1))
    (letter,) = log.letters
    assert letter.field == "aliases"
    assert log.bench.spec.aliases == {"new": "old"}
    assert [c.model for c in log.bench.contestants] == ["old", "x"]

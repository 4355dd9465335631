"""Scores that came again, against plain dictionaries: counts by model, and each conflict with its two scores."""

import random
from collections import Counter
from unittest.mock import patch

import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.items.conflict_rows import conflict_rows, listed_conflicts
from tests.fold_log import FoldLog, event


def stream(seed, kinds=(0, 1, None, 0.5)):
    """Events of few keys, so that most come again, with repeats, epochs and skipped items."""
    rng = random.Random(seed)
    return [
        event(
            rng.randrange(9), f"m{rng.randrange(4)}", rng.choice(kinds), repeat=rng.randrange(2), epoch=rng.randrange(2)
        )
        for _ in range(900)
    ]


def by_dictionary(events):
    """Duplicates and conflicts by model, and the conflicts: the first score of a key counts, but a score fills a null."""
    first, duplicates, conflicts, listed = {}, Counter(), Counter(), []
    for e in events:
        key = e["item_id"], e["repeat"], e["model"], e["epoch"]
        if key not in first or (first[key] is None and e["score"] is not None):
            first[key] = e["score"]
        elif first[key] == e["score"]:
            duplicates[e["model"]] += 1
        else:
            conflicts[e["model"]] += 1
            listed.append((*key, first[key], e["score"]))
    return duplicates, conflicts, listed


def listed_in(benchmark, **chosen):
    return [
        (c.item_id, c.repeat, c.model, c.epoch, c.old_score, c.new_score)
        for c in conflict_rows(board_view(benchmark), **chosen)
    ]


@pytest.mark.parametrize("size", [1_000, 137, 30])
@pytest.mark.parametrize("restart", [False, True])
def test_conflicts_are_those_of_a_dictionary(size, restart):
    events = stream(5)
    duplicates, conflicts, listed = by_dictionary(events)
    log = FoldLog({"declare": "bench", "scores": "graded", "repeats": 2})
    for start in range(0, len(events), size):
        log.send(*events[start : start + size])
        if restart:
            log.restart()
    report = benchmark_report(board_view(log.bench))
    assert report.conflicts_by_model == conflicts
    assert report.duplicates_by_model == duplicates
    assert list(report.conflicts_by_model.values()) == sorted(conflicts.values(), reverse=True)
    assert (report.conflicts, report.duplicates) == (conflicts.total(), duplicates.total())
    assert listed_in(log.bench) == listed
    assert len(listed) > 200


def test_conflicts_are_listed_by_model_and_in_pages():
    events = stream(6)
    _, conflicts, listed = by_dictionary(events)
    log = FoldLog({"declare": "bench", "scores": "graded", "repeats": 2})
    log.send(*events)
    of_model = [row for row in listed if row[2] == "m1"]
    assert listed_conflicts(board_view(log.bench), "m1") == conflicts["m1"] == len(of_model)
    pages = [listed_in(log.bench, model="m1", start=k, stop=k + 7) for k in range(0, len(of_model), 7)]
    assert [row for page in pages for row in page] == of_model
    assert listed_in(log.bench, model="nobody") == []


@pytest.mark.parametrize("restart", [False, True])
def test_beyond_the_limit_conflicts_are_only_counted(restart):
    events = stream(7)
    _, conflicts, listed = by_dictionary(events)
    with patch("monitor.engine.state.changes.MOST_LISTED", 50):
        log = FoldLog({"declare": "bench", "scores": "graded", "repeats": 2})
        for start in range(0, len(events), 40):
            log.send(*events[start : start + 40])
            if restart:
                log.restart()
    assert listed_in(log.bench) == listed[:50]
    assert benchmark_report(board_view(log.bench)).conflicts_by_model == conflicts


def test_the_report_names_the_models_with_most_conflicts_and_the_remedy():
    from monitor.words.header import conflicts

    log = FoldLog()
    log.send(*(event(item, model, 1) for item in range(9) for model in "abcde"))
    assert conflicts(benchmark_report(board_view(log.bench))) is None
    log.send(*(event(item, model, 0) for k, model in enumerate("abcde") for item in range(k)))
    text = conflicts(benchmark_report(board_view(log.bench)))
    assert text.startswith("10 scores ")
    assert ": e (4), d (3), c (2) and 1 more model. " in text

"""The year of `rankwatch demo --drift`: its data, the limits next to it, and the numbers that its end quotes."""

import io
import json
import os

import numpy as np
import pytest
from rich.console import Console

from monitor.engine.kinds.runs import ModelRuns
from monitor.paper.demo import top_ten
from monitor.paper.demo.year import (
    CHANGE,
    DAYS,
    ITEMS,
    MODEL,
    SENTINEL,
    VERSIONS,
    WINDOWS,
    below_limits,
    demo_year,
    first_days,
)
from monitor.paper.demo.year_story import TYPICAL, alarms_of_limits, alarms_of_report, calls_of_windows, render_year
from monitor.view.drift import report_of, shown
from schemas.records.decode import decode_block, decode_record
from schemas.results.drift import DriftReport
from tests.fold_log import FoldLog


def replay(year, days=DAYS):
    log = FoldLog(year.declaration)
    log.send(*(event for run in year.runs[:days] for event in run))
    return report_of(log[decode_record(year.declaration).declare].sentinel)


def test_the_events_are_the_scores():
    year = demo_year()
    events = decode_block(b"\n".join(event for run in year.runs for event in run) + b"\n")
    assert len(events) == DAYS * ITEMS
    assert {event.model for event in events} == {MODEL}
    assert [event.run for event in events[::ITEMS]] == list(year.days) == sorted(set(year.days))
    assert np.array_equal([event.score for event in events], year.scores.ravel())


def test_a_seed_decides_the_year_and_null_changes_nothing_but_the_version():
    year, again, other, null = demo_year(), demo_year(), demo_year(seed=1), demo_year(null=True)
    assert year.runs == again.runs != other.runs
    assert np.array_equal(year.scores[:CHANGE], null.scores[:CHANGE])
    assert (year.change, null.change) == (CHANGE, None)
    assert abs(null.means[CHANGE:].mean() - null.means[:CHANGE].mean()) < 0.01


def test_the_versions_are_two_of_one_model_and_keep_the_printed_levels():
    assert all(MODEL in name.lower() for name in VERSIONS)
    assert set(VERSIONS) <= set(top_ten.MODELS)
    old, new = zip(*((y.means[:CHANGE].mean(), y.means[CHANGE:].mean()) for y in map(year_of, range(8))), strict=True)
    # The more frequent answer is the recorded one, so levels move towards a half, and the gap of 3.01 points shrinks.
    assert 0.66 < np.mean(old) < 0.7303
    assert 0.01 < np.mean(old) - np.mean(new) < 0.0301


def year_of(seed):
    return demo_year(seed=seed)


def test_twice_answered_items_differ_as_often_as_it_says():
    scores = demo_year(null=True).scores
    assert abs((scores[1:] != scores[:-1]).mean() - 0.28) < 0.04


def test_limits_are_binomial_ones_around_the_baseline():
    rng = np.random.default_rng(0)
    means = rng.binomial(200, 0.7, 90) / 200
    base = means[:30].mean()
    for window in WINDOWS:
        expected = [
            day >= 29 + window
            and means[day - window + 1 : day + 1].mean() < base - 1.96 * (base * (1 - base) / 200 / window) ** 0.5
            for day in range(90)
        ]
        assert below_limits(means, 200, window).tolist() == expected


def test_the_end_counts_what_each_way_calls():
    year = demo_year()
    report = replay(year)
    console = Console(file=io.StringIO(), width=100, highlight=False, color_system=None)
    render_year(year, report, console)
    rows = {line.split("  ")[0]: line.split("  ")[1:] for line in console.file.getvalue().splitlines()}
    for way, alarms in (alarms_of_limits(year) | {"rankwatch": alarms_of_report(year, report)}).items():
        cells = [cell for cell in rows[way] if cell.strip()]
        quiet = alarms[:CHANGE]
        assert [int(cell) for cell in cells[:2]] == [first_days(quiet).sum(), quiet.sum()]
        assert int(cells[2].split()[0]) == np.flatnonzero(alarms[CHANGE:])[0] + 1
    windows = [*alarms_of_limits(year).values()][-1]
    assert [*calls_of_windows(year)] == np.flatnonzero(first_days(windows)).tolist()
    assert json.loads(year.declaration)["drift"]["years"] == 5


@pytest.mark.slow
def test_what_years_like_this_bring():
    """The figures that the end quotes, over independent seeds."""
    count = 60 if os.environ.get("RANKWATCH_SLOW") == "1" else 16
    false, found = [], []
    for seed in range(1000, 1000 + count):
        year = demo_year(seed=seed)
        runs = ModelRuns(SENTINEL, MODEL, decode_record(year.declaration).drift.settings(ITEMS))
        for day, row in zip(year.days[: CHANGE + 60], year.scores.tolist(), strict=False):
            runs.enter(day, {f"q{item + 1:03d}": score for item, score in enumerate(row)}, {})
        report = DriftReport(settings=runs.settings, sentinels=(shown(runs),))
        ways = [[*alarms_of_limits(year).values()][-1], alarms_of_report(year, report)]
        false.append([first_days(alarms[:CHANGE]).sum() for alarms in ways])
        found.append([np.append(np.flatnonzero(alarms[CHANGE:]) + 1, DAYS)[0] for alarms in ways])
    spread = np.std(false, axis=0, ddof=1) / count**0.5
    for way, (mean, expected) in enumerate(zip(np.mean(false, axis=0), TYPICAL.false, strict=True)):
        assert abs(mean - expected) <= 4 * max(spread[way], (expected / count) ** 0.5)
    # The median lies among the order statistics that hold it in all but 1 of 10,000 samples.
    reach = 2 * count**0.5
    for column, expected in zip(np.sort(found, axis=0).T, TYPICAL.found, strict=True):
        low, high = int(max(0, count / 2 - reach)), int(min(count - 1, count / 2 + reach))
        assert column[low] <= expected <= column[high]

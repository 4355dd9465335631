"""Monitors of sentinels: what they claim, and how often while nothing changes."""

import numpy as np
import pytest

from monitor.render.drift import findings
from monitor.view.drift import sentinel_of, with_found
from monitor.words.drift import details, headline
from schemas.records.drift import DriftSettings
from schemas.results.drift import DriftOutcome, DriftReport

SETTINGS = DriftSettings(seed="s")


class Made:
    duplicates = conflicts = skipped = 0

    def __init__(self, name, fresh, anchors=None):
        self.name, self._fresh, self._anchors = name, fresh, anchors or {}

    def means(self, role=None):
        return self._anchors if role == "anchor" else self._fresh


def runs_of(levels, *, items=40, seed=0, judge=None):
    """Return runs of items, each right with its own chance, lowered by a level a run; `judge` lowers frozen answers as well."""
    rng = np.random.default_rng(seed)
    right = rng.beta(7, 3, items)
    made = []
    for t, level in enumerate(levels):
        shift = 0.0 if judge is None else judge[t]
        fresh = (rng.random(items) < np.clip(right - level - shift, 0, 1)).astype(float)
        frozen = None if judge is None else (rng.random(items) < np.clip(right - shift, 0, 1)).astype(float)
        named = [
            dict(zip(map(str, range(items)), map(float, each), strict=True))
            for each in (fresh, frozen)
            if each is not None
        ]
        made.append(Made(f"r{t:03}", *named))
    return made


def test_a_drop_is_found_with_its_change_point_and_size():
    sentinel = sentinel_of("qa", "m", runs_of([0.0] * 40 + [0.25] * 20, seed=1), SETTINGS)
    (monitor,) = sentinel.monitors
    alarm = monitor.alarms[0]
    assert sentinel.outcome == DriftOutcome.WORSE
    assert alarm.after_run < "r041" <= max(alarm.last_start, "r041")
    assert alarm.low < 0.25 < alarm.high + 0.1
    assert alarm.before - alarm.since == pytest.approx(0.25, abs=0.08)
    assert alarm.runs_since >= 15
    assert len(alarm.items) == 10
    assert all(item.before > item.since for item in alarm.items)


def test_an_alarm_depends_on_no_later_run():
    runs = runs_of([0.0] * 40 + [0.25] * 20, seed=2)
    whole = sentinel_of("qa", "m", runs, SETTINGS).monitors[0].alarms[0]
    until = [run.name for run in runs].index(whole.run) + 1
    cut = sentinel_of("qa", "m", runs[:until], SETTINGS).monitors[0].alarms[0]
    assert (cut.run, cut.start, cut.log_sum) == (whole.run, whole.start, whole.log_sum)
    assert not sentinel_of("qa", "m", runs[: until - 1], SETTINGS).monitors[0].alarms


def test_an_announced_change_begins_a_history_of_its_own():
    runs = runs_of([0.0] * 40 + [0.25] * 20, seed=1)
    changed = sentinel_of("qa", "m", runs, DriftSettings(seed="s", changes=("r040",)))
    assert changed.outcome == DriftOutcome.QUIET
    assert (changed.monitors[0].segment, changed.monitors[0].ranked) == ("r040", 20)


def test_an_alarm_before_an_announced_change_is_history():
    runs = runs_of([0.0] * 40 + [0.25] * 20, seed=1)
    alarmed = sentinel_of("qa", "m", runs, SETTINGS)
    (alarm,) = alarmed.monitors[0].alarms
    for first, outcome, code in (("r050", DriftOutcome.QUIET, 0), ("r055", DriftOutcome.SHORT, 3)):
        settings = DriftSettings(seed="s", changes=(first,))
        since = sentinel_of("qa", "m", runs, settings)
        (monitor,) = since.monitors
        assert (since.outcome, DriftReport(settings=settings, sentinels=(since,)).exit_code) == (outcome, code)
        assert (monitor.alarms, monitor.changed, monitor.segment) == ((), first, first)
        assert [each.run for each in monitor.earlier] == [alarm.run]
        assert "worse" not in headline(since)
        assert list(details(since)) == [("earlier", f"{monitor.earlier[0].start} (lower)")]
        report = "\n".join(findings(DriftReport(settings=settings, sentinels=(since,))))
        assert alarm.start in report


def test_an_alarm_after_an_announced_change_names_the_one_before_it():
    runs = runs_of([0.0] * 40 + [0.25] * 40 + [0.6] * 20, seed=1)
    found = sentinel_of("qa", "m", runs, DriftSettings(seed="s", changes=("r060",)))
    (monitor,) = found.monitors
    assert found.outcome == DriftOutcome.WORSE
    assert monitor.earlier[-1].run < "r060" <= monitor.alarms[0].start
    assert dict(details(found))["earlier"].startswith(f"{monitor.earlier[0].start} (lower)")


def test_a_judge_that_moved_before_an_announced_change_is_history():
    runs = runs_of([0.0] * 70, judge=[0.0] * 40 + [0.25] * 30, seed=4)
    found = sentinel_of("qa", "m", runs, DriftSettings(seed="s", changes=("r055",)))
    assert found.outcome == DriftOutcome.QUIET
    assert "judge" not in headline(found).lower()
    assert dict(details(found))["earlier"].endswith("(judge, lower)")


def test_a_rise_is_watched_only_on_request():
    runs = runs_of([0.25] * 40 + [0.0] * 30, seed=3)
    assert sentinel_of("qa", "m", runs, SETTINGS).outcome == DriftOutcome.QUIET
    assert sentinel_of("qa", "m", runs, DriftSettings(seed="s", both=True)).outcome == DriftOutcome.BETTER


def test_frozen_answers_tell_a_judge_from_a_model():
    steady, moved = [0.0] * 70, [0.0] * 40 + [0.25] * 30
    assert sentinel_of("qa", "m", runs_of(steady, judge=moved, seed=4), SETTINGS).outcome == DriftOutcome.JUDGE
    assert sentinel_of("qa", "m", runs_of(moved, judge=steady, seed=5), SETTINGS).outcome == DriftOutcome.WORSE
    assert sentinel_of("qa", "m", runs_of(steady, judge=steady, seed=6), SETTINGS).outcome == DriftOutcome.QUIET


def test_a_run_with_too_few_items_is_counted_and_not_ranked():
    runs = runs_of([0.0] * 20, seed=7)
    runs[10] = Made("r010", {"0": 0.0, "1": 0.0})
    sentinel = sentinel_of("qa", "m", runs, SETTINGS)
    assert (sentinel.incomplete, sentinel.runs[10].ranked, sentinel.monitors[0].ranked) == (1, False, 19)


def test_a_run_of_an_anchored_sentinel_without_frozen_answers_is_not_ranked():
    runs = runs_of([0.0] * 20, judge=[0.0] * 20, seed=7)
    runs[10] = Made("r010", runs[10].means())
    sentinel = sentinel_of("qa", "m", runs, SETTINGS)
    assert [monitor.ranked for monitor in sentinel.monitors] == [19, 19]


def test_items_that_few_runs_hold_enter_no_score():
    runs = runs_of([0.0] * 20, seed=8)
    runs[19] = Made("r019", runs[19].means() | {"new": 0.0})
    assert sentinel_of("qa", "m", runs, SETTINGS).unused_items == 1


def test_missing_items_may_count_as_failed():
    runs = runs_of([0.0] * 60, items=100, seed=9)
    lost = [
        Made(run.name, {i: s for i, s in run.means().items() if k < 45 or int(i) % 8}) for k, run in enumerate(runs)
    ]
    assert sentinel_of("qa", "m", lost, SETTINGS).outcome == DriftOutcome.QUIET
    assert sentinel_of("qa", "m", lost, DriftSettings(seed="s", missing="fail")).outcome == DriftOutcome.WORSE


@pytest.mark.parametrize("missing", ["ignore", "fail"])
def test_items_that_come_later_change_no_earlier_p_value(missing):
    runs = runs_of([0.0] * 30, seed=11)
    later = [Made(run.name, run.means() | ({"new": 1.0} if k >= 20 else {})) for k, run in enumerate(runs)]
    settings = DriftSettings(seed="s", missing=missing)
    plain, grown = (sentinel_of("qa", "m", each, settings).runs for each in (runs, later))
    assert [run.p for run in grown] == [run.p for run in plain]


def test_shocks_of_whole_runs_hold_independent_items():
    rng = np.random.default_rng(1)
    runs = runs_of(rng.normal(0, 0.15, 45), items=100, seed=10)
    assert (
        sentinel_of("qa", "m", runs, DriftSettings(seed="s", assume="independent-items")).outcome == DriftOutcome.HELD
    )


def test_few_runs_are_too_little_history():
    sentinel = sentinel_of("qa", "m", runs_of([0.0] * 5), SETTINGS)
    assert sentinel.outcome == DriftOutcome.SHORT
    assert DriftReport(settings=SETTINGS, sentinels=(sentinel,)).exit_code == 3


def test_quiet_names_the_drop_that_would_have_been_found():
    sentinel = sentinel_of("qa", "m", runs_of([0.0] * 60, items=200), SETTINGS)
    found = with_found(DriftReport(settings=SETTINGS, sentinels=(sentinel,))).sentinels[0].monitors[0].found
    assert [each.drop for each in found] == [0.08, 0.04, 0.02]
    medians = [each.median or np.inf for each in found]
    assert medians == sorted(medians)
    assert medians[0] < 15


@pytest.mark.parametrize("more", [{}, {"missing": "fail"}, {"both": True}, {"ever": 0.05}])
def test_the_p_values_of_quiet_runs_are_uniform(more):
    rng = np.random.default_rng(3)
    p = []
    for k in range(12):
        runs = runs_of([0.0] * 40, items=30, seed=100 + k)
        kept = [
            Made(run.name, {i: s for i, s in run.means().items() if rng.random() < (0.95 if s else 0.85)})
            for run in runs
        ]
        p += [run.p for run in sentinel_of("qa", f"m{k}", kept, DriftSettings(seed="s", min_coverage=0.5, **more)).runs]
    assert abs(np.mean(np.array(p) <= 0.1) - 0.1) < 4 * (0.09 / len(p)) ** 0.5
    assert abs(np.mean(p) - 0.5) < 4 * (1 / 12 / len(p)) ** 0.5

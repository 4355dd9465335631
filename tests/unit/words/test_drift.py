"""How far a model moved, in words: an interval that reaches below zero has no lower limit."""

import re

import pytest

from monitor.render.drift import findings
from monitor.view.drift import shown
from monitor.words.drift import change_sentence, details, headline
from monitor.words.notifications import drifted
from schemas.results.changes import DriftChange
from schemas.results.drift import DriftAlarm, DriftReport
from tests.fold_log import FoldLog
from tests.unit.engine.test_sentinel import declaration, made

ALARM = {
    "run": "2026-11-13", "start": "2026-11-02", "after_run": "2026-11-01", "last_start": "2026-11-06",
    "before": 0.714, "since": 0.672, "runs_since": 12, "log_sum": 9.2, "log_limit": 7.5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("side", "low", "high", "ending"),
    [
        ("worse", 0.022, 0.066, "lower by 2.2 to 6.6 points"),
        ("better", 0.022, 0.066, "higher by 2.2 to 6.6 points"),
        ("worse", -0.004, 0.058, "lower by at most 5.8 points, with no lower limit yet"),
        ("worse", -0.03, -0.01, "lower by nothing any more: 1.0 to 3.0 points higher"),
    ],
)
def test_a_size_below_zero_is_no_size(side, low, high, ending):
    sentence = change_sentence(
        "support-qa", "gpt-x", f"drift.{side}", DriftAlarm(side=side, low=low, high=high, **ALARM)
    )
    assert sentence.endswith(f"71.4 -> 67.2 since 2026-11-02, {ending}")


def test_an_alarm_is_attributed_with_the_scores_of_the_frozen_answers():
    for steady, label, words in (
        (10**9, "judge", r"as before: \d\d\.\d on its 30 frozen answers, \d\d\.\d since"),
        (20, "model", "no alarm once the judge's own movement is removed"),
    ):
        log = FoldLog(declaration(judge="j", anchors=30))
        moved = {"drop_at": 20} if steady > 99 else {}
        log.send(*(each for run in made(30, judge_at=steady, seed=3, **moved) for each in run))
        found = shown(log.bench.sentinel.models["m"])
        assert re.fullmatch(words, dict(details(found))[label])
        chart = "\n".join(findings(DriftReport(settings=log.bench.sentinel.settings, sentinels=(found,))))
        assert ("(frozen answers)" in chart) == (label == "model") == ("Frozen answers that fell most" in chart)


def test_a_notification_names_the_command_that_announces_the_change():
    log = FoldLog(declaration())
    log.send(*(each for run in made(30, drop_at=18, seed=1) for each in run))
    (change,) = [each for each in log.bench.changes.values() if isinstance(each, DriftChange)]
    title, lines = drifted(change, None)
    assert title == f"{change.sentence}."
    assert lines[-1] == "Was it you? Announce it: rankwatch drift change --benchmark=bench -- m"
    announced = drifted(change, "https://monitor.example:9000")[1][-1]
    assert announced.endswith("rankwatch drift change --server https://monitor.example:9000 --benchmark=bench -- m")


def test_a_model_that_is_back_is_said_to_be_back_and_one_that_stays_low_is_not():
    low, level = made(60, drop_at=18, seed=1), made(60, seed=1)
    said = {}
    for name, runs in {"back": low[:26] + level[26:], "low": low, "soon": low[:26] + level[26:32]}.items():
        log = FoldLog(declaration())
        log.send(*(each for run in runs for each in run))
        sentinel = shown(log.bench.sentinel.models["m"])
        said[name] = headline(sentinel), dict(details(sentinel))
    text, lines = said["back"]
    pattern = r"m had got worse and is back: [\d.]+ points before 2026-08-19, [\d.]+ in the last 8 runs\."
    assert re.fullmatch(pattern, text)
    assert "lower by" not in lines
    for name in ("low", "soon"):
        text, lines = said[name]
        assert text.startswith("m has got worse: ")
        assert "lower by" in lines

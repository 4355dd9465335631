"""Sentinels through the monitors of the engine while something moves: who is said to have moved, how soon, and what an attack changes.

A run takes a few worlds of some cells; RANKWATCH_SLOW=1 takes 100 of every cell. Settings: 30 runs before the change, items with success
probabilities Beta(1.4, 0.6), one false alarm in 1,825 runs.
"""

import os

import numpy as np
import pytest

from monitor.engine.kinds.runs import ModelRuns
from monitor.render.drift import markdown
from monitor.view.drift import report_of, shown
from monitor.words.drift import assumption, otherwise
from schemas.records.drift import DriftSettings
from schemas.results.drift import DriftReport
from tests.fold_log import FoldLog, event

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
WORLDS = 100 if SLOW else 8
HISTORY, AFTER = 30, 60


def lowered(chance, drop):
    """Chances whose logits are lower by the amount that lowers their mean by `drop`."""
    logits = np.log(chance) - np.log1p(-chance)
    low, high = 0.0, 40.0
    for _ in range(60):
        shift = (low + high) / 2
        low, high = (shift, high) if (chance - 1 / (1 + np.exp(shift - logits))).mean() < drop else (low, shift)
    return 1 / (1 + np.exp(low - logits)) if drop else chance


# --- the judge moved, not the model -------------------------------------------------------------------------------------------------------

RIGHT, WRONG = 0.95, 0.10
"""How often the judge passes a right and a wrong answer."""

CHANGES = {
    # of the judge on fresh and on frozen answers, and of the model, in points of the score
    "nothing": (0, 0, 0),
    "judge": (0.05, 0.05, 0),
    "model": (0, 0, 0.05),
    "both": (0.05, 0.05, 0.05),
    "masked": (-0.03, -0.03, 0.05),
    "unlike": (0.05, 0.02, 0),
}
SHARES = {
    # said of 100 worlds: neither, the judge, the model, both
    (100, 30): ((98, 2, 0, 0), (3, 97, 0, 0), (29, 0, 71, 0), (0, 30, 2, 68), (17, 8, 20, 55), (47, 26, 21, 6)),
    (100, 100): ((94, 4, 2, 0), (1, 98, 0, 1), (10, 1, 89, 0), (0, 13, 1, 86), (0, 12, 1, 87), (6, 62, 2, 30)),
    (300, 100): ((95, 3, 2, 0), (0, 100, 0, 0), (0, 0, 98, 2), (0, 0, 2, 98), (0, 0, 0, 100), (0, 13, 9, 78)),
    (300, 300): ((99, 1, 0, 0), (1, 96, 0, 3), (1, 0, 97, 2), (0, 0, 1, 99), (0, 0, 0, 100), (0, 10, 0, 90)),
}
"""Statistics, section 16."""


def judged(rng, answers, right):
    return (rng.random(answers.size) < np.where(answers, right, WRONG)).astype(float)


def said_of(items, anchors, change, seed):
    """Which monitors alarmed after the change: 1 the judge's, 2 the model's, 3 both."""
    rng = np.random.default_rng([16, items, anchors, list(CHANGES).index(change), seed])
    fresh_moves, frozen_moves, drop = CHANGES[change]
    chance = rng.beta(1.4, 0.6, items).clip(1e-6, 1 - 1e-6)
    later, frozen = lowered(chance, drop / (RIGHT - WRONG)), rng.random(anchors) < chance[:anchors]
    watched = ModelRuns("bench", "m", DriftSettings(seed=str(seed), judge="j"))
    for run in range(HISTORY + AFTER):
        new = run >= HISTORY
        fresh = judged(rng, rng.random(items) < (later if new else chance), RIGHT - new * fresh_moves / chance.mean())
        again = judged(rng, frozen, RIGHT - new * frozen_moves / frozen.mean())
        watched.enter(f"r{run:03}", named(fresh), named(again))
    late = {monitor.of: any(alarm.place >= HISTORY for alarm in monitor.alarms) for monitor in watched.monitors}
    return late["judge"] + 2 * late["model"]


def named(scores):
    return {f"q{k}": float(score) for k, score in enumerate(scores)}


CELLS = list(SHARES) if SLOW else [(100, 100)]


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.parametrize("change", CHANGES)
def test_who_is_said_to_have_moved(cell, change):
    said = np.bincount([said_of(*cell, change, seed) for seed in range(WORLDS)], minlength=4)[:4] / WORLDS
    print(f"{cell} {change}: {' '.join(f'{share:.2f}' for share in said)}")
    for share, percent in zip(said, SHARES[cell][list(CHANGES).index(change)], strict=True):
        expected = percent / 100
        # Both are simulated, the expected one with 100 worlds.
        p = np.clip(expected, 0.03, 0.97)
        assert abs(share - expected) < 4 * (p * (1 - p) * (1 / WORLDS + 1 / 100)) ** 0.5


def test_without_frozen_answers_the_model_is_blamed_for_its_judge():
    rng = np.random.default_rng(7)
    chance = rng.beta(1.4, 0.6, 300)
    watched = ModelRuns("bench", "m", DriftSettings(seed="s"))
    for run in range(HISTORY + AFTER):
        scores = judged(rng, rng.random(300) < chance, RIGHT - (run >= HISTORY) * 0.05 / chance.mean())
        watched.enter(f"r{run:03}", named(scores), {})
    assert shown(watched).outcome == "worse"
    told = markdown(DriftReport(settings=watched.settings, sentinels=(shown(watched),)))
    assert assumption(watched.settings, anchored=False) in told
    assert assumption(watched.settings, anchored=False) != assumption(watched.settings, anchored=True)


# --- how soon a drop is found -------------------------------------------------------------------------------------------------------------

DELAYS = {
    # items, noise, history, drop: median runs (statistics, section 15.7)
    (50, 0.25, 30, 0.08): 4,
    (200, 2, 30, 0.04): 11,
    (50, 2, 30, 0.08): 11,
    (50, 2, 90, 0.04): 29,
    (200, 2, 14, 0.04): 18,
    (200, 0.25, 30, 0.02): 13,
    (1000, 2, 30, 0.02): 9,
}
STREAMS = 100 if SLOW else 20


def delay(items, k, history, drop, seed):
    """Runs from the change to the alarm; None where one comes before the change."""
    rng = np.random.default_rng([15, items, int(100 * k), history, seed])
    chance = rng.beta(0.7 * k, 0.3 * k, items).clip(1e-9, 1 - 1e-9)
    later = lowered(chance, drop)
    watched = ModelRuns("bench", "m", DriftSettings(seed=str(seed)))
    for run in range(history + 120):
        watched.enter(f"r{run:03}", named(rng.random(items) < (later if run >= history else chance)), {})
        if watched.monitors[0].alarms:
            return run - history + 1 if run >= history else None
    return 999


@pytest.mark.parametrize("cell", list(DELAYS) if SLOW else list(DELAYS)[:2], ids=str)
def test_a_drop_is_found_as_soon_as_was_measured(cell):
    late = sorted(found for seed in range(STREAMS) if (found := delay(*cell, seed)) is not None)
    reach = 2 * (1 / len(late) + 1 / 100) ** 0.5
    low, high = (late[round(q * (len(late) - 1))] for q in (max(0, 0.5 - reach), min(1, 0.5 + reach)))
    print(f"{cell}: median {np.median(late):g}, {DELAYS[cell]} was measured; {low} to {high}")
    assert low <= DELAYS[cell] <= high
    assert len(late) > 0.9 * STREAMS


# --- attacks ------------------------------------------------------------------------------------------------------------------------------

MARK = {"benchmark": "bench", "model": "m"}


def quiet_runs(count, seed=0, items=30):
    rng = np.random.default_rng(seed)
    right = rng.beta(1.4, 0.6, items)
    return [[event(f"q{i}", "m", int(rng.random() < p), run=day(k)) for i, p in enumerate(right)] for k in range(count)]


def day(k):
    return f"2026-{8 + k // 28:02}-{1 + k % 28:02}"


def test_a_run_that_is_repeated_until_it_pleases_counts_once_and_is_named():
    runs = quiet_runs(20)
    honest, tried = (FoldLog({"declare": "bench", "items": 30, "drift": {"seed": "s"}}) for _ in range(2))
    better = [[each | {"score": 1} for each in run] for run in runs]
    honest.send(*(each for run in runs for each in run))
    tried.send(*(each for run, again in zip(runs, better, strict=True) for each in (*run, *again, *again)))
    one, two = (shown(log.bench.sentinel.models["m"]) for log in (honest, tried))
    assert (one.runs, one.monitors) == (two.runs, two.monitors)
    assert (two.late, len(two.repeated)) == (2 * 20 * 30, 20)
    assert any(day(0) in note for note in otherwise(two))


def test_a_seed_that_is_chosen_after_the_scores_is_refused_and_moves_ties_alone():
    runs = [each for run in quiet_runs(20) for each in run]
    log = FoldLog({"declare": "bench", "items": 30, "drift": {"seed": "s"}})
    log.send(*runs)
    before = shown(log.bench.sentinel.models["m"])
    log.send(*({"declare": "bench", "items": 30, "drift": {"seed": str(seed)}, "version": 2} for seed in range(40)))
    assert [letter.field for letter in log.letters] == ["drift"] * 40
    assert shown(log.bench.sentinel.models["m"]) == before
    assert log.bench.sentinel.settings.seed == "s"


LONG, EXPECTED = 120, 120 / 1825
"""Runs of a stream, and the false alarms that may be expected in them at most."""


def rate(made, streams):
    """Alarms of a stream, and the last of the streams."""
    found = []
    for seed in range(streams):
        rng = np.random.default_rng([99, seed])
        watched = ModelRuns("bench", "m", DriftSettings(seed=str(seed)))
        chance = rng.beta(1.4, 0.6, 50).clip(1e-6, 1 - 1e-6)
        for run, level in enumerate(made(rng)):
            shifted = 1 / (1 + (1 / chance - 1) * np.exp(-level))
            watched.enter(day(run), named(rng.random(50) < shifted), {})
        found.append(len(watched.monitors[0].alarms))
    return np.mean(found), watched


def shocks(rng):
    """A level of each run, of no other run."""
    return rng.normal(0, 0.3, LONG)


def wandering(rng):
    levels = [0.0]
    for shock in rng.normal(0, 0.3 * (1 - 0.9**2) ** 0.5, LONG - 1):
        levels.append(0.9 * levels[-1] + shock)
    return levels


def bulk(rng):
    """Thirty runs on the first day, then one a day, where days have levels."""
    return [rng.normal(0, 0.3)] * 30 + list(rng.normal(0, 0.3, LONG - 30))


def test_levels_that_wander_break_the_bound_and_the_sentence_names_them():
    streams = 100 if SLOW else 12
    steady, _ = rate(shocks, streams)
    wanders, one = rate(wandering, streams)
    first_day, _ = rate(bulk, streams)
    print(
        f"alarms: shocks {steady:.3f}, wandering {wanders:.3f}, bulk {first_day:.3f}; at most {EXPECTED:.3f} expected"
    )
    assert steady <= EXPECTED + 3 * (EXPECTED / streams) ** 0.5
    assert wanders > 3 * EXPECTED
    assert first_day > steady
    report = DriftReport(settings=one.settings, sentinels=(shown(one),))
    assert assumption(one.settings, anchored=False) in markdown(report)


def test_a_history_of_one_day_is_named():
    log = FoldLog({"declare": "bench", "items": 30, "drift": {"seed": "s"}})
    bulky = [[each | {"run": f"{day(0)}T{k:02}"} for each in run] for k, run in enumerate(quiet_runs(20))]
    daily = [[each | {"run": day(k + 1)} for each in run] for k, run in enumerate(quiet_runs(10, seed=1))]
    log.send(*(each for run in (*bulky, *daily) for each in run))
    (found,) = report_of(log.bench.sentinel).sentinels
    assert any(day(0) in note for note in otherwise(found))
    log = FoldLog({"declare": "bench", "items": 30, "drift": {"seed": "s"}})
    log.send(*(each for run in quiet_runs(30) for each in run))
    (found,) = report_of(log.bench.sentinel).sentinels
    assert not list(otherwise(found))

"""Sentinels through the monitors of the engine while something moves: who is said to have moved, how soon, and what an attack changes.

A run takes a few worlds of some cells; RANKWATCH_SLOW=1 takes 100 of every cell, in 20 minutes or more. Settings: 30 runs before the
change, items with success probabilities Beta(1.4, 0.6), one false alarm in 1,825 runs.
"""

import os
from itertools import islice

import numpy as np
import pytest
from msgspec.structs import replace

from monitor.engine.kinds.runs import ModelRuns, Monitor, mean_of
from monitor.render.drift import markdown
from monitor.view.drift import report_of, shown
from monitor.words.drift import assumption, otherwise
from schemas.records.drift import DriftSettings
from schemas.results.drift import DriftReport, DriftRun
from stats.drift.detector import DROPS, log_bet
from tests.fold_log import FoldLog, event

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
WORLDS = 100 if SLOW else 24
HISTORY, AFTER = 30, 60


def lowered(chance, drop):
    """Chances whose logits are lower by the amount that lowers their mean by `drop`."""
    logits = np.log(chance) - np.log1p(-chance)
    low, high = 0.0, 40.0
    for _ in range(60):
        shift = (low + high) / 2
        low, high = (shift, high) if (chance - 1 / (1 + np.exp(shift - logits))).mean() < drop else (low, shift)
    return 1 / (1 + np.exp(low - logits)) if drop else chance


def sums(p, enough=np.inf):
    """ln of the sum after each run, of many streams at once: what monitors show until they alarm. From `enough` on it is infinite."""
    p = np.asarray(p)
    found = np.full(p.shape, -np.inf)
    left, capital = np.arange(len(p)), np.zeros((len(p), 0, len(DROPS)))
    for t in range(2, p.shape[1] + 1):
        old = np.arange(1, t)[None, :, None]
        capital = np.concatenate([capital, np.zeros((len(left), 1, len(DROPS)))], axis=1)
        capital += log_bet(p[left, t - 1][:, None, None], DROPS, old, t - old)
        most = capital.max(axis=(1, 2), keepdims=True)
        found[left, t - 1] = np.log(np.exp(capital - most).mean(2).sum(1)) + most[:, 0, 0]
        over = found[left, t - 1] >= enough
        found[left[over], t:] = np.inf
        left, capital = left[~over], capital[~over]
    return found


class Ranks:
    """The p-values of a monitor of the engine that never alarms."""

    def __init__(self, monitor):
        self.monitor, self.p = monitor, []

    def add(self, run, scores, shift=None):
        monitor = self.monitor
        monitor.scores.add(scores)
        monitor.runs.append(run)
        monitor.shifts.append(shift)
        self.p.append(monitor._rank(run, len(monitor.runs) - 1).p)


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

OURS = {
    ((100, 30), "judge"): (24, 74, 1, 1),
    ((100, 30), "both"): (10, 54, 11, 25),
    ((100, 30), "unlike"): (78, 8, 13, 1),
    ((100, 100), "both"): (0, 40, 0, 60),
    ((100, 100), "unlike"): (36, 33, 23, 8),
    ((300, 100), "unlike"): (3, 27, 30, 40),
}
"""Cells that these worlds do not reproduce, with 100 worlds of this file. The table does not state how the answers of a judge vary.

A judge that varies less between runs gives its figures. Take one with a chance of its own for each frozen answer, Beta of concentration 1
around 0.95 and 0.10, which halves that variance. With the scores of the reference code, 5 points on 30 answers are then found in 0.95 of
150 worlds (the table: 0.97), 2 points on 100 answers in 0.88 (0.92). With the judge of this file that code finds 0.77 of 100 worlds, and
0.42. Monitors of the bare means find no more.
"""


def judged(rng, answers, right):
    return (rng.random(answers.size) < np.where(answers, right, WRONG)).astype(float)


def worlds(items, anchors, change, seed):
    """The scores of fresh and of frozen answers, run by run."""
    rng = np.random.default_rng([16, items, anchors, list(CHANGES).index(change), seed])
    fresh_moves, frozen_moves, drop = CHANGES[change]
    chance = rng.beta(1.4, 0.6, items).clip(1e-6, 1 - 1e-6)
    later, frozen = lowered(chance, drop / (RIGHT - WRONG)), rng.random(anchors) < chance[:anchors]
    for run in range(HISTORY + AFTER):
        new = run >= HISTORY
        fresh = judged(rng, rng.random(items) < (later if new else chance), RIGHT - new * fresh_moves / chance.mean())
        yield f"r{run:03}", named(fresh), named(judged(rng, frozen, RIGHT - new * frozen_moves / frozen.mean()))


def engine_says(world, seed):
    """Which monitors alarmed after the change: 1 the judge's, 2 the model's, 3 both."""
    watched = ModelRuns("bench", "m", DriftSettings(seed=str(seed), judge="j"))
    for run in world:
        watched.enter(*run)
    late = {monitor.of: any(alarm.place >= HISTORY for alarm in monitor.alarms) for monitor in watched.monitors}
    return late["judge"] + 2 * late["model"]


def said_of(cell, change, seeds):
    """The same of many worlds at once."""
    p = []
    for seed in seeds:
        settings = DriftSettings(seed=str(seed), judge="j")
        judge, model = (
            Ranks(Monitor(f"bench/m/{of}", of, settings, both=True, shifted=of == "model")) for of in ("judge", "model")
        )
        for run, fresh, frozen in worlds(*cell, change, seed):
            judge.add(run, frozen)
            model.add(run, fresh, mean_of(frozen))
        p += [judge.p, model.p]
    limit = judge.monitor.limit
    p = np.array(p)
    sides = sums(np.concatenate([p, 1 - p]), limit).reshape(2, len(seeds), 2, -1)
    over = (sides >= limit).any(0)
    early, late = over[:, :, :HISTORY].any((1, 2)), over[:, :, -1]
    # After an alarm before the change, a monitor has another history.
    return [
        engine_says(worlds(*cell, change, seed), seed) if before else judge + 2 * model
        for seed, before, (judge, model) in zip(seeds, early, late, strict=True)
    ]


def test_many_worlds_at_once_say_what_the_engine_says():
    seeds = range(6)
    for change in ("both", "unlike"):
        assert said_of((100, 30), change, seeds) == [engine_says(worlds(100, 30, change, seed), seed) for seed in seeds]


def named(scores):
    return {f"q{k}": float(score) for k, score in enumerate(scores)}


CELLS = list(SHARES) if SLOW else [(100, 100)]


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.parametrize("change", CHANGES)
def test_who_is_said_to_have_moved(cell, change):
    said = np.bincount(said_of(cell, change, range(WORLDS)), minlength=4) / WORLDS
    print(f"{cell} {change}: {' '.join(f'{share:.2f}' for share in said)}")
    stated = OURS.get((cell, change), SHARES[cell][list(CHANGES).index(change)])
    for share, percent in zip(said, stated, strict=True):
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
    report = DriftReport(settings=watched.settings, sentinels=(shown(watched),))
    assert assumption(report) in markdown(report)
    frozen = tuple(
        replace(sentinel, runs=(DriftRun(run="a", items=1, mean=1.0, anchors=1),)) for sentinel in report.sentinels
    )
    assert assumption(report) != assumption(replace(report, sentinels=frozen))


# --- how soon a drop is found -------------------------------------------------------------------------------------------------------------

HIGH, LOW = 2, 0.25
"""k of the items' success probabilities, Beta(0.7 k, 0.3 k): 28 % and 8 % of them differ between two runs."""

BOUNDS = (365, 1825)
LATE, HORIZON = 999, 180
FALLS = (0.08, 0.04, 0.02)
DELAYS = {
    # items, noise, history: median runs to the alarm of each drop, at each bound (statistics, section 15.7)
    (20, HIGH, 14): ((21, 68), (147, LATE), (LATE, LATE)),
    (20, HIGH, 30): ((18, 36), (81, LATE), (LATE, LATE)),
    (20, HIGH, 90): ((12, 18), (30, 68), (134, LATE)),
    (20, LOW, 14): ((8, 12), (48, LATE), (140, LATE)),
    (20, LOW, 30): ((6, 8), (17, 28), (140, LATE)),
    (20, LOW, 90): ((5, 7), (14, 21), (40, 97)),
    (50, HIGH, 14): ((10, 16), (47, LATE), (LATE, LATE)),
    (50, HIGH, 30): ((7, 11), (19, 34), (104, LATE)),
    (50, HIGH, 90): ((5, 7), (17, 29), (48, LATE)),
    (50, LOW, 14): ((4, 5), (13, 22), (68, LATE)),
    (50, LOW, 30): ((3, 4), (9, 14), (22, 73)),
    (50, LOW, 90): ((3, 4), (5, 9), (19, 32)),
    (200, HIGH, 14): ((4, 5), (10, 18), (69, LATE)),
    (200, HIGH, 30): ((3, 4), (7, 11), (22, 46)),
    (200, HIGH, 90): ((3, 3), (6, 8), (16, 26)),
    (200, LOW, 14): ((4, 5), (4, 6), (11, 19)),
    (200, LOW, 30): ((3, 4), (4, 5), (8, 13)),
    (200, LOW, 90): ((2, 3), (3, 4), (7, 10)),
    (1000, HIGH, 14): ((4, 5), (4, 5), (8, 13)),
    (1000, HIGH, 30): ((3, 4), (3, 4), (6, 9)),
    (1000, HIGH, 90): ((2, 3), (2, 3), (5, 7)),
    (1000, LOW, 14): ((4, 5), (4, 5), (4, 5)),
    (1000, LOW, 30): ((3, 4), (3, 4), (3, 4)),
    (1000, LOW, 90): ((2, 3), (2, 3), (3, 3)),
}
OF_ITEMS = {
    # the same where items are declared independent: these cells drew the conditional law
    (200, HIGH, 14): ((2, 3), (7, 12), (64, LATE)),
    (200, LOW, 14): ((1, 1), (2, 3), (9, 14)),
    (200, LOW, 30): ((1, 1), (2, 3), (7, 11)),
}
STREAMS = 100


def runs_of(items, k, history, drop, seed):
    """The scores of each run, with a drop after the history."""
    rng = np.random.default_rng([15, items, int(100 * k), history, seed])
    chance = rng.beta(0.7 * k, 0.3 * k, items).clip(1e-9, 1 - 1e-9)
    later = lowered(chance, drop)
    for run in range(history + HORIZON):
        yield f"r{run:03}", named(rng.random(items) < (later if run >= history else chance))


def delays(cell, drop, streams):
    """Runs from the change to the alarm, by bound and stream; None where one comes before the change."""
    history = cell[2]
    made = [runs_of(*cell, drop, seed) for seed in range(streams)]
    ranks = [
        Ranks(Monitor("bench/m/model", "model", DriftSettings(seed=str(seed)), both=False)) for seed in range(streams)
    ]
    found, left = np.full((streams, history + HORIZON), np.inf), np.arange(streams)
    for until in (history + 20, history + 60, history + HORIZON):
        for stream in left:
            for run, scores in islice(made[stream], until - len(ranks[stream].p)):
                ranks[stream].add(run, scores)
        found[left, :until] = sums([ranks[stream].p for stream in left], np.log(BOUNDS[-1]))
        left = left[found[left, until - 1] < np.log(BOUNDS[-1])]
        if not left.size:
            break
    return [[late_by(each >= np.log(bound), history) for each in found] for bound in BOUNDS]


def late_by(alarms, history):
    """Runs from the change to the first alarm."""
    first = int(alarms.argmax()) if alarms.any() else LATE + history - 1
    return first - history + 1 if first >= history else None


def engine_delay(cell, drop, seed, assume="exchangeable-runs"):
    """The same through the engine, of one stream."""
    watched = ModelRuns("bench", "m", DriftSettings(seed=str(seed), assume=assume))
    for run, scores in runs_of(*cell, drop, seed):
        watched.enter(run, scores, {})
        if watched.monitors[0].alarms:
            break
    evidence = np.array([-np.inf if run.log_sum is None else run.log_sum for run in watched.runs])
    return [late_by(evidence >= np.log(bound), cell[2]) for bound in BOUNDS]


def test_many_streams_at_once_alarm_when_the_engine_does():
    cell, drop = (50, LOW, 14), 0.04
    assert [*zip(*delays(cell, drop, 8), strict=True)] == [tuple(engine_delay(cell, drop, seed)) for seed in range(8)]


def are_found_in_time(cell, drop, expected, late):
    streams = len(late[0])
    for bound, median, each in zip(BOUNDS, expected, late, strict=True):
        found = sorted(runs for runs in each if runs is not None)
        # Both are simulated, the expected one with 60 to 150 streams: four standard errors of their difference.
        reach = 2 * (1 / len(found) + 1 / 100) ** 0.5
        low, high = (found[round(q * (len(found) - 1))] for q in (max(0, 0.5 - reach), min(1, 0.5 + reach)))
        print(f"{cell} {drop} A {bound}: median {np.median(found):g}, {median} was measured; {low} to {high}")
        assert low <= median <= high, bound
        # Before the change, at most history / A false alarms are expected.
        least = 1 - cell[2] / bound
        assert len(found) > streams * least - 2 * (streams * least * (1 - least)) ** 0.5


QUICK = [((50, LOW, 30), 0.08), ((200, HIGH, 30), 0.04)]


@pytest.mark.parametrize(
    ("cell", "drop"), [(cell, drop) for cell in DELAYS for drop in FALLS] if SLOW else QUICK, ids=str
)
def test_a_drop_is_found_as_soon_as_was_measured(cell, drop):
    are_found_in_time(cell, drop, DELAYS[cell][FALLS.index(drop)], delays(cell, drop, STREAMS))


@pytest.mark.skipif(not SLOW, reason="minutes; RANKWATCH_SLOW=1 runs it")
@pytest.mark.parametrize("cell", OF_ITEMS, ids=str)
@pytest.mark.parametrize("drop", FALLS[:2])
def test_a_drop_of_independent_items_is_found_as_soon_as_was_measured(cell, drop):
    late = zip(*(engine_delay(cell, drop, seed, "independent-items") for seed in range(40)), strict=True)
    are_found_in_time(cell, drop, OF_ITEMS[cell][FALLS.index(drop)], [*late])


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
    assert assumption(report) in markdown(report)


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

"""Sentinels through the engine while nothing changes: p-values are uniform, and false alarms stay within T / A.

A run takes 25 streams of each case; RANKWATCH_SLOW=1 takes 1,000. With these P(p <= .1), of 30,000 p-values (.0017), and the false alarms
in 30 runs, at most 3 expected, were: 0/1 .0987 and 1.63, graded .0997 and 1.61 (.03), subsets .1000 and 1.69 (.03), missing by score .1014
and 1.68, changing items .0996 and 1.68 (.03).
Two planted faults have to be found: a rank among the old runs alone, and bets on p-values that are too small.
"""

import os

import numpy as np
import pytest

from monitor.engine.kinds import runs as kind
from monitor.view.drift import shown
from stats.drift.ranks import run_scores
from tests.fold_log import FoldLog, event

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
STREAMS = 1_000 if SLOW else 25
RUNS, ITEMS, BOUND = 30, 12, 10
LEVELS = (0.05, 0.1, 0.5)


def plain(rng, right, _run):
    return {f"q{i}": int(rng.random() < p) for i, p in enumerate(right)}


def graded(rng, right, _run):
    return {f"q{i}": float(np.clip(p + rng.normal(0, 0.2), 0, 1).round(3)) for i, p in enumerate(right)}


def subset(rng, right, run):
    return {item: x for item, x in plain(rng, right, run).items() if rng.random() < 0.6}


def missing_by_score(rng, right, run):
    return {item: x for item, x in plain(rng, right, run).items() if x or rng.random() < 0.6}


def changing(rng, right, run):
    return {f"q{i}": int(rng.random() < p) for i, p in enumerate(right) if (i < 9) or (i < 11) == (run < 12)}


def watched(made, streams):
    """p of each run that was ranked, and the alarms of each stream."""
    p, alarms = [], []
    for stream in range(streams):
        rng = np.random.default_rng([54, stream])
        right = rng.beta(1.4, 0.6, ITEMS)
        spec = {"years": 1, "runs_per_year": BOUND, "min_coverage": 0.2, "seed": str(stream)}
        log = FoldLog({"declare": "bench", "drift": spec})
        events = []
        for run in range(RUNS):
            scores = made(rng, right, run) or {"q0": 0}
            events += [event(item, "m", score, run=f"r{run:03}") for item, score in scores.items()]
        log.send(*events, {"ended": "bench"})
        found = shown(log.bench.sentinel.models["m"])
        p += [run.p for run in found.runs if run.p is not None]
        alarms.append(len(found.monitors[0].alarms))
    return p, alarms


def are_uniform(p, streams):
    count = len(p)
    assert count > 0.9 * streams * RUNS
    assert abs(np.mean(p) - 0.5) < 4.5 * (1 / 12 / count) ** 0.5
    for level in LEVELS:
        assert abs(np.mean(np.array(p) <= level) - level) < 4.5 * (level * (1 - level) / count) ** 0.5
    assert abs(np.corrcoef(p[:-1], p[1:])[0, 1]) < 4.5 / count**0.5


def are_within_the_bound(alarms):
    assert np.mean(alarms) < RUNS / BOUND + 3 * np.std(alarms) / len(alarms) ** 0.5


@pytest.mark.parametrize("made", [plain, graded, subset, missing_by_score, changing])
def test_nothing_changes(made):
    p, alarms = watched(made, STREAMS)
    shares = [np.mean(np.array(p) <= level) for level in LEVELS]
    print(f"{made.__name__}: p <= {LEVELS}: {' '.join(f'{share:.4f}' for share in shares)} of {len(p)}")
    print(f"{np.mean(alarms):.3f} ({np.std(alarms) / STREAMS**0.5:.3f}) alarms in {RUNS} runs, at most {RUNS / BOUND}")
    are_uniform(p, STREAMS)
    are_within_the_bound(alarms)


def rank_among_the_old(bag, u, sums, _stratum):
    *old, new = run_scores(bag, sums)
    return (np.less(old, new).sum() + u * np.equal(old, new).sum()) / max(len(old), 1)


def test_a_run_that_is_not_ranked_with_itself_is_found(monkeypatch):
    monkeypatch.setattr(kind, "p_runs", rank_among_the_old)
    with pytest.raises(AssertionError):
        are_uniform(watched(plain, 25)[0], 25)


def test_bets_on_p_values_that_are_too_small_are_found(monkeypatch):
    stepped = kind.step
    monkeypatch.setattr(kind, "step", lambda state, p, ranks: stepped(state, p / 2, ranks))
    p, alarms = watched(plain, 25)
    are_uniform(p, 25)
    with pytest.raises(AssertionError):
        are_within_the_bound(alarms)


def test_runs_that_are_cancelled_because_of_their_scores_are_counted_and_named():
    rng, right = np.random.default_rng(1), np.full(ITEMS, 0.7)
    log = FoldLog({"declare": "bench", "drift": {"seed": "s"}})
    for run in range(20):
        scores = plain(rng, right, run)
        bad = np.mean(list(scores.values())) < 0.6
        log.send(*(event(item, "m", x, run=f"r{run}") for item, x in scores.items()))
        log.send({"run": f"r{run}", "benchmark": "bench", "model": "m", "state": "cancelled" if bad else "ended"})
    found = shown(log.bench.sentinel.models["m"])
    assert found.cancelled == sum(run.unranked == "cancelled" for run in found.runs) > 0
    assert len(found.runs) == 20

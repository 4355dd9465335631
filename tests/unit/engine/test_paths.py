"""Paths of pairs in stretches of 16 steps, against the steps one by one."""

import numpy as np
import pytest

from monitor.engine.latch.arrival import ArrivalEvidence
from monitor.engine.latch.paths import Paths, Sums, words_of
from stats.evidence.eprocess import log_e_value


def walks(seed, longest):
    """Paths of some pairs, and their counts after every step, which stay after the last."""
    rng = np.random.default_rng(seed)
    pairs = 40
    steps = rng.integers(0, longest + 1, pairs)
    steps[:3] = 0, longest, longest // 2
    there = np.arange(longest) < steps[:, None]
    outcome = rng.choice(3, (pairs, longest), p=[0.5, 0.35, 0.15]) * there
    outcome[pairs // 2 :] = (3 - outcome[pairs // 2 :]) % 3
    before = Sums(*(rng.integers(0, 30, pairs).astype(np.int32) for _ in range(3)))
    wins, losses = outcome == 1, outcome == 2
    b, c = (np.cumsum(np.column_stack([start, adds]), axis=1) for start, adds in ((before.b, wins), (before.c, losses)))
    when = np.cumsum(rng.integers(1, 4, (pairs, longest)), axis=1).astype(np.int16)
    return Paths.of(np.arange(pairs), steps, before, words_of(wins), words_of(losses), when), b, c


@pytest.mark.parametrize("longest", [0, 1, 15, 16, 17, 160, 250])
@pytest.mark.parametrize("seed", range(3))
def test_stretches_know_what_the_steps_know(seed, longest):
    paths, b, c = walks(seed, longest)
    of, step = np.nonzero(np.arange(longest + 1) <= paths.steps[:, None])
    sums = paths.sums(of, step)
    assert (sums.n == paths.n[of] + step).all()
    assert (sums.b == b[of, step]).all()
    assert (sums.c == c[of, step]).all()
    every = np.arange(paths.steps.size)
    assert (paths.number(paths.positions(every, paths.steps)) == paths.steps).all()
    assert (paths.number(paths.positions(every, paths.steps // 2)) == paths.steps // 2).all()

    chosen = np.random.default_rng(seed).random(paths.wins.shape) < 0.5
    of, step, inside_b, inside_c = paths.inside(chosen)
    expected = [
        (k, t) for k in range(paths.steps.size) for t in range(1, paths.steps[k] + 1) if chosen[k, (t - 1) // 16]
    ]
    assert list(zip(of.tolist(), step.tolist(), strict=True)) == expected
    assert (inside_b == b[of, step]).all()
    assert (inside_c == c[of, step]).all()

    of, step, moved_b, moved_c = paths.moved(chosen & paths.there())
    expected = [(k, t) for k, t in expected if t == 1 or (b[k, t], c[k, t]) != (b[k, t - 1], c[k, t - 1])]
    assert list(zip(of.tolist(), step.tolist(), strict=True)) == expected
    assert (moved_b == b[of, step]).all()
    assert (moved_c == c[of, step]).all()

    some = np.arange(0, paths.steps.size, 3)
    rows = paths.rows(some)
    assert (rows.sums(np.arange(some.size), rows.steps).b == b[some, paths.steps[some]]).all()


@pytest.mark.parametrize("longest", [0, 1, 16, 100])
@pytest.mark.parametrize("seed", range(3))
def test_the_first_point_against_a_side_and_the_first_certain_one(seed, longest):
    paths, b, c = walks(seed, longest)
    rng = np.random.default_rng(seed)
    side = rng.choice([-2, -1, 1, 2], paths.steps.size)
    since = rng.integers(0, paths.steps + 1)
    missing = rng.integers(0, 60, paths.steps.size).astype(np.int32) + paths.steps.astype(np.int32)
    against, certain = {}, {}
    for k, steps in enumerate(paths.steps.tolist()):
        for t in range(1, steps + 1):
            lead, room = b[k, t] - c[k, t], missing[k] - t
            if t > since[k] and lead * side[k] < 0:
                against.setdefault(k, t)
            if abs(lead) > room or (lead == 0 and room == 0):
                certain.setdefault(k, t)
    for found, expected in ((paths.first_against(side, since), against), (paths.first_certain(missing), certain)):
        assert dict(zip(*(x.tolist() for x in found), strict=True)) == expected
    assert set(against) <= set(np.flatnonzero(paths.may_turn(np.arange(paths.steps.size), side, since)).tolist())


@pytest.mark.parametrize("mixture", ["beta(1,1)", "beta(1,3)", "grid98"])
@pytest.mark.parametrize("longest", [1, 10, 16, 200])
@pytest.mark.parametrize("seed", range(4))
def test_the_highest_evidence_and_the_way_to_a_threshold_are_found(seed, longest, mixture):
    paths, b, c = walks(seed, longest)
    evidence = ArrivalEvidence(0.05, mixture)
    exact = log_e_value(b, c, mixture)
    exact[:, 0] = -np.inf
    exact[np.arange(exact.shape[1]) > paths.steps[:, None]] = -np.inf
    limit = np.full(paths.steps.size, 1.0)
    reach = np.where(np.arange(paths.steps.size) % 3, 3.0, np.inf)
    highest, crossing = evidence.highest(paths, limit, reach)
    points = set(zip(*(x.tolist() for x in highest), strict=True))
    low, high = np.full((2, paths.steps.size), 2.0)
    high += 1
    moved = np.diff(b, axis=1, prepend=-1) + np.diff(c, axis=1, prepend=-1) != 0
    moved[:, 1:2] = True
    for found, first, last in ((crossing, reach, reach), (evidence.reaching(paths, low, high), low, high)):
        seen = set(zip(*(x.tolist() for x in found), strict=True))
        for k in range(paths.steps.size):
            over = np.flatnonzero(exact[k] >= last[k])
            end = over[0] if over.size else exact.shape[1] - 1
            asked = {(k, int(t)) for t in np.flatnonzero((exact[k] >= first[k]) & moved[k]) if t <= end}
            assert asked <= seen
            assert not {(each, t) for each, t in seen if each == k and t > end}
    for k in range(paths.steps.size):
        if exact[k].max() >= limit[k]:
            assert (k, int(exact[k].argmax())) in points
    assert len(points) < exact.size / 4 or longest < 200

"""Largest sets of models that are tied, their lanes, and the rules between models."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.standings import MAX_BANDS, MAX_LANES, bands_of, tie_bands
from stats.families.transitivity import transitive_closure
from tests.fold_log import FoldLog, packed


@st.composite
def decisions(draw, most=9):
    """Decisions of any kind, also against the ranking, closed or not; and which models lack items."""
    size = draw(st.integers(0, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    better = np.triu(rng.random((size, size)) < draw(st.floats(0, 1)), 1)
    if draw(st.booleans()):
        mixed = rng.permutation(size)
        better = better[mixed][:, mixed]
    if draw(st.booleans()):
        better = transitive_closure(better)
    return better, rng.random(size) < draw(st.sampled_from([0, 0.3]))


def is_tied(better, members):
    return not any(better[i, j] or better[j, i] for i, j in combinations(members, 2))


def brute_force(better, ranked):
    """All largest sets of tied models, by trying every subset."""
    subsets = [set(s) for size in range(1, len(ranked) + 1) for s in combinations(ranked, size) if is_tied(better, s)]
    return {tuple(sorted(s)) for s in subsets if not any(s < other for other in subsets)}


@given(decisions())
def test_the_bands_are_the_largest_sets_of_tied_models(case):
    better, lacking = case
    ranked = np.flatnonzero(~lacking).tolist()
    found = bands_of(better, lacking)
    expected = brute_force(better, ranked)
    if found.bands is None:  # nine models cannot have too many sets, only too many lanes
        assert overlap(expected) > MAX_LANES
        return
    assert [band.members for band in found.bands] == sorted(expected, key=lambda m: (m[0], -len(m), m))
    assert set(found.lacking) == set(np.flatnonzero(lacking).tolist())
    for model, others in found.lacking.items():
        assert others == tuple(k for k in range(len(better)) if k != model and is_tied(better, (model, k)))


def overlap(sets):
    rows = range(1 + max((members[-1] for members in sets), default=-1))
    return max((sum(members[0] <= row <= members[-1] for members in sets) for row in rows), default=0)


@given(decisions())
def test_no_two_bands_share_a_lane_and_no_lane_is_wasted(case):
    found = bands_of(*case)
    if found.bands is None:
        return
    taken = [(row, band.lane) for band in found.bands for row in range(band.members[0], band.members[-1] + 1)]
    assert len(taken) == len(set(taken))
    assert found.lanes == overlap({band.members for band in found.bands})


@given(decisions())
def test_a_rule_is_where_all_above_are_decided_over_all_below(case):
    better, lacking = case
    ranked = np.flatnonzero(~lacking).tolist()
    expected = [k for at, k in enumerate(ranked[:-1], 1) if all(better[i, j] for i in ranked[:at] for j in ranked[at:])]
    assert list(bands_of(better, lacking).rules) == expected


def test_no_band_crosses_a_rule():
    better = np.triu(np.ones((6, 6), bool), 3)
    better[:3, 3:] = True
    found = bands_of(better, np.zeros(6, bool))
    assert found.rules == (2,)
    assert {band.members for band in found.bands} == {(0, 1, 2), (3, 4, 5)}


@pytest.mark.parametrize("groups", [MAX_LANES + 1, 12])
def test_too_many_sets_or_lanes_are_not_drawn(groups):
    # In each of `groups` couples one model is better, and couples are not compared: 2^groups largest sets.
    better = np.zeros((2 * groups, 2 * groups), bool)
    better[np.arange(0, 2 * groups, 2), np.arange(1, 2 * groups, 2)] = True
    assert 2**groups < MAX_BANDS or groups == 12
    found = bands_of(better, np.zeros(2 * groups, bool))
    assert (found.bands, found.lanes, found.rules) == (None, 0, ())


def test_bands_of_a_thousand_models_hold_each_of_them():
    rng = np.random.default_rng(0)
    places = np.sort(rng.random(1000))[::-1]
    for width in (0.003, 0.05, 2.0):
        better = (places[:, None] - places) > width
        found = bands_of(better, np.zeros(1000, bool))
        if found.bands is not None:
            assert {k for band in found.bands for k in band.members} == set(range(1000))


def test_a_model_that_lacks_items_is_in_no_band():
    log = FoldLog({"declare": "bench", "items": 400})
    scores = np.zeros((400, 3))
    scores[:300, 0], scores[:150, 1], scores[:140, 2] = 1, 1, 1
    scores[200:, 1] = np.nan
    log.send(packed(scores, "abc"))
    table = PairTable.of(board_view(log.bench))
    found = tie_bands(table, 0.9)
    assert [band.members for band in found.bands] == [(0,), (2,)]  # by rank a, b, c; a is decided over c
    assert (found.rules, found.lacking) == ((0,), {1: (0, 2)})
    assert tie_bands(table, 0.0).lacking == {}


def test_a_model_whose_missing_items_are_ignored_lacks_none():
    log = FoldLog({"declare": "bench", "items": 400, "missing": "ignorable"})
    scores = np.zeros((400, 3))
    scores[:300, 0], scores[:150, 1], scores[:140, 2] = 1, 1, 1
    scores[200:, 1] = np.nan
    log.send(packed(scores, "abc"))
    assert set(tie_bands(PairTable.of(board_view(log.bench)), 0.9).lacking) == {1}, "its run may go on"
    log.send({"ended": "bench"})
    assert tie_bands(PairTable.of(board_view(log.bench)), 0.9).lacking == {}


def test_models_that_all_lack_items_yet_are_in_bands():
    log = FoldLog({"declare": "bench", "items": 400})
    log.send(packed(np.ones((20, 3)), "abc"))
    found = tie_bands(PairTable.of(board_view(log.bench)), 0.9)
    assert ([band.members for band in found.bands], found.lacking) == ([(0, 1, 2)], {})


def test_a_benchmark_without_scores_has_no_ties():
    found = tie_bands(PairTable.of(board_view(FoldLog({"declare": "bench", "items": 400}).bench)), 0.9)
    assert (found.bands, found.rules, found.lacking) == ((), (), {})


def test_ties_of_many_models_that_lack_items_are_not_listed():
    better = np.zeros((400, 400), bool)
    better[0, 1:] = True
    lacking = np.arange(400) > 0
    found = bands_of(better, lacking)
    assert (found.bands, found.rules, set(found.lacking.values())) == (None, (), {()})
    assert list(found.lacking) == list(range(1, 400))
    few = bands_of(better[:100, :100], lacking[:100])
    assert ([band.members for band in few.bands], len(few.lacking[1])) == ([(0,)], 98)

"""Intervals of graded scores over many pairs at once, against one walk a pair."""

import numpy as np
import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.kinds import graded
from monitor.view.pairs import intervals
from monitor.view.pairs.table import PairTable
from stats.intervals.sequences import empirical_bernstein
from tests.fold_log import FoldLog, packed


def table_of(items, models, absent, **spec):
    rng = np.random.default_rng(items)
    scores = np.round(rng.random((items, models)), 3)
    scores[rng.random(scores.shape) < absent] = np.nan
    log = FoldLog({"declare": "bench", "scores": "graded", "order": "trusted"} | spec)
    log.send(packed(scores, [f"m{k}" for k in range(models)]))
    return PairTable(board_view(log.bench)), log


@pytest.mark.parametrize(("items", "models", "absent"), [(1, 3, 0), (200, 12, 0), (60, 15, 0.7), (90, 9, 0.2)])
@pytest.mark.parametrize("family", [{"policy": "spending"}, {"policy": "capacity", "size": 20}])
@pytest.mark.parametrize("slab", [1, 500, 100_000])
def test_they_are_those_of_each_pair_by_itself_to_the_bit(items, models, absent, family, slab, monkeypatch):
    monkeypatch.setattr(graded, "_SLAB_CELLS", slab)
    table, _ = table_of(items, models, absent, family=family)
    displayed = np.random.default_rng(1).permutation(table.pairs.size)
    levels = np.full(displayed.size, 0.05), intervals.family_alpha(table, displayed)
    bounds = table.kind.gap_bounds(displayed, *levels)
    x, scored = table.kind.scores
    for r, q in enumerate(displayed.tolist()):
        a, b = table.pairs.a[q], table.pairs.b[q]
        both = (scored[:, a] > 0) & (scored[:, b] > 0)
        for (lows, highs), alpha in zip(bounds, (level[r] for level in levels), strict=True):
            expected = (np.nan, np.nan)
            if both.any() and alpha > 0:
                low, high = empirical_bernstein((x[both, a] - x[both, b] + 1) / 2, alpha)
                expected = 2 * low[-1] - 1, 2 * high[-1] - 1
            np.testing.assert_array_equal((lows[r], highs[r]), expected)


def test_more_than_five_thousand_pairs_have_intervals():
    table, log = table_of(4, 110, 0)
    report = benchmark_report(board_view(log.bench), pairs="all")
    assert len(report.pairs) == table.pairs.size > 5_000
    assert all(pair.gap_low <= pair.gap <= pair.gap_high for pair in report.pairs)


@pytest.mark.parametrize(
    ("spec", "score", "mixture"),
    [
        ({"scores": "graded", "order": "trusted"}, 0.5, "graded grid"),
        ({"repeats": 2, "order": "trusted"}, 1, "graded grid"),
        ({"order": "trusted"}, 1, "beta(1,1)"),
        ({"order": "trusted"}, 0.5, "beta(1,1)"),  # it bet with this until the graded score, and then no more
        ({}, 0.5, "graded grid"),
    ],
)
def test_the_report_names_the_mixture_that_the_bets_are_of(spec, score, mixture):
    log = FoldLog({"declare": "bench"} | spec)
    log.send(packed([[score, 0]] * 3, "ab"))
    assert benchmark_report(board_view(log.bench), assert_complete=True).mixture == mixture

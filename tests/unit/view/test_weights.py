"""Reports of benchmarks whose clusters have weights."""

import numpy as np
import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.pairs.evidence_path import pair_path
from stats.clusters.robust import clustered_p
from tests.fold_log import FoldLog, event

SIZES = {"large": 80, "small": 10}
RIGHT = {"ash": {"large": 60, "small": 2}, "birch": {"large": 50, "small": 8}, "cedar": {"large": 40, "small": 4}}


def events(models=RIGHT, sizes=SIZES):
    """Return scores, the first items of each cluster right."""
    return [
        event(f"{cluster}-{k}", model, int(k < right.get(cluster, 0)), cluster=cluster)
        for model, right in models.items()
        for cluster, size in sizes.items()
        if cluster in right
        for k in range(size)
    ]


def read(records, **declared):
    log = FoldLog({"declare": "bench", "weights": "equal-clusters", **declared})
    log.send(*records)
    return benchmark_report(board_view(log.bench), pairs="all", assert_complete=True)


def test_the_ranking_is_by_weighted_mean_with_the_unweighted_one_beside_it():
    report = read(events())
    rows = [(m.model, m.mean, m.unweighted_rank, m.unweighted_mean) for m in report.models]
    assert rows == [
        ("birch", pytest.approx((50 / 80 + 8 / 10) / 2), 2, pytest.approx(58 / 90)),
        ("ash", pytest.approx((60 / 80 + 2 / 10) / 2), 1, pytest.approx(62 / 90)),
        ("cedar", pytest.approx((40 / 80 + 4 / 10) / 2), 3, pytest.approx(44 / 90)),
    ]
    assert report.weights.places_differ == 2
    assert [(c.cluster, c.weight, c.items) for c in report.weights.clusters] == [("large", 0.5, 80), ("small", 0.5, 10)]
    assert all(m.mean_low < m.mean < m.mean_high for m in report.models)


def test_gap_interval_and_planned_items_are_those_of_the_weighted_gap():
    report = read(events())
    pair = report.pairs[0]
    d = {"large": np.r_[np.repeat(-1, 10), np.zeros(70)], "small": np.r_[np.repeat(1, 6), np.zeros(4)]}
    gap = (d["large"].mean() + d["small"].mean()) / 2
    variance = sum(0.25 * x.var(ddof=1) / x.size for x in d.values())
    assert (pair.model_a, pair.model_b, pair.n) == ("birch", "ash", 90)
    assert pair.gap == pytest.approx(gap) == pytest.approx(pair.p_a - pair.p_b)
    assert pair.required_n == pytest.approx(7.848879734349085 * 90 * variance / gap**2)
    assert pair.gap_family_low < pair.gap_low <= gap <= pair.gap_high < pair.gap_family_high
    assert (pair.b, pair.c, pair.p_exact) == (None, None, None)


def test_no_pair_is_counted_as_resolved_by_clusters_that_give_no_n_star():
    summary = read(events()).summary
    assert "clustered" in summary.undecided
    assert "clustered" not in summary.unresolved
    assert summary.unresolved["fixed_n"] > 0


def test_a_model_that_lacks_a_cluster_is_listed_last_without_a_mean():
    report = read(events(RIGHT | {"aspen": {"large": 80}}))
    last = report.models[-1]
    assert (last.model, last.mean, last.mean_low, last.unweighted_rank) == ("aspen", None, None, 1)
    assert report.weights.unranked == 1
    rows = [p for p in report.pairs if "aspen" in (p.model_a, p.model_b)]
    assert {(p.gap, p.required_n, p.decided.fixed_n, p.decided.anytime_family) for p in rows} == {(None,) * 4}


def test_an_unlisted_weight_is_an_item_that_every_model_lacks():
    report = read(events(), weights={"large": 1, "small": 1, "absent": 1})
    assert {m.mean for m in report.models} == {None}
    assert report.weights.unranked == 3


def test_weights_may_turn_a_decision():
    sizes = {"large": 300, "small": 60}
    right = {"ash": {"large": 200, "small": 0}, "birch": {"large": 150, "small": 55}}
    weighted = read(events(right, sizes)).pairs[0]
    log = FoldLog({"declare": "bench"})
    log.send(*events(right, sizes))
    plain = benchmark_report(board_view(log.bench), pairs="all", assert_complete=True).pairs[0]
    assert (weighted.model_a, weighted.decided.anytime_family, weighted.settled) == ("birch", "a", "a")
    assert (plain.model_a, plain.decided.anytime_family) != ("ash", "a")
    assert weighted.facts[0]["code"] == "decided"


def test_the_path_of_a_pair_ends_at_its_evidence_and_gap():
    log = FoldLog({"declare": "bench", "weights": "equal-clusters", "clusters": SIZES})
    log.send(*events())
    report = benchmark_report(board_view(log.bench), pairs="all")
    index = {c.model: k for k, c in enumerate(log.bench.contestants)}
    path = pair_path(board_view(log.bench), index["birch"], index["ash"], 50)
    pair = report.pairs[0]
    assert path.gap[-1] == pytest.approx(pair.gap)
    assert path.log_e[-1] == pytest.approx(pair.log_e)


@pytest.mark.parametrize(
    ("arrived", "stretches"),
    [
        ("aabbbc", [("a", 2), ("b", 5), ("c", 6)]),
        ("aabbba", [("a", 2), ("b", 5), ("a", 6)]),
        ("ababa", None),
        ("aaa", None),
    ],
)
def test_a_path_names_the_categories_that_follow_each_other(arrived, stretches):
    scores = [event(f"q{k}", m, k % 2, cluster=name) for m in ("x", "y") for k, name in enumerate(arrived)]
    log = FoldLog({"declare": "bench"})
    log.send(*scores)
    assert pair_path(board_view(log.bench), 0, 1, 50).stretches == stretches


def test_one_cluster_ranks_as_without_weights():
    sizes = {"large": 80}
    one = read(events({m: {"large": r["large"]} for m, r in RIGHT.items()}, sizes))
    assert [m.mean for m in one.models] == pytest.approx([60 / 80, 50 / 80, 40 / 80])
    assert one.weights.places_differ == 0


def test_without_spread_inside_clusters_the_clustered_test_is_of_their_gaps():
    """It was 1, as if every cluster had the weighted gap."""
    gaps = [1.0, 0.0, 1.0, 1.0]
    scores = [
        event(f"{cluster}-{k}", model, int(model == "ash" and gap == 1), cluster=f"c{cluster}")
        for cluster, gap in enumerate(gaps)
        for k in range(5)
        for model in ("ash", "birch")
    ]
    pair = read(scores).pairs[0]
    assert pair.p_clustered == pytest.approx(float(clustered_p(np.ones(4), np.array(gaps))))

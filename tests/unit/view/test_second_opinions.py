"""Second opinions, against statsmodels, plain loops and reports of fewer items; figures against the report."""

import math
from itertools import pairwise

import numpy as np
import pytest

from monitor.view.build import benchmark_report, report_view
from monitor.view.from_state import board_view
from monitor.view.pairs import clusters, table
from monitor.view.pairs.evidence_path import chart_data
from monitor.view.pairs.second_opinions import with_detail
from tests.fold_log import FoldLog, event
from tests.oracle import log_e
from tests.unit.engine.test_battles import declare
from tests.unit.engine.test_battles import stream as battles_of

MODELS = "abcdefg"
CLUSTERS = 6
ITEMS = 240


def stream(*, without=None, **spec):
    """Events of models of falling skill on items in clusters of their own difficulty, some missing or skipped."""
    rng = np.random.default_rng(8)
    hard = rng.normal(0, 0.15, CLUSTERS)
    log = FoldLog(*([{"declare": "bench", **spec}] if spec else []))
    records = []
    for item in range(ITEMS):
        for k, model in enumerate(MODELS):
            right, kept = rng.random() < 0.85 - 0.09 * k + hard[item % CLUSTERS], rng.random()
            score = None if kept > 0.98 else int(right)
            if kept > 0.03 and item % CLUSTERS != without:
                records.append(event(item, model, score, cluster=f"c{item % CLUSTERS}"))
    log.send(*records)
    return log.bench


@pytest.fixture(scope="module")
def view():
    return report_view(board_view(stream()), pairs="all", assert_complete=True)


@pytest.fixture(scope="module")
def found(view):
    neighbours = [pair for pair in view.report.pairs if pair.adjacent]
    return list(zip(neighbours, with_detail(view.report, view.table).detail.pairs, strict=True))


def test_the_report_itself_is_unchanged_and_the_pairs_are_the_neighbours(view, found):
    whole = with_detail(view.report, view.table).as_dict()
    whole.pop("detail")
    assert whole == view.report.as_dict()
    assert [(p.model_a, p.model_b) for p, _ in found] == [(d.model_a, d.model_b) for _, d in found]


METHODS = {
    "bonferroni": "bonferroni",
    "sidak": "sidak",
    "holm": "holm",
    "benjamini_hochberg": "fdr_bh",
    "benjamini_yekutieli": "fdr_by",
}


@pytest.mark.parametrize("name", METHODS)
def test_adjusted_p_values_are_those_of_statsmodels(view, found, name):
    from statsmodels.stats.multitest import multipletests

    everything = [p.p_exact for p in view.report.pairs]
    neighbours = [p.p_exact for p, _ in found]
    among_all = dict(zip(everything, multipletests(everything, method=METHODS[name])[1], strict=True))
    among_neighbours = multipletests(neighbours, method=METHODS[name])[1]
    for (pair, detail), expected in zip(found, among_neighbours, strict=True):
        assert (detail.adjacent_family.pairs, detail.all_family.pairs) == (len(found), len(view.report.pairs))
        assert getattr(detail.adjacent_family, name) == pytest.approx(expected)
        assert getattr(detail.all_family, name) == pytest.approx(among_all[pair.p_exact])


def test_one_more_p_value_and_the_bounds_of_rho(found):
    from statsmodels.stats.contingency_tables import mcnemar

    for pair, detail in found:
        assert detail.p_corrected == pytest.approx(
            mcnemar([[0, pair.b], [pair.c, 0]], exact=False, correction=True).pvalue
        )
        assert detail.rho_low <= pair.rho <= detail.rho_high
        scale = math.sqrt(pair.p_a * (1 - pair.p_a) * pair.p_b * (1 - pair.p_b))
        assert detail.rho_high == pytest.approx((min(pair.p_a, pair.p_b) - pair.p_a * pair.p_b) / scale)
        assert detail.rho_low == pytest.approx((max(0, pair.p_a + pair.p_b - 1) - pair.p_a * pair.p_b) / scale)


def test_intervals_hold_what_they_are_intervals_of(found):
    for pair, detail in found:
        se = pair.sd / math.sqrt(pair.n)
        assert (detail.bootstrap_low, detail.bootstrap_high) == pytest.approx(
            (pair.gap - 1.96 * se, pair.gap + 1.96 * se), abs=0.5 * se
        )
        assert detail.required_n_low <= pair.required_n
        assert detail.paper_anytime_required_n == pytest.approx(2.15 * pair.required_n)
        assert detail.paper_anytime_resolution_ratio == pytest.approx(pair.resolution_ratio / 2.15)
        assert (pair.n >= detail.anytime_required_n) == pair.resolved.anytime


def test_e_holm_steps_down_over_all_pairs(view, found):
    values = sorted((log_e(p.b, p.c) for p in view.report.pairs), reverse=True)
    rejected = 0
    while rejected < len(values) and values[rejected] >= math.log((len(values) - rejected) / 0.05):
        rejected += 1
    assert 0 < rejected < len(values)
    for pair, detail in found:
        assert (detail.e_holm is not None) == (log_e(pair.b, pair.c) >= values[rejected - 1] - 1e-9)
        assert detail.e_bh == pair.decided.e_bh


def test_leaving_a_cluster_out_is_reporting_without_its_items(found):
    ratios = {}
    for left_out in range(CLUSTERS):
        for pair in benchmark_report(board_view(stream(without=left_out)), pairs="all", assert_complete=True).pairs:
            q = pair.cluster.resolution_ratio
            ratios[left_out, frozenset((pair.model_a, pair.model_b))] = math.inf if q is None else q
    for pair, detail in found:
        those = [ratios[k, frozenset((pair.model_a, pair.model_b))] for k in range(CLUSTERS)]
        assert detail.cluster.leave_one_out_low == pytest.approx(min(those))
        assert detail.cluster.leave_one_out_high == pytest.approx(max(those))
        assert detail.cluster.leave_one_out_cluster == f"c{int(np.argmin(those))}"


def test_other_clusters_and_what_new_ones_would_take(found):
    for pair, detail in found:
        kinds = {d.definition: d for d in detail.cluster.definitions}
        assert kinds["random"].clusters == CLUSTERS
        assert kinds["difficulty quartiles"].clusters <= 4
        assert kinds["split halves"].clusters == 2 * CLUSTERS
        assert all(d.required_n >= pair.required_n * 0.999 for d in kinds.values())
        low, high = detail.cluster.bootstrap_icc
        assert low <= high
        assert detail.cluster.clusters_needed is None or detail.cluster.clusters_needed > CLUSTERS


def test_paths_end_at_the_report_and_pass_through_the_counts(view):
    board = view.table.benchmark
    scores = {(row.item, c.model): int(x) - 2 for row, line in zip(board.item_keys, board.item_codes(), strict=True)
              for c, x in zip(view.table.benchmark.contestants, line, strict=True)}  # fmt: skip
    items = [row.item for row in board.item_keys]
    neighbours = [pair for pair in view.report.pairs if pair.adjacent]
    for pair, drawn in zip(neighbours, chart_data(view.table).pairs, strict=True):
        d = [
            scores[i, pair.model_a] - scores[i, pair.model_b]
            for i in items
            if min(scores[i, m] for m in (pair.model_a, pair.model_b)) >= 0
        ]
        assert (drawn.curve.n[0], drawn.curve.n[-1]) == (0, pair.n == len(d) and pair.n)
        assert drawn.curve.log_e[-1] == pytest.approx(pair.log_e)
        for n, value in zip(drawn.curve.n.tolist(), drawn.curve.log_e.tolist(), strict=True):
            assert value == pytest.approx(log_e(d[:n].count(1), d[:n].count(-1)))
        assert all(n < m for n, m in pairwise(drawn.curve.n.tolist()))


def test_the_matrix_is_the_family_wise_verdict_of_every_pair(view):
    figures, names = chart_data(view.table), [m.model for m in view.report.models]
    assert (figures.matrix == -figures.matrix.T).all()
    for pair in view.report.pairs:
        side = figures.matrix[names.index(pair.model_a), names.index(pair.model_b)]
        assert side == {"a": 1, "b": -1, None: 0}[pair.decided.anytime_family]
    assert figures.skipped == [sum(view.table.benchmark.item_codes()[:, k] == 1) for k in view.table.ranking]


def test_a_held_benchmark_draws_no_decision():
    view = report_view(board_view(stream(alpha=0.05)))
    assert view.table.hold_reason is not None
    assert not chart_data(view.table).matrix.any()
    assert {d.e_holm for d in with_detail(view.report, view.table).detail.pairs} == {None}


def test_beyond_the_budget_clusters_are_computed_for_the_listed_pairs(view, monkeypatch):
    for module in (table, clusters):
        monkeypatch.setattr(module, "CELL_BUDGET", CLUSTERS * (len(MODELS) - 1))
    few = report_view(board_view(stream()), assert_complete=True).report
    whole = {(p.model_a, p.model_b): p for p in view.report.pairs}
    for pair in few.pairs:
        assert pair.cluster == whole[pair.model_a, pair.model_b].cluster
        assert pair.p_clustered == whole[pair.model_a, pair.model_b].p_clustered
        assert pair.decided.clustered in {None, whole[pair.model_a, pair.model_b].decided.clustered}
    assert {p.cluster for p in report_view(board_view(stream()), pairs="all", assert_complete=True).report.pairs} == {
        None
    }


def test_a_verdict_on_scores_since_replaced_keeps_a_row_of_its_own():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(
        *[
            event(item, model, score)
            for item in range(60)
            for model, score in (("a", 1), ("b", int(item % 6 == 0)), ("c", int(item % 6 != 1)))
        ]
    )
    before = {(p.model_a, p.model_b): p for p in benchmark_report(board_view(log.bench), pairs="all").pairs}
    log.send(*[event(item, "b", int(item % 5 != 0), epoch=1) for item in range(20)])
    report = benchmark_report(board_view(log.bench), pairs="all")
    current, old = report.pairs[:3], report.pairs[3:]
    assert [p.status for p in old] == ["superseded"] * 2
    assert {(p.model_a, p.model_b) for p in old} == {("a", "b"), ("c", "b")}
    assert report.summary.pairs == 3
    assert not any("b" in (p.model_a, p.model_b) and p.status == "decided" for p in current)
    for pair in old:
        was = before[pair.model_a, pair.model_b]
        assert (pair.n, pair.b, pair.c, pair.decided_at_n) == (was.n, was.b, was.c, was.decided_at_n)
        assert pair.decided.anytime_family == was.decided.anytime_family == "a"
        assert (
            f"{pair.model_a} was decided to be better than b, family-wise at alpha = 0.05, on epoch 0 of {pair.model_a} and epoch 0 of b"
            in pair.reason
        )
    assert {p.status for p in benchmark_report(board_view(log.bench)).pairs} & {"superseded"} == set()
    log.restart()
    assert benchmark_report(board_view(log.bench), pairs="all") == report


@pytest.mark.parametrize("graded", [False, True])
def test_second_opinions_do_not_depend_on_the_order_of_the_file(graded):
    rng = np.random.default_rng(11)
    records = [
        event(
            item,
            model,
            float(rng.integers(0, 21) / 20) if graded else int(rng.random() < 0.8 - 0.1 * k),
            cluster=f"c{item % 5}",
        )
        for item in range(60)
        for k, model in enumerate("abcd")
    ]
    shuffled = [records[k] for k in rng.permutation(len(records))]
    details = []
    for each in (records, shuffled, records[::-1]):
        log = FoldLog({"declare": "bench", "scores": "graded"}) if graded else FoldLog()
        log.send(*each)
        view = report_view(board_view(log.bench), pairs="all", assert_complete=True)
        detail = with_detail(view.report, view.table).detail
        pairs = {(d.model_a, d.model_b): d.as_dict() for d in detail.pairs}
        assert len(pairs) == 3
        details.append({(pair, name): value for pair, values in pairs.items() for name, value in flat(values)})
    for other in details[1:]:
        assert other.keys() == details[0].keys()
        for place, value in other.items():
            expected = details[0][place]
            assert value == (pytest.approx(expected, rel=1e-9) if isinstance(expected, float) else expected), place


def flat(value, name=""):
    """Yield every number and text of nested values with its place."""
    if isinstance(value, dict | list | tuple):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from flat(inner, f"{name}.{key}")
    else:
        yield name, value


def test_battles_have_no_second_opinion_on_scores():
    log = FoldLog(declare())
    log.send(*battles_of(3, 300, prompts=60, cluster=["j1", "j2", None]))
    view = report_view(board_view(log.bench))
    pairs = with_detail(view.report, view.table).detail.pairs
    assert pairs
    assert {pair.bootstrap_low for pair in pairs} == {None}

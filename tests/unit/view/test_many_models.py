"""Tables of many models compute each distinct count, and each displayed pair, once: with the values of a pair on its own."""

import numpy as np
import pytest

from monitor.view.build import table_view
from monitor.view.from_state import board_view
from monitor.view.kinds import binary
from monitor.view.pairs import table as tables
from monitor.view.pairs.table import PairTable
from stats import benjamini_hochberg, clustered_p, exact_p, holm, log_e_halves, log_e_value, mid_p
from tests.fold_log import FoldLog, packed

MODELS = 120


@pytest.fixture(scope="module", params=["none", "trusted", "completion"])
def log(request):
    """120 models of three abilities on 40 items, some not scored; some models are the same, so that counts repeat."""
    rng = np.random.default_rng(3)
    ability = np.array([0.2, 0.5, 0.95])[np.arange(MODELS) % 3]
    scores = (rng.random((40, MODELS)) < ability).astype(float)
    scores[rng.random(scores.shape) < 0.05] = np.nan
    scores[:, :20] = scores[:, [0]]
    log = FoldLog({"declare": "bench", "order": request.param, "items": 40})
    log.send(packed(scores, [f"m{k:03}" for k in range(MODELS)]))
    return log


def test_the_tests_of_all_pairs_are_those_of_each_pair(log):
    table = PairTable(board_view(log.bench))
    evidence, place = table.kind.uniform
    assert evidence.log_e.size < table.pairs.size / 4, "nothing repeats: the test shows nothing"
    assert np.unique(place).size == evidence.log_e.size
    b, c, every = table.pairs.wins, table.pairs.losses, np.arange(table.pairs.size)
    np.testing.assert_allclose(table.kind.p_exact, exact_p(b, c), rtol=1e-10)
    np.testing.assert_allclose(table.kind.p_mid(every), mid_p(b, c), rtol=1e-9)
    np.testing.assert_allclose(table.kind.log_e, log_e_value(b, c), atol=1e-9)
    np.testing.assert_allclose(table.kind.log_e_halves(every), log_e_halves(b, c), atol=1e-8)


def test_fixed_n_decisions_are_those_of_the_adjusted_p_values_of_all_pairs(log):
    table = PairTable(board_view(log.bench))
    p, lead = table.kind.p_fixed, np.sign(table.pairs.wins - table.pairs.losses)
    adjusted = {
        "fixed_n": p,
        "bonferroni": p * table.pairs.size,
        "bonferroni_adjacent": np.where(table.pairs.adjacent, p * (MODELS - 1), 1),
        "holm": holm(p),
        "benjamini_hochberg": benjamini_hochberg(p),
    }
    assert {name for name, values in adjusted.items() if (values <= 0.05).any()} >= {"holm", "bonferroni"}
    assert table.fixed_n_decisions.keys() == adjusted.keys()
    for name, values in adjusted.items():
        assert table.fixed_n_decisions[name].tolist() == np.where(values <= 0.05, lead, 0).tolist(), name


def test_what_is_displayed_of_some_pairs_is_what_all_pairs_have(log, monkeypatch):
    table = PairTable(board_view(log.bench))
    some = np.flatnonzero(table.pairs.adjacent)
    for column in (table.log_family_threshold, table.family_weights, table.has_place, table.kind.n_star):
        assert column(some).tolist() == column()[some].tolist()
    assert table.has_place().tolist() == np.isfinite(table.log_family_threshold()).tolist()
    all_means = table.kind.means(np.arange(table.pairs.size))
    monkeypatch.setattr(binary, "FEW", 1.0)
    monkeypatch.setattr(binary, "SLAB_CELLS", 400)
    np.testing.assert_array_equal(table.kind.means(some), [means[some] for means in all_means])
    whole = {
        (row.model_a, row.model_b): row for row in table_view(PairTable(board_view(log.bench)), "all").report.pairs
    }
    for row in table_view(table, "adjacent").report.pairs:
        found, wanted = row.as_dict(), whole[row.model_a, row.model_b].as_dict()
        for each in (*found["facts"], *wanted["facts"]):
            each.pop("probability", None)
        chances = [each.pop("decision_probability") or 0.0 for each in (found, wanted)]
        # The last digit of a chance depends on how many are computed together.
        assert chances[0] == pytest.approx(chances[1], rel=1e-12)
        assert found == wanted


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_cluster_robust_test_decides_as_the_p_values_of_all_pairs(graded, missing, monkeypatch):
    rng = np.random.default_rng(8)
    label = np.arange(120) % 15
    scores = (rng.random((120, 40)) < np.linspace(0.1, 0.9, 40)).astype(float)
    if graded:
        scores = np.where(rng.random(scores.shape) < 0.3, 0.5, scores)
    scores[rng.random(scores.shape) < missing] = np.nan
    scores[3, :9] = np.nan  # all models have some items, and some of them others
    log = FoldLog({"declare": "bench", "scores": "graded" if graded else "binary"})
    events = packed(scores, [f"m{k:02}" for k in range(40)])["events"]
    log.send({"events": [each | {"cluster": f"c{label[int(each['item_id'])]}"} for each in events]})
    table, every = PairTable(board_view(log.bench)), np.arange(780)
    monkeypatch.setattr(tables, "_BLOCK_PAIRS", 130)
    sums = tables.cluster_sums(table.kind, every)
    p = clustered_p(sums.n, sums.s1)
    assert 50 < np.count_nonzero(holm(p) <= 0.05) < 700
    assert table.clustered.tolist() == table.towards_lead(holm(p) <= 0.05).tolist()
    monkeypatch.setattr(tables, "FEW", 1.0)
    monkeypatch.setattr(tables, "SLAB_CELLS", 5_000)
    for one_by_one, product in zip(tables.cluster_sums(table.kind, every)[2:], sums[2:], strict=True):
        np.testing.assert_allclose(one_by_one, product, atol=1e-12)

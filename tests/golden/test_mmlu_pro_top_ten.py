"""The nine printed MMLU-Pro pairs, rebuilt through the fold: what the report says of them is what the paper prints."""

import json
from itertools import pairwise

import numpy as np
import pytest

from monitor.engine.chunk_fold import Partition
from monitor.paper.demo.simulate import BENCHMARK, demo_stream
from monitor.paper.published import PAPER
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from schemas.records.chunks import Chunk

# The paper does not print ln e; these are recomputed from its counts, for its mixture of 98 values of theta.
LOG_E = [25.6599, 61.0782, -0.3886, 104.7856, 4.3738, -4.2685, 7.2781, 0.1968, -3.9145]
ITEMS = 12_032


def folded(*, mixture):
    """Fold the stream of the demo, declared with this mixture, in chunks of uneven size."""
    stream = demo_stream()
    family = {"policy": "capacity", "pairs": stream.pairs}
    declaration = {"declare": BENCHMARK, "items": ITEMS, "order": "trusted", "family": family, "mixture": mixture}
    records = [json.dumps(declaration).encode(), *stream.events]
    partition = Partition()
    bounds = [0, 1, 2, 5_003, 50_001, 50_002, 99_999, len(records)]
    for low, high in pairwise(bounds):
        partition.fold(Chunk(0, low, high, range(low, high), records[low:high]))
    return stream, partition.benchmarks[BENCHMARK]


@pytest.fixture(scope="module")
def golden():
    stream, benchmark = folded(mixture="grid98")
    return stream, benchmark, benchmark_report(board_view(benchmark), pairs="all")


@pytest.fixture(scope="module")
def nine(golden):
    stream, _, report = golden
    rows = {(p.model_a, p.model_b): p for p in report.pairs}
    return [rows[pair] for pair in stream.pairs]


def test_the_counts_are_the_printed_ones_and_every_pair_agrees_with_the_table(golden):
    stream, benchmark, report = golden
    assert (report.items, report.events, len(report.pairs)) == (ITEMS, 10 * ITEMS, 45)
    assert [m.model for m in report.models] == list(stream.models)
    column = {model: stream.scores[:, k].astype(int) for k, model in enumerate(stream.models)}
    for pair in report.pairs:
        d = column[pair.model_a] - column[pair.model_b]
        assert (pair.n, pair.b, pair.c) == (ITEMS, (d > 0).sum(), (d < 0).sum())
    assert benchmark.counters == {"events": 10 * ITEMS, "duplicates": 0, "conflicts": 0, "filled": 0, "rejected": 0}


@pytest.mark.parametrize("k", range(9), ids=lambda k: f"{k + 1} v {k + 2}")
def test_a_printed_row(nine, k):
    row, printed = nine[k], PAPER.mmlu[k]
    assert (row.b, row.c, row.adjacent) == (printed.b, printed.c, True)
    assert row.gap == pytest.approx(printed.p_a - printed.p_b, abs=1.01e-4)
    assert (row.p_a, row.p_b) == pytest.approx((printed.p_a, printed.p_b), abs=1.01e-4)
    assert row.rho == pytest.approx(float(printed.rho), abs=0.0051)
    n_star = int(printed.required_n.replace(",", ""))
    assert row.required_n == pytest.approx(n_star, rel=1e-4, abs=1)
    assert row.resolution_ratio == pytest.approx(ITEMS / n_star, rel=1.3e-3)
    assert row.resolved.fixed_n is (n_star <= ITEMS)
    assert row.log_e == pytest.approx(LOG_E[k], abs=5.1e-5)
    for p, text in ((row.p_chi2, printed.p_chi2), (row.p_exact, printed.p_exact)):
        if text.startswith("<"):
            assert p < float(text[1:])
        elif float(text) < 0.01:
            assert float(f"{p:.1e}") == float(text)
        else:
            assert p == pytest.approx(float(text), abs=5.1e-4)


def test_verdicts_of_the_nine(nine, golden):
    _, _, report = golden
    assert report.family.as_dict() == {"policy": "capacity", "size": 9, "families": 1}
    reaching = [row.log_e >= np.log(180) for row in nine]
    assert [k + 1 for k, reached in enumerate(reaching) if reached] == [1, 2, 4, 7]
    # A latch may close on the way and its evidence fall back later; none that the final counts decide is open.
    assert all(row.decided.anytime_family == "a" for row, reached in zip(nine, reaching, strict=True) if reached)
    assert [k + 1 for k, row in enumerate(nine) if row.decided.e_bh] == [1, 2, 4, 5, 7]
    assert sum(not row.resolved.fixed_n for row in nine) == 4
    assert sum(not row.resolved.anytime for row in nine) == 5
    outside = [p for p in report.pairs if not p.adjacent]
    assert {p.decided.anytime_family for p in outside} == {None}
    assert all("not in the declared family" in p.reason for p in outside)


def test_the_exact_test_decides_5_and_6_in_the_family_where_the_default_mixture_would_not():
    _, benchmark = folded(mixture="beta(1,1)")
    row = next(p for p in benchmark_report(board_view(benchmark)).pairs if p.model_a == "Reflection-70B")
    assert row.log_e == pytest.approx(4.3537, abs=5e-5)
    assert row.log_e < np.log(9 / 0.05)
    assert (row.decided.anytime, row.decided.anytime_family) == ("a", "a")
    assert row.resolution_ratio == pytest.approx(2.079, abs=5e-4)
    assert row.resolved.anytime is False

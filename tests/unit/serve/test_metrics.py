"""The metrics against the state they are computed from."""

import json
import random

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from monitor.engine.chunk import Chunk
from monitor.engine.followed import follow
from monitor.engine.partition import Partition
from monitor.engine.report import benchmark_report
from monitor.serve.board import Board
from monitor.serve.metrics import StateCollector, Worker
from stats.eprocess import anytime_required_n


def partition(events, **declared):
    """A partition that has folded a declaration and events."""
    records = [json.dumps(e).encode() for e in ({"declare": "bench", **declared}, *events)]
    made = Partition(4)
    made.fold(Chunk(4, 0, len(records), range(len(records)), records))
    return made


def scored(skills, items, seed=1):
    rng = random.Random(seed)
    for item in range(items):
        for model, skill in skills.items():
            yield {"benchmark": "bench", "item_id": f"i{item}", "model": model, "score": int(rng.random() < skill)}


def samples(made):
    """Samples by (name, labels), through OpenMetrics and its own parser."""
    registry = CollectorRegistry()
    worker = Worker("run", "evals", "group", False, lambda: 8, lambda: {4: made.off + 7}, lambda: True)
    registry.register(StateCollector(Board(lambda: [made]), worker))
    found = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def value(found, name, **labels):
    return found.get((f"rankwatch_{name}", frozenset(labels.items())))


SKILLS = {"worse": 0.2, "better": 0.9, "middling": 0.55}


def test_a_pair_is_named_in_name_order_whoever_leads():
    made = partition(scored(SKILLS, 80), items=80)
    report = benchmark_report(made.benchmarks["bench"], pairs="all")
    found = samples(made)
    for pair in report.pairs:
        a, b = sorted((pair.model_a, pair.model_b))
        sign = 1 if pair.model_a == a else -1
        labels = {"benchmark": "bench", "model_a": a, "model_b": b}
        assert value(found, "pair_gap_ratio", **labels) == sign * pair.gap
        low, high = ((pair.gap_low, pair.gap_high), (-pair.gap_high, -pair.gap_low))[sign < 0]
        assert value(found, "pair_gap_low_ratio", procedure="anytime", **labels) == low
        assert value(found, "pair_gap_high_ratio", procedure="anytime", **labels) == high
        assert value(found, "pair_log_e_directional", side="a", **labels) == (
            pair.log_e_a if sign > 0 else pair.log_e_b
        )
        assert value(found, "pair_decided", procedure="anytime_family", **labels) == sign
        assert value(found, "pair_status", status="decided", **labels) == 1
        needed = anytime_required_n(np.array([pair.n]), np.array([pair.b]), np.array([pair.c]), 0.05, 0.8, "beta(1,1)")
        assert value(found, "pair_resolution_ratio", procedure="anytime", **labels) == pytest.approx(pair.n / needed[0])


def test_the_worker_the_log_and_the_declaration_are_told():
    made = partition(scored(SKILLS, 30), items=40)
    found = samples(made)
    assert value(found, "log_lag", partition="4") == 7
    assert value(found, "partitions") == 8
    assert value(found, "items_declared", benchmark="bench") == 40
    labels = {"benchmark": "bench", "order": "completion", "family": "spending", "mixture": "beta(1,1)"}
    assert value(found, "benchmark_info", **labels) == 1
    assert (
        value(
            found, "configuration_info", mode="run", topic="evals", group="group", pair_series_cap="300", webhook="no"
        )
        == 1
    )


def test_names_from_outside_stay_within_their_label():
    wild = 'x"} 1 rankwatch_held{benchmark="y'
    events = [{"benchmark": "bench", "item_id": "1", "model": m, "score": 1} for m in ("a\\", wild)]
    found = samples(partition(events, items=3))
    assert value(found, "model_rank", benchmark="bench", model=wild) == 2
    assert value(found, "model_rank", benchmark="bench", model="a\\") == 1
    assert value(found, "held", benchmark="y") is None


def test_beyond_the_cap_neighbours_come_first_and_the_rest_is_counted():
    skills = {f"m{k}": 0.05 + 0.1 * k for k in range(10)}
    made = partition(scored(skills, 300, seed=3), items=300)
    benchmark = made.benchmarks["bench"]
    decided = {tuple(sorted((c.model_a, c.model_b))) for c in benchmark.changes.values()}
    assert len(decided) > 20
    all_of_them = follow(benchmark)
    assert all_of_them.omitted == 0
    capped = follow(benchmark, cap=12)
    adjacent = {tuple(sorted((p.model_a, p.model_b))) for p in capped.report.pairs if p.adjacent}
    assert len(adjacent) == 9
    others = {tuple(sorted((p.model_a, p.model_b))) for p in capped.report.pairs} - adjacent
    assert len(others) == 3 and others <= decided  # noqa: PT018
    assert capped.omitted == len(decided | adjacent) - 12
    assert capped.decided == all_of_them.decided


def test_declared_pairs_are_followed_and_a_full_family_is_counted():
    events = list(scored({"a": 0.9, "b": 0.6, "c": 0.3}, 10))
    declared = partition(events, items=100, family={"policy": "capacity", "pairs": [["a", "c"]]})
    assert {(p.model_a, p.model_b) for p in follow(declared.benchmarks["bench"]).report.pairs} == {
        ("a", "b"),
        ("b", "c"),
        ("a", "c"),
    }
    full = samples(partition(events, items=100, family={"policy": "capacity", "size": 2}))
    assert value(full, "pairs_beyond_family_capacity", benchmark="bench") == 1


def test_a_pair_that_shares_everything_and_is_undecided_is_exhausted():
    found = samples(partition(scored({"a": 0.5, "b": 0.5}, 20), items=20))
    assert value(found, "pairs_exhausted_undecided", benchmark="bench") == 1
    assert value(found, "pair_status", benchmark="bench", model_a="a", model_b="b", status="exhausted") == 1

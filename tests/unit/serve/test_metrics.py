"""The metrics against the state they are computed from."""

import itertools
import json
import random
from collections import Counter
from gzip import compress

import msgspec
import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as families_of_plain_text
from structlog.testing import capture_logs

from monitor.engine.chunk_fold import Partition
from monitor.engine.state.changes import BenchmarkDelta, Delta
from monitor.instruments import ProcessMetrics
from monitor.serve import cache
from monitor.serve.metrics import budget
from monitor.serve.metrics.budget import allot, size_of
from monitor.serve.metrics.catalogue import CATALOGUE
from monitor.serve.metrics.collector import MetricsCollector, WorkerInfo
from monitor.serve.report_cache import ReportCache
from monitor.store.layout import record_commit
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.metrics_view import metrics_view
from monitor.view.partition_view import PartitionView
from schemas.records.chunks import Chunk
from schemas.records.declaration import Declaration
from schemas.records.events import EventFields
from schemas.results.verdict_changes import VerdictChanges
from stats.evidence.eprocess import anytime_required_n
from tests.unit.engine.test_sentinel import ITEMS
from tests.unit.engine.test_sentinel import made as made_runs


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


OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def metrics(made, kept=None, mode="watch", **more):
    worker = WorkerInfo(mode, "evals", "group", False, lambda: 8, lambda: {4: made.off + 7}, lambda: True, **more)
    process_metrics = ProcessMetrics()
    process_metrics.add_broker()
    if mode == "serve":
        process_metrics.add_reader(lambda: 0.5)
    return MetricsCollector(kept or ReportCache(lambda: [PartitionView(made)]), worker, process_metrics.registry)


def by_name_and_labels(families):
    values = {}
    for family in families:
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in values
            values[key] = sample.value
    return values


def samples(made, **more):
    """Samples by (name, labels), through OpenMetrics and its own parser."""
    text, _ = metrics(made, **more).scrape(OPENMETRICS)
    return by_name_and_labels(text_string_to_metric_families(text.decode()))


def value(values, name, **labels):
    return values.get((f"rankwatch_{name}", frozenset(labels.items())))


SKILLS = {"worse": 0.2, "better": 0.9, "middling": 0.55}


def test_a_pair_is_named_in_name_order_whoever_leads():
    made = partition(scored(SKILLS, 80), items=80)
    report = benchmark_report(board_view(made.benchmarks["bench"]), pairs="all")
    values = samples(made)
    for pair in report.pairs:
        a, b = sorted((pair.model_a, pair.model_b))
        sign = 1 if pair.model_a == a else -1
        labels = {"benchmark": "bench", "model_a": a, "model_b": b}
        assert value(values, "pair_gap_ratio", **labels) == sign * pair.gap
        low, high = ((pair.gap_low, pair.gap_high), (-pair.gap_high, -pair.gap_low))[sign < 0]
        assert value(values, "pair_gap_low_ratio", procedure="anytime", **labels) == low
        assert value(values, "pair_gap_high_ratio", procedure="anytime", **labels) == high
        assert value(values, "pair_log_e_directional", side="a", **labels) == (
            pair.log_e_a if sign > 0 else pair.log_e_b
        )
        assert value(values, "pair_decided", procedure="anytime_family", **labels) == sign
        assert value(values, "pair_status", status="decided", **labels) == 1
        needed = anytime_required_n(np.array([pair.n]), np.array([pair.b]), np.array([pair.c]), 0.05, 0.8, "beta(1,1)")
        assert value(values, "pair_resolution_ratio", procedure="anytime", **labels) == pytest.approx(
            pair.n / needed[0]
        )


def test_the_worker_the_log_and_the_declaration_have_metrics():
    made = partition(scored(SKILLS, 30), items=40)
    values = samples(made)
    assert value(values, "log_lag", partition="4") == 7
    assert value(values, "partitions") == 8
    assert value(values, "items_declared", benchmark="bench") == 40
    labels = {"benchmark": "bench", "order": "completion", "family": "spending", "mixture": "beta(1,1)"}
    assert value(values, "benchmark_info", **labels) == 1
    assert (
        value(
            values,
            "configuration_info",
            mode="watch",
            topic="evals",
            group="group",
            pair_series_cap="300",
            webhook="no",
        )
        == 1
    )


def test_commit_times_become_timestamps():
    made = partition(scored(SKILLS, 80), items=80)
    times = {}
    for at, field in ((100.0, "0:anytime:decided"), (101.0, "0:anytime:decided"), (102.0, "1:anytime:decided")):
        delta = Delta(4, 0, 1, [BenchmarkDelta("key", "bench", 1, changes=VerdictChanges({field: None}))])
        record_commit(times, delta, at)
    text, _ = metrics(made, ReportCache(lambda: [PartitionView(made)], lambda: times)).scrape(OPENMETRICS)
    values = by_name_and_labels(text_string_to_metric_families(text.decode()))
    assert value(values, "last_event_timestamp_seconds", benchmark="bench") == 102
    labels = {"benchmark": "bench", "procedure": "anytime"}
    assert value(values, "decided_timestamp_seconds", model_a="better", model_b="worse", **labels) == 100
    assert value(values, "decided_timestamp_seconds", model_a="middling", model_b="worse", **labels) == 102
    assert value(samples(made), "last_event_timestamp_seconds", benchmark="bench") is None


def test_names_from_outside_stay_within_their_label():
    wild = 'x"} 1 rankwatch_held{benchmark="y'
    events = [{"benchmark": "bench", "item_id": "1", "model": m, "score": 1} for m in ("a\\", wild)]
    values = samples(partition(events, items=3))
    assert value(values, "model_rank", benchmark="bench", model=wild) == 2
    assert value(values, "model_rank", benchmark="bench", model="a\\") == 1
    assert value(values, "held", benchmark="y") is None


def test_beyond_the_cap_neighbours_come_first_and_the_rest_is_counted():
    skills = {f"m{k}": 0.05 + 0.1 * k for k in range(10)}
    made = partition(scored(skills, 300, seed=3), items=300)
    benchmark = made.benchmarks["bench"]
    decided = {tuple(sorted((c.model_a, c.model_b))) for c in benchmark.changes.values()}
    assert len(decided) > 20
    all_of_them = metrics_view(board_view(benchmark))
    assert all_of_them.followed == all_of_them.n.size
    capped = metrics_view(board_view(benchmark), cap=12)
    adjacent = {tuple(sorted((p.model_a, p.model_b))) for p in benchmark_report(board_view(benchmark)).pairs}
    assert len(adjacent) == 9
    followed = {tuple(sorted(names)) for names in capped.names}
    assert adjacent < followed
    others = followed - adjacent
    assert len(others) == 3 and others <= decided  # noqa: PT018
    assert capped.followed == len(decided | adjacent)
    assert capped.decided == all_of_them.decided


def test_declared_pairs_are_followed_and_a_full_family_is_counted():
    events = list(scored({"a": 0.9, "b": 0.6, "c": 0.3}, 10))
    declared = partition(events, items=100, family={"policy": "capacity", "pairs": [["a", "c"]]})
    assert set(metrics_view(board_view(declared.benchmarks["bench"])).names) == {
        ("a", "b"),
        ("b", "c"),
        ("a", "c"),
    }
    full = samples(partition(events, items=100, family={"policy": "capacity", "size": 2}))
    assert value(full, "pairs_beyond_family_capacity", benchmark="bench") == 1


def test_a_goal_has_what_each_model_ran_and_its_price():
    made = partition(scored({"a": 0.9, "b": 0.5}, 10), items=40, goal="best")
    for prices, cost in (({"a": 0.5, "": 0.1}, {"run": 6.0, "saved": 18.0}), ({"a": 0.5}, {})):
        text, _ = metrics(made, ReportCache(lambda: [PartitionView(made)], prices=prices)).scrape(OPENMETRICS)
        values = by_name_and_labels(text_string_to_metric_families(text.decode()))
        of_board = {name: value for (name, labels), value in values.items() if dict(labels) == {"benchmark": "bench"}}
        for model in "ab":
            labels = frozenset({"benchmark": "bench", "model": model}.items())
            assert values["rankwatch_model_scores_run", labels] == 10
            assert (
                values["rankwatch_model_scores_saved_ratio", labels] == of_board["rankwatch_scores_saved_ratio"] == 0.75
            )
        assert {
            name: of_board[key] for name in ("run", "saved") if (key := f"rankwatch_scores_{name}_cost") in of_board
        } == cost


def test_a_pair_that_shares_everything_and_is_undecided_is_exhausted():
    values = samples(partition(scored({"a": 0.5, "b": 0.5}, 20), items=20))
    assert value(values, "pairs_exhausted_undecided", benchmark="bench") == 1
    assert value(values, "pair_status", benchmark="bench", model_a="a", model_b="b", status="exhausted") == 1


def test_a_sentinel_has_the_mean_of_its_last_ranked_run_and_of_its_frozen_answers_within_the_budget():
    first, second = made_runs(2, judge_at=9)
    made = partition([*first, *second[:5], {"ended": "bench"}], items=ITEMS, drift={"judge": "j", "anchors": ITEMS})
    values = samples(made)
    for of, role in (("model", None), ("judge", "anchor")):
        scores = [each["score"] for each in first if each.get("role") == role]
        assert value(values, "sentinel_mean_ratio", benchmark="bench", model="m", of=of) == sum(scores) / len(scores)
    small = samples(made, series=lambda: 0)
    assert not [labels for name, labels in small if name == "rankwatch_sentinel_mean_ratio"]
    assert value(small, "series_omitted") >= 2


@pytest.mark.parametrize("mode", ["watch", "run", "serve"])
def test_both_formats_have_the_same_value_of_every_metric_of_the_catalogue(mode):
    made = partition(scored(SKILLS, 40), items=60)
    read = {}
    for accept, parse in ((OPENMETRICS, text_string_to_metric_families), ("", families_of_plain_text)):
        text, content_type = metrics(made, mode=mode).scrape(accept)
        assert content_type.startswith("application/openmetrics-text" if accept else "text/plain; version=0.0.4")
        families = list(parse(text.decode()))
        read[accept] = {
            key: number for key, number in by_name_and_labels(families).items() if not key[0].endswith("_created")
        }
        described = {family.name: (family.type, family.documentation) for family in families}
        for metric in (metric for metric in CATALOGUE if mode in metric.modes):
            name = metric.name if metric.kind == "counter" or accept else metric.exposed
            kind = "gauge" if metric.kind == "info" and not accept else metric.kind
            assert described[name] == (kind, metric.help)
    assert read[""] == read[OPENMETRICS]


def clustered(events):
    return [{**event, "cluster": f"c{int(event['item_id'][1:]) % 4}"} for event in events]


def graded(events):
    return [{**event, "score": (event["score"] + int(event["item_id"][1:]) % 3) / 4} for event in events]


CLOSE = {"alpha": 0.5, "beta": 0.58, "gamma": 0.66, "delta": 0.9}
STATES = {
    "nothing declared": lambda: partition(scored(CLOSE, 60)),
    "half of the items": lambda: partition(scored(CLOSE, 80), items=160, margin=0.2),
    "too many items": lambda: partition(scored(SKILLS, 80), items=70),
    "clusters": lambda: partition(clustered(scored(CLOSE, 120)), order={"policy": "trusted"}),
    "graded": lambda: partition(graded(scored(CLOSE, 80)), items=90, scores="graded"),
    "turned graded": lambda: partition([*scored(SKILLS, 60), *graded(scored(CLOSE, 90))], items=100),
    "another mixture": lambda: partition(scored(CLOSE, 80), items=160, mixture="grid98"),
    "a family of one": lambda: partition(
        scored(CLOSE, 80), items=160, family={"policy": "capacity", "pairs": [["alpha", "delta"]]}
    ),
    "one model": lambda: partition(scored({"alpha": 0.5}, 5), items=10),
    "no events": lambda: partition([], items=10),
}


@pytest.mark.parametrize("state", STATES)
def test_the_metrics_are_those_of_the_report(state):
    benchmark = STATES[state]().benchmarks["bench"]
    report = benchmark_report(board_view(benchmark), pairs="all")
    rows = {(pair.model_a, pair.model_b): pair for pair in report.pairs}
    view = metrics_view(board_view(benchmark))
    # No metric shows the means on shared items, so the view does not compute them.
    unshared = {"shared_mean": None, "shared_rank": None}
    assert view.models == [model.replace(**unshared) for model in report.models]
    assert view.clusters == report.clusters
    assert view.pairs == len(rows)
    for procedure, count in view.decided.items():
        assert count == sum(getattr(pair.decided, procedure) is not None for pair in report.pairs)
    counted = Counter((change.procedure, change.kind) for change in benchmark.changes.values())
    assert {key: count for key, count in view.changes.items() if count} == counted
    assert len(view.changes) == 11
    assert (view.model_count, view.items_least) == (
        len(report.models),
        min((m.items for m in report.models), default=None),
    )
    assert view.exhausted == sum(pair.status == "exhausted" and pair.n > 0 for pair in report.pairs)
    for place, names in enumerate(view.names):
        pair = rows[names]
        assert view.statuses[place] == pair.status
        assert view.n[place] == pair.n
        for name, values in view.columns.items():
            expected = getattr(pair, name)
            assert values[place] == expected if expected is not None else not np.isfinite(values[place])
        for procedure, side in msgspec.structs.asdict(pair.decided).items():
            assert view.sides[procedure][place] == {"a": 1, None: 0, "b": -1}[side]
        q = view.resolution.get("clustered", np.full(len(view.names), np.nan))[place]
        expected = None if pair.cluster is None else pair.cluster.resolution_ratio
        assert q == expected if expected is not None else not np.isfinite(q)
    adjacent = benchmark_report(board_view(benchmark), pairs="adjacent")
    for some in (
        view,
        metrics_view(board_view(benchmark), cap=1),
    ):  # counts are of all adjacent pairs, whatever the cap
        assert some.adjacent_undecided == adjacent.summary.undecided
        assert some.neighbours_undecided == adjacent.summary.undecided.get("anytime_family")
        assert some.adjacent_unresolved == adjacent.summary.unresolved


@pytest.fixture
def three_boards():
    """A function that adds a score to each of three boards, and one that returns the items that a scrape shows of them."""
    made, names = Partition(4), ["a", "b", "c"]
    collector = metrics(made)

    def add(item):
        records = [
            json.dumps({"benchmark": name, "item_id": str(item), "model": "m", "score": 1}).encode() for name in names
        ]
        made.fold(Chunk(4, made.off, made.off + 3, range(made.off, made.off + 3), records))

    def shown():
        values = by_name_and_labels(families_of_plain_text(collector.scrape("")[0].decode()))
        assert {value(values, "events_total", benchmark=name) for name in names} == {made.benchmarks["a"].items}
        return [value(values, "model_items_least", benchmark=name) for name in names]

    add(1)
    assert shown() == [1, 1, 1]
    return add, shown


def test_a_scrape_renews_the_oldest_statistics_while_it_has_time(three_boards, monkeypatch):
    add, shown = three_boards
    monkeypatch.setattr(budget, "SCRAPE_SECONDS", 2)
    monkeypatch.setattr(budget, "thread_time", itertools.count().__next__)  # each look at the clock takes a second
    add(2)
    assert shown() == [2, 1, 1]
    add(3)
    assert [shown() for _ in range(4)] == [[2, 3, 1], [2, 3, 3], [3, 3, 3], [3, 3, 3]]


def test_statistics_that_took_long_rest(three_boards, monkeypatch):
    add, shown = three_boards
    monkeypatch.setattr(cache, "SLOW_SECONDS", 0)
    monkeypatch.setattr(cache, "REST", 1e9)
    add(2)
    assert shown() == [1, 1, 1]


def test_a_scrape_of_the_process_has_no_board_and_is_compressed_where_that_is_asked_for():
    made = partition(scored(SKILLS, 10), items=60)
    for text in (
        metrics(made).scrape("", "process")[0].decode(),
        metrics(made, mode="run").scrape("", "all")[0].decode(),
    ):
        assert "rankwatch_log_position{" in text
        assert 'rankwatch_benchmark_owned{benchmark="bench"} 1.0' in text
        assert text.count('{benchmark="bench"') == 1


def test_the_budget_leaves_out_models_and_pairs_and_reports_it():
    made = partition(scored(SKILLS, 30), items=40)
    worker = WorkerInfo("watch", "evals", "group", False, lambda: 8, dict, lambda: True, series=lambda: 100)
    with capture_logs() as logs:
        collector = MetricsCollector(ReportCache(lambda: [PartitionView(made)]), worker, ProcessMetrics().registry)
        texts = [collector.scrape("")[0].decode() for _ in range(2)]
    values = by_name_and_labels(families_of_plain_text(texts[1]))
    assert value(values, "models", benchmark="bench") == 3
    # 32 + 13 + 3 x 8 series fit, and pairs do not.
    assert value(values, "model_rank", benchmark="bench", model="better") == 1
    assert value(values, "pair_series_omitted", benchmark="bench") == 2
    assert value(values, "model_series_omitted", benchmark="bench") == 0
    assert value(values, "series_budget") == 100
    assert value(values, "series_omitted") == 3 * 22
    assert value(values, "model_items_least", benchmark="bench") == 30
    assert "rankwatch_pair_items{" not in texts[1]
    assert [line["omitted"] for line in logs] == [66]  # once, not at every scrape


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("series", [0, 100, 250, 80_000])
def test_no_board_has_more_series_than_the_budget_counts_for_it(state, series):
    made = STATES[state]()
    worker = WorkerInfo("watch", "evals", "group", False, lambda: 8, dict, lambda: True, series=lambda: series)
    text = (
        MetricsCollector(ReportCache(lambda: [PartitionView(made)]), worker, ProcessMetrics().registry)
        .scrape("")[0]
        .decode()
    )
    counted = allot([size_of(board_view(made.benchmarks["bench"]))], series, lambda _: False)
    exported = sum('benchmark="bench"' in line for line in text.splitlines())
    assert exported <= max(series, 32)
    assert ("rankwatch_model_rank{" in text) == (counted.shown["bench"].models and state != "no events")


@pytest.mark.full
def test_a_scrape_of_thousands_of_boards_stays_within_the_budget():
    made, rng = Partition(4), random.Random(1)
    sizes = {f"board {k}": 10 for k in range(2_000)} | {f"wide {k}": 20 for k in range(200)} | {"large": 300}
    for name, models in sizes.items():
        fields = [
            EventFields(benchmark=name, item_id="i", model=f"m{m}", score=rng.randint(0, 1)) for m in range(models)
        ]
        made.fold_events([Declaration(declare=name, items=9)], fields, [], made.off + models)
    worker = WorkerInfo("serve", "evals", "", False, lambda: 8, dict, lambda: True)
    collector = MetricsCollector(ReportCache(lambda: [PartitionView(made)]), worker, ProcessMetrics().registry)
    text, _ = collector.scrape(OPENMETRICS)
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    assert 60_000 < series < 100_000
    assert len(text) < 10_000_000
    assert len(compress(text, 1)) < 500_000

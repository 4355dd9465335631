"""Every surface states the same verdicts at every moment of a stream: rows, sentences, API, metrics, charts and changes."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from monitor.engine.chunk_fold import Partition
from monitor.instruments import ProcessMetrics
from monitor.serve.metrics.collector import MetricsCollector, WorkerInfo
from monitor.serve.report_cache import ReportCache
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.live_pairs import LivePairs
from monitor.view.metrics_view import metrics_view
from monitor.view.pairs.evidence_path import pair_path
from monitor.view.partition_view import PartitionView
from schemas.records.chunks import Chunk
from tests.property.test_fold_laws import SIZES, log_of, streams

_CLAIMS = {"anytime": ("gap_low", "gap_high"), "anytime_family": ("gap_family_low", "gap_family_high")}


def moments(records, end, cuts):
    """Fold a log chunk by chunk; yield the partition after each."""
    partition = Partition()
    bounds = sorted({0, len(records), *(cut % len(records) for cut in cuts)})
    for low, high in pairwise(bounds):
        part = records[low:high]
        stop = records[high][0] if high < len(records) else end
        partition.fold(Chunk(0, part[0][0], stop, [o for o, _ in part], [r for _, r in part]))
        if "bench" in partition.benchmarks and len(partition.benchmarks["bench"].contestants) > 1:
            yield partition


def leaves_out_zero(low, high):
    """Return the side that an interval supports; None where it contains 0 or is not known."""
    if low is None or high is None:
        return None
    return "a" if low > 0 else "b" if high < 0 else None


def check_row(row):
    """The parts of one row agree: interval, decision, status, sentence, p and threshold."""
    for claim, (low, high) in _CLAIMS.items():
        side, supported = getattr(row.decided, claim), leaves_out_zero(getattr(row, low), getattr(row, high))
        if getattr(row, low) is not None:
            assert supported == side, (claim, row)
    decided = row.decided.anytime_family
    assert (row.status == "decided") == (decided is not None and row.status not in {"superseded", "invalidated"})
    if row.status == "decided":
        better, worse = (row.model_a, row.model_b) if decided == "a" else (row.model_b, row.model_a)
        assert row.reason.startswith(f"{better} is better than {worse}, decided family-wise")
        assert row.decided_at_n is not None
    else:
        assert ", decided family-wise" not in row.reason
    if row.decided.anytime and row.status in {"collecting", "exhausted"}:
        better, worse = (row.model_a, row.model_b) if row.decided.anytime == "a" else (row.model_b, row.model_a)
        assert f"{better} is better than {worse}." in row.reason
    if row.status in {"collecting", "exhausted"} and row.p_anytime is not None and row.family_threshold is not None:
        assert row.p_anytime > row.family_threshold * (1 - 1e-9)
    if row.settled in {"a", "b"} and row.status == "exhausted" and row.gap:
        assert (row.gap > 0) == (row.settled == "a")


def by_pair(text):
    """Read the pair series of a scrape: values by metric, names in name order and remaining labels."""
    series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if "model_a" in sample.labels:
                rest = tuple(
                    v for k, v in sorted(sample.labels.items()) if k not in {"benchmark", "model_a", "model_b"}
                )
                series[sample.name, sample.labels["model_a"], sample.labels["model_b"], *rest] = sample.value
    return series


def metrics(partition):
    worker = WorkerInfo("run", "evals", "group", False, lambda: 1, dict, lambda: True)
    text, _ = MetricsCollector(
        ReportCache(lambda: [PartitionView(partition)]), worker, ProcessMetrics().registry
    ).scrape("")
    return by_pair(text.decode())


def check_metrics(values, rows):
    """The series of the pairs that have any agree with the rows."""
    sides = {"a": 1, "b": -1, None: 0}
    for row in rows:
        names = tuple(sorted((row.model_a, row.model_b)))
        if ("rankwatch_pair_items", *names) not in values:
            continue
        sign = 1 if names[0] == row.model_a else -1
        assert values["rankwatch_pair_status", *names, row.status] == 1
        for claim, ends in _CLAIMS.items():
            assert values["rankwatch_pair_decided", *names, claim] == sign * sides[getattr(row.decided, claim)]
            low, high = (getattr(row, end) for end in ends)
            shown = [
                values.get((f"rankwatch_pair_gap_{end}_ratio", *names, claim), math.nan) for end in ("low", "high")
            ]
            if low is None:
                assert all(map(math.isnan, shown))
            else:
                assert shown == pytest.approx([low, high] if sign > 0 else [-high, -low], abs=1e-12)


def check_totals(benchmark, report):
    """The counts of the metrics are counts of rows."""
    view, rows = metrics_view(board_view(benchmark)), [row for row in report.pairs if row.status != "superseded"]
    assert view.pairs == len(rows) == report.summary.pairs
    assert view.settled == sum(row.settled is not None for row in rows)
    assert view.exhausted == sum(row.status == "exhausted" and row.n > 0 for row in rows)
    for claim in _CLAIMS if rows else ():
        assert report.summary.undecided[claim] == sum(getattr(row.decided, claim) is None for row in rows)
    for claim in _CLAIMS:
        assert view.decided[claim] == sum(getattr(row.decided, claim) is not None for row in rows)


def check_api(benchmark, rows):
    """The API returns the rows of the report, and filters and matrices that agree with them."""
    live = LivePairs(board_view(benchmark))
    assert live.rows(np.arange(live.table.pairs.size)) == rows
    matrix = live.decided_matrix()
    for row in rows:
        one, other = live.place(row.model_a), live.place(row.model_b)
        side = {"a": 1, "b": -1, None: 0}[row.decided.anytime_family]
        assert (matrix[one, other], matrix[other, one]) == (side, -side)


def check_path(benchmark, row):
    """The chart of a pair ends at the interval of its row, unless the row's includes a verdict that came earlier."""
    place = {c: k for k, c in enumerate(benchmark.contestants)}
    path = pair_path(board_view(benchmark), place[row.model_a, row.epoch_a], place[row.model_b, row.epoch_b], 20)
    if path.gap_low is None or row.gap_low is None or not path.n.size:
        return
    assert path.log_e[-1] == pytest.approx(row.log_e, abs=1e-9)
    at_end = leaves_out_zero(path.gap_low[-1], path.gap_high[-1])
    if benchmark.spec.order.policy == "completion" and benchmark.can_decide:
        assert at_end == row.decided.anytime
    if at_end == row.decided.anytime:
        ends = [end if abs(end) > 1e-300 else 0 for end in (row.gap_low, row.gap_high)]
        assert [path.gap_low[-1], path.gap_high[-1]] == pytest.approx(ends, abs=1e-6)


def check_changes(benchmark, rows):
    """A current verdict was a change in the feed, for the same model."""
    place = {tuple(c): k for k, c in enumerate(benchmark.contestants)}
    for row in rows:
        one, other = place[row.model_a, row.epoch_a], place[row.model_b, row.epoch_b]
        low, high = sorted((one, other))
        pair = high * (high - 1) // 2 + low
        claims = {"settled": row.settled} | {name: getattr(row.decided, name) for name in _CLAIMS}
        for claim, side in claims.items():
            change = benchmark.changes.get(
                benchmark.change_field(pair, claim, "settled" if claim == "settled" else "decided")
            )
            if side is None:
                continue
            assert change is not None
            winner = {"a": row.model_a, "b": row.model_b}.get(side)
            assert winner == {"a": change.model_a, "b": change.model_b}.get(change.after)
            if winner is not None:
                check_sentence(change)


def check_sentence(change):
    """The sentence of a verdict counts for the model that it names first, and states where that one does not lead."""
    evidence, turned = change.evidence, change.after == "b"
    better, worse = (change.model_b, change.model_a) if turned else (change.model_a, change.model_b)
    gap = -evidence.gap if turned else evidence.gap
    assert change.sentence.startswith((f"{better} is better than {worse} ", f"{better} leads {worse} "))
    assert (f", although {better} does not lead now" in change.sentence) == (gap <= 0)
    assert "went the other way" not in change.sentence or gap > 0
    if evidence.b is not None and " shared items, only " in change.sentence:
        wins, losses = (evidence.c, evidence.b) if turned else (evidence.b, evidence.c)
        assert f"only {better} is right on {wins:,} and only {worse} on {losses:,}" in change.sentence
    elif evidence.b is None and "mean score is " in change.sentence:
        assert f"mean score is {'higher' if gap >= 0 else 'lower'} by {abs(gap):.4g}" in change.sentence


@settings(max_examples=25, deadline=None)
@given(streams(), SIZES, st.lists(st.integers(0, 10_000), max_size=3))
def test_every_surface_states_the_same_verdicts(stream, sizes, cuts):
    spec, events = stream
    records, _, end = log_of(spec, events, sizes)
    for partition in moments(records, end, cuts):
        benchmark = partition.benchmarks["bench"]
        report = benchmark_report(board_view(benchmark), pairs="all")
        current = [row for row in report.pairs if row.status != "superseded"]
        for row in report.pairs:
            check_row(row)
        check_totals(benchmark, report)
        check_metrics(metrics(partition), current)
        check_api(benchmark, current)
        check_changes(benchmark, current)
        for row in current:
            if row.n:
                check_path(benchmark, row)


@settings(max_examples=15, deadline=None)
@given(streams(), SIZES)
def test_a_report_of_complete_files_states_the_same_verdicts(stream, sizes):
    spec, events = stream
    records, _, end = log_of(spec, events, sizes)
    for partition in moments(records, end, []):
        for row in benchmark_report(board_view(partition.benchmarks["bench"]), pairs="all", assert_complete=True).pairs:
            check_row(row)

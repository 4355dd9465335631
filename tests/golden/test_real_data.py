"""Real MMLU-Pro results through the importer, the fold and the report, against plain numpy.

RANKWATCH_DATA names a folder with mmlu_pro/events.jsonl.gz: 29 models, 12,032 items, 347,215 events, 14 categories.
"""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from monitor.engine.chunk_fold import Partition
from monitor.files.streams.read import read_files
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def path():
    folder = os.environ.get("RANKWATCH_DATA")
    if not folder:
        pytest.skip("RANKWATCH_DATA names no folder of evaluation data")
    file = Path(folder) / "mmlu_pro" / "events.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"RANKWATCH_DATA has no {file.relative_to(folder)}")
    return file


@pytest.fixture(scope="module")
def report(path):
    partition = Partition()
    for segment in read_files([path]):
        partition.fold_events(segment.declarations, segment.events, [], partition.off + len(segment.events))
    (benchmark,) = partition.benchmarks.values()
    return benchmark_report(board_view(benchmark), pairs="all", assert_complete=True)


@pytest.fixture(scope="module")
def table(path):
    """Scores by model: items of the first event order, nan where there is none."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    items, models = (
        {value: k for k, value in enumerate(dict.fromkeys(e[key] for e in events))} for key in ("item_id", "model")
    )
    scores = np.full((len(items), len(models)), np.nan)
    for e in reversed(events):  # the first score of a key wins
        scores[items[e["item_id"]], models[e["model"]]] = e["score"]
    return {model: scores[:, k] for model, k in models.items()}, len(events)


def test_counts_of_every_pair_are_those_of_plain_numpy(report, table):
    columns, events = table
    assert (report.items, len(report.models), report.events, report.rejected) == (12_032, 29, events, 0)
    assert len(report.pairs) == 406
    for pair in report.pairs:
        d = columns[pair.model_a] - columns[pair.model_b]
        assert (pair.n, pair.b, pair.c) == ((~np.isnan(d)).sum(), (d > 0).sum(), (d < 0).sum())
    for model in report.models:
        own = columns[model.model]
        assert model.items == (~np.isnan(own)).sum()
        assert model.mean == pytest.approx(np.nanmean(own))


def test_decisions_of_the_fixed_n_families(report):
    decided = {name: report.summary.pairs - count for name, count in report.summary.undecided.items()}
    assert decided["holm"] == 387
    assert decided["clustered"] == 299
    assert decided["bonferroni"] <= decided["holm"] <= decided["benjamini_hochberg"] <= decided["fixed_n"]
    assert decided["anytime_family"] <= decided["anytime"]


def test_every_pair_has_fourteen_clusters(report):
    assert {pair.cluster.clusters for pair in report.pairs} == {14}


def test_an_anytime_family_decision_is_also_one_at_fixed_n(report):
    # Of complete pairs it is Holm's procedure on the exact p-values; missing items only raise them.
    for pair in report.pairs:
        side = pair.decided.anytime_family
        assert side is None or side == pair.decided.holm

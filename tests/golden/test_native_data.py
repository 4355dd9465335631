"""Native logs from elsewhere, counted by hand.

RANKWATCH_DATA names a folder with native/lm_eval and native/inspect: logs that these programs wrote in several versions.
"""

import json
import os
from pathlib import Path

import pytest

from monitor.files.formats.choices import Choices
from monitor.files.importer import Importer
from monitor.files.streams.read import read_files

pytestmark = pytest.mark.data

BASE, TUNED = "/workspace/gemma-3-12b-it-base", "/workspace/gemma3_12b_u2"
GSM8K = {
    ("gsm8k", "gemma3:12b-it-q4_K_M"): {16: 1, 17: 0, 18: 1},
    ("gsm8k", "gemma3:12b-u1"): {16: 1, 17: 0, 18: 0},
}
PRO_PLUS = {
    ("mmlu_pro_plus_chemistry", BASE): {0: 1, 6: 0, 7: 1},
    ("mmlu_pro_plus_chemistry", TUNED): {0: 1, 6: 0, 7: 0},
    ("mmlu_pro_plus_health", BASE): {12: 0, 13: 1, 14: 1},
    ("mmlu_pro_plus_health", TUNED): {12: 0, 13: 0, 14: 1},
    ("mmlu_pro_plus_psychology", BASE): {8: 1, 9: 1, 10: 0},
    ("mmlu_pro_plus_psychology", TUNED): {8: 1, 9: 0, 10: 0},
}
MADE = {
    ("local_gen", "i82qcls7"): dict.fromkeys(range(6), 0),
    ("local_mc", "i82qcls7"): {k: int(k in {0, 5, 9}) for k in range(12)},
    ("local_corpusmetric", "acme/dummy-1"): {k: int(k in {0, 1, 3, 6, 11}) for k in range(12)},
}


class Read:
    def __init__(self, *paths, **choices):
        importer = Importer(Choices.parse(**choices))
        segments = list(read_files(importer.find(paths), opener=importer.open))
        self.events = [event for segment in segments for event in segment.events]
        self.declared = {(d.declare, d.items) for segment in segments for d in segment.declarations}
        self.found = [reject["found"] for segment in segments for reject in segment.rejects]

    def by_model(self):
        """Scores by document number, of each benchmark and model."""
        scores = {}
        for e in self.events:
            scores.setdefault((e.benchmark, e.model), {})[int(e.item_id.partition("-")[0])] = e.score
        return scores


@pytest.fixture(scope="module")
def native():
    folder = os.environ.get("RANKWATCH_DATA")
    if not folder:
        pytest.skip("RANKWATCH_DATA names no folder of evaluation data")
    folder_of_logs = Path(folder) / "native"
    if not folder_of_logs.is_dir():
        pytest.skip("RANKWATCH_DATA has no native logs")
    return folder_of_logs


def test_lm_eval_runs_of_two_models(native):
    read = Read(native / "lm_eval" / "pyfade", subtasks=True)
    assert read.by_model() == GSM8K | PRO_PLUS
    assert read.declared == {(benchmark, 100) for benchmark, _ in GSM8K | PRO_PLUS}
    assert {e.cluster for e in read.events} == {None, "chemistry", "health", "psychology"}
    assert not read.found


def test_the_subtasks_of_an_lm_eval_group_are_one_benchmark(native):
    read = Read(native / "lm_eval" / "pyfade")
    assert read.declared == {("gsm8k", 100), ("mmlu_pro_plus", 1_400)}
    scores = {(e.model, e.cluster, int(e.item_id.rpartition("/")[2].partition("-")[0])): e.score for e in read.events}
    of_subtasks = {(model, task, doc): s for (task, model), row in PRO_PLUS.items() for doc, s in row.items()}
    assert {key: score for key, score in scores.items() if key[1]} == of_subtasks


def test_the_mean_of_an_lm_eval_group_is_its_own_accuracy(native):
    folder = native / "lm_eval_groups" / "made"
    read = Read(folder / "out_a", folder / "out_b")
    assert read.declared == {("mini_mmlu", 18), ("mini_gen_rep", 5)}
    for results in folder.glob("out_*/*/results_*.json"):
        run = json.loads(results.read_text())
        scores = [e.score for e in read.events if (e.benchmark, e.model) == ("mini_mmlu", run["model_name"])]
        assert sum(scores) / len(scores) == pytest.approx(run["groups"]["mini_mmlu"]["acc,none"])


def test_lm_eval_with_repeats_filters_and_corpus_metrics(native):
    read = Read(native / "lm_eval" / "made")
    assert read.by_model() == MADE
    assert read.declared == {("local_gen", 6), ("local_mc", 12), ("local_corpusmetric", 12)}
    assert not read.found
    refused = Read(native / "lm_eval" / "made", metric=["local_corpusmetric=mcc"])
    assert len(refused.events) == 18
    assert refused.found == ["mcc"]


def test_inspect_documents(native):
    folder = native / "inspect"
    (path,) = folder.glob("made/*.json")
    for scorer, second in (("match", (1, 0, 1, 0, 1)), ("partial", (1, 0.5, 1, 0.5, 1)), ("multi.b", (0.25,) * 5)):
        read = Read(path, scorer=[scorer])
        first = (0.25,) * 5 if scorer == "multi.b" else (1,) * 5
        assert [(e.item_id, e.repeat, e.score) for e in read.events] == [
            (f"q{k:02d}", repeat, score)
            for repeat, scores in enumerate((first, second))
            for k, score in enumerate(scores)
        ]
        assert read.declared == {("tiny", 5)}
    (path,) = folder.glob("2025-05-12*.json")
    assert [(e.item_id, e.score) for e in Read(path).events] == [("1", 1), ("2", 1), ("3", 0)]
    (path,) = folder.glob("2024*.json")
    assert Read(path).found == ["no samples"]


def test_inspect_archives(native):
    folder = native / "inspect"
    read = Read(folder / "log_streaming.eval")
    assert [(e.item_id, e.repeat, e.score) for e in read.events] == [("2", 1, 1), ("2", 0, 1), ("1", 0, 0), ("1", 1, 1)]
    assert read.declared == {("popularity", 2)}
    (path,) = folder.glob("*mj7khqpMM4GBCfVQozKgzB.eval")
    assert (len(Read(path).events), sum(e.score for e in Read(path).events)) == (10, 8)
    (path,) = folder.glob("*dPiJifoWeEQBrfWsAopzWr.eval")
    assert Read(path).found == ["10 samples without a score"]

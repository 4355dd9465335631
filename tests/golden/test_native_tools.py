"""Result files of other harnesses, read by a few lines each that share nothing with the importer.

RANKWATCH_DATA names a folder with native/: files that these tools wrote. Each oracle returns (benchmark, item, model, repeat) -> score;
None is an item that was not scored. Repeats are compared as sets, since their labels are names.
"""

import csv
import hashlib
import json
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import pytest

from monitor.files.formats.choices import Choices
from monitor.files.importer import Importer
from monitor.files.streams.read import read_files
from schemas.records.events import BattleFields

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def native():
    folder = Path(os.environ.get("RANKWATCH_DATA", "")) / "native"
    if not os.environ.get("RANKWATCH_DATA") or not (folder / "helm").is_dir():
        pytest.skip("RANKWATCH_DATA names no folder with native results of other harnesses")
    return folder


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def helm(folder):
    for path in folder.rglob("per_instance_stats.json"):
        spec = json.loads(path.with_name("run_spec.json").read_text())
        name, _, args = spec["name"].partition(":")
        subject = re.search("subject=([^,]+)", args)
        other = [arg for arg in args.split(",") if not arg.startswith(("subject=", "model="))]
        metric = "f1_score" if name == "narrative_qa" else "exact_match"
        for row in json.loads(path.read_text()):
            for stat in row["stats"]:
                if (stat["name"]["name"], stat["name"]["split"]) != (metric, "test"):
                    continue
                if "perturbation" not in stat["name"] and "perturbation" not in row:
                    item = f"{subject[1]}/{row['instance_id']}" if subject else row["instance_id"]
                    yield ":".join([name, *other]), item, spec["adapter_spec"]["model"], stat["mean"]


def lighteval(folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    for path in folder.rglob("*.parquet"):
        task = path.name.removeprefix("details_").rpartition("_")[0]
        for row in parquet.read_table(path).to_pylist():
            yield task, row["doc"]["id"], "/".join(path.parts[-4:-2]), next(iter(row["metric"].values()))


def opencompass(folder):
    for path in folder.glob("*/results/*/*.json"):
        for row in json.loads(path.read_text())["details"]:
            for correct in row["is_correct"]:
                yield path.stem, row["example_abbr"], path.parent.name, correct


def promptfoo(folder):
    for row in json.loads((folder / "results.json").read_text())["results"]["results"]:
        model = f"{row['provider']['label']} [{row['prompt']['label']}]"
        yield "tiny arithmetic", row["vars"]["q"], model, None if row["failureReason"] == 2 else row["score"]


def openai_evals(folder):
    for path in folder.glob("*.jsonl"):
        spec, *records = lines(path)
        for record in records:
            if record.get("type") == "match":
                yield (
                    spec["spec"]["base_eval"],
                    record["sample_id"],
                    spec["spec"]["completion_fns"][0],
                    record["data"]["correct"],
                )


def evalplus(folder):
    for path in folder.rglob("eval_results.json"):
        for task, samples in json.loads(path.read_text())["eval"].items():
            for sample in samples:
                passed = [sample["base_status"], sample["plus_status"] or "pass"]
                yield path.parent.name, task, path.parent.parent.name, passed == ["pass", "pass"]


def evalscope(folder):
    for path in folder.glob("*/reviews/*/*.jsonl"):
        for row in lines(path):
            yield path.stem, str(row["index"]), path.parent.name, row["sample_score"]["score"]["value"]["acc"]


def mt_bench(folder):
    for row in lines(folder / "japanese_mt_bench" / "model_judgment" / "gpt-4_single.jsonl"):
        yield (
            "mt_bench",
            f"{row['question_id']}/{row['turn']}",
            row["model"],
            None if row["score"] == -1 else row["score"] / 10,
        )


def mt_bench_variant(folder):
    for path in folder.glob("single_grade/*.jsonl"):
        for row in lines(path):
            for turn in (1, 2):
                yield "mt_bench", f"{row['question_id']}/{turn}", row["model_id"], row[f"score_turn{turn}"] / 10


def livebench(folder):
    for row in lines(next(folder.rglob("ground_truth_judgment.jsonl"))):
        yield "livebench", f"{row['task']}/{row['question_id']}", row["model"], row["score"]


def alpaca_eval(folder):
    for path in folder.rglob("annotations*.json"):
        for row in json.loads(path.read_text()):
            score = None if row["preference"] is None else row["preference"] - 1
            yield "alpaca_eval", digest(row["instruction"]), row["generator_2"], score


def terminal_bench(folder):
    for path in folder.rglob("results.json"):
        for row in json.loads(path.read_text())["results"]:
            yield "terminal-bench-core", row["task_id"], path.parent.parent.name, row["is_resolved"] or False


def harbor(folder):
    for path in folder.glob("*/*/result.json"):
        row = json.loads(path.read_text())
        agent = row["agent_info"]
        model = f"{agent['name']} {agent['model_info']['name']}" if agent["model_info"] else agent["name"]
        failed = row["exception_info"] or not row["verifier_result"]
        yield "harbor", row["task_name"], model, None if failed else row["verifier_result"]["rewards"]["reward"]


def swe_bench_pro(folder):
    for path in folder.rglob("eval_results.json"):
        for item, resolved in json.loads(path.read_text()).items():
            yield "swe-bench-pro", item, path.parent.name, resolved


def swe_bench_report(folder):
    for path in folder.glob("*.json"):
        report = json.loads(path.read_text())
        for item in report["submitted_ids"]:
            score = None if item in report["error_ids"] else item in report["resolved_ids"]
            yield "swe-bench", item, path.name.split(".")[0], score


def nested_json(folder):
    for row in json.loads(next(folder.glob("livecodebench*")).read_text())["performances"]:
        yield "livecodebench", row["sample_id"], row["model"], row["Pass@1"] / 100


def failure_list(folder):
    for path in folder.rglob("*_score.json"):
        totals, *failed = lines(path)
        category = path.stem.removesuffix("_score")
        for item in range(1, totals["total_count"] + 1):
            yield "bfcl", f"{category}/{item}", path.parent.name, item not in {row["id"] for row in failed}


def every_eval_ever(folder):
    for path in folder.rglob("*_samples.jsonl"):
        for row in lines(path):
            yield row["evaluation_name"], row["sample_id"], row["model_id"], row["evaluation"]["score"]


def mlflow(folder):
    models = {
        row["run_id"]: row["params.model"] for row in csv.DictReader((folder / "runs.csv").read_text().splitlines())
    }
    for path in folder.glob("traces_*.json"):
        for trace in json.loads(path.read_text()):
            info = trace["info"]
            (exact,) = [a["feedback"]["value"] for a in info["assessments"] if a["assessment_name"] == "exact"]
            yield "mlflow-1", info["tags"]["item_id"], models[info["trace_metadata"]["mlflow.sourceRun"]], exact


def deepeval(folder):
    for path in folder.glob("test_run_*.json"):
        run = json.loads(path.read_text())
        for case in run["testCases"]:
            yield "deepeval", case["name"], run["hyperparameters"]["model"], case["metricsData"][0]["score"]


def inspect_epochs(folder):
    zstandard = pytest.importorskip("zstandard")
    for path in folder.glob("*.eval"):
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            for entry in archive.infolist():
                if entry.filename.startswith("samples/"):
                    file.seek(entry.header_offset)
                    header = struct.unpack("<4s5H3L2H", file.read(30))
                    file.seek(header[-2] + header[-1], os.SEEK_CUR)
                    packed = file.read(entry.compress_size)
                    method = zlib.decompress if entry.compress_type == 8 else zstandard.decompress
                    sample = json.loads(method(packed, *([-15] if entry.compress_type == 8 else [entry.file_size])))
                    model = next(iter(sample["model_usage"]))
                    yield "multi", sample["id"], model, {"C": 1, "I": 0, "P": 0.5}[sample["scores"]["match"]["value"]]


def lm_eval_groups(folder):
    for path in folder.rglob("samples_*.jsonl"):
        task, model = path.name.removeprefix("samples_").rpartition("_")[0], path.parent.name.replace("__", "/")
        records = lines(path)
        for record in records:
            if record["filter"] == records[0]["filter"]:
                item = f"{record['doc_id']}-{record['doc_hash'][:12]}"
                in_group = task.startswith("mini_mmlu_")
                yield (
                    "mini_mmlu" if in_group else task,
                    f"{task}/{item}" if in_group else item,
                    model,
                    record[record["metrics"][0]],
                )


def battles(folder):
    for path in folder.glob("*.csv"):
        for row in csv.DictReader(path.read_text().splitlines()):
            winner = {"left": "a", "right": "b"}.get(row["winner"], "tie")
            yield path.stem, row["prompt"], (row["left"], row["right"], row.get("worker")), winner


ORACLES = [
    helm, lighteval, opencompass, promptfoo, openai_evals, evalplus, evalscope, mt_bench, mt_bench_variant, livebench, alpaca_eval,
    terminal_bench, harbor, swe_bench_pro, swe_bench_report, nested_json, failure_list, every_eval_ever, mlflow, deepeval,
    inspect_epochs, lm_eval_groups, battles,
]  # fmt: skip


class Read:
    def __init__(self, *paths):
        self.notes = []
        importer = Importer(Choices(), self.notes.append)
        segments = list(read_files(importer.find(paths), opener=importer.open))
        self.events = [event for segment in segments for event in segment.events]
        self.reasons = [reject["reason"] for segment in segments for reject in segment.rejects]


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.__name__)
def test_real_files_give_the_events_of_an_oracle(native, oracle):
    # A table without a column for the benchmark is named like its file, if it is the only one.
    paths = sorted((native / "battles").glob("*.csv")) if oracle is battles else [native / oracle.__name__]
    reads = [Read(path) for path in paths]
    read_events = [event for read in reads for event in read.events]
    events = Counter(
        (e.benchmark, e.item_id, (e.model_a, e.model_b, e.cluster), e.winner)
        if isinstance(e, BattleFields)
        else (e.benchmark, e.item_id, e.model, e.score)
        for e in read_events
    )
    assert events == Counter(oracle(native / oracle.__name__))
    assert [reason for read in reads for reason in read.reasons] == []
    scores = [e for e in read_events if not isinstance(e, BattleFields)]
    copies = Counter((e.benchmark, e.item_id, e.model, e.repeat) for e in scores)
    known = 2 if oracle is mt_bench else 0
    assert sum(count - 1 for count in copies.values()) == known, "only two grades are in the file twice"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("mteb", "a score for each query"),
        ("otel_genai_evaluation", "evaluation = "),
        ("harbor/event-summary-nop-evidence/result.json", "result.json of each trial"),
        ("evalscope/qwen-plus/reports", "folder reviews"),
        ("lighteval/results", "--save-details"),
        ("promptfoo/results.csv", "results.json"),
    ],
)
def test_real_files_without_scores_of_items_are_refused_with_what_is_needed(native, path, words):
    files = [file for file in sorted((native / path).rglob("*.json*")) if file.name != "model_meta.json"]
    for file in files or [native / path]:
        read = Read(file)
        assert read.events == []
        assert read.reasons
        assert all(words in reason for reason in read.reasons)

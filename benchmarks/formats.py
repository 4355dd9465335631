"""Reading results of harnesses, against `json` (or pyarrow) alone on the same bytes.

A file of each shape has 5,000 results, with as much other text each as in files that the harness wrote. `json` decodes the file, or each
line of it, to Python objects and does nothing else; `rankwatch` decodes it, picks the metric, checks names and scores, and makes events.
Medians of processor seconds in one process, in turn.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.harness import Options, Table, timed
from monitor.ingest.files.read import read_files
from monitor.ingest.importer import Importer


def text(characters: int) -> str:
    """Return text of a length: with it a record is about as long as in the files that a harness wrote."""
    return ("All work and no play makes Jack a dull boy. " * (characters // 44 + 1))[:characters]


def helm(k: int) -> object:
    stats = [
        {"name": {"name": name, "split": "test"}, "count": 1, "sum": 1, "mean": 1.0}
        for name in ("exact_match", *map(str, range(26)))
    ]
    return {"instance_id": f"id{k}", "train_trial_index": 0, "stats": stats, "text": text(0)}


def promptfoo(k: int) -> object:
    return {
        "provider": {"id": "p", "label": "a"}, "promptId": "p", "promptIdx": 0, "testIdx": k, "vars": {"q": f"q{k}"}, "score": k % 2,
        "success": True, "namedScores": {"x": 1}, "failureReason": 0, "response": {"output": text(3500)},
    }  # fmt: skip


def evalplus(k: int) -> object:
    return [
        {
            "task_id": f"T/{k}",
            "solution": text(380),
            "base_status": "pass",
            "plus_status": "fail",
            "base_fail_tests": [],
        }
    ]


def terminal_bench(k: int) -> object:
    return {
        "trial_name": f"t{k}.1-of-1.r",
        "task_id": f"t{k}",
        "instruction": text(1900),
        "is_resolved": k % 2 == 0,
        "failure_mode": "unset",
    }


def opencompass(k: int) -> object:
    return {"example_abbr": f"q_{k}", "prompt": [text(250)], "is_correct": [k % 2 == 0]}


def mlflow(k: int) -> object:
    info = {
        "trace_id": f"t{k}", "trace_metadata": {"mlflow.sourceRun": "r"}, "tags": {"item_id": f"q{k}"},
        "assessments": [{"assessment_name": "exact", "feedback": {"value": True}}],
    }  # fmt: skip
    return {"info": info, "data": {"spans": [{"attributes": {"in": text(5500)}}]}}


def deepeval(k: int) -> object:
    return {"name": f"q{k}", "input": text(300), "metricsData": [{"name": "Exact", "score": 1.0, "success": True}]}


def alpaca_eval(k: int) -> object:
    return {
        "instruction": f"{k} {text(100)}",
        "output_1": text(2400),
        "output_2": text(2400),
        "generator_1": "base",
        "generator_2": "a",
        "annotator": "j",
        "preference": 1.25,
    }


def openai_evals(k: int) -> object:
    return {
        "run_id": "r",
        "event_id": k,
        "sample_id": f"s.{k}",
        "type": "match",
        "data": {"correct": True, "sampled": text(600)},
    }


def evalscope(k: int) -> object:
    score = {"score": {"value": {"acc": 1.0}}, "sample_id": k, "group_id": k}
    return {"index": k, "messages": [{"content": text(4500)}], "sample_score": score}


def mt_bench(k: int) -> object:
    return {
        "question_id": k,
        "model": "a",
        "judge": ["j", "t"],
        "judgment": text(2900),
        "score": 7,
        "turn": 1,
        "tstamp": 1.5,
    }


def livebench(k: int) -> object:
    return {
        "question_id": f"q{k}",
        "task": "t",
        "model": "a",
        "score": 0.5,
        "tstamp": 1.5,
        "category": "math",
        "text": text(130),
    }


def every_eval_ever(k: int) -> object:
    return {
        "schema_version": "0.3.0", "model_id": "a", "evaluation_name": "quiz", "sample_id": str(k), "input": {"raw": text(900)},
        "evaluation": {"score": 1.0, "is_correct": True}, "metadata": {"filter": "none"}, "error": None,
    }  # fmt: skip


LINES: dict[str, tuple[Callable[[int], object], list[object]]] = {
    "OpenAI evals": (openai_evals, [{"spec": {"completion_fns": ["a"], "base_eval": "s"}}]),
    "EvalScope": (evalscope, []),
    "MT-Bench": (mt_bench, []),
    "LiveBench": (livebench, []),
    "Every Eval Ever": (every_eval_ever, []),
}
DOCUMENTS: dict[str, Callable[[int], object]] = {
    "HELM": lambda n: [helm(k) for k in range(n)],
    "promptfoo": lambda n: {"results": {"version": 3, "results": [promptfoo(k) for k in range(n)]}},
    "EvalPlus": lambda n: {"eval": {f"T/{k}": evalplus(k) for k in range(n)}},
    "Terminal-Bench": lambda n: {"results": [terminal_bench(k) for k in range(n)]},
    "OpenCompass": lambda n: {"accuracy": 50.0, "details": [opencompass(k) for k in range(n)]},
    "SWE-bench Pro": lambda n: {f"instance_a__b-{k:08x}": k % 2 == 0 for k in range(n)},
    "MLflow": lambda n: [mlflow(k) for k in range(n)],
    "DeepEval": lambda n: {"testCases": [deepeval(k) for k in range(n)], "identifier": "a"},
    "AlpacaEval": lambda n: [alpaca_eval(k) for k in range(n)],
}


def read(path: Path) -> int:
    """Return how many events a file gives."""
    importer = Importer()
    return sum(len(segment.events) for segment in read_files(importer.find([path]), opener=importer.open))


def measure(options: Options) -> Iterator[Table]:
    """Read a file of each shape both ways, in turn."""
    count = options.size(5_000, 200)
    table = Table(
        f"{count:,} results a file, processor seconds; medians of {options.runs} runs",
        ["harness", "MB", "json or pyarrow", "rankwatch", "events/s", "json / rankwatch"],
    )
    with tempfile.TemporaryDirectory() as name:
        for harness, path, alone in files(Path(name), count):
            if read(path) != count:
                raise RuntimeError(f"{harness}: {read(path)} events, not {count}")
            taken = [
                (timed(alone, time.process_time), timed(lambda path=path: read(path), time.process_time))
                for _ in range(options.runs)
            ]
            bare, ours = (statistics.median(column) for column in zip(*taken, strict=True))
            size = round(path.stat().st_size / 1e6, 1)
            table.rows.append(
                (harness, size, round(bare, 3), round(ours, 3), round(count / ours), round(bare / ours, 2))
            )
    yield table


def files(folder: Path, count: int) -> Iterator[tuple[str, Path, Callable[[], object]]]:
    """Write a file of each harness, and return how its bytes are decoded alone."""
    for harness, make in DOCUMENTS.items():
        path = folder / harness / "model=a" / "eval_results.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(make(count)))
        yield harness, path, lambda path=path: json.loads(path.read_bytes())
    for harness, (record, first) in LINES.items():
        path = folder / harness / "a" / "log.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in [*first, *map(record, range(count))]))
        yield harness, path, lambda path=path: [json.loads(line) for line in path.read_bytes().splitlines()]
    yield from _lighteval(folder, count)


def _lighteval(folder: Path, count: int) -> Iterator[tuple[str, Path, Callable[[], object]]]:
    try:
        import pyarrow as pa
        from pyarrow.parquet import read_table, write_table
    except ImportError:
        return
    path = folder / "details" / "a" / "b" / "2026-01-01T00-00-00" / "details_t_2026-01-01T00-00-00.parquet"
    path.parent.mkdir(parents=True)
    rows = [
        {"doc": {"id": str(k), "query": text(1500)}, "metric": {"acc": 1}, "model_response": {"text": [text(1500)]}}
        for k in range(count)
    ]
    write_table(pa.Table.from_pylist(rows), path)
    yield "lighteval", path, lambda: read_table(path).to_pylist()

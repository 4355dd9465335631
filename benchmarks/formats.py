"""Reading results of harnesses, against `json` (or `csv`, or pyarrow) alone on the same bytes.

A file of each shape has 5,000 results, with as much other text each as in files that the harness wrote. `json` decodes the file, or each
line of it, to Python objects and does nothing else; `rankwatch` decodes it, picks the metric, checks names and scores, and makes events.
Medians of processor seconds in one process, in turn. Nobody collects garbage meanwhile, as in `rankwatch report`.
"""

import csv
import gc
import io
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from benchmarks.harness import Options, Table, timed
from monitor.files.importer import Importer
from monitor.files.streams.read import read_files


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


def lm_eval(k: int) -> object:
    return {
        "doc_id": k, "doc": {"question": text(300)}, "target": "1", "arguments": {"gen_args_0": {"arg_0": [text(3500)]}},
        "resps": [[text(300)]], "filtered_resps": [text(300)], "filter": "none", "metrics": ["acc"],
        "doc_hash": f"{k:064x}", "prompt_hash": f"{k:064x}", "target_hash": f"{k:064x}", "acc": 1.0,
    }  # fmt: skip


def bfcl(k: int) -> object:
    return {
        "id": k + 1,
        "model_name": "a",
        "test_category": "c",
        "valid": False,
        "error": [text(1000)],
        "prompt": text(3500),
    }


def inspect(k: int) -> object:
    return {
        "id": k, "epoch": 1, "input": text(200), "target": "x", "messages": [{"role": "user", "content": text(500)}],
        "scores": {"match": {"value": "C" if k % 2 else "I", "answer": text(20)}}, "metadata": {},
        "events": [{"event": "model", "text": text(1000)} for _ in range(4)],
    }  # fmt: skip


def inspect_log(count: int) -> object:
    task = {
        "task": "quiz",
        "model": "a",
        "created": "2026-01-01T00:00:00+00:00",
        "dataset": {"samples": count},
        "config": {},
    }
    return {"version": 2, "status": "success", "eval": task, "samples": [inspect(k) for k in range(count)]}


def swe_bench_ids(count: int) -> list[str]:
    return [f"instance_owner{k % 12}__project-{k:040x}-v{k:040x}" for k in range(count)]


def swe_bench_report(count: int) -> object:
    ids = swe_bench_ids(count)
    lists = {"resolved_ids": ids[::2], "unresolved_ids": ids[1::2], "submitted_ids": ids, "completed_ids": ids}
    return {"total_instances": count, "submitted_instances": count, "resolved_instances": count // 2, **lists}


def live_code_bench(k: int) -> object:
    return {
        "model": "a",
        "sample_id": f"sample_{k}",
        "question_id": k,
        "Pass@1": 70.0,
        "date": 1683504000000,
        "Pass@1-COT": 70.0,
    }


LINES: dict[str, tuple[Callable[[int], object], list[object]]] = {
    "OpenAI evals": (openai_evals, [{"spec": {"completion_fns": ["a"], "base_eval": "s"}}]),
    "EvalScope": (evalscope, []),
    "MT-Bench": (mt_bench, []),
    "LiveBench": (livebench, []),
    "Every Eval Ever": (every_eval_ever, []),
    "lm-eval": (lm_eval, []),
}


def tau_bench(k: int) -> object:
    task = {"user_id": "u", "actions": [{"name": "book", "kwargs": {"bags": 2}}] * 4, "instruction": text(300)}
    traj = [{"role": "user", "content": text(200)}] * 20
    return {"task_id": k, "reward": float(k % 2), "info": {"task": task, "user_cost": 0.1}, "traj": traj, "trial": 0}


def tau2_bench(count: int) -> object:
    simulations = [
        {
            "id": "s",
            "task_id": str(k),
            "trial": 0,
            "reward_info": {"reward": 1.0},
            "messages": [{"content": text(200)}] * 20,
        }
        for k in range(count)
    ]
    info = {"agent_info": {"llm": "a"}, "environment_info": {"domain_name": "retail"}, "user_info": {"llm": "b"}}
    return {"info": info, "tasks": [], "simulations": simulations}


def phoenix(k: int) -> object:
    annotation = {"name": "exact", "annotator_kind": "CODE", "label": None, "score": 1.0, "explanation": text(100)}
    return {
        "example_id": f"e{k}", "repetition_number": 1, "input": {"q": text(300)}, "output": text(600), "error": None,
        "annotations": [annotation, {**annotation, "name": "tone"}],
    }  # fmt: skip


def graded(k: int) -> object:
    return {
        "question_content": text(1500), "question_id": f"q{k}", "contest_date": "2026-01-01", "output_list": [text(1500)],
        "code_list": [text(700)], "graded_list": [k % 2 == 0], "pass@1": 1.0, "metadata": [],
    }  # fmt: skip


def hal(count: int) -> object:
    tasks = [f"task-{k}" for k in range(count)]
    return {
        "config": {"agent_name": "a", "benchmark_name": "b"},
        "results": {"accuracy": 0.5, "successful_tasks": tasks[::2], "failed_tasks": tasks[1::2], "latencies": dict.fromkeys(tasks, 1.5)},
        "raw_eval_results": {task: {"reward": 1.0, "taken_actions": [{"name": "x"}] * 3} for task in tasks},
    }  # fmt: skip


def langfuse(k: int) -> dict[str, object]:
    about = {"experiment_run_name": "a", "dataset_item_id": f"q{k}"}
    return {
        "id": f"t{k}", "timestamp": "2026-11-20T10:00:00.000Z", "name": "run", "userId": None, "bookmarked": False, "input": text(300),
        "output": text(900), "metadata": about, "comments": [], "exact": [k % 2], "tone": ["good"],
    }  # fmt: skip


def phoenix_row(k: int) -> dict[str, object]:
    return {
        "example_id": f"e{k}", "repetition_number": 1, "input": text(300), "output": text(600), "metadata": "{}", "error": None,
        "latency_ms": 10.5, "annotation_exact_label": "", "annotation_exact_score": float(k % 2), "annotation_exact_explanation": text(100),
    }  # fmt: skip


def ragas(k: int) -> dict[str, object]:
    contexts = [text(700), text(700)]
    return {
        "user_input": f"q{k}",
        "retrieved_contexts": contexts,
        "response": text(400),
        "faithfulness": k % 7 / 7,
        "answer_relevancy": 0.5,
    }


TABLES = {"Langfuse, CSV": langfuse, "Phoenix, CSV": phoenix_row, "ragas, CSV": ragas}

DOCUMENTS: dict[str, Callable[[int], object]] = {
    "HELM": lambda n: [helm(k) for k in range(n)],
    "promptfoo": lambda n: {"results": {"version": 3, "results": [promptfoo(k) for k in range(n)]}},
    "EvalPlus": lambda n: {"eval": {f"T/{k}": evalplus(k) for k in range(n)}},
    "BigCodeBench": lambda n: {
        "eval": {
            f"T/{k}": [{"task_id": f"T/{k}", "solution": text(900), "status": "pass", "details": {}}] for k in range(n)
        }
    },
    "tau-bench": lambda n: [tau_bench(k) for k in range(n)],
    "tau2-bench": tau2_bench,
    "HAL": hal,
    "Phoenix": lambda n: [phoenix(k) for k in range(n)],
    "Langfuse": lambda n: [langfuse(k) for k in range(n)],
    "ragas": lambda n: [ragas(k) for k in range(n)],
    "LiveCodeBench, a run": lambda n: [graded(k) for k in range(n)],
    "columns and data": lambda n: {
        "columns": ["id", "model", "score", "prompt", "output"],
        "data": [[k, "a", 1, text(300), text(1500)] for k in range(n)],
    },
    "Terminal-Bench": lambda n: {"results": [terminal_bench(k) for k in range(n)]},
    "OpenCompass": lambda n: {"accuracy": 50.0, "details": [opencompass(k) for k in range(n)]},
    "SWE-bench": swe_bench_report,
    "SWE-bench Pro": lambda n: {name: k % 2 == 0 for k, name in enumerate(swe_bench_ids(n))},
    "LiveCodeBench": lambda n: {"performances": [live_code_bench(k) for k in range(n)]},
    "Inspect": inspect_log,
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
            gc.collect()
            gc.disable()
            taken = [
                (timed(alone, time.process_time), timed(lambda path=path: read(path), time.process_time))
                for _ in range(options.runs)
            ]
            gc.enable()
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
        path = folder / harness / "a" / "samples_quiz_2026-01-01T00-00-00.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in [*first, *map(record, range(count))]))
        yield harness, path, lambda path=path: [json.loads(line) for line in path.read_bytes().splitlines()]
    for harness, row in TABLES.items():
        yield _table(folder / harness / "a.csv", [row(k) for k in range(count)])
    yield _yaml(folder / "YAML" / "a.yaml", [phoenix(k) for k in range(count)])
    yield _bfcl(folder, count)
    yield from _lighteval(folder, count)


def _table(path: Path, rows: list[dict[str, object]]) -> tuple[str, Path, Callable[[], object]]:
    """Return a table, which the module of Python reads alone."""
    path.parent.mkdir(parents=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(
            [json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in row.values()] for row in rows
        )
    return path.parent.name, path, lambda: list(csv.reader(io.StringIO(path.read_text(), newline="")))


def _yaml(path: Path, rows: list[object]) -> tuple[str, Path, Callable[[], object]]:
    """Return a document of YAML, which the C parser of PyYAML loads alone."""
    path.parent.mkdir(parents=True)
    path.write_text(yaml.dump(rows, Dumper=yaml.CSafeDumper))
    return "YAML", path, lambda: yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)


def _bfcl(folder: Path, count: int) -> tuple[str, Path, Callable[[], object]]:
    """Return a file that lists every second item, which failed."""
    path = folder / "BFCL" / "a" / "c_score.json"
    path.parent.mkdir(parents=True)
    failed = [bfcl(k) for k in range(0, count, 2)]
    totals = {"accuracy": 0.5, "correct_count": count - len(failed), "total_count": count}
    path.write_text("".join(json.dumps(row) + "\n" for row in [totals, *failed]))
    return "BFCL", path, lambda: [json.loads(line) for line in path.read_bytes().splitlines()]


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

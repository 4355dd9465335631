"""Small result files of other harnesses, each in the shape that the harness writes, with the events that they come to."""

import csv
import hashlib
import io
import json
import zlib
from typing import NamedTuple


class Made(NamedTuple):
    """Files by name, one of them the results; the events as (benchmark, item, model, score, cluster, repeat), and words of the notes."""

    results: str
    files: dict
    events: list
    notes: tuple = ()
    lines: bool = False

    @property
    def results_bytes(self):
        return self.files[self.results]

    def write(self, folder):
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder / self.results


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def doc(value):
    return json.dumps(value, indent=1).encode()


def jsonl(*rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def stat(name, mean, **more):
    return {"name": {"name": name, "split": "test", **more}, "count": 1, "sum": mean, "mean": mean}


HELM = Made(
    "mmlu:subject=law,model=acme_a/per_instance_stats.json",
    {
        "mmlu:subject=law,model=acme_a/run_spec.json": doc(
            {
                "name": "mmlu:subject=law,model=acme_a",
                "adapter_spec": {"model": "acme/a", "method": "multiple_choice_joint"},
                "metric_specs": [],
            }
        ),
        "mmlu:subject=law,model=acme_a/per_instance_stats.json": doc(
            [
                {
                    "instance_id": f"id{k}",
                    "train_trial_index": trial,
                    "stats": [
                        stat("num_references", 2),
                        stat("quasi_exact_match", 1),
                        stat("exact_match", score),
                        stat("exact_match", 0, perturbation={"name": "typos"}),
                    ],
                    **more,
                }
                for k, trial, score, more in [
                    (7, 0, 1.0, {}),
                    (7, 1, 0.0, {}),
                    (9, 0, 0.5, {}),
                    (9, 0, 0.0, {"perturbation": {"name": "x"}}),
                ]
            ]
        ),
    },
    [
        ("mmlu", "law/id7", "acme/a", 1, "law", 0),
        ("mmlu", "law/id7", "acme/a", 0, "law", 1),
        ("mmlu", "law/id9", "acme/a", 0.5, "law", 0),
    ],
    ("metric exact_match (also available: quasi_exact_match)", "1 records of perturbed", "--subtasks"),
)

OPENCOMPASS = Made(
    "results/acme-a/quiz.json",
    {
        "results/acme-a/quiz.json": doc(
            {
                "accuracy": 50.0,
                "details": [
                    {"example_abbr": "quiz_0", "pred": ["A"], "is_correct": [True, False]},
                    {"pred": ["B"], "is_correct": [False]},
                ],
            }
        ),
        "predictions/acme-a/quiz.json": doc({"0": {"origin_prompt": "?", "prediction": "A", "gold": "A"}}),
    },
    [
        ("quiz", "quiz_0", "acme-a", 1, None, 0),
        ("quiz", "quiz_0", "acme-a", 0, None, 1),
        ("quiz", "1", "acme-a", 0, None, 0),
    ],
    ("--dump-eval-details", "the model is called acme-a"),
)

OPENCOMPASS_DICT = Made(
    "results/acme-a/quiz_1.json",
    {
        "results/acme-a/quiz_0.json": doc({"accuracy": 100.0, "details": {"type": "MCQ", "0": {"correct": True}}}),
        "results/acme-a/quiz_1.json": doc({"accuracy": 0.0, "details": {"type": "MCQ", "0": {"correct": False}}}),
    },
    [("quiz", "0/0", "acme-a", 1, None, 0), ("quiz", "1/0", "acme-a", 0, None, 0)],
)


def answer(test, provider, q, score, failure=0):
    return {
        "provider": {"id": "dummy", "label": provider},
        "promptId": "p",
        "promptIdx": 0,
        "prompt": {"label": "ask"},
        "testIdx": test,
        "vars": {"q": q},
        "testCase": {"vars": {"q": q}, "metadata": {"topic": "sum"}},
        "score": score,
        "success": score == 1,
        "namedScores": {"brevity": 1},
        "failureReason": failure,
    }


PROMPTFOO = Made(
    "results.json",
    {
        "results.json": doc(
            {
                "evalId": "e",
                "results": {
                    "version": 3,
                    "results": [
                        answer(1, "a", "1+1", 0, 1),
                        answer(0, "a", "1+1", 1),
                        answer(2, "a", "2+2", 0, 2),
                        answer(0, "b", "1+1", 0.25),
                    ],
                },
                "config": {"description": "sums"},
            }
        )
    },
    [
        ("sums", "1+1", "a", 1, "sum", 0),
        ("sums", "1+1", "b", 0.25, "sum", 0),
        ("sums", "1+1", "a", 0, "sum", 1),
        ("sums", "2+2", "a", None, "sum", 0),
    ],
    ("1 of 4 results failed in the run (error: 1) and are skipped; --failed zero", "repeats of one item"),
)

OPENAI_EVALS = Made(
    "run.jsonl",
    {
        "run.jsonl": jsonl(
            {"spec": {"completion_fns": ["acme-a"], "eval_name": "sums.dev.v0", "base_eval": "sums", "split": "dev"}},
            {"final_report": {"accuracy": 0.5}, "run_id": "r"},
            {
                "run_id": "r",
                "event_id": 0,
                "sample_id": "sums.dev.3",
                "type": "sampling",
                "data": {"sampled": "6", "model": "other"},
            },
            {
                "run_id": "r",
                "event_id": 1,
                "sample_id": "sums.dev.3",
                "type": "match",
                "data": {"correct": True, "expected": "6"},
            },
            {
                "run_id": "r",
                "event_id": 2,
                "sample_id": "sums.dev.3",
                "type": "metrics",
                "data": {"accuracy": 1.0, "f1_score": 0.5},
            },
            {
                "run_id": "r",
                "event_id": 3,
                "sample_id": "sums.dev.1",
                "type": "match",
                "data": {"correct": False, "expected": "7"},
            },
        )
    },
    [("sums", "sums.dev.3", "acme-a", 1, None, 0), ("sums", "sums.dev.1", "acme-a", 0, None, 0)],
    ("metric correct",),
    lines=True,
)


def tried(task, base, plus):
    return {
        "task_id": task,
        "solution": "def f(): ...",
        "base_status": base,
        "plus_status": plus,
        "base_fail_tests": [],
    }


EVALPLUS = Made(
    "acme-a/humaneval/eval_results.json",
    {
        "acme-a/humaneval/eval_results.json": doc(
            {
                "date": "2026-01-01",
                "hash": "abc",
                "eval": {
                    "HumanEval/7": [tried("HumanEval/7", "pass", "pass"), tried("HumanEval/7", "pass", "fail")],
                    "HumanEval/2": [tried("HumanEval/2", "timeout", "pass")],
                },
            }
        ),
        "acme-a/humaneval/eval_results_pretty.json": doc({"eval": {}}),
    },
    [
        ("humaneval", "HumanEval/7", "acme-a", 1, None, 0),
        ("humaneval", "HumanEval/7", "acme-a", 0, None, 1),
        ("humaneval", "HumanEval/2", "acme-a", 0, None, 0),
    ],
    ("metric plus (also available: base)", "it repeats eval_results.json"),
)


def review(index, group, acc):
    score = {"value": {"acc": acc}, "main_score_name": None}
    return {
        "index": index,
        "messages": [],
        "sample_score": {"score": score, "sample_id": index, "group_id": group, "sample_metadata": {}},
    }


EVALSCOPE = Made(
    "reviews/acme-a/gsm8k_main.jsonl",
    {
        "reviews/acme-a/gsm8k_main.jsonl": jsonl(review(3, 3, 1.0), review(1, 1, 0.0), review(7, 1, 1.0)),
        "reports/acme-a/gsm8k.json": doc({"name": "x", "dataset_name": "gsm8k", "model_name": "acme-a", "metrics": []}),
    },
    [
        ("gsm8k_main", "3", "acme-a", 1, None, 0),
        ("gsm8k_main", "1", "acme-a", 0, None, 0),
        ("gsm8k_main", "1", "acme-a", 1, None, 7),
    ],
    ("give its folder reviews", "the model is called acme-a"),
    lines=True,
)


def grade(question, model, score, turn=1):
    return {
        "question_id": question,
        "model": model,
        "judge": ["gpt-4", "single"],
        "judgment": "[[4]]",
        "score": score,
        "turn": turn,
        "tstamp": 1.5,
    }


MT_BENCH = Made(
    "bench/model_judgment/gpt-4_single.jsonl",
    {
        "bench/model_judgment/gpt-4_single.jsonl": jsonl(grade("81", "a", 4), grade(81, "a", 7, 2), grade(81, "b", -1)),
        "bench/question.jsonl": jsonl({"question_id": 81, "category": "writing", "turns": ["?"]}),
    },
    [
        ("mt_bench", "81/1", "a", 0.4, "writing", 0),
        ("mt_bench", "81/2", "a", 0.7, "writing", 0),
        ("mt_bench", "81/1", "b", None, "writing", 0),
    ],
    ("divided by 10", "judge gpt-4", "no grade: 1"),
    lines=True,
)

MT_BENCH_TURNS = Made(
    "grades.jsonl",
    {
        "grades.jsonl": jsonl(
            {
                "question_id": 81,
                "model_id": "a",
                "judge_id": "j",
                "score_turn1": 9.0,
                "score_turn2": 7.0,
                "category": "writing",
            }
        )
    },
    [("mt_bench", "81/1", "a", 0.9, "writing", 0), ("mt_bench", "81/2", "a", 0.7, "writing", 0)],
    lines=True,
)


def judgment(question, model, score, **more):
    return {
        "question_id": question,
        "task": "olympiad",
        "model": model,
        "score": score,
        "tstamp": 1.5,
        "category": "math",
        **more,
    }


LIVEBENCH = Made(
    "model_judgment/ground_truth_judgment.jsonl",
    {
        "model_judgment/ground_truth_judgment.jsonl": jsonl(
            judgment("q", "a", 0.25, subtask="imo"), judgment("q", "b", 1, subtask="imo")
        )
    },
    [("livebench", "olympiad/q", "a", 0.25, "olympiad/imo", 0), ("livebench", "olympiad/q", "b", 1, "olympiad/imo", 0)],
    ("clusters by task/subtask", "--subtasks"),
    lines=True,
)


def preference(instruction, value):
    return {
        "dataset": "helpful", "instruction": instruction, "output_1": "x", "generator_1": "base", "output_2": "y", "generator_2": "a",
        "annotator": "judge", "preference": value,
    }  # fmt: skip


ALPACA_EVAL = Made(
    "a/judge/annotations.json",
    {"a/judge/annotations.json": doc([preference("Q1", 1.25), preference("Q2", None), preference("Q3", 2)])},
    [
        ("alpaca_eval", digest("Q1"), "a", 0.25, "helpful", 0),
        ("alpaca_eval", digest("Q2"), "a", None, "helpful", 0),
        ("alpaca_eval", digest("Q3"), "a", 1, "helpful", 0),
    ],
    ("over base", "no preference: 1"),
)


def tried_task(task, resolved, mode="unset", attempt="1-of-2"):
    return {
        "id": "x",
        "trial_name": f"{task}.{attempt}.run1",
        "task_id": task,
        "is_resolved": resolved,
        "failure_mode": mode,
    }


RUN1 = zlib.crc32(b"run1") % 2_147_483 * 1_000

TERMINAL_BENCH = Made(
    "acme-a/run1/results.json",
    {
        "acme-a/run1/results.json": doc(
            {
                "id": "x",
                "results": [
                    tried_task("t1", True),
                    tried_task("t1", None, "test_timeout", "2-of-2"),
                    tried_task("t2", False, "agent_timeout"),
                ],
                "n_resolved": 1,
            }
        ),
        "acme-a/run1/run_metadata.json": doc(
            {
                "run_id": "run1",
                "dataset_name": "core",
                "dataset_version": "0.1",
                "agent_name": "Droid",
                "model_name": None,
                "task_ids": ["t1", "t2"],
            }
        ),
    },
    [
        ("core", "t1", "acme-a", 1, None, RUN1),
        ("core", "t1", "acme-a", 0, None, RUN1 + 1),
        ("core", "t2", "acme-a", 0, None, RUN1),
    ],
    ("test_timeout: 1) and count as 0; --failed skip", "each run is a repeat"),
)

TRIALS = [zlib.crc32(name * 7) % (2**31 - 1) for name in (b"a", b"b")]

HARBOR = Made(
    "job/t1__aaaaaaa/result.json",
    {
        "job/result.json": doc({"id": "x", "n_total_trials": 2, "stats": {"evals": {}}}),
        "job/t1__aaaaaaa/result.json": doc(
            {
                "id": "1", "task_name": "t1", "trial_name": "t1__aaaaaaa", "source": None, "config": {"trial_name": "t1__aaaaaaa"},
                "agent_info": {"name": "codex", "model_info": {"name": "m1"}},
                "verifier_result": {"rewards": {"correctness": 1.0, "reward": 0.5}}, "exception_info": None,
            }
        ),
        "job/t1__bbbbbbb/result.json": doc(
            {
                "id": "2", "task_name": "t1", "trial_name": "t1__bbbbbbb", "source": None, "config": {"trial_name": "t1__bbbbbbb"},
                "agent_info": {"name": "codex", "model_info": {"name": "m1"}},
                "verifier_result": None, "exception_info": {"exception_type": "AgentTimeoutError"},
            }
        ),
    },
    [("harbor", "t1", "codex m1", 0.5, None, TRIALS[0]), ("harbor", "t1", "codex m1", None, None, TRIALS[1])],
    ("AgentTimeoutError: 1", "give the folder, with result.json of each trial"),
)  # fmt: skip

SWE_BENCH_PRO = Made(
    "acme-a/eval_results.json",
    {"acme-a/eval_results.json": doc({"instance_x__y-0a1b2c": True, "instance_x__z-ff-v1": False})},
    [
        ("swe-bench-pro", "instance_x__y-0a1b2c", "acme-a", 1, "x__y", 0),
        ("swe-bench-pro", "instance_x__z-ff-v1", "acme-a", 0, "x__z", 0),
    ],
    ("the model is called acme-a",),
)

SWE_BENCH = Made(
    "acme-a.run1.json",
    {
        "acme-a.run1.json": doc(
            {
                "total_instances": 6, "submitted_instances": 4, "completed_instances": 2, "resolved_instances": 1,
                "unresolved_instances": 1,
                "completed_ids": ["d__d-1", "d__d-2"], "incomplete_ids": ["d__d-8", "d__d-9"], "empty_patch_ids": ["d__d-3"],
                "submitted_ids": ["d__d-1", "d__d-2", "d__d-3", "d__d-4"], "resolved_ids": ["d__d-1"], "unresolved_ids": ["d__d-2"],
                "error_ids": ["d__d-4"], "schema_version": 2,
            }
        )
    },
    [
        ("swe-bench", "d__d-1", "acme-a", 1, "d__d", 0),
        ("swe-bench", "d__d-2", "acme-a", 0, "d__d", 0),
        ("swe-bench", "d__d-3", "acme-a", 0, "d__d", 0),
        ("swe-bench", "d__d-4", "acme-a", None, "d__d", 0),
    ],
    ("2 instances were not submitted", "1 empty patches count as 0", "error: 1) and are skipped"),
)  # fmt: skip

LIVE_CODE_BENCH = Made(
    "performances.json",
    {
        "performances.json": doc(
            {
                "performances": [
                    {
                        "model": "a",
                        "question_id": 2777,
                        "sample_id": "sample_0",
                        "date": 1,
                        "Pass@1": 50.0,
                        "Pass@1-COT": 70.0,
                    },
                    {
                        "model": "b",
                        "question_id": 2777,
                        "sample_id": "sample_0",
                        "date": 1,
                        "Pass@1": 100.0,
                        "Pass@1-COT": 70.0,
                    },
                ],
                "models": [],
            }
        )
    },
    [("livecodebench", "sample_0", "a", 0.5, "2777", 0), ("livecodebench", "sample_0", "b", 1, "2777", 0)],
    ("divided by 100",),
)

BFCL = Made(
    "score/a/simple_score.json",
    {
        "score/a/simple_score.json": jsonl(
            {"accuracy": 0.75, "correct_count": 3, "total_count": 4},
            {"id": 2, "model_name": "a", "test_category": "simple", "valid": False, "prompt": {"id": "simple_1"}},
        ),
        "score/b/simple_score.json": jsonl({"accuracy": 1.0, "correct_count": 2, "total_count": 2}),
    },
    [("bfcl", f"simple/{k}", "a", int(k != 2), "simple", 0) for k in range(1, 5)]
    + [("bfcl", f"simple/{k}", "b", 1, "simple", 0) for k in (1, 2)],
    ("1 items are listed as failed; the other 3 of 4", "--subtasks"),
)


def assessment(name, value, **more):
    return {"assessment_name": name, "feedback": {"value": value, **more}, "valid": True}


def trace(item, *assessments):
    return {
        "info": {
            "trace_id": f"tr-{item}",
            "trace_location": {"mlflow_experiment": {"experiment_id": "1"}},
            "trace_metadata": {"mlflow.sourceRun": "r1"},
            "assessments": [*assessments, {"assessment_name": "expected", "expectation": {"value": "2"}}],
            "tags": {"item_id": item, "topic": "odd"},
        },
        "data": {"spans": []},
    }


MLFLOW = Made(
    "traces.json",
    {
        "traces.json": doc(
            [
                trace("q1", assessment("length", 4.0), assessment("exact", True)),
                trace("q2", assessment("exact", "no"), assessment("length", 1.0)),
                trace("q3", assessment("exact", None, error={"error_code": "SCORER_ERROR"})),
            ]
        ),
        "runs.csv": b"run_id,params.model\nr1,acme-a\n",
    },
    [
        ("mlflow-1", "q1", "acme-a", 1, "odd", 0),
        ("mlflow-1", "q2", "acme-a", 0, "odd", 0),
        ("mlflow-1", "q3", "acme-a", None, "odd", 0),
    ],
    ("metric exact (also available: length)",),
)


def case(name, score, success, **more):
    return {
        "name": name,
        "input": "1+1?",
        "metricsData": [{"name": "Exact", "threshold": 0.5, "success": success, "score": score, **more}],
    }


DEEPEVAL = Made(
    "test_run_1.json",
    {
        "test_run_1.json": doc(
            {
                "testCases": [
                    case("q1", 0.75, True),
                    case("q2", None, None, error="judge failed"),
                    case(None, 0.0, False),
                ],
                "hyperparameters": {"model": "acme-a"},
                "identifier": "other",
            }
        )
    },
    [
        ("deepeval", "q1", "acme-a", 0.75, None, 0),
        ("deepeval", "q2", "acme-a", None, None, 0),
        ("deepeval", digest("1+1?"), "acme-a", 0, None, 0),
    ],
    ("metric Exact (also available: Exact.success)",),
)


def eee(item, score, kind="none", **more):
    return {
        "schema_version": "0.3.0", "evaluation_id": "quiz/a/1", "model_id": "acme/a", "evaluation_name": "quiz", "sample_id": item,
        "evaluation": {"score": score, "is_correct": score == 1}, "metadata": {"filter": kind}, "error": None, **more,
    }  # fmt: skip


EVERY_EVAL_EVER = Made(
    "quiz/acme/a/u_samples.jsonl",
    {
        "quiz/acme/a/u_samples.jsonl": jsonl(
            eee("0", 1.0, "strict"),
            eee("1", 0.5, "strict"),
            eee("0", 0.0, "loose"),
            eee("2", None, "strict", error="x"),
        ),
        "quiz/acme/a/u.json": doc(
            {
                "schema_version": "0.3.0",
                "evaluation_results": [
                    {"evaluation_name": "quiz", "metric_config": {"lower_is_better": False, "max_score": 1.0}}
                ],
            }
        ),
    },
    [
        ("quiz", "0", "acme/a", 1, None, 0),
        ("quiz", "1", "acme/a", 0.5, None, 0),
        ("quiz", "2", "acme/a", None, None, 0),
    ],
    ("filter strict (also available: loose)", "give its *_samples.jsonl"),
    lines=True,
)


def big(status):
    return [{"task_id": "BigCodeBench/0", "solution": "def f(): ...", "status": status, "details": {}}]


BIG_CODE_BENCH = Made(
    "acme--a-1.5--main--bigcodebench-hard-instruct--vllm-0-1-sanitized_calibrated_eval_results.json",
    {
        "acme--a-1.5--main--bigcodebench-hard-instruct--vllm-0-1-sanitized_calibrated_eval_results.json": doc(
            {
                "date": "2026-01-01",
                "eval": {"BigCodeBench/0": big("pass"), "BigCodeBench/1": big("fail") + big("timeout")},
            }
        )
    },
    [
        ("bigcodebench-hard-instruct", "BigCodeBench/0", "acme/a-1.5", 1, None, 0),
        ("bigcodebench-hard-instruct", "BigCodeBench/1", "acme/a-1.5", 0, None, 0),
        ("bigcodebench-hard-instruct", "BigCodeBench/1", "acme/a-1.5", 0, None, 1),
    ],
    ("metric passed",),
)


def trial(task, reward, number=0, **info):
    task_info = {"user_id": "u", "actions": [{"name": "book", "kwargs": {"bags": 2}}], "instruction": f"ask {task}"}
    return {"task_id": task, "reward": reward, "info": {"task": task_info, **info}, "traj": [], "trial": number}


TAU_BENCH = Made(
    "retail/tool-calling-gpt-4.1-0.0_range_0--1_user-gpt-4o-llm_0101120000.json",
    {
        "retail/tool-calling-gpt-4.1-0.0_range_0--1_user-gpt-4o-llm_0101120000.json": doc(
            [trial(0, 1.0), trial(0, 0.0, 1), trial(1, 0.0, error="rate limit")]
        )
    },
    [
        ("tau-bench-retail", "0", "tool-calling-gpt-4.1", 1, None, 0),
        ("tau-bench-retail", "0", "tool-calling-gpt-4.1", 0, None, 1),
        ("tau-bench-retail", "1", "tool-calling-gpt-4.1", 0, None, 0),
    ],
    ("metric reward", "failed in the run (error: 1) and count as 0"),
)


def simulation(task, reward, number=0):
    earned = None if reward is None else {"reward": reward, "db_check": None}
    return {"id": "s", "task_id": task, "trial": number, "reward_info": earned, "termination_reason": "max_steps"}


TAU2_BENCH = Made(
    "run.json",
    {
        "run.json": doc(
            {
                "timestamp": "2026-01-01",
                "info": {
                    "agent_info": {"implementation": "llm_agent", "llm": "acme-a"},
                    "environment_info": {"domain_name": "airline", "policy": "be kind"},
                    "user_info": {"llm": "other"},
                },
                "tasks": [{"id": "0"}, {"id": "1"}],
                "simulations": [simulation("0", 1.0), simulation("1", None)],
            }
        )
    },
    [("tau2-bench-airline", "0", "acme-a", 1, None, 0), ("tau2-bench-airline", "1", "acme-a", 0, None, 0)],
    ("failed in the run (max_steps: 1) and count as 0",),
)

HAL = Made(
    "usaco/usaco_1_UPLOAD.json",
    {
        "usaco/usaco_1_UPLOAD.json": doc(
            {
                "config": {"agent_name": "Agent (acme-a)", "benchmark_name": "usaco", "run_id": "usaco_1"},
                "results": {"accuracy": 0.5, "successful_tasks": ["t1"], "failed_tasks": ["t2", 3], "total_cost": 1.5},
                "raw_eval_results": {"t1": 1, "t2": 0},
            }
        )
    },
    [
        ("usaco", "t1", "Agent (acme-a)", 1, None, 0),
        ("usaco", "t2", "Agent (acme-a)", 0, None, 0),
        ("usaco", "3", "Agent (acme-a)", 0, None, 0),
    ],
    ("metric success",),
)

AIDER = Made(
    "2026-01-01--acme/python/exercises/practice/anagram/.aider.results.json",
    {
        "2026-01-01--acme/python/exercises/practice/anagram/.aider.results.json": doc(
            {
                "testcase": "anagram",
                "model": "acme-a",
                "edit_format": "diff",
                "tests_outcomes": [False, True],
                "cost": 0.1,
            }
        )
    },
    [("aider", "python/anagram", "acme-a", 1, "python", 0)],
    ("metric pass@2 (also available: pass@1)",),
)


def experiment(example, repetition, error=None, **scores):
    annotations = [
        {"name": name, "annotator_kind": "CODE", "label": None, "score": score} for name, score in scores.items()
    ]
    return {
        "example_id": example,
        "repetition_number": repetition,
        "input": {},
        "output": "x",
        "error": error,
        "annotations": annotations,
    }


PHOENIX = Made(
    "capitals/acme-a.json",
    {
        "capitals/acme-a.json": doc(
            [
                experiment("RGF0YQ==", 1, exact=1.0),
                experiment("RGF0YQ==", 2, exact=0.0, tone=1.0),
                experiment("e2", 1, "timeout"),
            ]
        )
    },
    [
        ("capitals", "RGF0YQ==", "acme-a", 1, None, 0),
        ("capitals", "RGF0YQ==", "acme-a", 0, None, 1),
        ("capitals", "e2", "acme-a", None, None, 0),
    ],
    ("metric exact (also available: tone)", "the model is called acme-a and the benchmark capitals"),
)


def graded(question, grades, **more):
    return {
        "question_id": question,
        "contest_date": "2026-01-01",
        "output_list": ["x"],
        "graded_list": grades,
        "pass@1": 0.5,
        **more,
    }


LIVE_CODE_BENCH_RUN = Made(
    "ACME-A/Scenario.codegeneration_2_0.2_eval_all.json",
    {
        "ACME-A/Scenario.codegeneration_2_0.2_eval_all.json": doc(
            [graded("1873_A", [True, False]), graded("abc1", [True], test_id=2)]
        )
    },
    [
        ("livecodebench-codegeneration", "1873_A", "ACME-A", 1, None, 0),
        ("livecodebench-codegeneration", "1873_A", "ACME-A", 0, None, 1),
        ("livecodebench-codegeneration", "abc1/2", "ACME-A", 1, None, 0),
    ],
    ("the model is called ACME-A",),
)


def instance(resolved):
    return {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True, "resolved": resolved}


SWE_BENCH_INSTANCE = Made(
    "logs/acme-a/astropy__astropy-1/report.json",
    {"logs/acme-a/astropy__astropy-1/report.json": doc({"astropy__astropy-1": instance(resolved=True)})},
    [("swe-bench", "astropy__astropy-1", "acme-a", 1, "astropy__astropy", 0)],
    ("the model is called like the folder",),
)

SWE_BENCH_FIRST = Made(
    "acme-a/results.json",
    {
        "acme-a/results.json": doc(
            {
                "no_generation": ["a__b-3"],
                "generated": ["a__b-1", "a__b-2"],
                "applied": ["a__b-1"],
                "resolved": ["a__b-1"],
            }
        )
    },
    [
        ("swe-bench", "a__b-1", "acme-a", 1, "a__b", 0),
        ("swe-bench", "a__b-2", "acme-a", 0, "a__b", 0),
        ("swe-bench", "a__b-3", "acme-a", 0, "a__b", 0),
    ],
    ("the model is called acme-a",),
)


def table(*rows):
    """A CSV as pandas and Langfuse write it, with the names of the columns first."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def trace(number, question, scores, run="", item="", **more):
    about = {"experiment_run_name": run, "dataset_item_id": item} if run else {}
    return {
        "id": f"t{number}",
        "timestamp": "2026-11-20T10:00:00.000Z",
        "name": "experiment-item-run",
        "userId": None,
        "bookmarked": False,
        "tags": [],
        "input": question,
        "output": "x",
        "metadata": about,
        "comments": [],
        **{name: None if score is None else [score] for name, score in scores.items()},
        **more,
    }


def as_cells(row):
    return {
        name: "" if cell is None else json.dumps(cell) if isinstance(cell, list | dict) else cell
        for name, cell in row.items()
    }


_TRACES = [
    trace(1, "1+1?", {"exact": 1, "tone": "good"}, "acme-a", "i1"),
    trace(2, "2+2?", {"exact": 0, "tone": "bad"}, "acme-a", "i2"),
    trace(3, "1+1?", {"exact": 0.25, "tone": "good"}, "acme-b", "i1"),
    trace(4, "hello", {"exact": None, "tone": None}),
]
_OF_TRACES = [
    ("evals", "i1", "acme-a", 1, None, 0),
    ("evals", "i2", "acme-a", 0, None, 0),
    ("evals", "i1", "acme-b", 0.25, None, 0),
]

LANGFUSE = Made(
    "evals/traces.json", {"evals/traces.json": doc(_TRACES)}, _OF_TRACES, ("metric exact", "1 of 4 rows have no score")
)

LANGFUSE_TABLE = Made(
    "evals/traces.csv", {"evals/traces.csv": table(*map(as_cells, _TRACES))}, _OF_TRACES, ("metric exact",)
)

LANGFUSE_OBSERVATIONS = Made(
    "evals/observations.jsonl",
    {
        "evals/observations.jsonl": jsonl(
            *[
                {
                    "id": f"o{k}", "traceId": f"t{k}", "startTime": "2026-11-20T10:00:00Z", "type": "GENERATION", "level": level,
                    "input": {"q": question}, "providedModelName": model, "latency": 0.5, "totalCost": 0.01, "exact": scores,
                }
                for k, (question, model, level, scores) in enumerate(
                    [
                        ("1+1?", "acme-a", "DEFAULT", [1]), ("1+1?", "acme-b", "DEFAULT", [1, 0]), ("1+1?", "acme-b", "DEFAULT", [0]),
                        ("2+2?", "acme-a", "ERROR", None),
                    ]
                )
            ]
        )
    },
    [
        ("evals", '{"q": "1+1?"}', "acme-a", 1, None, 0),
        ("evals", '{"q": "1+1?"}', "acme-b", 0.5, None, 0),
        ("evals", '{"q": "1+1?"}', "acme-b", 0, None, 1),
        ("evals", '{"q": "2+2?"}', "acme-a", None, None, 0),
    ],
    ("metric exact", "1 of 4 results failed in the run", "rows of one item and model are its repeats"),
)  # fmt: skip

PHOENIX_TABLE = Made(
    "capitals/acme-a.csv",
    {
        "capitals/acme-a.csv": table(
            *[
                {
                    "example_id": item, "repetition_number": repetition, "input": '{"q": "?"}', "reference_output": "{}", "output": "x",
                    "error": error, "latency_ms": 10.5, "annotation_exact_label": "", "annotation_exact_score": score,
                    "annotation_exact_error": "", "annotation_tone_label": "true", "annotation_tone_score": "",
                }
                for item, repetition, error, score in [("e1", 1, "", "1.0"), ("e1", 2, "", "0.0"), ("e2", 1, "timeout", "")]
            ]
        )
    },
    [
        ("capitals", "e1", "acme-a", 1, None, 0),
        ("capitals", "e1", "acme-a", 0, None, 1),
        ("capitals", "e2", "acme-a", None, None, 0),
    ],
    ("metric exact (also available: tone)", "the model is called acme-a and the benchmark capitals"),
)  # fmt: skip

_RAGAS = [
    {
        "user_input": question,
        "retrieved_contexts": ["c, d"],
        "response": "x",
        "faithfulness": faithful,
        "answer_relevancy": 0.5,
    }
    for question, faithful in [("1+1?", 1.0), ("2+2?", 0.25), ("3+3?", None)]
]
_OF_RAGAS = [
    ("rag", "1+1?", "acme-a", 1, None, 0),
    ("rag", "2+2?", "acme-a", 0.25, None, 0),
    ("rag", "3+3?", "acme-a", None, None, 0),
]

RAGAS = Made("rag/acme-a.csv", {"rag/acme-a.csv": table(*map(as_cells, _RAGAS))}, _OF_RAGAS, ("metric faithfulness",))

RAGAS_COLUMNS = Made(
    "rag/acme-a.json",
    {"rag/acme-a.json": doc({name: {str(k): row[name] for k, row in enumerate(_RAGAS)} for name in _RAGAS[0]})},
    _OF_RAGAS,
    ("metric faithfulness",),
)

TOOLS = {name: value for name, value in globals().items() if isinstance(value, Made)}

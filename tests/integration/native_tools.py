"""Run lm-evaluation-harness and Inspect for real, with models that need no network; each writes its own logs."""

import json
import os
import subprocess
import sys
import textwrap

QUESTIONS = 20

TASK = """
task: quiz
dataset_path: json
dataset_kwargs: {data_files: {test: %s}}
test_split: test
output_type: multiple_choice
doc_to_text: "Q: {{question}} A:"
doc_to_choice: "{{choices}}"
doc_to_target: answer
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: acc_norm, aggregation: mean, higher_is_better: true}
metadata: {version: 1.0}
"""

LM_EVAL = """
    import sys
    from lm_eval.__main__ import cli_evaluate

    folder, seeds = sys.argv[1], {"acme/one": "1", "acme/two": "2"}
    for model, seed in seeds.items():
        sys.argv = ["lm_eval", "--model", "dummy", "--model_args", f"model={model}", "--tasks", "quiz", "--include_path", folder]
        sys.argv += ["--output_path", f"{folder}/out", "--log_samples", "--device", "cpu", "--seed", seed]
        cli_evaluate()
"""

# Without a usage of its own a mock model asks for a tokenizer, which would be downloaded.
INSPECT = """
    import sys
    from inspect_ai import Task, eval as evaluate
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes, match
    from inspect_ai.solver import generate

    def output(text):
        made = ModelOutput.from_content("mock", text)
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    folder, formats = sys.argv[1], ("json", "eval")
    data = [Sample(id=f"q{k}", input=f"{k}?", target=str(k), metadata={"category": "ab"[k % 2]}) for k in range(6)]
    for kind in formats:
        for model, wrong in (("one", {1, 2}), ("two", {2, 3, 4})):
            outputs = [output("x" if k in wrong else str(k)) for _ in range(2) for k in range(6)]
            evaluate(
                Task(dataset=MemoryDataset(data, name="d"), solver=[generate()], scorer=[match(), includes()], epochs=2, name="quiz"),
                model=get_model(f"mockllm/{model}", custom_outputs=outputs),
                log_dir=f"{folder}/{kind}",
                log_format=kind,
                display="none",
                max_samples=1,
            )
"""
CORRECT = {"mockllm/one": {0, 3, 4, 5}, "mockllm/two": {0, 1, 5}}


def run_lm_eval(folder):
    """Two models on one task, under folder/out."""
    folder.mkdir()
    questions = folder / "questions.json"
    lines = [
        {"question": k, "subject": ["law", "math"][k % 2], "choices": ["a", "b"], "answer": k % 2}
        for k in range(QUESTIONS)
    ]
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "quiz.yaml").write_text(TASK % questions)
    _run(LM_EVAL, folder)
    return folder / "out"


def run_inspect(folder):
    """Two models on one task with two epochs, once as documents and once as archives, under folder/json and folder/eval."""
    folder.mkdir()
    _run(INSPECT, folder)
    return folder


def _run(script, folder):
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "cache")}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), str(folder)],
        env=os.environ | offline,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr[-4_000:]

"""Evaluations by Inspect and lm-evaluation-harness, for real, into a running `watch`."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.commands import PATIENCE, Watch, get, rankwatch, until

CLIENT = Path(__file__).parents[2] / "clients/python"
TUTORIAL = Path(__file__).parents[2] / "docs/tutorials/stop-early.md"
MINUTES = 5 * PATIENCE
"""Both harnesses take their time to be imported."""

INSPECT = """
import sys
from pathlib import Path
from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate, solver

logs, hold = sys.argv[1:]

@solver
def held():
    async def solve(state, generate):
        if state.sample_id == 60 and str(state.model) == "mockllm/weak":
            import anyio
            while not Path(hold).exists():
                await anyio.sleep(0.05)
        return state
    return solve

@task
def arithmetic():
    samples = [Sample(id=k, input=f"{k}?", target="yes", metadata={"subject": f"s{k % 3}"}) for k in range(1, 61)]
    return Task(dataset=samples, solver=[held(), generate()], scorer=match())

def output(says):
    found = ModelOutput.from_content("mockllm", says)
    found.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or a tokenizer is fetched to count them
    return found

for name, says in (("strong", "yes"), ("weak", "no")):
    outputs = (output(says) for _ in range(60))
    (log,) = eval(arithmetic(), model=get_model(f"mockllm/{name}", custom_outputs=outputs), display="none", log_dir=logs)
    assert log.status == "success", log.error
"""

LM_EVAL = """
import json, os, random, signal, sys, time
import lm_eval
from lm_eval.models.dummy import DummyLM
from lm_eval.tasks import TaskManager
from rankwatch_client import Client
from rankwatch_client.lm_eval import race, send_results

class Noisy(DummyLM):
    def __init__(self, skill):
        super().__init__()
        self.skill = skill

    def generate_until(self, requests, disable_tqdm=False):
        asked = [r.args[0] for r in requests]
        with open("ran.jsonl", "a+") as ran:
            ran.seek(0)
            blocks = len(ran.readlines())
            ran.write(json.dumps([self.skill, asked]) + chr(10))
        if blocks == 4:  # of the first process
            time.sleep(1)  # longer than the client collects scores
            os.kill(os.getpid(), signal.SIGKILL)
        return ["lol" if random.Random(f"{self.skill}{each}").random() < self.skill else "" for each in asked]

tasks = TaskManager(include_path=sys.argv[1], include_defaults=False)
models = {"strong": Noisy(0.9), "middle": Noisy(0.4), "weak": Noisy(0.2)}
result = race(models, "laugh", goal="best", benchmark="raced", task_manager=tasks, progress=True)
print(json.dumps(result._asdict()))
for name, lm in (("dummy", DummyLM()), ("silent", Noisy(0))):
    results = lm_eval.simple_evaluate(model=lm, tasks=["laugh"], task_manager=tasks, bootstrap_iters=0)
    with Client(model=name) as client:
        assert send_results(client, results) == 60
        assert client.flush(60)
        assert client.stats.sent == 60
"""

TASK = """
task: laugh
dataset_path: json
dataset_kwargs: {{data_files: {{test: {documents}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["x"]}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


@contextlib.contextmanager
def program(path, text, url, *arguments, ends=0, **env):
    """Start a program with the client installed, as far as Python can tell."""
    site = path.with_suffix(".site")
    info = site / "rankwatch_client-0.1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rankwatch-client\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[inspect_ai]\nrankwatch = rankwatch_client.inspect\n")
    path.write_text(text)
    env = os.environ | {"PYTHONPATH": f"{CLIENT / 'src'}:{site}", "RANKWATCH_URL": url, "HF_HUB_OFFLINE": "1"} | env
    output = path.with_suffix(".out")
    with output.open("w") as file:
        arguments = [sys.executable, path, *map(str, arguments)]
        process = subprocess.Popen(arguments, env=env, cwd=path.parent, stdout=file, stderr=file)
    try:
        yield process
        assert process.wait(MINUTES) == ends, output.read_text()
    finally:
        process.kill()
        process.wait()


def write_task(folder):
    """Write a task of lm-eval with 60 documents."""
    documents = folder / "documents.jsonl"
    lines = (json.dumps({"question": f"{k}?", "answer": "lol", "subject": f"s{k % 3}"}) for k in range(60))
    documents.write_text("\n".join(lines))
    (folder / "tasks").mkdir()
    (folder / "tasks/laugh.yaml").write_text(TASK.format(documents=documents))


@pytest.fixture(scope="module")
def watch(tmp_path_factory):
    """One monitor for all harnesses: each has boards of its own."""
    with Watch(tmp_path_factory.mktemp("watch")) as running:
        yield running


def boards(url):
    """The reports, by benchmark."""
    return {each["benchmark"]: each for each in json.loads(get(f"{url}/api/v1/benchmarks")[1])["benchmarks"]}


def decided(url, benchmark):
    """The family-wise verdicts so far."""
    status, text = get(f"{url}/api/v1/changes?benchmark={benchmark}")
    return [c for c in json.loads(text)["changes"] if c["procedure"] == "anytime_family"] if status == 200 else []


@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="needs inspect-ai")
@pytest.mark.slow
def test_verdicts_move_while_inspect_evaluates(tmp_path, watch):
    assert 'rankwatch = "rankwatch_client.inspect"' in (CLIENT / "pyproject.toml").read_text()
    hold = tmp_path / "hold"
    with program(tmp_path / "run.py", INSPECT, watch.url, tmp_path / "logs", hold) as process:
        until(lambda: decided(watch.url, "arithmetic") or process.poll(), "a verdict", MINUTES)
        assert process.poll() is None, "decided before the evaluation ended"
        (change,) = decided(watch.url, "arithmetic")
        assert (change["model_a"], change["model_b"], change["after"]) == ("mockllm/strong", "mockllm/weak", "a")
        assert change["evidence"]["n"] < 60
        assert json.loads(get(f"{watch.url}/api/v1/early-stop?benchmark=arithmetic&model=mockllm/weak")[1])["may_stop"]
        hold.touch()
    benchmark = boards(watch.url)["arithmetic"]
    assert (benchmark["events"], benchmark["items"]) == (120, 60)
    assert benchmark["order"]["policy"] == "completion"
    assert benchmark["pairs"][0]["cluster"]["clusters"] == 3


@pytest.mark.slow
@pytest.mark.skipif(find_spec("lm_eval") is None, reason="needs lm-eval")
def test_lm_eval_races_in_blocks_goes_on_after_a_kill_and_sends_whole_runs(tmp_path, watch):
    write_task(tmp_path)
    path, env = tmp_path / "run.py", {"HF_HOME": str(tmp_path / "hf")}
    with program(path, LM_EVAL, watch.url, tmp_path / "tasks", ends=-signal.SIGKILL, **env):
        pass
    with program(path, LM_EVAL, watch.url, tmp_path / "tasks", **env):
        pass
    output = path.with_suffix(".out").read_text()
    result = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    assert (result["state"], result["models"]) == ("met", ["strong"])
    assert result["items_run"] < 0.8 * result["items_full"] == 0.8 * 180
    assert "% saved" in output
    raced = boards(watch.url)["raced"]
    counted = [raced[name] for name in ("events", "rejected", "duplicates", "conflicts")]
    assert counted == [result["items_run"], 0, 0, 0]
    assert raced["order"]["policy"] == "committed"
    order = get(f"{watch.url}/api/v1/order?benchmark=raced")[1].split()
    assert sorted(int(item.split("-")[0]) for item in order) == list(range(60))
    # Of the race, only the block that was killed has run twice.
    blocks = [json.loads(line) for line in (tmp_path / "ran.jsonl").read_text().splitlines()]
    ran = [(skill, item) for skill, items in blocks if skill for item in items]
    assert len(ran) - len(set(ran)) == len(blocks[4][1])
    assert len(set(ran)) == result["items_run"]
    (change,) = until(lambda: decided(watch.url, "laugh"), "a verdict")
    assert (change["model_a"], change["model_b"], change["after"]) == ("dummy", "silent", "a")
    whole = boards(watch.url)["laugh"]
    assert (whole["events"], whole["items"], whole["rejected"]) == (120, 60, 0)
    assert whole["pairs"][0]["cluster"]["clusters"] == 3


@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="needs inspect-ai")
@pytest.mark.slow
def test_the_tutorial_stops_inspect_early(tmp_path, watch):
    """The script and the commands of docs/tutorials/stop-early.md, against a real monitor."""
    page = TUTORIAL.read_text()
    (script,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert "$ RANKWATCH_URL=http://127.0.0.1:8642 python race_capitals.py\n" in page
    path = tmp_path / "race_capitals.py"
    with program(path, script, watch.url, INSPECT_DISPLAY="none"):
        pass
    lines = path.with_suffix(".out").read_text().splitlines()
    assert lines[-1] == "mockllm/oak is the best of 3 models."
    assert all(re.fullmatch(r"mockllm/\w+ \d+ of 500 samples", line) for line in lines[-4:-1])
    answer = json.loads(get(f"{watch.url}/api/v1/next?benchmark=capitals")[1])
    assert {run["model"]: run["step"] for run in answer["models"]}["mockllm/fir"] == "stop"
    assert answer["goal"]["saved_ratio"] > 0.5
    command = ["next", "--server", watch.url, "--benchmark", "capitals"]
    assert f"$ rankwatch {' '.join(command)}\n".replace(watch.url, "http://127.0.0.1:8642") in page
    assert "capitals  best: met." in rankwatch(*command, code=5).stdout

"""Run the commands that pages show, and return what they print."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from docs.generate.pages import DOCS

DEMO = "deploy/compose/examples/demo.jsonl"
TWO_MODELS = "examples/two-models"
HOME = "/home/me"
"""The folder that pages show instead of the temporary one."""

_BAD_RESULTS = (
    {"benchmark": "b", "item_id": "1", "model": "m", "score": 1},
    {"benchmark": "b", "item_id": "1", "model": "n", "score": 0},
    {"benchmark": "b", "item_id": "2", "model": "m", "score": 1.2},
)


def report() -> str:
    """Rank the models of the example."""
    return _console(f"rankwatch report {DEMO}")


def two_models() -> str:
    """Compare the two models of the example in tables."""
    return _console(f"rankwatch report {TWO_MODELS}/new.csv {TWO_MODELS}/old.csv")


def gate() -> str:
    """Compare two models of the example."""
    return _console(f"rankwatch gate {DEMO} --pair ash birch", exit_code=True)


def plan() -> str:
    """Plan the items for a gap."""
    return _console("rankwatch plan --gap 0.02 --accuracy 0.6 --rho 0.5")


def plan_goal() -> str:
    """Return a plan of a goal."""
    return _console(
        "rankwatch plan --goal best --model a=0.8 --model b=0.7 --model c=0.5 --rho 0.4 --items 400 --boards 50 --price 0.002"
    )


def plan_clusters() -> str:
    """Plan the items of a benchmark with clusters."""
    return _console("rankwatch plan --gap 0.05 --discordance 0.26 --items 1200 --clusters 14 --icc 0.03")


def drift_plan() -> str:
    """Plan the runs until a drop of a watched model is found."""
    return _console("rankwatch drift plan --price 0.002")


def reject() -> str:
    """Report on a file with a line that cannot be read; only the message."""

    def prepare(folder: Path) -> None:
        lines = (json.dumps(each) + "\n" for each in _BAD_RESULTS)
        (folder / "results.jsonl").write_text("".join(lines), encoding="utf-8")

    return _console("rankwatch report results.jsonl", prepare, only_messages=True)


def choices() -> str:
    """Report on samples of lm-evaluation-harness with two filters; only the messages."""

    def prepare(folder: Path) -> None:
        runs = folder / "runs" / "gemma-7b"
        runs.mkdir(parents=True)
        with (runs / "samples_gsm8k_2026-11-20T10-00-00.000000.jsonl").open("w", encoding="utf-8") as out:
            for item in range(20):
                for name, score in (("strict-match", item % 3 == 0), ("flexible-extract", item % 2 == 0)):
                    out.write(json.dumps(sample(item, name, float(score))) + "\n")

    return _console("rankwatch report runs/", prepare, only_messages=True)


def sample(item: int, name: str, score: float) -> dict[str, object]:
    """Return a sample as lm-evaluation-harness logs it."""
    digest = f"{item:064x}"
    return {
        "doc_id": item,
        "doc": {"question": f"question {item}"},
        "target": "1",
        "arguments": [],
        "resps": [["1"]],
        "filtered_resps": ["1"],
        "filter": name,
        "metrics": ["exact_match"],
        "doc_hash": digest,
        "prompt_hash": digest,
        "target_hash": digest,
        "exact_match": score,
    }


def _console(
    command: str,
    prepare: Callable[[Path], None] = lambda _: None,
    *,
    only_messages: bool = False,
    exit_code: bool = False,
) -> str:
    """Return a command and its output as a block of Markdown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / DEMO).parent.mkdir(parents=True)
        shutil.copy(DOCS.parent / DEMO, folder / DEMO)
        shutil.copytree(DOCS.parent / TWO_MODELS, folder / TWO_MODELS)
        prepare(folder)
        plain = {name: value for name, value in os.environ.items() if not name.startswith("RANKWATCH_")}
        done = subprocess.run(
            [sys.executable, "-m", "monitor", *command.split()[1:]],
            cwd=folder,
            env={**plain, "PYTHONPATH": str(DOCS.parent), "COLUMNS": "100", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    text = (done.stderr if only_messages else done.stderr + done.stdout).replace(str(folder), HOME)
    lines = [f"$ {command}", *(line.rstrip() for line in text.rstrip().splitlines())]
    if exit_code:
        lines += ["$ echo $?", str(done.returncode)]
    return "\n".join(("```console", *lines, "```"))

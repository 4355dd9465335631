"""The commands that README and documentation show on files are run as they are shown."""

import json
import random
import re
import shlex
import shutil

import pytest

from docs.generate.outputs import DEMO, sample
from tests import forked
from tests.commands import PATIENCE, environment, events, write
from tests.forked import RANKWATCH
from tests.unit.engine.test_battles import stream
from tests.unit.ingest.native_logs import inspect_json, inspect_sample, lm_eval_run
from tests.unit.ingest.native_logs import sample as lm_eval_sample
from tests.unit.test_documented_commands import GENERATED, PAGES, ROOT

pytestmark = pytest.mark.full

SHOWN = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*rankwatch (.*(?:\\\n.*)*)", re.MULTILINE)
BLOCK = re.compile(r"^```(?:console|sh|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)

ON_FILES = {"report", "gate", "plan", "export", "order", "map", "next", "schema"}
"""Commands that end on their own, and need no server."""

ELSEWHERE = {
    "board": "tests/unit/serve/test_board_command.py",
    "config": "tests/integration/test_config.py",
    "dead-letters": "tests/unit/app/test_dead_letters.py",
    "demo": "tests/integration/test_demo.py",
    "doctor": "tests/unit/app/test_doctor.py",
    "notify": "tests/unit/notify/test_notifier.py",
    "quarantine": "tests/fault/test_quarantine.py",
    "reproduce": "tests/golden/test_reproduce.py",
    "run": "tests/integration/test_service_start.py",
    "send": "tests/unit/send/test_sender.py",
    "serve": "tests/integration/test_readers.py",
    "state": "tests/integration/test_state_command.py",
    "token": "tests/integration/test_token_command.py",
    "watch": "tests/integration/test_watch_live.py",
}
"""Commands that need a server or do not end: the files whose tests run them."""

NOT_HERE = ("https://", "http://", "--server", "--run ", "PATH", "...", "--model a=0.8", "top:3", "algebra:1187")
"""What a command may name that this test does not have: other hosts, a harness, a placeholder. Plans of goals are run for their page."""

SEVERAL = ("math-l5", "cruxeval-o", "my-bench", "math=")

METRICS = re.compile(r"(--metric|--scorer|--columns) .*\1 ")
"""A command that compares several metrics: on results that have them."""

SKILLS = {
    name: 0.5 + 0.04 * k
    for k, name in enumerate(
        (
            "A",
            "old",
            "baseline",
            "prod",
            "a",
            "gemma-7b",
            "b",
            "new",
            "candidate",
            "B",
            "c",
            "gpt",
            "model-a",
            "model-b",
        )
    )
}


def shown():
    """Each command in a block, with its page."""
    for page in PAGES:
        if page.name not in GENERATED:
            for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
                for match in SHOWN.finditer(block[1]):
                    yield (
                        str(page.relative_to(ROOT)),
                        match[1].replace("\\\n", " ").split(" | ")[0].split(" > ")[0].split(" >> ")[0],
                    )


COMMANDS = sorted(set(shown()))
RUN = [
    (page, text)
    for page, text in COMMANDS
    if text.startswith(("watch results/", *(f"{name} " for name in ON_FILES)))
    and not any(part in text for part in NOT_HERE)
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What the pages name: results, runs of a harness, a pilot, prices and items; results of one benchmark, and of several."""
    one, rng = tmp_path_factory.mktemp("documented") / "one", random.Random(4)
    (one / DEMO).parent.mkdir(parents=True)
    shutil.copy(ROOT / DEMO, one / DEMO)

    def scores(path, models, benchmark="gsm8k"):
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = events(rng, {model: SKILLS[model] for model in models}, 120, benchmark=benchmark)
        write(path, [{**row, "cluster": f"topic {int(row['item_id'][5:]) % 12}"} for row in rows])

    for path in ("results/gsm8k.jsonl", "results.jsonl", "mmlu-pro.jsonl", "physics.jsonl"):
        scores(one / path, SKILLS)
    scores(one / "pilot.jsonl", ("model-a", "model-b"))
    scores(one / "pilot/pilot.jsonl", ("a", "b", "c", "gpt"))
    for path, model in (("baseline.jsonl", "old"), ("main.jsonl", "old"), ("main-2.jsonl", "old"), ("pr.jsonl", "new")):
        scores(one / path, (model,))
    for run in ("runs/monday/gemma-7b", "runs/friday/gemma-7b", "runs/gemma-7b"):
        (one / run).mkdir(parents=True)
        rows = (sample(item, "strict-match", float(rng.random() < 0.6)) for item in range(20))
        write(one / run / "samples_gsm8k_2026-11-20T10-00-00.000000.jsonl", rows)
    (one / "runs/gpt-4").mkdir()
    (one / "runs/gpt-4/scores.json").write_text(json.dumps({"rows": [{"id": "1", "ok": True}]}))
    write(one / "arena.json", stream(1, 300, prompts=200))
    (one / "ids.txt").write_text("".join(f"item {k}\n" for k in range(1, 121)))
    priced = {"a": 0.01, "b": 0.03, "c": 0.05, "gpt": 0.1} | dict.fromkeys([*SKILLS, "gemma-7b"], 0.02)
    (one / "prices.csv").write_text("model,price\n" + "".join(f"{model},{price}\n" for model, price in priced.items()))
    several = one.with_name("several")
    shutil.copytree(one, several)
    for name in SEVERAL:
        scores(several / f"results/{name.removesuffix('=')}.jsonl", SKILLS, name.removesuffix("="))
    return one, several, metrics(one.with_name("metrics"), rng)


def metrics(folder, rng):
    """Results of two models under several metrics: of lm-evaluation-harness, of Inspect, and a table."""
    table = ["benchmark,item_id,model,correct,f1"]
    for model in ("prod", "new"):
        drawn = [(item, *(int(rng.random() < 0.7) for _ in range(2))) for item in range(60)]
        names = ("exact_match", "f1", "acc", "acc_norm")
        samples = [lm_eval_sample(item, metrics=dict(zip(names, (x, y, x, y), strict=True))) for item, x, y in drawn]
        better = dict.fromkeys(names, True)
        lm_eval_run(folder / "results" / model, model, samples, task="mmlu", better=better, items=60)
        logged = [inspect_sample(item, "IC"[x], model_graded_qa="IC"[y]) for item, x, y in drawn]
        inspect_json(folder / "logs" / f"{model}.json", logged, model=model, items=60)
        table += [f"mmlu,{item},{model},{x},{y}" for item, x, y in drawn]
    (folder / "wide.csv").write_text("\n".join(table) + "\n")
    return folder


def test_every_command_that_a_page_shows_is_run_by_a_test():
    names = {text.split()[0] for _, text in COMMANDS}
    assert {name for name in names if not name.startswith("-")} <= ON_FILES | ELSEWHERE.keys()
    assert all((ROOT / path).is_file() for path in ELSEWHERE.values())
    assert len(RUN) > 25


@pytest.mark.parametrize(("page", "text"), RUN)
def test_a_command_on_files_runs_as_it_is_shown(folders, tmp_path, page, text):
    folder = folders[2 if METRICS.search(text) else any(name in text for name in SEVERAL)]
    words = shlex.split(text, comments=True)
    if words[0] == "watch":  # to its end
        words += ["--once", "--data-dir", str(tmp_path)]
    ended = forked.run([RANKWATCH, *words], env=environment(), cwd=folder, timeout=2 * PATIENCE)
    # 3 and 4: the gate and the next items have no answer on these scores.
    answers = (0, 3, 4) if words[0] in {"gate", "next"} else (0,)
    assert ended.returncode in answers, f"{page}: rankwatch {text}\n{ended.stdout}\n{ended.stderr}"
    assert "Traceback" not in ended.stderr

"""The commands that README and documentation show are run as they are shown: on files, a server, a stored state and the service."""

import asyncio
import json
import os
import random
import re
import shlex
import shutil
import sys
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from docs.generate.outputs import DEMO, TWO_MODELS, sample
from tests import forked
from tests.commands import PATIENCE, Watch, environment, events, get, rankwatch, until, write
from tests.documented import COMMANDS, ELSEWHERE, OF_THE_SERVICE, ON_A_SERVER, ON_A_STATE, ON_FILES, TEXTS, TOKENS
from tests.forked import RANKWATCH
from tests.ports import free_ports
from tests.redis_server import RedisServer
from tests.stored_state import drain, fold, records
from tests.unit.engine.test_battles import stream
from tests.unit.files.native_logs import inspect_json, inspect_sample, lm_eval_run
from tests.unit.files.native_logs import sample as lm_eval_sample
from tests.unit.test_documented_commands import ROOT

pytestmark = pytest.mark.full

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


HARNESS = """
import json, sys
model, ids, out = sys.argv[2], sys.argv[4], sys.argv[6]
with open(ids) as asked, open(out, "w") as answers:
    for item in asked.read().splitlines():
        answers.write(json.dumps({"benchmark": "gsm8k", "item_id": item, "model": model, "score": 1}) + "\\n")
"""
"""The `eval.py` of a page, for a model that is always right."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What the pages name: results, runs of a harness, a pilot, prices and items; results of one benchmark, and of several."""
    one, rng = tmp_path_factory.mktemp("documented") / "one", random.Random(4)
    (one / DEMO).parent.mkdir(parents=True)
    shutil.copy(ROOT / DEMO, one / DEMO)
    shutil.copytree(ROOT / TWO_MODELS, one / TWO_MODELS)

    def scores(path, models, benchmark="gsm8k", items=120):
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = events(rng, {model: SKILLS[model] for model in models}, items, benchmark=benchmark)
        write(path, [{**row, "cluster": f"topic {int(row['item_id'][5:]) % 12}"} for row in rows])

    for path in ("results/gsm8k.jsonl", "results.jsonl", "mmlu-pro.jsonl", "physics.jsonl"):
        scores(one / path, SKILLS)
    scores(one / "pilot.jsonl", ("model-a", "model-b"))
    (one / "eval.py").write_text(HARNESS)
    for path, model in (("baseline.jsonl", "old"), ("main.jsonl", "old"), ("main-2.jsonl", "old"), ("pr.jsonl", "new")):
        scores(one / path, (model,))
    scores(one / "baseline.jsonl", ("old",), items=200)  # fewer cannot show what a gate along an order asks
    for run in ("runs/monday/gemma-7b", "runs/friday/gemma-7b", "runs/gemma-7b"):
        (one / run).mkdir(parents=True)
        rows = (sample(item, "strict-match", float(rng.random() < 0.6)) for item in range(20))
        write(one / run / "samples_gsm8k_2026-11-20T10-00-00.000000.jsonl", rows)
    (one / "runs/gpt-4").mkdir()
    (one / "runs/gpt-4/scores.json").write_text(json.dumps({"rows": [{"id": "1", "ok": True}]}))
    write(one / "arena.json", stream(1, 300, prompts=200))
    for name, right in (("new", 0.8), ("old", 0.6)):
        rows = [f"item {k},{int(k / 120 < right)}" for k in range(1, 121)]
        (one / f"{name}.csv").write_text("\n".join(["item,score", *rows, ""]))
    (one / "units.csv").write_text("item,unit\n" + "".join(f"item {k},{k // 2}\n" for k in range(1, 121)))
    (one / "ids.txt").write_text("".join(f"item {k}\n" for k in range(1, 121)))
    priced = {"a": 0.01, "b": 0.03, "c": 0.05, "gpt": 0.1} | dict.fromkeys([*SKILLS, "gemma-7b"], 0.02)
    (one / "prices.csv").write_text("model,price\n" + "".join(f"{model},{price}\n" for model, price in priced.items()))
    several = one.with_name("several")
    shutil.copytree(one, several)
    for name in SEVERAL:
        scores(several / f"results/{name.removesuffix('=')}.jsonl", SKILLS, name.removesuffix("="))
    other, topics = one.with_name("other"), ("algebra", "geometry", "counting")
    (other / "results").mkdir(parents=True)
    rows = events(rng, {"a": 0.6, "b": 0.8}, 90, benchmark="math")
    write(other / "results/math.jsonl", [{**row, "cluster": topics[int(row["item_id"][5:]) % 3]} for row in rows])
    far_apart = {"a": 0.15, "b": 0.75, "c": 0.8, "gpt": 0.9}  # few items are simulated
    (other / "pilot").mkdir()
    write(other / "pilot/pilot.jsonl", events(rng, far_apart, 120))
    (other / "prices.csv").write_text("model,price\n" + "".join(f"{model},0.01\n" for model in far_apart))
    (one.with_name("daily") / "runs").mkdir(parents=True)
    of_days, before = daily(one.with_name("daily"), rng), gated(one.with_name("gated"), rng)
    return one, several, metrics(one.with_name("metrics"), rng), other, of_days, before


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


def daily(folder, rng):
    """Eight runs of one model, a file each."""
    for day in range(1, 9):
        rows = events(rng, {"prod": 0.8}, 40, benchmark="support-qa")
        write(folder / f"runs/support-qa_2026-08-{day:02}.jsonl", rows)
    return folder


def gated(folder, rng):
    """Runs of the baseline of a gate, and an archive of runs with its candidate."""
    (folder / "runs").mkdir(parents=True)
    for day in range(1, 4):
        (folder / f"archive/2026-08-{day:02}").mkdir(parents=True)
        write(folder / f"runs/suite_2026-08-{day:02}.jsonl", events(rng, {"old": 0.8}, 60, benchmark="suite"))
        run = events(rng, {"old": 0.8, "new": 0.8}, 60, benchmark="suite")
        write(folder / f"archive/2026-08-{day:02}/results.jsonl", run)
    return folder


def folder_of(text, folders):
    """The folder on which a command has an answer."""
    one, several, with_metrics, other, of_days, before = folders
    if "--check" in text or "--replay" in text:
        return before
    if "--exact" in text:
        return several  # an evaluation along an order has its folder in the other one
    if text.startswith("drift"):
        return of_days
    if "algebra:" in text or "pilot/" in text:
        return other
    return with_metrics if METRICS.search(text) else several if any(name in text for name in SEVERAL) else one


def words_of(text, other):
    """The words of a shown command, with other addresses."""
    for old, new in dict(other).items():
        text = text.replace(old, new)
    return shlex.split(text, comments=True)


def run(text, folder, *more, given=None, other=(), **env):
    """Run a shown command to its end, with other addresses, and return its output."""
    words = [*words_of(text, other), *more]
    env = environment(PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **env)
    ended = forked.run([RANKWATCH, *words], input=given, env=env, cwd=folder, timeout=2 * PATIENCE)
    # From 3 on: no answer yet, one against the candidate or the model, or a goal that is met.
    answers = (0, 3, 4, 5) if words[0] in {"gate", "next", "drift"} else (0,)
    assert ended.returncode in answers, f"rankwatch {text}\n{ended.stdout}\n{ended.stderr}"
    assert "Traceback" not in ended.stderr
    return ended.stdout


def test_every_command_that_a_page_shows_is_run_by_a_test():
    assert len(COMMANDS) > 90
    assert ON_FILES | ON_A_SERVER | ON_A_STATE | OF_THE_SERVICE | TOKENS | ELSEWHERE.keys() == TEXTS
    assert all((ROOT / where.partition(": ")[0]).is_file() for where in ELSEWHERE.values())


@pytest.mark.parametrize("text", sorted(ON_FILES))
def test_a_command_on_files_runs_as_it_is_shown(folders, tmp_path, text):
    more = ("--once", "--data-dir", str(tmp_path)) if text.startswith("watch ") else ()  # to its end
    run(text, folder_of(text, folders), *more)


def test_the_commands_on_a_stored_state_run_as_they_are_shown(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    with RedisServer(tmp_path / "old") as old, RedisServer(tmp_path / "new") as new:
        asyncio.run(fold(old.url, "rankwatch.events", 3, records(random.Random(7), 0, 60)))
        asyncio.run(drain(old.url, "rankwatch.events", 3))
        other = {f"redis://{name}:6379": server.url for name, server in (("old", old), ("new", new))}
        other |= {
            "redis://localhost:6379/1": new.url,
            "redis://localhost:6379/0": old.url,
            "redis://localhost:6379": old.url,
        }
        imports = {text for text in ON_A_STATE if text.startswith("state import")}
        compares = {text for text in ON_A_STATE if text.startswith("state compare")}
        for text in sorted(ON_A_STATE - imports - compares):
            run(text, tmp_path, other=other, RANKWATCH_REDIS_URL=old.url)
        for text in sorted(
            imports, key=len, reverse=True
        ):  # the last one is on the same topic, with which the state is compared
            new.flush()
            run(text, tmp_path, other=dict.fromkeys(other, new.url))
        for text in compares:
            assert "; 0 differ" in run(text, tmp_path, other=other)


@pytest.mark.parametrize("text", sorted(TOKENS))
def test_a_command_on_tokens_runs_as_it_is_shown(tmp_path, text):
    access = {"RANKWATCH_ACCESS_FILE": str(tmp_path / "access.json")}
    if not text.startswith("token create"):
        rankwatch("token", "create", "nightly", "--scope", "read", **access)
    run(text, tmp_path, **access)


@pytest.fixture
def web(folders):
    """A server of the files of the pages, that takes notifications too."""

    class Handler(SimpleHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folders[0]))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


ON_BOARDS = (
    "list",
    "show",
    "export",
    "rename ",
    "rename-model",
    "delete-model",
    "undo",
    "archive",
    "delete ",
    "reopen",
)
"""The commands of a board in an order in which each has something to do."""


def declared(benchmark, models):
    """The declaration of a race along a committed order."""
    order, items = {"policy": "committed", "seed": "2026-11"}, [f"item {k}" for k in range(9)]
    return {"declare": benchmark, "order": order, "item_ids": items, "family": {"models": models}, "goal": "best"}


def test_the_commands_on_a_server_run_as_they_are_shown(folders, web, tmp_path):
    one, data, rng = folders[0], tmp_path / "state", random.Random(5)
    write(one / "board.jsonl", events(rng, {"run-17": 0.3, "broken-run": 0.1}, 60, benchmark="physics"))
    write(one / "ash.jsonl", events(rng, {"ash": 0.9}, 60, benchmark="physics"))
    write(one / "races.jsonl", [declared(name, ["a", "b", "c"]) for name in ("capitals", "my-bench")])
    (one / "out").mkdir()
    shutil.copy(one / "pr.jsonl", one / "out")
    access = {"RANKWATCH_ACCESS_FILE": str(tmp_path / "access.json")}
    scopes = ("--scope", "write:*", "--scope", "declare:*")
    nightly = {"RANKWATCH_TOKEN": rankwatch("token", "create", "nightly", *scopes, **access).stdout.strip()}
    operator = {"RANKWATCH_TOKEN": "the-token-of-the-operator", "XDG_STATE_HOME": str(tmp_path)}
    left = set(ON_A_SERVER) - {"watch --data-dir state", "watch --items support-bot=200"}  # both are this one
    with Watch(data, "--items", "support-bot=200", **access | operator) as watch:
        monitors = ("https://ranks.example.org", "https://evals.example.org", "http://127.0.0.1:8642")
        other = dict.fromkeys(monitors, watch.url)
        other |= {"https://example.org": web, '"$model"': "a", "2026-11-23T07:00Z": "2026-01-01T00:00Z"}

        def each(*starts, **options):
            """Run the commands that begin like these, in the order of the beginnings."""
            for start in starts:
                texts = sorted(text for text in left if text.startswith(start))
                assert texts, start
                left.difference_update(texts)
                for text in texts:
                    run(text, one, other=other, **operator | options)

        each("send - ", given=(one / "races.jsonl").read_text())
        run("send board.jsonl --to", one, watch.url, **operator | nightly)
        run("send ash.jsonl results/gsm8k.jsonl --items gsm8k=120 --to", one, watch.url, **operator)
        each("next", "gate", *(f"board {verb}" for verb in ON_BOARDS))
        until((data / "verdicts.jsonl").exists, "a verdict")
        shutil.copy(data / "verdicts.jsonl", one)
        each("notify", RANKWATCH_NOTIFY_WEBHOOK_URL=f"{web}/hook", RANKWATCH_PRIVATE_ADDRESSES="127.0.0.1")
    assert not left


@pytest.mark.kafka
def test_the_commands_of_the_service_run_as_they_are_shown(kafka, topic, folders, tmp_path):
    (tmp_path / "redis").mkdir()
    asyncio.run(kafka.create_topic(topic, 4))
    started = sorted(text for text in OF_THE_SERVICE if text.startswith(("run", "serve")))
    ports = free_ports(len(started))
    with RedisServer(tmp_path / "redis") as redis, ExitStack() as stack:
        other = {"kafka://localhost:9092": f"kafka://{kafka.addresses}", "redis://localhost:6379": redis.url}
        other |= {"rankwatch.events": topic}
        env = {"BROKER_URL": f"kafka://{kafka.addresses}", "REDIS_URL": redis.url, "CREATE_TOPICS": "all", "PORT": "0"}
        env |= {
            "TOPIC": topic,
            "GROUP": topic,
            "VERDICT_TOPIC": f"{topic}.verdicts",
            "DATA_DIR": str(tmp_path / "data"),
        }
        env = {f"RANKWATCH_{name}": value for name, value in env.items()} | {"XDG_STATE_HOME": str(tmp_path)}
        service = []

        def events_read(port):
            try:
                status, text = get(f"http://127.0.0.1:{port}/api/v1/summaries")
            except OSError:
                return 0
            return sum(each["events"] for each in json.loads(text)) if status == 200 else 0

        for text, port in zip(started, ports, strict=True):
            log = stack.enter_context((tmp_path / f"{len(service)}.log").open("w"))
            command = [RANKWATCH, *words_of(text, other | {"--port 8643": f"--port {port}"})]
            service.append(forked.start(command, env=environment(**env), cwd=folders[0], stdout=log, stderr=log))
            stack.callback(service[-1].kill)
        for text in sorted(text for text in OF_THE_SERVICE if text.startswith("send")):
            run(text, folders[0], other=other, **env)
        for text, port in zip(started, ports, strict=True):
            if text.startswith("serve"):
                until(lambda port=port: events_read(port) == 450 + 120 * len(SKILLS), f"the events that {text} shows")
        for text in sorted(text for text in OF_THE_SERVICE if text.startswith("doctor")):
            run(text, folders[0], other=other, **env)
        for process in service:
            process.terminate()
        assert [process.wait(PATIENCE) for process in service] == [0] * len(service)

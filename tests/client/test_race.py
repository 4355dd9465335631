"""Races of the client against a real server."""

import asyncio
import json
import random
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from rankwatch_client import Client, async_race, race, race_blocks
from rankwatch_client.next_runs import Answer, NextRun, NextRuns

from tests.ports import free_port
from tests.served import Served

SKILLS = {"strong": 0.95, "middle": 0.4, "weak": 0.2}
ITEMS = [f"q{k}" for k in range(200)]


def score(model, item):
    return int(random.Random(f"{model} {item}").random() < SKILLS[model])


def test_a_race_stops_at_the_answer_and_ends_the_runs(served):
    result = race(SKILLS, ITEMS, score, benchmark="bench", url=served.url)
    assert (result.state, result.models, result.items_full) == ("met", ["strong"], 600)
    assert result.saved_ratio > 0.5
    (benchmark,) = served.get("benchmarks").json["benchmarks"]
    assert benchmark["goal"]["items_run"] == benchmark["events"] == result.items_run
    assert {m["model"]: m["run_ended"] for m in benchmark["models"]} == dict.fromkeys(SKILLS, True)
    assert (benchmark["rejected"], benchmark["duplicates"]) == (0, 0)


def test_a_race_keeps_the_look_of_a_declared_order(served):
    """As `rankwatch order --format json` declares it; the scores that come first make it final."""
    declared = {"order": {"policy": "committed", "seed": "s"}, "item_ids": ITEMS, "family": {"models": [*SKILLS]}}
    with Client(served.url, None, "kept") as client:
        client.declare(**declared, goal="best", look=0.2)
        client.flush(30)
    for seed in (None, "s"):
        assert race(SKILLS, ITEMS, score, benchmark="kept", url=served.url, seed=seed).state == "met"
    (benchmark,) = served.get("benchmarks").json["benchmarks"]
    assert (benchmark["look"], benchmark["rejected"]) == (0.2, 0)
    assert served.get("declarations?benchmark=kept").json["look"] == 0.2


def test_a_race_with_asyncio(served):
    async def evaluate(model, item):
        await asyncio.sleep(0)
        return score(model, item["id"])

    items = {item: {"id": item} for item in ITEMS}
    result = asyncio.run(
        async_race(SKILLS, items, evaluate, benchmark="other", goal="pair:middle,strong", url=served.url)
    )
    assert (result.state, result.models) == ("met", ["strong"])
    assert result.items_run < 400


def test_the_progress_line_shows_what_is_open_and_what_was_saved(served, capsys):
    race(SKILLS, ITEMS, score, benchmark="shown", goal="ranking", url=served.url, progress=True)
    error = capsys.readouterr().err
    assert "ranking: open, 3 pairs undecided; 0 of 600 scores" in error
    assert " % saved so far" in error
    assert error.endswith("% saved\n")


def test_the_evaluation_goes_on_while_the_monitor_is_away(monkeypatch):
    monkeypatch.setattr("rankwatch_client.races.AWAY_SECONDS", 0.1)
    monkeypatch.setattr("rankwatch_client.client.EXIT_SECONDS", 0.1)
    seen = []
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionError, match=r"does not answer, and no item was run: .* pass without_monitor=True"):
        race(["a", "b"], ITEMS[:25], lambda *cell: seen.append(cell), benchmark="x", url=url)
    assert not seen
    result = race(["a", "b"], ITEMS[:25], lambda *cell: seen.append(cell), benchmark="x", url=url, without_monitor=True)
    assert sorted(seen) == sorted((model, item) for model in "ab" for item in ITEMS[:25])
    assert (result.state, result.items_run, result.saved_ratio) == ("open", 50, 0)


def test_a_wrong_option_is_an_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'gaol'"):
        race(SKILLS, ITEMS, score, benchmark="wrong", gaol="best")


def test_a_race_that_the_monitor_refuses_is_an_error(served):
    with pytest.raises(ValueError, match="the monitor refuses the race: goal: the goal 'first' is unknown"):
        race(SKILLS, ITEMS, score, benchmark="wrong", goal="first", url=served.url)


def test_blocks_of_a_model_come_in_the_committed_order(served):
    seen = []

    def evaluate(model, items):
        seen.append((model, items))
        return {item: score(model, item) for item in items if item != "q7"}

    clusters = {item: f"c{item[-1]}" for item in ITEMS}
    result = race_blocks(SKILLS, ITEMS, evaluate, benchmark="blocks", clusters=clusters, url=served.url)
    assert (result.state, result.models) == ("met", ["strong"])
    order = served.get("order?benchmark=blocks").text.split()
    ran = [item for model, items in seen if model == "strong" for item in items]
    assert ran == order[: len(ran)]
    assert len(seen[0][1]) == 10


def test_a_block_that_broke_off_is_continued(served, caplog):
    ran = []

    def evaluate(model, item):
        if len(ran) == 14:
            raise KeyboardInterrupt
        ran.append((model, item))
        return score(model, item)

    with pytest.raises(KeyboardInterrupt):
        race(SKILLS, ITEMS, evaluate, benchmark="again", url=served.url)
    broken = list(ran)
    again = []
    result = race(SKILLS, ITEMS, lambda *cell: again.append(cell) or score(*cell), benchmark="again", url=served.url)
    assert "refused" not in caplog.text, "the order is that of the first call"
    assert result.state == "met"
    assert len(broken) == 14
    assert not set(again) & set(broken)
    assert result.items_run == len(again) + 14, "what was paid before is not saved"


def test_two_racers_with_the_same_models_agree(served):
    results = []

    def run():
        results.append(race(SKILLS, ITEMS, score, benchmark="twice", seed="s", url=served.url))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [(result.state, result.models) for result in results] == [("met", ["strong"])] * 2
    (benchmark,) = served.get("benchmarks").json["benchmarks"]
    assert benchmark["conflicts"] == 0


def test_the_evaluation_goes_on_when_the_monitor_dies(monkeypatch):
    monkeypatch.setattr("rankwatch_client.races.AWAY_SECONDS", 0.3)
    monkeypatch.setattr("rankwatch_client.client.EXIT_SECONDS", 0.1)
    ran = []
    with Served() as served:

        def evaluate(model, item):
            if len(ran) == 25:
                served.stop()
            ran.append((model, item))
            return 1  # a tie: every item is needed

        result = race(["a", "b"], ITEMS[:40], evaluate, benchmark="x", url=served.url)
    assert sorted(ran) == sorted((model, item) for model in "ab" for item in ITEMS[:40])
    assert (result.state, result.items_run) == ("open", 80)


@contextmanager
def answering(status, body, *later):
    """A server that takes everything, and answers to `next` so: first this, then each of the later ones, the last one from then on."""
    answers = [(status, body), *later]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            code, text = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(code)
            self.end_headers()
            self.wfile.write(text)

        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def do_POST(self):
            self.do_PUT()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


GOAL = {"state": "open", "models": [], "reason": "r"}
LIES = {
    "no JSON": b"<html>",
    "another shape": b"[1]",
    "no goal": json.dumps({"over": False, "models": []}).encode(),
    "a step that is none": json.dumps(
        {"over": False, "goal": GOAL, "models": [{"model": "a", "step": [], "items_run": 0, "items": []}]}
    ).encode(),
    "other items": json.dumps(
        {"over": False, "goal": GOAL, "models": [{"model": "a", "step": "run", "items_run": 0, "items": ["../x", 7]}]}
    ).encode(),
    "other models": json.dumps(
        {"over": False, "goal": GOAL, "models": [{"model": "rm", "step": "run", "items_run": 0, "items": ["q1"]}]}
    ).encode(),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_monitor_that_answers_nonsense_stops_nothing(monkeypatch, lie):
    monkeypatch.setattr("rankwatch_client.races.AWAY_SECONDS", 0.05)
    seen = []
    with answering(200, LIES[lie]) as url:
        result = race(
            ["a", "b"], ITEMS[:15], lambda *cell: seen.append(cell), benchmark="x", url=url, without_monitor=True
        )
    assert sorted(seen) == sorted((model, item) for model in "ab" for item in ITEMS[:15])
    assert (result.state, result.items_run) == ("open", 30)


def test_a_token_that_expires_stops_nothing(monkeypatch):
    monkeypatch.setattr("rankwatch_client.races.AWAY_SECONDS", 0.05)
    first = Answer(False, GOAL, {"a": NextRun("run", 0, ["q1"])})
    asked = []

    def ask(runs, wait=0.0):
        asked.append(wait)
        if len(asked) == 1:
            runs._last = first
            return first
        return whole(runs, wait)

    whole = NextRuns.ask
    monkeypatch.setattr(NextRuns, "ask", ask)
    with answering(401, b"{}") as url:
        result = race(["a"], ITEMS[:15], lambda *_: 1, benchmark="x", url=url)
    assert (result.state, result.items_run) == ("open", 15)

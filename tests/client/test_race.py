"""Races of the client against a real server."""

import asyncio
import random

import pytest
from rankwatch_client import async_race, race

from tests.client.test_client import closed_port

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
    race(SKILLS, ITEMS, score, benchmark="shown", url=served.url, progress=True)
    error = capsys.readouterr().err
    assert "best: open" in error
    assert error.endswith("% saved\n")


def test_the_evaluation_goes_on_while_the_monitor_is_away(monkeypatch):
    monkeypatch.setattr("rankwatch_client.races.AWAY_SECONDS", 0.1)
    monkeypatch.setattr("rankwatch_client.client.EXIT_SECONDS", 0.1)
    seen = []
    result = race(
        ["a", "b"], ITEMS[:25], lambda *cell: seen.append(cell), benchmark="x", url=f"http://127.0.0.1:{closed_port()}"
    )
    assert sorted(seen) == sorted((model, item) for model in "ab" for item in ITEMS[:25])
    assert (result.state, result.items_run, result.saved_ratio) == ("open", 50, 0)


def test_a_race_that_the_monitor_refuses_is_an_error(served):
    with pytest.raises(ValueError, match="the monitor refuses the race: goal: the goal 'first' is unknown"):
        race(SKILLS, ITEMS, score, benchmark="wrong", goal="first", url=served.url)

"""Samples of a harness that wait for the monitor: run, stopped, or let go where the monitor or other models are away."""

import time

import pytest
from rankwatch_client import Client
from rankwatch_client.next_runs import in_committed_order
from rankwatch_client.pacing import Asker, PacedRun

from tests.client.test_race import ITEMS, SKILLS, score
from tests.ports import free_port

SLOTS = 4
ORDER = in_committed_order("s", ITEMS)


def start(client, models, family=None, patience=30.0, items=ORDER):
    asker = Asker(client, "bench", "best", family, "s", items)
    for model in models:
        asker.begin(model)
    return asker, {model: PacedRun(model, asker, items, patience) for model in models}


def drive(client, asker, runs, items=ORDER, seconds=30):
    """Take the samples of each model in turn, as a harness with some slots does; return what ran and what was stopped."""
    ran, stopped = {model: [] for model in runs}, {model: [] for model in runs}
    waiting = {model: list(items) for model in runs}
    end = time.monotonic() + seconds
    with asker.waiting():
        while any(waiting.values()):
            assert time.monotonic() < end, "it stalls"
            for model, run in runs.items():
                for item in waiting[model][:SLOTS]:
                    reason = run.judge(item)
                    if reason is None:
                        continue
                    waiting[model].remove(item)
                    (stopped if reason else ran)[model].append(item)
                    if not reason:
                        client.score(item, score(model, item), benchmark="bench", model=model)
                        run.scored(item)
            time.sleep(0.002)
    return ran, stopped


@pytest.fixture
def client(served):
    with Client(served.url, interval=0.01) as client:
        yield client


def test_samples_run_until_the_goal_is_met(served, client):
    asker, runs = start(client, SKILLS, list(SKILLS))
    ran, stopped = drive(client, asker, runs)
    assert {model: ran[model] == ORDER[: len(ran[model])] for model in SKILLS} == dict.fromkeys(SKILLS, True)
    assert len(ran["strong"]) < 100
    assert all(len(ran[model]) + len(stopped[model]) == len(ITEMS) for model in SKILLS)
    ends = {model: run.finish() for model, run in runs.items()}
    assert (ends["weak"]["state"], ends["weak"]["models"]) == ("met", ["strong"])
    assert ends["weak"]["samples_stopped"] == len(stopped["weak"])
    assert ends["weak"]["saved_ratio"] > 0.5
    assert runs["weak"].counters()["saved"].endswith(" %")
    client.flush()
    (benchmark,) = served.get("benchmarks").json["benchmarks"]
    assert benchmark["events"] == sum(map(len, ran.values()))
    assert all(model["run_ended"] for model in benchmark["models"])


def test_a_model_that_starts_late_catches_up_and_the_other_one_waits(client):
    family = ["strong", "weak"]
    asker, runs = start(client, ["strong"], family, patience=0.05)
    drive(client, asker, runs, ORDER[:15])
    again, runs = start(client, family, family)
    ran, stopped = drive(client, again, runs)
    assert stopped["strong"][:15] == ORDER[:15]  # the monitor has their scores
    assert ran["weak"] == ORDER[: len(ran["weak"])]
    assert ran["strong"] == ORDER[15 : 15 + len(ran["strong"])]
    assert again.answer.goal["state"] == "met"


def test_a_model_does_not_wait_for_others_without_end(client, caplog):
    asker, runs = start(client, ["strong"], ["strong", "weak"], patience=0.2, items=ORDER[:45])
    ran, _ = drive(client, asker, runs, ORDER[:45])
    assert set(ran["strong"]) == set(ORDER[:45])
    assert "strong goes on along the order: nothing has moved for 0.2 s" in caplog.text


def test_every_sample_runs_while_the_monitor_is_away(monkeypatch, caplog):
    for name in ("pacing", "races"):
        monkeypatch.setattr(f"rankwatch_client.{name}.AWAY_SECONDS", 0.1)
    monkeypatch.setattr("rankwatch_client.client.EXIT_SECONDS", 0.1)
    with Client(f"http://127.0.0.1:{free_port()}") as client:
        asker, runs = start(client, ["weak"], items=ORDER[:25])
        ran, _ = drive(client, asker, runs, ORDER[:25])
        assert set(ran["weak"]) == set(ORDER[:25])
        assert runs["weak"].finish() == {
            "state": "open",
            "reason": "The monitor did not answer.",
            "samples_stopped": 0,
        }
    assert "the monitor does not answer" in caplog.text


def test_another_order_of_the_monitor_is_an_error_before_the_first_sample(client):
    client.declare(benchmark="bench", order={"policy": "committed", "seed": "other"}, item_ids=ITEMS)
    client.score(ITEMS[0], 1, benchmark="bench", model="m")
    client.flush()
    with pytest.raises(ValueError, match=r"the monitor has another order of bench; pass seed='other' to race\(\)"):
        start(client, ["weak"])


def test_other_items_of_the_monitor_are_an_error_before_the_first_sample(client):
    client.declare(benchmark="bench", order={"policy": "committed", "seed": "s"}, item_ids=ITEMS[:9])
    client.score(ITEMS[0], 1, benchmark="bench", model="m")
    client.flush()
    with pytest.raises(ValueError, match="the monitor has 9 other items of bench than these 200; omit --limit"):
        start(client, ["weak"])

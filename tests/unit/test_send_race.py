"""Asking a server what runs next, while it is held up, away or of another version."""

import json

import pytest

from monitor.send.http import DeliveryError
from monitor.send.race import ask_next
from tests.client.test_race import GOAL, answering
from tests.ports import free_port

FULL = GOAL | {
    "goal": "best",
    "open_pairs": 1,
    "needed": [],
    "items_run": 0,
    "items_full": 2,
    "saved_ratio": 1.0,
}


def answer(step):
    run = {"model": "a", "step": step, "items_run": 0, "items": []}
    return json.dumps({"benchmark": "b", "goal": FULL, "over": False, "models": [run]}).encode()


def test_a_server_that_does_not_hold_its_answer_back_is_not_asked_without_pause(monkeypatch):
    pauses = []
    monkeypatch.setattr("monitor.send.race.sleep", pauses.append)
    monkeypatch.setattr("monitor.send.race._LEAST_SECONDS", 60.0)
    with answering(200, answer("wait")) as url:
        assert ask_next(url, None, "b", wait=0.2, model="a").models[0].step == "wait"
    assert set(pauses) == {60.0}


def test_a_server_that_goes_away_is_waited_for(monkeypatch):
    monkeypatch.setattr("monitor.send.race._LEAST_SECONDS", 0.01)
    with answering(200, answer("wait"), (503, b"busy"), (502, b"<html>"), (200, answer("run"))) as url:
        assert ask_next(url, None, "b", wait=60).models[0].step == "run"
    with answering(200, answer("wait"), (403, b"{}")) as url, pytest.raises(DeliveryError, match="it does not report"):
        ask_next(url, None, "b", wait=60)
    with pytest.raises(DeliveryError, match="no answer; check that it runs"):
        ask_next(f"http://127.0.0.1:{free_port()}", None, "b", wait=60)  # it has never answered


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b"", answer("jump")])
def test_another_answer_is_an_error(body):
    with answering(200, body) as url, pytest.raises(DeliveryError, match="not of this version of rankwatch"):
        ask_next(url, None, "b")

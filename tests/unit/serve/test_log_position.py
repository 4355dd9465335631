"""Each answer names its offset; a request may wait for one; what is too old is refused."""

import threading
import time

import pytest

from monitor.serve import cache, log_position
from monitor.state_lock import StateTorn
from schemas.records.packed import parse_offsets
from tests.served import Served, Stream, folded

EVENTS = [{"benchmark": "b", "item_id": str(k), "model": m, "score": 1} for k in range(4) for m in "xy"]
ROUTES = (
    "benchmarks",
    "benchmarks/b",
    "benchmarks/b/conflicts",
    "summaries",
    "pairs?benchmark=b",
    "matrix?benchmark=b",
    "path?benchmark=b&model_a=x&model_b=y",
    "early-stop?benchmark=b&model=x",
    "changes?benchmark=b",
)


class Torn(list):
    """Partitions of which one is between two offsets."""

    def __iter__(self):
        raise StateTorn


class Log:
    """A log whose fold a test moves."""

    def __init__(self):
        self.at, self.why = {0: 8}, None

    def offsets(self):
        return self.at

    def refusal(self):
        return self.why

    def age(self):
        return 0.0


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def server(log, monkeypatch):
    monkeypatch.setattr(log_position, "WAIT_SECONDS", 0.2)
    with Served(folded(EVENTS), log=log) as server:
        yield server


@pytest.mark.parametrize("route", ROUTES)
def test_every_answer_names_its_offset(server, route):
    answer = server.get(route)
    assert (answer.status, answer.headers["Rankwatch-Offset"]) == (200, "0:8")
    assert "Rankwatch-Unconfirmed" not in answer.headers


def test_what_the_store_does_not_hold_yet_is_unconfirmed():
    with Served(folded(EVENTS), reports={"committed": lambda: {0: 5}}) as server:
        assert server.get("summaries").headers["Rankwatch-Unconfirmed"] == "0:3"
        assert server.get("benchmarks/b").headers["Rankwatch-Unconfirmed"] == "0:3"


def test_a_request_waits_until_its_offset_is_folded(server, log, monkeypatch):
    monkeypatch.setattr(log_position, "WAIT_SECONDS", 20.0)
    timer = threading.Timer(0.3, lambda: log.at.update({0: 12}))
    timer.start()
    began = time.monotonic()
    answer = server.get("summaries?at_least=0:12")
    assert answer.status == 200
    assert time.monotonic() - began > 0.25
    timer.join()


def test_a_request_that_waits_too_long_may_try_again(server):
    answer = server.get("summaries?at_least=0:12")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json["detail"] == "at_least: the log is folded up to 0:8, not yet to 0:12. Retry."


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("3:1", "the log has no partition 3"),
        ("x", "'x' is not PARTITION:OFFSET"),
        ("", "'' is not PARTITION:OFFSET"),
        ("0:-1", "'0:-1' is not"),
        ("0:1;1:2", "is not PARTITION:OFFSET"),
        ("0:" + "9" * 20, "is not PARTITION:OFFSET"),
    ],
)
def test_a_wrong_offset_is_refused(server, value, message):
    answer = server.get(f"summaries?at_least={value}")
    assert answer.status == 422
    assert message in answer.json["detail"]


def test_data_that_is_too_old_is_refused_and_writes_are_not(server, log):
    log.why = "This reader is not ready: the state is 90 s old"
    for route in ROUTES:
        answer = server.get(route)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5"), route
    assert answer.json["detail"] == "This reader is not ready: the state is 90 s old. Retry, or ask another reader."
    assert server.get("openapi.json").status == 200
    assert server.request("GET", "/healthz").status == 200
    assert server.post([{"benchmark": "b", "item_id": "9", "model": "x", "score": 1}]).status == 200


def test_a_write_names_the_offset_that_a_reader_has_to_reach(server):
    answer = server.post([{"benchmark": "b", "item_id": "9", "model": "x", "score": 1}])
    assert set(parse_offsets(answer.headers["Rankwatch-Offset"])) == {0}
    assert parse_offsets(answer.headers["Rankwatch-Offset"])[0] == server.partitions[0].off


def test_only_the_benchmarks_of_the_pattern_are_shown():
    with Served(folded(EVENTS), reports={"shown": lambda name: name != "b"}) as server:
        assert server.get("summaries").json == []
        assert server.get("benchmarks/b").status == 404


def test_a_list_that_is_used_again_names_the_offset_it_was_computed_at(monkeypatch):
    monkeypatch.setattr(cache, "SLOW_SECONDS", -60.0)
    monkeypatch.setattr(cache, "REST", 1e9)
    with Served(folded(EVENTS)) as server:
        first = server.get("benchmarks")
        server.post([{"benchmark": "b", "item_id": "9", "model": "x", "score": 1}])
        again, now = server.get("benchmarks"), server.get("summaries?limit=9")
        assert (again.text, again.headers["Rankwatch-Offset"]) == (first.text, "0:8")
        end = f"0:{server.partitions[0].off}"
        assert now.headers["Rankwatch-Offset"] == end != "0:8"
        assert server.get(f"benchmarks?at_least={end}").headers["Rankwatch-Offset"] == end


@pytest.mark.fault("readers", "requests while a state is between two offsets", "503 with `Retry-After`")
def test_a_state_between_two_offsets_is_shown_to_nobody():
    with Served(folded(EVENTS)) as server:
        whole, server.partitions = server.partitions, Torn()
        answers = [server.get(route) for route in ROUTES]
        answers += [server.get("changes/stream"), server.post([EVENTS[0]])]
        for answer in answers:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
            assert answer.json["detail"].startswith(
                "The fold of the log has failed, and the stored state is not loaded"
            )
        assert server.request("GET", "/metrics").status == 200  # those of the process
        assert server.request("GET", "/healthz").status == 200
        server.partitions = whole
        with Stream(server) as stream:
            stream.until("update")
            server.partitions = Torn()
            assert stream.until("never") is None

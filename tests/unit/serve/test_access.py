"""Who may ask: tokens, names of this machine, and connections that come to nothing."""

import socket
import time

import pytest

from monitor.serve import server as server_module
from monitor.serve.access import SECURITY_HEADERS
from tests.commands import until
from tests.served import Served

PATHS = [
    "/metrics",
    "/api/v1/summaries",
    "/api/v1/changes/stream",
    "/api/v1/openapi.json",
    "/nowhere",
    "/api/v1/events",
]


@pytest.fixture(scope="module")
def guarded():
    with Served(token="gehe1m ü", loopback=False) as server:
        yield server


@pytest.fixture(scope="module")
def open_():
    with Served() as server:
        yield server


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "given",
    [None, "", "Bearer ", "Bearer x", "gehe1m ü", "Basic gehe1m ü", "Bearer gehe1m", "Bearer gehe1m ü!", "Bearer"],
)
def test_without_the_token_nothing_is_answered(guarded, path, given):
    headers = {} if given is None else {"Authorization": given.encode()}
    answer = guarded.request("GET", path, **headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer <token>" in answer.json["detail"]
    assert "gehe1m" not in answer.text


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_with_the_token_everything_is(guarded, scheme):
    key = {"Authorization": f"{scheme} gehe1m ü".encode()}
    assert guarded.get("summaries", **key).status == 200
    assert guarded.request("GET", "/metrics", **key).status == 200
    assert guarded.post([{"benchmark": "b", "item_id": "1", "model": "m", "score": 1}], **key).status == 200


def test_the_token_is_no_parameter(guarded):
    assert guarded.get("summaries?token=gehe1m%20%C3%BC&access_token=gehe1m%20%C3%BC").status == 401


def test_the_probes_need_no_token(guarded):
    assert guarded.request("GET", "/healthz").text == "ok\n"
    assert guarded.request("GET", "/readyz").text == "ok\n"


@pytest.mark.parametrize(
    "host",
    ["attacker.example", "127.0.0.1.attacker.example", "localhost@attacker.example", "", "[", "::1", "127.0.0.1/x"],
)
def test_other_names_are_not_this_machine(open_, host):
    for path in ("/healthz", "/api/v1/summaries"):
        answer = open_.request("GET", path, Host=host)
        assert answer.status == 400
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:80", "LOCALHOST"])
def test_names_of_this_machine_are(open_, host):
    assert open_.get("summaries", Host=host).status == 200


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/api/v1/summaries", "/nowhere", "/api/v1/pairs"])
def test_every_answer_is_closed_to_other_pages(open_, path):
    answer = open_.request("GET", path, Origin="http://attacker.example")
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers[name] == value
    assert not any(name.lower().startswith("access-control") for name in answer.headers)
    assert open_.request("OPTIONS", path, Origin="http://attacker.example").status in {404, 405}


@pytest.mark.parametrize(
    "path", ["/api/v1/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/api/v1/summaries/"]
)
def test_paths_lead_nowhere_else(open_, path):
    assert open_.request("GET", path).status == 404


def connect(served):
    return socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 60)


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: loc"])
def test_a_head_that_does_not_come_is_not_waited_for(open_, monkeypatch, sent):
    monkeypatch.setattr(server_module, "HEAD_SECONDS", 0.1)
    with connect(open_) as connection:
        connection.sendall(sent)
        assert connection.recv(1000) == b""


@pytest.mark.parametrize("together", [True, False])
def test_a_second_head_is_not_waited_for_either(open_, monkeypatch, together):
    """Uvicorn's idle timer closes the connection if both heads come in one packet; ours does if the second comes later."""
    if together:
        monkeypatch.setattr(open_.server._server.config, "timeout_keep_alive", 0.1)
    monkeypatch.setattr(server_module, "HEAD_SECONDS", 0.1)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(open_) as connection:
        started = time.monotonic()
        connection.sendall(request + request[:9] if together else request)
        answer = connection.recv(1000)
        if not together:
            connection.sendall(request[:9])
        while piece := connection.recv(1000):
            answer += piece
    assert answer.count(b"HTTP/1.1 200") == 1
    assert time.monotonic() - started < 4, "uvicorn's idle timer waits 5 s"


def test_a_head_that_is_too_long_is_refused(open_):
    with connect(open_) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")


def test_a_fault_of_ours_is_a_problem_without_its_insides(open_, monkeypatch, caplog):
    monkeypatch.setattr(open_.reports, "summaries", lambda: {}["secret"])
    answer = open_.get("summaries")
    assert (answer.status, answer.json["title"]) == (500, "Internal Server Error")
    assert "secret" not in answer.text
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers[name] == value
    until(lambda: "secret" in caplog.text, "the reason in the log")

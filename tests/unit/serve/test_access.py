"""Who may ask: tokens, names of this machine, and connections that come to nothing."""

import contextlib
import socket
import time

import pytest

from monitor.serve import server as server_module
from monitor.serve.access.control import SECURITY_HEADERS
from monitor.serve.connections import CLIENT_CONNECTIONS, Connections
from monitor.serve.report_cache import ReportCache
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


@pytest.mark.fault("attacks", "a name of another machine as `Host`", "400")
@pytest.mark.parametrize(
    "host",
    [
        *(
            "attacker.example",
            "127.0.0.1.attacker.example",
            "localhost@attacker.example",
            "",
            "[",
            "::1",
            "127.0.0.1/x",
        ),
        *("127.0.0.1#.attacker.example", "127.0.0.1?.attacker.example", "127.0.0.1\\.attacker.example", "localhost:"),
        *(
            "localhost:80.attacker.example",
            "localhost:8x",
            "[::1]x",
            "[::1",
            "127.0.0.1;x",
            "localhost,attacker.example",
        ),
    ],
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


def test_silent_connections_keep_nobody_out():
    """More than one client may have: the longest idle ones are closed, and every request is answered."""
    with Served() as served, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(served)) for _ in range(CLIENT_CONNECTIONS + 50)]
        begin = time.monotonic()
        for path in ("/healthz", "/api/v1/summaries", "/metrics"):
            assert served.request("GET", path).status == 200
        assert time.monotonic() - begin < 5, "a head is waited for 10 s"
        assert silent[0].recv(10) == b""
        silent[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert silent[-1].recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(
    ("files", "asked", "bounds"),
    [(1_024, (800, 800), (800, 800)), (1_024, (5_000, 5_000), (824, 824)), (100, (1_000, 250), (50, 12))],
)
def test_connections_are_as_many_as_the_settings_and_the_system_allow(monkeypatch, files, asked, bounds):
    monkeypatch.setattr(server_module.resource, "getrlimit", lambda _: (files, files))
    connections = server_module._connections(*asked)
    assert (connections._total, connections._per_client) == bounds


@pytest.mark.fault(
    "attacks",
    "more requests of one client under way than it may have",
    "429 with `Retry-After`; the probes are answered",
)
def test_a_client_with_too_many_requests_under_way_is_answered_429(monkeypatch):
    """Streams stay open, so none of them is idle: other requests are refused with what to do, the probes are answered."""
    monkeypatch.setattr(server_module, "_connections", lambda *_: Connections(total=10, per_client=4))
    request = b"GET /api/v1/changes/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Served() as served, contextlib.ExitStack() as stack:
        for _ in range(4):
            stream = stack.enter_context(connect(served))
            stream.sendall(request)
            assert stream.recv(12) == b"HTTP/1.1 200"
        for _ in range(3):
            answer = served.get("summaries")
            assert (answer.status, answer.headers["retry-after"]) == (429, "5")
            assert "This client has too many requests under way" in answer.json["detail"]
            assert served.request("GET", "/healthz").text == "ok\n"
        stack.close()
        until(lambda: served.get("summaries").status == 200, "the streams to be closed")


@pytest.mark.fault("attacks", "more requests under way than the server takes", "503; idle connections are closed first")
def test_all_clients_together_are_answered_503():
    """Clients by address: the one with most connections loses an idle one first."""
    closed = []

    class Open:
        def __init__(self, name):
            self.name = name

        def close_now(self):
            closed.append(self.name)

    connections = Connections(total=4, per_client=3)
    a, b, c = [Open(f"a{k}") for k in range(3)], Open("b"), Open("c")
    assert [connections.add(each, "198.51.100.1") for each in a] == [None] * 3
    assert connections.add(b, "198.51.100.2") is None
    connections.begin_request(a[0])
    assert connections.add(c, "198.51.100.3") is None
    assert closed == ["a1"]
    for each in (a[2], b, c):
        connections.begin_request(each)
    late = [Open(f"late{k}") for k in range(100)]
    assert {connections.add(each, "198.51.100.4") for each in late} == {503}
    assert closed == ["a1", *(f"late{k}" for k in range(36))], "so many are kept to be told why"
    connections.remove(b)
    assert connections.add(Open("d"), "198.51.100.4") is None
    assert len(connections) == 4


@pytest.mark.fault("attacks", "a body in chunks of one byte", "cut off")
def test_a_body_in_chunks_of_one_byte_is_cut_off(open_):
    """Each chunk costs as much as a kilobyte, and other requests wait meanwhile; chunks of a few bytes are read."""
    head = b"POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(open_) as connection:
        connection.sendall(head + b"10\r\n" + b" " * 16 + b"\r\n" + b"1\r\n \r\n" * 5_000 + b"0\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
    with connect(open_) as connection, pytest.raises(OSError, match=r"reset|[Pp]ipe"):
        connection.sendall(head + b"1\r\n \r\n" * 2_000_000)


@pytest.mark.fault("attacks", "a client that reads no answer", "its connection is closed")
def test_an_answer_that_nobody_takes_is_given_up(monkeypatch):
    monkeypatch.setattr(server_module, "WRITE_SECONDS", 0.2)
    with Served() as served, connect(served) as connection:
        connection.sendall(b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2_000)
        until(lambda: not len(served.server.connections), "the connection to be given up", 20)


@pytest.mark.fault("attacks", "a head of 100 KB", "400")
def test_a_head_that_is_too_long_is_refused(open_):
    with connect(open_) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")


def test_a_fault_of_ours_is_a_problem_without_its_insides(open_, monkeypatch, caplog):
    monkeypatch.setattr(ReportCache, "listed_summaries", lambda *_: {}["secret"])
    answer = open_.get("summaries?limit=999")  # no kept answer has this address
    assert (answer.status, answer.json["title"]) == (500, "Internal Server Error")
    assert "secret" not in answer.text
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers[name] == value
    until(lambda: "secret" in caplog.text, "the reason in the log")

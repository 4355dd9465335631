"""A real `watch`, asked by those who may not ask, and by those who ask too much."""

import contextlib
import gzip
import http.client
import json
import os
import random
import socket
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from monitor.serve.access import rules
from tests.commands import PATIENCE, Watch, events, get, rankwatch, until, write
from tests.served import Served

TOKEN = "t0ken-that-nobody-knows"
KEY = {"Authorization": f"Bearer {TOKEN}"}
OPEN = {"/healthz", "/readyz"}
BODY_BYTES = 2_000_000


@pytest.fixture(scope="module")
def watch(tmp_path_factory):
    """A `watch` with a token and a few events; `data` is its directory."""
    base = tmp_path_factory.mktemp("watch")
    path = write(base / "a.jsonl", events(random.Random(81), {"m": 0.9, "n": 0.3}, 40))
    env = {"RANKWATCH_TOKEN": TOKEN, "RANKWATCH_MAX_BODY_BYTES": str(BODY_BYTES)}
    with Watch(base / "data", path, "--items", 40, **env) as running:
        running.data = base / "data"
        until(lambda: count(running) == 80, "the events")
        yield running


def count(watch):
    return sum(b["events"] for b in json.loads(get(f"{watch.url}/api/v1/benchmarks", **KEY)[1])["benchmarks"])


def memory(watch):
    """Bytes that the process holds in memory."""
    return int(Path(f"/proc/{watch.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def opened(watch):
    """How many descriptors it has open."""
    return len(list(Path(f"/proc/{watch.process.pid}/fd").iterdir()))


def connect(watch):
    place = urlsplit(watch.url)
    return http.client.HTTPConnection(place.hostname, place.port, timeout=PATIENCE)


def ask(watch, method, path, body=None, headers=None):
    """Ask for a path unchanged, whatever is in it; return status, headers and body."""
    connection = connect(watch)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


# --- who may ask ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("attacks", "every route and method without a token, and with a wrong one", "401, no data")
def test_no_route_answers_without_the_token(watch):
    """Every route of the description, each with every method, and those that are not described."""
    routes = json.loads(ask(watch, "GET", "/api/v1/openapi.json", headers=KEY)[2])["paths"]
    assert len(routes) > 6
    asked = [(method.upper(), path) for path, methods in routes.items() for method in methods]
    asked += [(method, path) for path in ("/metrics", "/api/v1/openapi.json", "/nowhere") for method in ("GET", "HEAD")]
    asked += [(method, "/api/v1/events") for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECTION")]
    before = count(watch)
    for method, path in asked:
        for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}, {"Cookie": TOKEN}):
            body = b'{"benchmark":"b","item_id":"i","model":"m","score":1}' if method in {"POST", "PUT"} else None
            headers = given | {"Content-Type": "application/x-ndjson"}
            status, answered, text = ask(watch, method, path.replace("{name}", "bench"), body, headers)
            assert status == 401, (method, path)
            assert answered["www-authenticate"] == "Bearer"
            assert TOKEN not in text
            assert "bench" not in text
    assert count(watch) == before
    assert ask(watch, "GET", "/healthz")[::2] == (200, "ok\n")
    assert ask(watch, "GET", "/readyz")[::2] == (200, "ok\n")


def test_the_page_says_nothing_of_the_data_without_the_token(watch):
    status, _, text = ask(watch, "GET", "/")
    assert status == 200
    assert TOKEN not in text
    assert "bench" not in text.replace("benchmark", "").replace("workbench", "")


@pytest.mark.parametrize("given", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\xff" * 40])
def test_tokens_are_compared_in_constant_time(monkeypatch, given):
    """All of a token reaches the comparison that does not tell where two differ; nothing else is compared before."""
    seen = []

    def spy(one, other):
        seen.append((one, other))
        return compare(one, other)

    compare = rules.compare_digest
    monkeypatch.setattr(rules, "compare_digest", spy)
    with Served(token=TOKEN, loopback=False) as served:
        headers = {"Authorization": f"Bearer {given}".encode("latin-1")}
        assert served.request("GET", "/metrics", **headers).status == 401
    assert seen == [(given.encode("latin-1"), TOKEN.encode())]


@pytest.mark.fault("attacks", "other origins, hosts and forms", "400, 403 or 415")
def test_a_page_of_another_origin_gets_in_nowhere(watch):
    """What a browser sends for a page that points its own name here, or that asks from elsewhere."""
    port = urlsplit(watch.url).port
    others = ("attacker.example", f"127.0.0.1.attacker.example:{port}", "0.0.0.0", "127.0.0.1#.attacker.example")
    for host in (f"attacker.example:{port}", *others):
        for path in ("/", "/healthz", "/api/v1/benchmarks", "/metrics"):
            assert ask(watch, "GET", path, headers=KEY | {"Host": host})[0] == 400
    event = b'{"benchmark":"b","item_id":"i","model":"m","score":1}'
    for origin in ("http://attacker.example", "null", "file://", f"http://localhost.attacker.example:{port}"):
        headers = KEY | {"Origin": origin, "Content-Type": "application/x-ndjson"}
        status, answered, _ = ask(watch, "POST", "/api/v1/events", event, headers)
        assert status == 403
        assert not [name for name in answered if name.lower().startswith("access-control")]
    preflight = KEY | {"Origin": "http://attacker.example", "Access-Control-Request-Method": "POST"}
    status, answered, _ = ask(watch, "OPTIONS", "/api/v1/events", headers=preflight)
    assert status >= 400
    assert not [name for name in answered if name.lower().startswith("access-control")]
    # What a form can send without asking is no type that is taken.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert ask(watch, "POST", "/api/v1/events", event, KEY | {"Content-Type": kind})[0] == 415


PATHS = [
    "/../etc/passwd",
    "/page/../../../../etc/passwd",
    "/page/%2e%2e/%2e%2e/web.py",
    "/page/..%2f..%2fweb.py",
    "/page/..%5c..%5cweb.py",
    "/page/%252e%252e/web.py",
    "//etc/passwd",
    "/page//etc/passwd",
    "/page/index.html%00.js",
    "/%00",
    "/api/v1//benchmarks",
    "/api/v1/benchmarks/../../../metrics/x",
    "/healthz/",
    "/healthz/../metrics/..",
    "/" + "a" * 20_000,
    "/%ff%fe",
    "http://attacker.example/metrics/x",
]


@pytest.mark.fault("attacks", "paths that lead out of the page's folder", "400, 401 or 404")
@pytest.mark.parametrize("key", [{}, KEY], ids=["stranger", "friend"])
def test_no_path_leads_out(watch, key):
    for path in PATHS:
        status, _, text = ask(watch, "GET", path, headers=key)
        assert status in ({404, 400, 401} if key else {401, 400}), path
        assert "root:" not in text
        assert "import" not in text
        assert '"events"' not in text


# --- those who ask too much -------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("attacks", "320 connections that drip a head or a body", "everything else is answered")
def test_slow_clients_keep_nobody_waiting(watch):
    """Three hundred connections that drip a head, and twenty that drip a body, while others are answered.

    A client may have 250: the longest idle ones are closed.
    """
    place = urlsplit(watch.url)
    head = b"POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n" % TOKEN.encode()
    whole = head + b"Content-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n{"
    with contextlib.ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection((place.hostname, place.port), PATIENCE)) for _ in range(320)
        ]
        for k, connection in enumerate(slow):
            connection.sendall(whole if k < 20 else head[: k % 60])
        for step in range(5):
            for k, connection in enumerate(slow):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(b" " if k < 20 else head[k % 60 + step :][:1])
            assert ask(watch, "GET", "/healthz")[0] == 200
            assert count(watch) == 80
    until(lambda: ask(watch, "GET", "/readyz")[0] == 200, "it to be ready")


@pytest.mark.fault("attacks", "1,005 silent connections", "everything else is answered")
def test_silent_connections_keep_nobody_waiting(watch):
    """More than the server has room for; the probe is answered within a tenth of a second, and everything else too."""
    place = urlsplit(watch.url)
    with contextlib.ExitStack() as stack:
        for _ in range(1_005):
            stack.enter_context(socket.create_connection((place.hostname, place.port), PATIENCE))
        waits = []
        for _ in range(20):
            begin = time.monotonic()
            assert ask(watch, "GET", "/healthz")[0] == 200
            waits.append(time.monotonic() - begin)
            assert ask(watch, "GET", "/metrics", headers=KEY)[0] == 200
            assert count(watch) == 80
        print(f"1,005 silent connections: /healthz {1e3 * sorted(waits)[10]:.0f} ms, at most {1e3 * max(waits):.0f} ms")
        assert max(waits) < 2, "a head is waited for 10 s"


def bomb(size):
    """A gzip of so many zeros, some thousand times smaller."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = bytes(1 << 20)
    return b"".join([*(packer.compress(piece) for _ in range(size >> 20)), packer.flush()])


def chunked(pieces):
    yield from pieces


@pytest.mark.fault(
    "attacks", "1 GB announced, 270 MB sent, gzip bombs of 512 MB", "413, 429 or 503; memory grows by less than 100 MB"
)
def test_bodies_are_cut_off_before_they_fill_the_memory(watch):
    """A gigabyte that is announced, one that is not, one that is packed, and all that at once: 413, and memory stays as it is."""
    kind = KEY | {"Content-Type": "application/x-ndjson"}
    before = memory(watch)
    status, _, text = ask(watch, "POST", "/api/v1/events", None, kind | {"Content-Length": str(1 << 30)})
    assert (status, "the limit is 2,000,000 bytes" in text) == (413, True)
    line = b'{"benchmark":"b","item_id":"i","model":"m","score":1}\n' * 1_000
    packed = bomb(512 << 20)
    assert len(packed) < 1_000_000

    def one(number):
        headers = kind | ({"Content-Encoding": "gzip"} if number % 2 else {})
        body = packed if number % 2 else chunked(line for _ in range(5_000))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            return ask(watch, "POST", "/api/v1/events", body, headers)[0]
        return "cut off"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(24)))
    print(f"bodies: {answers}, memory {before >> 20} MB before, {memory(watch) >> 20} MB after")
    assert set(answers) <= {413, 429, 503, "cut off"}
    assert {413, "cut off"} & set(answers)
    assert memory(watch) - before < 100 << 20
    assert count(watch) == 80
    nested = gzip.compress(packed)
    assert ask(watch, "POST", "/api/v1/events", nested, kind | {"Content-Encoding": "gzip, gzip"})[0] == 415


@pytest.mark.fault("attacks", "1,000 scrapes, 50 at a time", "all answered with the right number")
def test_a_thousand_scrapes_fifty_at_a_time_are_all_answered(watch):
    def scrape(_):
        status, text = get(f"{watch.url}/metrics", **KEY)
        return status, 'rankwatch_events_total{benchmark="bench"} 80.0' in text

    before, descriptors = memory(watch), opened(watch)
    begin = time.monotonic()
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(scrape, range(1_000)))
    print(f"1,000 scrapes in {time.monotonic() - begin:.1f} s, {(memory(watch) - before) >> 20} MB more")
    assert answers == [(200, True)] * 1_000
    assert memory(watch) - before < 50 << 20
    until(lambda: opened(watch) <= descriptors + 2, "connections to be closed")


# --- secrets ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.fault("attacks", "answers, output, files and command lines searched for secrets", "none")
def test_no_secret_is_shown_anywhere(watch):
    """Neither the token, nor the password of the embedded server: not on the command line, in an answer, in what is printed or kept."""
    server = watch.server
    config = (watch.data / "valkey/valkey.conf").read_text()
    (password,) = [line.split()[1].strip('"') for line in config.splitlines() if line.startswith("requirepass")]
    assert len(password) == 64
    secrets = (TOKEN.encode(), password.encode())
    texts = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (watch.process.pid, server)]
    paths = ("/metrics", "/api/v1/benchmarks", "/api/v1/openapi.json", "/nowhere", "/api/v1/benchmarks/x")
    texts += [ask(watch, "GET", path, headers=KEY)[2].encode() for path in paths]
    texts.append("".join(watch.lines + watch.errors).encode())
    texts += [
        path.read_bytes()
        for path in watch.data.rglob("*")
        if path.is_file() and path.name not in {"valkey.conf", "valkey.sock"}
    ]
    assert not [text[:200] for text in texts for secret in secrets if secret in text]
    # What holds the password, and everything else in the directory, is for the owner alone.
    assert watch.data.stat().st_mode & 0o077 == 0
    assert [p.name for p in watch.data.rglob("*.aof")]
    assert not [p for p in watch.data.rglob("*") if p.stat().st_mode & 0o077]


def test_settings_are_shown_without_their_secrets(tmp_path):
    env = {
        "RANKWATCH_TOKEN": "s3cret-1",
        "RANKWATCH_REDIS_URL": "redis://user:s3cret-2@localhost:1/0",
        "RANKWATCH_KAFKA_PASSWORD": "s3cret-3",
    }
    shown = rankwatch("config", **env)
    assert "token" in shown.stdout
    assert "s3cret" not in shown.stdout + shown.stderr
    # Nor where they are wrong, or what they lead to fails.
    refused = rankwatch("watch", "--data-dir", tmp_path / "data", code=2, **env | {"RANKWATCH_PORT": "x"})
    assert "RANKWATCH_PORT x" in refused.stderr
    assert "s3cret" not in refused.stderr
    away = env | {"RANKWATCH_START_SECONDS": "0.2"}
    refused = rankwatch("watch", "--port", 0, "--data-dir", tmp_path / "data", code=1, **away)
    assert "Redis at localhost:1" in refused.stderr
    assert "s3cret" not in refused.stderr

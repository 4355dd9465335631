"""Datasets of Langfuse and Phoenix, read through a server that speaks the documented part of their API."""

import base64
import http.server
import json
import threading
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from monitor.files.importer import Importer
from monitor.files.streams import services
from monitor.files.streams.copying import CopyError
from monitor.files.streams.paths import is_remote, show
from monitor.outbound import Allowed
from tests.ports import free_port
from tests.unit.files.native_logs import Read

ITEMS = 130
KEYS = {"LANGFUSE_PUBLIC_KEY": "pk-1", "LANGFUSE_SECRET_KEY": "sk-secret", "PHOENIX_API_KEY": "px-secret"}


def langfuse_item(k, run):
    scores = [
        {"id": "s", "name": "exact", "dataType": "BOOLEAN", "value": (k + run) % 3 > 0},
        {"id": "t", "name": "tone", "dataType": "NUMERIC", "value": 0.5},
        {"id": "u", "name": "tone", "dataType": "NUMERIC", "value": 1.0},
        {"id": "v", "name": "why", "dataType": "TEXT", "value": "because"},
    ]
    return {
        "id": f"o{run}-{k}", "traceId": "t", "startTime": "2026-11-01T00:00:00Z", "endTime": None, "environment": "default",
        "level": "ERROR" if k == 7 and run else "DEFAULT", "experimentId": f"e{run}", "experimentName": "old" if run else "new",
        "experimentItemId": f"item-{k}", "experimentDatasetId": "ds-1", "experimentItemVersion": None, "scores": scores,
    }  # fmt: skip


def phoenix_run(k, run):
    annotation = {
        "name": "exact",
        "annotator_kind": "CODE",
        "label": None,
        "score": (k + run) % 3 > 0,
        "explanation": None,
    }
    return {
        "example_id": f"x{k}", "repetition_number": 1, "input": {}, "output": "a", "error": None, "annotations": [annotation],
    }  # fmt: skip


class Service(http.server.BaseHTTPRequestHandler):
    """Both services; faults come by the number of the request, or the name of the data set."""

    seen: list = []  # noqa: RUF012 - one server a test run
    busy: set = set()  # noqa: RUF012

    def do_GET(self):
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.seen.append((parts.path, query, self.headers["Authorization"]))
        basic = base64.b64encode(b"pk-1:sk-secret").decode()
        if self.headers["Authorization"] not in {f"Basic {basic}", "Bearer px-secret"}:
            self.answer(401, {})
        elif len(self.seen) in self.busy:
            self.answer(429, {}, {"Retry-After": "0"})
        else:
            value = self.value(unquote(parts.path), query)
            self.answer(404 if value is None else 200, {"detail": "not found"} if value is None else value)

    def value(self, path, query):
        if path == "/api/public/experiment-items":
            assert "fromStartTime" in query
            rows = [langfuse_item(k, run) for run in (0, 1) for k in range(ITEMS)]
            page, cursor = self.page(rows if query["datasetId"] == "ds-1" else [], query)
            return {"data": page, "meta": {"cursor": cursor} if cursor else {}}
        if path == "/v1/datasets":
            known = {"quiz": "RGF0", "loop": "TG9v", "odd": "T2Rk"}
            found = [{"id": known[query["name"]], "name": query["name"]}] if query["name"] in known else []
            return {"data": found, "next_cursor": None}
        if path == "/v1/datasets/RGF0/experiments":
            rows = [
                {"id": f"E{run}", "dataset_id": "RGF0", "name": name} for run, name in enumerate(("a", "b", "none"))
            ]
            page, cursor = self.page(rows, query, 2)
            return {"data": page, "next_cursor": cursor}
        return {
            "/api/public/v2/datasets/my set/1": {"id": "ds-1", "name": "my set/1", "metadata": None},
            "/v1/datasets/TG9v/experiments": {"data": [], "next_cursor": "again"},
            "/v1/datasets/T2Rk/experiments": ["an array"],
            "/v1/experiments/E0/json": [phoenix_run(k, 0) for k in range(ITEMS)],
            "/v1/experiments/E1/json": [phoenix_run(k, 1) for k in range(ITEMS)],
        }.get(path)

    def page(self, rows, query, size=None):
        size = size or int(query["limit"])
        start = int(query.get("cursor", "0"))
        return rows[start : start + size], str(start + size) if start + size < len(rows) else None

    def answer(self, status, value, headers=None):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture(scope="module")
def server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def environment(server, monkeypatch):
    Service.seen.clear()
    Service.busy.clear()
    monkeypatch.setattr(services, "FIRST_WAIT_SECONDS", 0.0)
    for name in ("LANGFUSE_HOST", "PHOENIX_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**KEYS, "LANGFUSE_BASE_URL": server, "PHOENIX_COLLECTOR_ENDPOINT": f"{server}/"}.items():
        monkeypatch.setenv(name, value)


def test_the_experiments_of_a_dataset_of_langfuse_are_models_and_their_pages_are_followed():
    Service.busy.add(3)
    read = Read("langfuse:my set/1")
    assert len(read.events) == 2 * ITEMS
    assert {(event.benchmark, event.model) for event in read.events} == {("my set/1", "new"), ("my set/1", "old")}
    assert read.scores["my set/1", "item-4", 0, "new"] == 1
    assert read.scores["my set/1", "item-7", 0, "old"] is None
    assert any("1 of 260 results failed" in note for note in read.notes)
    cursors = [query.get("cursor") for path, query, _ in Service.seen if path.endswith("experiment-items")]
    assert cursors == [None, "100", "100", "200"], "the page that was busy is asked for again"
    tone = Read("langfuse:my set/1", metric=["tone"])
    assert {event.score for event in tone.events} == {0.75, None}, "two scores of one name count by their mean"


def test_the_experiments_of_a_dataset_of_phoenix_are_models():
    read = Read("Phoenix:quiz")
    assert len(read.events) == 2 * ITEMS
    assert {(event.benchmark, event.model) for event in read.events} == {("quiz", "a"), ("quiz", "b")}
    assert read.scores["quiz", "x2", 0, "b"] == 0
    assert any("the experiment none has no runs" in note for note in read.notes)
    assert {header for _, _, header in Service.seen} == {"Bearer px-secret"}


def test_an_answer_of_the_api_that_was_saved_is_read_as_a_file(tmp_path):
    path = tmp_path / "items.json"
    path.write_text(json.dumps({"data": [langfuse_item(k, k % 2) for k in range(9)], "meta": {}}))
    assert {event.model for event in Read(path).events} == {"new", "old"}


def test_a_file_of_that_name_is_read_instead(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_remote("langfuse:quiz.jsonl")
    (tmp_path / "langfuse:quiz.jsonl").write_text('{"benchmark":"b","item_id":"q","model":"m","score":1}\n')
    assert not is_remote("langfuse:quiz.jsonl")
    assert len(Read("langfuse:quiz.jsonl").events) == 1


def test_the_place_is_shown_and_no_key(server):
    importer = Importer()
    [file] = importer.find(["langfuse:my set/1"])
    assert show(file) == "langfuse:my set/1"
    assert "secret" not in file.read_text()


def message(place):
    with pytest.raises(CopyError) as caught:
        Read(place)
    assert not any(key in str(caught.value) for key in KEYS.values())
    return str(caught.value)


def test_what_cannot_be_fetched_is_named_with_what_to_do(server, monkeypatch):
    assert message("langfuse:none") == (
        f"{server} has not the dataset none; check the name, the address and the project of the key"
    )
    assert message("phoenix:none") == f"{server} has no dataset none; check its name"
    assert message("phoenix:loop").endswith(
        "/v1/datasets/TG9v/experiments lists its pages without an end; update Phoenix"
    )
    assert message("phoenix:odd").endswith("answered with something else than its API documents; check the address")
    monkeypatch.setenv("PHOENIX_API_KEY", "another")
    assert message("phoenix:quiz") == f"{server}/v1/datasets: answered with status 401; check PHOENIX_API_KEY"
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    assert message("langfuse:none") == "Langfuse asks for keys; set LANGFUSE_SECRET_KEY (project settings, API keys)"
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-secret")
    monkeypatch.setenv("LANGFUSE_BASE_URL", "ftp://a")
    assert message("langfuse:none") == "LANGFUSE_BASE_URL is not a web address; use http://host/... or https://host/..."
    monkeypatch.setenv("LANGFUSE_BASE_URL", f"http://127.0.0.1:{free_port()}")
    assert "not reached: ConnectionRefusedError; check the address and the network" in message("langfuse:none")


def test_a_server_that_stays_busy_ends_the_command(server):
    Service.busy |= set(range(1, 99))
    assert (
        message("phoenix:quiz") == f"{server}/v1/datasets: answered with status 429; check the address and the network"
    )
    assert len(Service.seen) == 4


def test_a_key_goes_to_a_public_address_over_tls_alone(monkeypatch):
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "http://8.8.8.8")
    assert "http:// would show the key to a public network; use https://" in message("phoenix:quiz")
    private = services._PrivateOnly()
    assert private.refusal("h", "10.0.0.1") is None
    assert private.refusal("h", "1.1.1.1") is not None
    assert Allowed().refusal("h", "1.1.1.1") is None
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "http://user:pw@127.0.0.1")
    assert message("phoenix:quiz") == "PHOENIX_COLLECTOR_ENDPOINT holds a password; set PHOENIX_API_KEY instead"

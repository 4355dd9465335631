"""URLs as PATH: what is read, what is refused, and that no secret of a URL is shown or kept."""

import base64
import gzip
import http.server
import threading
import time
from contextlib import suppress

import pytest

from monitor.files.formats.choices import Choices
from monitor.files.importer import Importer
from monitor.files.streams import copying, download
from monitor.files.streams.copies import Copies
from monitor.files.streams.copying import CopyError
from monitor.files.streams.paths import is_remote, named_path, show
from monitor.files.streams.read import read_files
from tests.unit.files.result_lines import event, keys, lines

EVENTS = [event(k, score=k % 2) for k in range(50)]
CSV = b"id,model,task,score\n1,m,quiz,1\n2,m,quiz,0\n"


class Site(http.server.BaseHTTPRequestHandler):
    """A site with results, redirects and faults; it keeps the headers of each request."""

    seen: list = []  # noqa: RUF012 - one site a test run
    pause = threading.Event()

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.seen.append((self.path, dict(self.headers)))
        if path.startswith("/to/"):
            self.send_response(302)
            self.send_header(
                "Location",
                {"/to/ftp": "ftp://127.0.0.1/a.jsonl", "/to/file": "file:///etc/passwd"}.get(path, "/a.jsonl"),
            )
            self.end_headers()
            return
        if path.startswith("/drip"):
            self.wfile.write(b"HTTP/1.0 200 OK\r\nX: " + b"\r\n\r\n" * (path == "/drip-body.jsonl"))
            with suppress(OSError):  # until the reader has gone
                while not self.pause.wait(0.01):
                    self.wfile.write(b" ")
            return
        if path == "/slow.jsonl":
            time.sleep(1.5)
        body = {"/a.jsonl": lines(*EVENTS), "/z.jsonl.gz": gzip.compress(lines(*EVENTS)), "/t.csv": CSV, "/t": CSV}.get(
            path
        )
        cut = path == "/cut.jsonl"
        self.send_response(200 if body is not None or cut else 401 if path == "/secret.jsonl" else 404)
        body = lines(*EVENTS) if cut else body or b""
        self.send_header("Content-Length", str(len(body) + 100 * cut))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture(scope="module")
def site():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    Site.pause.set()
    server.shutdown()
    server.server_close()


def read(*paths, **choices):
    notes, importer = [], None
    importer = Importer(Choices.parse(**choices), notes.append)
    segments = list(read_files(importer.find(paths), opener=importer.open))
    return [e for s in segments for e in s.events], [r for s in segments for r in s.rejects], notes


@pytest.mark.parametrize("name", ["a.jsonl", "z.jsonl.gz", "to/a", "A.jsonl?token=secret"])
def test_results_are_read_from_a_url(site, name):
    name = name.replace("A", "a")
    events, rejects, _ = read(f"http://{site}/{name}")
    assert keys(events) == keys(EVENTS)
    assert rejects == []


@pytest.mark.parametrize("name", ["t.csv", "t"])
def test_a_table_is_one_whatever_its_name(site, name):
    events, _, notes = read(f"HTTP://{site}/{name}")
    assert [(e.benchmark, e.item_id, e.score) for e in events] == [("quiz", "1", 1.0), ("quiz", "2", 0.0)]
    assert notes == ["columns: benchmark = task, item_id = id, model = model, score = score"]


def test_a_model_is_named_and_a_url_with_an_equals_sign_is_not_split(site):
    assert named_path(f"http://{site}/a.jsonl?x=1") == (None, f"http://{site}/a.jsonl?x=1")
    assert named_path("m=-") == ("m", "-")
    events, _, _ = read(f"new=http://{site}/a.jsonl?x=1")
    assert {e.model for e in events} == {"new"}


def test_no_secret_of_a_url_is_shown_kept_or_sent_on(site):
    Site.seen.clear()
    secret = f"http://user:pass%20word@{site}"
    importer = Importer()
    [file] = importer.find([f"{secret}/to/a?token=abc"])
    assert show(file) == f"http://***@{site}/to/a?***"
    [(_, first), (_, second)] = Site.seen
    assert base64.b64decode(first["Authorization"].removeprefix("Basic ")) == b"user:pass word"
    assert "Authorization" not in second
    for name in ("none.jsonl?token=abc", "secret.jsonl?token=abc", "to/ftp?token=abc"):
        with pytest.raises(CopyError) as caught:
            importer.find([f"{secret}/{name}"])
        assert not {"user", "pass", "word", "abc"} & set(
            str(caught.value).replace(":", "/").replace("@", "/").split("/")
        )
        assert "abc" not in str(caught.value)
    _, [reject], _ = read(f"{secret}/t.csv?token=abc", columns=["item_id=nothing"])
    assert reject["source"] == f"http://***@{site}/t.csv?***"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none.jsonl", "answered 404; check the address"),
        ("secret.jsonl", "answered 401; give a URL that needs no sign-in"),
        ("to/ftp", "redirects to ftp://127.0.0.1/a.jsonl; give the final address if you trust it"),
        ("to/file", "redirects to an address that is not read; check the address"),
        ("cut.jsonl", "broke off after"),
    ],
)
def test_what_cannot_be_read_is_named(site, name, says):
    with pytest.raises(CopyError, match=f"^http://{site}/{name} {says}"):
        Copies().file(f"http://{site}/{name}")


def test_time_and_size_are_bounded(site, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 0.2)
    with pytest.raises(CopyError, match=r"slow\.jsonl cannot be read \(timed out after 0\.2 s\)"):
        Copies().file(f"http://{site}/slow.jsonl")
    monkeypatch.setattr(copying, "MAX_BYTES", 100)
    with pytest.raises(CopyError, match=r"has more than 100 bytes; save it to a file"):
        Copies().file(f"http://{site}/a.jsonl")
    with pytest.raises(CopyError, match=r"http://127\.0\.0\.1:1/a cannot be read \(Connection refused\)"):
        Copies().file("http://127.0.0.1:1/a")


@pytest.mark.parametrize("name", ["drip-head.jsonl", "drip-body.jsonl"])
def test_a_server_that_sends_a_byte_at_a_time_has_a_deadline(site, monkeypatch, name):
    monkeypatch.setattr(download, "DEADLINE_SECONDS", 0.3)
    with pytest.raises(CopyError, match=rf"{name} took more than 0 s; download it to a file"):
        Copies().file(f"http://{site}/{name}")


def test_only_http_is_a_url(site, tmp_path):
    assert is_remote("-")
    assert is_remote("HTTPS://x/y")
    assert not any(map(is_remote, ("ftp://x/y", "file:///x", "http:x", str(tmp_path), "a-")))
    copies_of = Copies()
    place = f"http://{site}/a.jsonl"
    file = copies_of.file(place)
    assert copies_of.file(place) == file
    assert file.parent.parent.stat().st_mode & 0o077 == 0
    del copies_of
    assert not file.exists()

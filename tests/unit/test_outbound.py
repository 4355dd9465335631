"""Requests to addresses that users configure: no private address unless it is allowed, whatever a name resolves to."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from monitor import outbound
from monitor.outbound import Allowed, NotAcceptedError, check_url, post

PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "0.0.0.0",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1%eth0",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "64:ff9b:1::7f00:1",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "fec0::1",
    "5f00::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused(address):
    assert "is not a public address" in Allowed().refusal("name.example", address)
    assert Allowed("*").refusal("name.example", address) is None
    assert Allowed("NAME.example").refusal("name.EXAMPLE", address) is None


def test_public_and_allowed_addresses_are_not():
    assert Allowed().refusal("h", "93.184.215.14") is None
    assert Allowed().refusal("h", "2606:2800:21f:cb07:6820:80da:af6b:8b2c") is None
    assert Allowed("10.0.0.0/8,::1").refusal("h", "::ffff:10.0.0.1") is None
    assert Allowed("10.0.0.0/8").refusal("h", "11.0.0.1") is None
    assert Allowed("10.0.0.0/8").refusal("h", "192.168.0.1") is not None
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/99"):
        Allowed("10.0.0.0/99")


@pytest.fixture
def receiver():
    hits = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            hits.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port, hits
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_name_that_changes_its_address_after_the_check_is_not_followed(receiver, monkeypatch):
    port, hits = receiver
    answers = [[("93.184.215.14", port)], [("127.0.0.1", port)]]
    reached = []

    def resolve(host, port, **_):
        found = answers.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in found]

    class Recorded(socket.socket):
        def connect(self, place):
            reached.append(place[0])
            raise OSError("unreachable")

    monkeypatch.setattr(outbound.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(outbound.socket, "socket", Recorded)
    with pytest.raises(NotAcceptedError, match="not reached"):
        post(f"http://rebind.example:{port}/", b"{}", {}, Allowed(), 1.0)
    assert reached == ["93.184.215.14"]
    assert len(answers) == 1
    assert hits == []


def test_a_name_with_one_private_address_is_refused_whole(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80)) for ip in ("93.184.215.14", "10.0.0.1")]
    monkeypatch.setattr(outbound.socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(NotAcceptedError, match=r"resolves to 10\.0\.0\.1"):
        post("http://mixed.example/", b"{}", {}, Allowed(), 1.0)


def test_an_allowed_receiver_gets_the_post_and_a_refused_one_does_not(receiver):
    port, hits = receiver
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(NotAcceptedError, match="RANKWATCH_PRIVATE_ADDRESSES"):
            post(f"http://{host}:{port}/", b"{}", {}, Allowed(), 1.0)
    assert hits == []
    post(f"http://127.0.0.1:{port}/", b"{}", {}, Allowed("127.0.0.1"), 5.0)
    assert hits == [b"{}"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://h/", "http://:80/", "https://h:x/", "h/secret"])
def test_only_web_addresses_are_taken_and_never_repeated(url):
    with pytest.raises(ValueError, match=r"^notify_slack_url is not a web address") as refused:
        check_url(url, "notify_slack_url")
    assert url not in str(refused.value)

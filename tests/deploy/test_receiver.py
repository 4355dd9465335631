"""The receiver of docker-compose.yml prints a line for each alert, and survives what it should not get."""

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tests.commands import until
from tests.deploy.monitoring import DEPLOY
from tests.ports import free_port

ALERT = {
    "status": "firing",
    "labels": {"alertname": "RankwatchPairDecided", "severity": "info", "benchmark": "a\nb", "instance": "x"},
    "annotations": {"summary": "x and y are decided on a\nb", "runbook_url": "runbooks.md#new-decisions"},
    "startsAt": "2026-11-23T01:17:27.86Z",
}


@pytest.fixture
def receiver(tmp_path):
    port, log = free_port(), tmp_path / "log"
    with log.open("w") as file:
        command = [sys.executable, DEPLOY / "compose/receiver.py", "--port", str(port)]
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    until(lambda: answers(port), "the receiver")
    yield port, log
    process.terminate()
    assert process.wait(20) == 0


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def post(port, body, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_each_alert_is_one_line_whatever_its_texts_hold(receiver):
    port, log = receiver
    assert post(port, json.dumps({"alerts": [ALERT, ALERT | {"status": "resolved"}]}).encode()) == 200
    first, second = map(json.loads, log.read_text().splitlines())
    assert first == {
        "time": "2026-11-23T01:17:27.86Z",
        "status": "firing",
        "alertname": "RankwatchPairDecided",
        "severity": "info",
        "benchmark": "a\nb",
        "summary": "x and y are decided on a\nb",
        "runbook": "runbooks.md#new-decisions",
    }
    assert second["status"] == "resolved"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"\xff", 400),
        (b"[]", 400),
        (b'{"alerts": 3}', 400),
        (b'{"alerts": [{"labels": 3, "startsAt": 1, "status": 2}]}', 400),
        (b"[" * 100_000, 400),
    ],
)
def test_what_is_no_notification_is_refused(receiver, body, status):
    port, log = receiver
    assert post(port, body) == status
    assert log.read_text() == "refused a request that is not a notification of Alertmanager\n"
    assert post(port, json.dumps({"alerts": [ALERT]}).encode()) == 200


def test_a_body_without_an_end_is_refused_before_it_is_read(receiver):
    port, _ = receiver
    for length in (b"99999999999", b"-1", b"1e3", "\N{SUPERSCRIPT TWO}".encode()):
        with socket.create_connection(("127.0.0.1", port), 20) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + b"\r\n\r\n")
            assert connection.recv(100).split()[1] == b"413"

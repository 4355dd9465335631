"""Prometheus and Alertmanager with the shipped configuration; only addresses and intervals are set, as deploy/README.md says."""

import json
import shutil
import subprocess
import threading
import time
import urllib.parse
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.commands import get, until
from tests.ports import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
STALLED_SECONDS = 8
FINDING = """    dns_sd_configs:
      - names: [rankwatch]
        type: A
        port: 8642
        refresh_interval: 15s
"""


def substitute(path, table):
    """Write a file anew with every text of the table replaced; each has to be there, so that no setting is missed by a typing error."""
    text = path.read_text()
    for old, new in table.items():
        assert old in text, f"{path} has no {old!r}"
        text = text.replace(old, new)
    path.write_text(text)


class Receiver:
    """A web address that takes what is posted to it, by path."""

    def __init__(self):
        self.posts = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posts.append((self.path, dict(self.headers), body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def alerts(self, status):
        """Names and benchmarks of the alerts that Alertmanager has sent."""
        notifications = [json.loads(body) for path, _, body in self.posts if path == "/alerts"]
        return {
            (alert["labels"]["alertname"], alert["labels"].get("benchmark"))
            for group in notifications
            for alert in group["alerts"]
            if alert["status"] == status
        }

    def events(self):
        """The notifications of verdict changes, as (name, benchmark, summary)."""
        bodies = [json.loads(body) for path, _, body in list(self.posts) if path == "/alerts"]
        return [
            (each["labels"]["alertname"], each["labels"].get("benchmark"), each["annotations"]["summary"])
            for body in bodies
            if body["receiver"] == "events"
            for each in body["alerts"]
        ]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Prometheus:
    """Its HTTP API."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    def query(self, expr):
        """Evaluate an expression now: a list of (labels, value)."""
        status, text = get(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expr})}")
        assert status == 200, (expr, text)
        return [(row["metric"], float(row["value"][1])) for row in json.loads(text)["data"]["result"]]

    def over_time(self, expr, seconds=300):
        """Evaluate an expression at each second up to now; return the labels of every series."""
        now = time.time()
        asked = urllib.parse.urlencode({"query": expr, "start": now - seconds, "end": now, "step": 1})
        status, text = get(f"{self.url}/api/v1/query_range?{asked}")
        assert status == 200, (expr, text)
        return [row["metric"] for row in json.loads(text)["data"]["result"]]

    def firing(self):
        return {labels["alertname"] for labels, _ in self.query('ALERTS{alertstate="firing"}')}


@contextmanager
def running(folder, target, receiver, alerts_port):
    """Start both for the process at `target` (host:port), a worker and a reader in one; Alertmanager at `alerts_port`."""
    for name in ("prometheus", "alertmanager"):
        shutil.copytree(DEPLOY / name, folder / name)
    token = folder / "token"
    token.write_text("unused on loopback")
    port = free_port()
    substitute(
        folder / "prometheus/prometheus.yml",
        {
            "_interval: 15s\n  evaluation_interval: 15s": "_interval: 1s\n  evaluation_interval: 1s",
            "alertmanager:9093": f"127.0.0.1:{alerts_port}",
            "/run/secrets/rankwatch-token": str(token),
            # As a worker it gives its own metrics alone, as `run` does.
            FINDING: f"    params: {{collect: [process]}}\n    static_configs: [{{targets: ['{target}']}}]\n",
            "balancer:8642": target,
            "localhost:9090": f"127.0.0.1:{port}",
        },
    )
    substitute(
        folder / "prometheus/rules/alerts.yml",
        {"seconds > 1800": f"seconds > {STALLED_SECONDS}", "[1d])) > 8": "[1d])) > 2"},
    )
    substitute(
        folder / "alertmanager/alertmanager.yml",
        {
            "group_wait: 30s": "group_wait: 1s",
            "group_interval: 5m": "group_interval: 1s",
            "http://alert-receiver:8080/": f"{receiver.url}/alerts",
        },
    )
    commands = (
        [
            "prometheus",
            f"--config.file={folder}/prometheus/prometheus.yml",
            f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        [
            "prometheus-alertmanager",
            f"--config.file={folder}/alertmanager/alertmanager.yml",
            f"--storage.path={folder}/am",
            f"--web.listen-address=127.0.0.1:{alerts_port}",
            "--cluster.listen-address=",
        ],
    )
    logs = [(folder / f"{command[0]}.log").open("w") for command in commands]
    processes = [subprocess.Popen(c, stdout=log, stderr=log) for c, log in zip(commands, logs, strict=True)]
    try:
        for which in (port, alerts_port):
            until(lambda which=which: _ready(which), f"port {which}")
        yield Prometheus(port)
    finally:
        for process in processes:
            process.terminate()
            process.wait(20)
        for log in logs:
            log.close()


def _ready(port):
    try:
        return get(f"http://127.0.0.1:{port}/-/ready")[0] == 200
    except OSError:
        return False

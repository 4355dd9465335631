"""Print every alert that Alertmanager posts, one line each: the receiver of docker-compose.yml and `make stack`.

Replace it with your own receiver in deploy/alertmanager/alertmanager.yml. Standard library only.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LARGEST = 4 << 20
"""Bytes of a request; a larger one is refused."""
SECONDS = 10
"""How long a sender may take for a request."""


def lines(body: bytes) -> Iterator[str]:
    """Return a line for each alert of a notification, as JSON without line breaks of the alert's own texts."""
    notification = json.loads(body)
    for alert in notification["alerts"]:
        yield json.dumps(
            {
                "time": alert["startsAt"],
                "status": alert["status"],
                **{
                    name: alert["labels"][name]
                    for name in ("alertname", "severity", "benchmark")
                    if name in alert["labels"]
                },
                "summary": alert.get("annotations", {}).get("summary", ""),
                "runbook": alert.get("annotations", {}).get("runbook_url", ""),
            },
            ensure_ascii=False,
        )


class Handler(BaseHTTPRequestHandler):
    """Accept notifications on any path; answer probes on /healthz."""

    timeout = SECONDS

    def do_GET(self) -> None:
        """Answer a probe."""
        self._answer(200 if self.path == "/healthz" else 404)

    def do_POST(self) -> None:
        """Print a notification. One that is not from Alertmanager is refused, with the reason in the log."""
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > LARGEST:
            self._answer(413 if length else 411)
            return
        try:
            printed = list(lines(self.rfile.read(int(length))))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            print("refused a request that is not a notification of Alertmanager", file=sys.stderr, flush=True)
            self._answer(400)
            return
        sys.stdout.write(
            "".join(f"{line}\n" for line in printed)
        )  # print writes a line and its end apart: threads would mix them
        sys.stdout.flush()
        self._answer(200)

    def log_message(self, *_: object) -> None:
        """Print no line for each request."""

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on (default: 8080)")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ThreadingHTTPServer((chosen.host, chosen.port), Handler).serve_forever()


if __name__ == "__main__":
    main()

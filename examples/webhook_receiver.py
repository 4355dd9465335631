"""Receive rankwatch's signed posts: verify the signature and the time, and take each request once.

Standard library only. Start it with the secret that `RANKWATCH_WEBHOOK_SECRET` has::

    WEBHOOK_SECRET=... python webhook_receiver.py 8080

Behind several processes keep the seen ids in a shared store, for example Redis with SET NX EX.
"""

import hashlib
import hmac
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOLERANCE_SECONDS = 300
LONGEST_BODY = 4_000_000


class Verifier:
    """Verifies signatures; each is taken once."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._secret, self._clock = secret.encode(), clock
        self._seen: dict[str, float] = {}
        self._lock = threading.Lock()

    def fault(self, header: str | None, body: bytes) -> str | None:
        """Return why a request is refused, or None."""
        try:
            fields = dict(part.split("=", 1) for part in (header or "").split(","))
            at, given = int(fields["t"]), fields["v1"]
        except (KeyError, ValueError):
            return "no signature"
        expected = hmac.new(self._secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace")):
            return "wrong signature"
        now = self._clock()
        if abs(now - at) > TOLERANCE_SECONDS:
            return "too old"
        with self._lock:
            # A signature older than the tolerance is refused anyway, so it need not be remembered.
            self._seen = {each: until for each, until in self._seen.items() if until >= now}
            if expected in self._seen:
                return "seen before"
            self._seen[expected] = at + TOLERANCE_SECONDS
        return None


class Inbox:
    """Takes each change and each notification once: rankwatch sends them at least once, with ids that never change."""

    def __init__(self, take: Callable[[Any], None]) -> None:
        self._take, self._lock = take, threading.Lock()
        self._ids: set[str] = set()

    def put(self, payload: Any) -> None:  # noqa: ANN401 - JSON
        """Take the entries of a post that were not taken before."""
        entries = payload.get("changes", [payload]) if isinstance(payload, dict) else payload
        with self._lock:
            for entry in entries:
                if entry["id"] not in self._ids:
                    self._take(entry)
                    self._ids.add(entry["id"])  # after it was taken: what fails comes again


def make_server(address: tuple[str, int], secret: str, take: Callable[[Any], None]) -> ThreadingHTTPServer:
    """Return a server that calls `take` with each entry."""
    verifier, inbox = Verifier(secret), Inbox(take)

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > LONGEST_BODY:
                self._answer(413)
                return
            body = self.rfile.read(int(length))
            fault = verifier.fault(self.headers.get("Rankwatch-Signature"), body)
            if fault is None:
                inbox.put(json.loads(body))
            # rankwatch repeats a post whose answer was lost, perhaps within the same second; what was taken is accepted.
            self._answer(200 if fault in {None, "seen before"} else 401)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    return ThreadingHTTPServer(address, Handler)


def _write(entry: Any) -> None:  # noqa: ANN401 - JSON
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    make_server(("127.0.0.1", port), os.environ["WEBHOOK_SECRET"], _write).serve_forever()

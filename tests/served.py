"""The HTTP surface on a port of its own, over a partition that folds what is posted at once."""

import asyncio
import json
import socket
import threading
import urllib.error
import urllib.request

from monitor.engine.chunk_fold import Partition
from monitor.serve.access.rules import AccessRules
from monitor.serve.application import make_application
from monitor.serve.report_cache import ReportCache
from monitor.serve.server import WebServer
from monitor.serve.serving import Serving
from monitor.service.intake import FileIntake
from monitor.view.partition_view import PartitionView
from schemas.records.chunks import Chunk
from schemas.records.declaration import Declaration
from schemas.records.events import EventFields
from tests.commands import until


class FoldingLog:
    """Stands for the log: folds a record as soon as it is appended. `fault` is raised instead, if it is set.

    `lag` is what the fold is behind the log.
    """

    def __init__(self, partition):
        self.partition, self.records, self.fault, self.lag = partition, [], None, 0
        self.first_offset, self.offsets = partition.off, []

    @property
    def durable_end(self):
        return self.partition.off + self.lag

    async def append(self, records):
        if self.fault is not None:
            raise self.fault
        for record in records:
            start = self.partition.off
            self.records.append(record)
            self.offsets.append(start)
            self.partition.fold(Chunk(0, start, start + len(record) + 1, [start], [record]))
        return self.partition.off

    def read(self, offset, *_):
        """One record, as `FileLog.read` returns it."""
        if offset == self.partition.off:
            return None
        record = self.records[self.offsets.index(offset)]
        return Chunk(0, offset, offset + len(record) + 1, [offset], [record])


class Answer:
    """Status, headers and body of an answer."""

    def __init__(self, response):
        with response:
            self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.text)


class Stream:
    """Reads server-sent events as they come."""

    def __init__(self, served, path="changes/stream", **headers):
        host, port = served.url.removeprefix("http://").split(":")
        self.connection = socket.create_connection((host, int(port)), 60)
        lines = [f"GET /api/v1/{path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode())
        self.file = self.connection.makefile("rb")
        self.head = b"".join(iter(self.file.readline, b"\r\n")).decode()
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.connection.close()

    def block(self):
        """The next event as its fields, or None at the end."""
        while b"\n\n" not in self.rest:
            size = int(self.file.readline() or b"0", 16)
            if not size:
                return None
            self.rest += self.file.read(size)
            self.file.readline()
        block, _, self.rest = self.rest.partition(b"\n\n")
        return dict(line.split(": ", 1) for line in block.decode().split("\n"))

    def until(self, kind):
        """The next event of a kind."""
        while (block := self.block()) is not None:
            if block.get("event") == kind:
                return block
        return None


class Served:
    """A server in a thread; use it as a context manager."""

    def __init__(self, *partitions, port=0, **options):
        self.partitions = list(partitions) or [Partition()]
        self.log = FoldingLog(self.partitions[0])
        self.reports = ReportCache(lambda: list(map(PartitionView, self.partitions)), **options.pop("reports", {}))
        intake = FileIntake(self.log, self.reports.benchmarks().__contains__, folded=lambda: self.log.partition.off)
        access = AccessRules(options.pop("token", None), **options.pop("rules", {}))
        options = {"access": access, "loopback": True, "low_coverage": 0.9, "intake": intake} | options
        scrape = lambda *_: (100 * b"# no metrics\n", "text/plain")  # noqa: E731
        self.web = make_application(Serving(self.reports, scrape, lambda: None, **options))
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self.server = self.call(self._start())
        self.url = self.server.url
        return self

    async def _start(self):
        server = WebServer(self.web, "127.0.0.1", self._port)
        await server.start()
        return server

    def call(self, coroutine):
        """Run something where the server runs."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def stop(self):
        """Stop serving."""
        self.call(self.server.stop())

    def __exit__(self, *_):
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def hold(self, *partitions):
        """Go on with other partitions."""
        self.partitions[:] = list(partitions) or [Partition()]
        self.log.__init__(self.partitions[0])
        self.reports.clear()
        return self

    def request(self, method, path, body=None, **headers):
        """Send a request."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, body, names, method=method)
        try:
            return Answer(urllib.request.urlopen(request, timeout=60))
        except urllib.error.HTTPError as error:
            return Answer(error)

    def get(self, path, **headers):
        """GET below /api/v1."""
        return self.request("GET", f"/api/v1/{path}", **headers)

    def latest(self, path):
        """GET below /api/v1 until the answer lacks nothing: on a busy machine one of an earlier state may come first."""
        return until(lambda: None if (answer := self.get(path)).headers["Rankwatch-Lag"] else answer, f"{path} of now")

    def post(self, events, **headers):
        """POST events: bytes as they are, or objects as JSON lines."""
        body = events if isinstance(events, bytes) else b"".join(json.dumps(e).encode() + b"\n" for e in events)
        headers = {"content_type": "application/x-ndjson"} | headers
        return self.request("POST", "/api/v1/events", body, **headers)


def raw_status(served, path, *headers):
    """The status of a GET of the API with these header lines, as they are."""
    lines = [f"GET /api/v1/{path} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), 60) as connection:
        connection.sendall("\r\n".join(lines).encode())
        answer = b""
        while piece := connection.recv(10_000):
            answer += piece
    return int(answer.split()[1])


def folded(records, **spec):
    """A partition with the events of one benchmark, declared like this."""
    partition = Partition()
    declarations = [Declaration(declare=records[0]["benchmark"], **spec)] if spec else []
    events = [EventFields(**record) for record in records]
    partition.fold_events(declarations, events, [], max(len(events), 1))
    return partition

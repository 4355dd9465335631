"""Deltas at random, as an engine would make them, and a server in between that loses replies."""

import asyncio
import contextlib
import random
import tempfile

import numpy as np

from monitor.engine.state.changes import BenchmarkDelta, ConflictChanges, Delta, benchmark_key
from schemas.records.chunks import Source
from schemas.records.scores import Contestant, RowKey
from schemas.results.assumptions import Seed
from schemas.results.changes import Evidence, VerdictChange
from schemas.results.verdict_changes import VerdictChanges
from stats.order import OrderFinding

NAMES = (
    "mmlu-pro",
    "}:{evil:0}:meta",
    "a\nb\r\n*3",
    "später 测试 \U0001f600",
    "x" * 200,
    "'; FLUSHALL --",
    '"[1,2]\\n',
)
PROCEDURES = ("anytime", "anytime_family")


def short_directory():
    """Make a temporary directory whose path leaves room for a unix socket's name."""
    return tempfile.TemporaryDirectory(prefix="rw-", dir="/tmp")


def verdict(identifier, benchmark="mmlu-pro", *, n=100, procedure="anytime"):
    return VerdictChange(
        id=identifier, benchmark=benchmark, model_a="a", model_b="b", epoch_a=0, epoch_b=0, kind="decided", procedure=procedure,
        before=None, after="a", order_policy="trusted", mixture="beta(1,1)", statistics_version=1,
        evidence=Evidence(n=n, b=60, c=20, gap=0.4, missing=0, log_e=9.25, log_threshold=3.0, resolution_ratio=None),
        sentence="a is better than b",
    )  # fmt: skip


def one_row(expected=0, *, off=None, changes=(), name="mmlu-pro"):
    """A delta that adds one row and one score, and moves the state by 10."""
    off = expected + 10 if off is None else off
    row = expected // 10 if name == "mmlu-pro" else 0  # other benchmarks begin with it
    cells = (np.array([row], np.int32), np.zeros(1, np.int32), np.full(1, 3, np.uint32))
    benchmark = BenchmarkDelta(
        key=benchmark_key(name),
        name=name,
        off=off,
        rows=[RowKey(f"item {expected}", 0, None)],
        contestants=[Contestant("a", 0)] if row == 0 else [],
        cells=cells,
        changes=VerdictChanges(dict(changes)),
        counters={"events": off},
    )
    return Delta(0, expected, off, [benchmark], counters={"records": off})


class Evaluation:
    """A run of random deltas that follow each other."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.off = 0
        self.matrices = {}
        self.values = dict.fromkeys(NAMES, 2)
        self.latched = set()
        self.listed = {}

    def delta(self):
        rng, start = self.random, self.off
        self.off += rng.randint(1, 5_000_000_000)
        names = rng.sample(NAMES, rng.randint(0, 3))
        sources = {
            f"/data/run {rng.randint(0, 3)}.jsonl": Source(
                rng.randint(0, 9), rng.randint(0, 2**40), f"{rng.getrandbits(64):x}", rng.randint(0, 9)
            )
            for _ in range(rng.randint(0, 2))
        }
        sequence = iter(range(1, 1000))
        benchmarks = [self._benchmark(name, start, sequence) for name in names]
        origins = {rng.randint(0, 9): (rng.randint(0, 2**40), rng.randint(0, 9)) for _ in range(rng.randint(0, 2))}
        last = (self.off - 1, f"{rng.getrandbits(128):032x}") if rng.random() < 0.8 else None
        counters = {"records": self.off, "rejected": rng.randint(0, 9)}
        return Delta(0, start, self.off, benchmarks, sources, origins, last=last, counters=counters)

    def _benchmark(self, name, start, sequence):
        rng = self.random
        delta = BenchmarkDelta(
            key=benchmark_key(name),
            name=name,
            off=self.off,
            counters={"events": self.off, "duplicates": rng.randint(0, 9)},
        )
        matrix = self.matrices.get(name, np.zeros((0, 0), np.uint32))
        rows, models = rng.randint(0, 20), rng.randint(0, 4)
        delta.rows = [
            RowKey(f"item\t{matrix.shape[0] + k} \u2028", rng.randint(0, 2), rng.choice([None, "ü"]))
            for k in range(rows)
        ]
        delta.contestants = [Contestant(f"model {matrix.shape[1] + k}", rng.randint(0, 2)) for k in range(models)]
        if rng.random() < 0.3:
            delta.spec = f'{{"alpha":{rng.random()}}}'
        was_wide = self.values[name] > 254
        delta.values = [rng.randint(1, 999_999) for _ in range(rng.choice([0, 0, 1, 3, 200]))]
        self.values[name] += len(delta.values)
        wide = self.values[name] > 254
        delta.width = 4 if wide else 1

        grown = np.zeros((matrix.shape[0] + rows, matrix.shape[1] + models), np.uint32)
        grown[: matrix.shape[0], : matrix.shape[1]] = matrix
        row, contestant = np.nonzero(
            (grown == 0) & (np.random.default_rng(rng.getrandbits(32)).random(grown.shape) < 0.4)
        )
        order = np.lexsort((row, contestant))
        row, contestant = row[order].astype(np.int32), contestant[order].astype(np.int32)
        code = np.array([rng.randint(1, self.values[name] + 1) for _ in range(row.size)], np.uint32)
        grown[row, contestant] = code
        self.matrices[name] = grown
        touched = np.array(sorted(rng.sample(range(grown.shape[1]), rng.randint(0, grown.shape[1]))), np.int64)
        delta.arrival = (
            touched,
            np.array([[rng.randint(0, 2**60) for _ in range(4)] for _ in touched], np.int64).reshape(-1, 4),
        )
        listed = np.array([[rng.getrandbits(32) for _ in range(4)] for _ in range(rng.choice([0, 0, 3]))], np.uint32)
        who = np.array(sorted(rng.sample(range(grown.shape[1]), rng.randint(0, grown.shape[1]))), np.int64)
        listed = listed.reshape(-1, 4)[: 3 * who.size]
        again = np.array([[rng.randint(0, 2**60) for _ in range(2)] for _ in who], np.int64).reshape(-1, 2)
        delta.conflicts = ConflictChanges(self.listed.get(name, 0), listed, who, again)
        self.listed[name] = self.listed.get(name, 0) + len(listed)
        if rng.random() < 0.1:
            delta.finding = OrderFinding(1e-9, True, "item position", 3, 64, 0.75, 0.0)
        if wide and not was_wide:
            delta.columns = np.ascontiguousarray(grown.T)
        elif row.size:
            delta.cells = (row, contestant, code)
        delta.registered = [np.array([rng.randint(0, 2**32 - 1) for _ in range(rng.randint(0, 3))], np.uint32)]
        if rng.random() < 0.1:
            delta.redeclared, delta.seed = True, Seed(start)
        for _ in range(rng.randint(0, 3)):
            field = f"{rng.randint(0, 2**31)}:{rng.choice(PROCEDURES)}:decided"
            if (name, field) not in self.latched:
                self.latched.add((name, field))
                delta.changes.add(field, verdict(f"{start}-{next(sequence) << 40}", name))
        return delta


class LossyProxy:
    """Passes bytes on to a server's unix socket; `lose` cuts the connection after the server has run the next script."""

    def __init__(self, directory, target):
        self.path, self._target = f"{directory}/proxy.sock", target
        self.lose = 0
        self.lost = 0

    async def __aenter__(self):
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader, writer):
        server_reader, server_writer = await asyncio.open_unix_connection(self._target)
        script = False

        async def forward():
            nonlocal script
            while data := await reader.read(1 << 16):
                script |= b"EVALSHA" in data
                server_writer.write(data)
            server_writer.close()

        forwarding = asyncio.create_task(forward())
        with contextlib.suppress(ConnectionError):
            while data := await server_reader.read(1 << 16):
                if script and self.lose and not data.startswith(b"-NOSCRIPT"):
                    self.lose -= 1
                    self.lost += 1
                    break
                script = False
                writer.write(data)
        forwarding.cancel()
        for end in (writer, server_writer):
            end.close()
            with contextlib.suppress(ConnectionError):
                await end.wait_closed()

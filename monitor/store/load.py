"""A partition's state as it is read back: a bounded number of round trips per benchmark, columns without copying."""

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from monitor.engine.state.benchmark import MILLION
from monitor.engine.state.delta import Contestant, PairSnapshot, RowKey, Source, StoredBenchmark, StoredState
from monitor.engine.state.keys import benchmark_key
from monitor.store.commit_times import CommitTimes
from monitor.store.errors import StateRefused
from monitor.store.layout import STRINGS, Keys, code_type, unpack_contestants, unpack_rows, unpack_snapshot
from monitor.store.server.connection import Calls
from schemas.changes import VerdictChange
from stats.order import OrderFinding

Fetch = Callable[[Calls], Awaitable[list[Any]]]
"""Runs Redis commands in one round trip and returns their replies."""

_BENCHMARKS_AT_ONCE: Final = 64
_KEYS_AT_ONCE: Final = 512
_BYTES_AT_ONCE: Final = 1 << 26
_POSITION: Final = ("off", "writer", "seq")
_STRINGS: Final = (*STRINGS, "pairs")


@dataclass
class _Raw:
    """One benchmark as its keys hold it; rows and contestants are read already, as the columns cannot be asked for without them."""

    key: str
    name: str
    spec: dict[bytes, bytes]
    verdicts: dict[bytes, bytes]
    rows: list[RowKey]
    contestants: list[Contestant]
    values: bytes
    family: bytes
    pairs: bytes | None
    arrival: bytes
    columns: list[bytes | None] = field(default_factory=list)

    @property
    def width(self) -> int:
        return int(self.spec[b"width"])


async def load_state(fetch: Fetch, keys: Keys, partition: int) -> StoredState | None:
    """Read a partition's state.

    Parameters
    ----------
    fetch : callable
        Runs commands in one round trip.
    keys : Keys
    partition : int

    Returns
    -------
    StoredState or None
        None when the state was written to while it was read: read it again.
    """
    meta, named = await fetch([("HGETALL", keys.meta), ("HGETALL", keys.benchmarks)])
    born = sorted((*json.loads(value), key.decode()) for key, value in named.items())
    found: list[_Raw] = []
    for start in range(0, len(born), _BENCHMARKS_AT_ONCE):
        found += await _fetch_heads(
            fetch, keys, [(key, name) for _, _, name, key in born[start : start + _BENCHMARKS_AT_ONCE]]
        )
    for part in _slices(found):
        (columns,) = await fetch([("MGET", *(keys.score(raw.key, k) for raw, k in part))])
        for (raw, _), column in zip(part, columns, strict=True):
            raw.columns.append(column)
    (now,) = await fetch([("HMGET", keys.meta, *_POSITION)])
    if now != [meta.get(name.encode()) for name in _POSITION]:
        return None
    sources = {}
    origins = {}
    for name, value in meta.items():
        if name.startswith(b"origin:"):
            origins[int(name.removeprefix(b"origin:"))] = tuple(json.loads(value))
        if name.startswith(b"source:"):
            path, *position = json.loads(value)
            sources[path] = Source(*position)
    return StoredState(
        partition=partition,
        off=int(meta.get(b"off", 0)),
        log=meta[b"log"].decode() if b"log" in meta else None,
        benchmarks=[_benchmark(raw) for raw in found],
        sources=sources,
        origins=origins,
        last=tuple(json.loads(meta[b"last"])) if b"last" in meta else None,
        counters=json.loads(meta.get(b"counters", b"{}")),
    )


async def load_times(fetch: Fetch, keys: Keys) -> dict[str, CommitTimes]:
    """Read the commit times of a partition's benchmarks, by name."""
    (named,) = await fetch([("HVALS", keys.benchmarks)])
    names = [json.loads(value)[-1] for value in named]
    found: dict[str, CommitTimes] = {}
    for start in range(0, len(names), _BENCHMARKS_AT_ONCE):
        part = names[start : start + _BENCHMARKS_AT_ONCE]
        calls: list[tuple[str | int, ...]] = []
        for key in map(benchmark_key, part):
            calls += [("HGET", keys.of("spec", key), "at"), ("HGETALL", keys.of("times", key))]
        replies = iter(await fetch(calls))
        for name, last, changes in zip(part, replies, replies, strict=True):
            times = {field.decode(): float(at) for field, at in changes.items()}
            found[name] = CommitTimes(float(last or 0), times)
    return found


async def _fetch_heads(fetch: Fetch, keys: Keys, named: list[tuple[str, str]]) -> list[_Raw]:
    calls: list[tuple[str | int, ...]] = []
    for key, _ in named:
        calls += [
            ("HGETALL", keys.of("spec", key)),
            ("HGETALL", keys.of("verdicts", key)),
        ]
        calls += [("GET", keys.of(kind, key)) for kind in _STRINGS]
    replies = iter(await fetch(calls))
    found = []
    for key, name in named:
        spec, verdicts, rows, models, values, family, arrival, pairs = (next(replies) for _ in range(len(_STRINGS) + 2))
        if spec.get(b"name") != name.encode():
            raise StateRefused(
                f"the state of benchmark {name!r} is damaged: {keys.of('spec', key)} does not hold it; something else has deleted or "
                "written keys of this state. Delete the state, and the log is folded anew"
            )
        found.append(
            _Raw(
                key,
                name,
                spec,
                verdicts,
                unpack_rows(rows or b""),
                unpack_contestants(models or b""),
                values or b"",
                family or b"",
                pairs,
                arrival or b"",
            )
        )
    return found


def _slices(found: list[_Raw]) -> Iterator[list[tuple[_Raw, int]]]:
    """Cut the columns of all benchmarks into replies of a bounded size."""
    part: list[tuple[_Raw, int]] = []
    size = 0
    for raw in found:
        for k in range(len(raw.contestants)):
            if part and (len(part) == _KEYS_AT_ONCE or size >= _BYTES_AT_ONCE):
                yield part
                part, size = [], 0
            part.append((raw, k))
            size += len(raw.rows) * raw.width
    if part:
        yield part


def _benchmark(raw: _Raw) -> StoredBenchmark:
    off, codes = int(raw.spec[b"off"]), code_type(raw.width)
    return StoredBenchmark(
        key=raw.key,
        name=raw.name,
        off=off,
        spec=raw.spec[b"spec"].decode() if b"spec" in raw.spec else None,
        rows=raw.rows,
        contestants=raw.contestants,
        # The codes of 0 and 1 are fixed, so their values are not stored.
        values=[0, MILLION, *np.frombuffer(raw.values, "<u4").tolist()],
        width=raw.width,
        columns=[np.frombuffer(column or b"", codes) for column in raw.columns],
        registered=np.frombuffer(raw.family, "<u4"),
        changes={name.decode(): VerdictChange.model_validate_json(value) for name, value in raw.verdicts.items()},
        counters=json.loads(raw.spec[b"counters"]),
        pairs=_snapshot(raw.pairs, off),
        arrival=np.frombuffer(raw.arrival, "<i8").reshape(-1, 4),
        finding=OrderFinding(*json.loads(raw.spec[b"finding"])) if b"finding" in raw.spec else None,
    )


def _snapshot(data: bytes | None, off: int) -> PairSnapshot | None:
    snapshot = unpack_snapshot(data) if data else None
    return snapshot if snapshot is not None and snapshot.off == off else None

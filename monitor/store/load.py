"""Load a partition's state in a bounded number of round trips per benchmark, without copying its columns."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.battles import COLUMNS
from monitor.engine.state.changes import benchmark_key
from monitor.engine.state.stored import PairSnapshot, StoredBenchmark, StoredState
from monitor.store.errors import StateRefused
from monitor.store.latches import unpack, unpack_times
from monitor.store.layout import (
    STRINGS,
    CommitTimes,
    Keys,
    TermNumbers,
    code_type,
    unpack_contestants,
    unpack_judges,
    unpack_lines,
    unpack_rows,
    unpack_snapshot,
)
from monitor.store.seal import FIELD, GROWING, TABLES, BenchmarkSeal, PartitionSeal
from monitor.store.server.connection import Calls
from schemas.records.boards import BoardEntry, Suspect
from schemas.records.chunks import Gap, Source
from schemas.records.reading import FileReading
from schemas.records.scores import RUN_SCORE, SCORE_UNIT
from schemas.results.assumptions import Seed
from stats.order import OrderFinding

Fetch = Callable[[Calls], Awaitable[list[Any]]]  # runs Redis commands in one round trip and returns their replies

_BENCHMARKS_AT_ONCE: Final = 64
_KEYS_AT_ONCE: Final = 512
_BYTES_AT_ONCE: Final = 1 << 26
_GUARD: Final = ("off", "writer", "seq")  # the fields of ``:meta`` that each commit changes

_STRINGS: Final = (*STRINGS, "pairs")
_DOES_NOT_MATCH: Final = "does not match what was written, because the server lost, repeated or changed a write"


@dataclass
class _Replies:
    """Holds the replies about one benchmark; rows and contestants are decoded, because the columns are fetched by them."""

    key: str
    name: str
    spec: dict[bytes, bytes]
    strings: dict[str, bytes]
    columns: list[bytes | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seal = self._sealed()
        self.width = int(self.spec[b"width"])
        self.rows = unpack_rows(self.strings["rows"])
        self.contestants = unpack_contestants(self.strings["models"])

    def _sealed(self) -> BenchmarkSeal:
        """Check everything but the scores against the stored digests, before any of it is decoded."""
        seal = BenchmarkSeal()
        seal.fields.set(self.spec)
        for kind in GROWING:
            seal.grow(kind, self.strings[kind])
        for kind in TABLES:
            seal.load_table(kind, self.strings[kind])
        peaks = self.strings["peaks"]
        seal.load_peaks(np.frombuffer(peaks[: len(peaks) // 8 * 8], "<f8"))
        seal.numbers = TermNumbers(self.strings["terms"])
        _compare(self.spec.get(FIELD.encode()), seal.digests(), f"benchmark {self.name!r}", without=("scores",))
        return seal

    def check_scores(self) -> list[NDArray[Any]]:
        """Return the score codes of each contestant; raise `_Damaged` unless they match their digest."""
        codes = code_type(self.width)
        if any(len(column or b"") % self.width for column in self.columns):
            raise _Damaged(f"the scores of benchmark {self.name!r}")
        columns = [np.frombuffer(column or b"", codes) for column in self.columns]
        self.seal.replace_scores(columns)
        _compare(self.spec.get(FIELD.encode()), self.seal.digests(), f"benchmark {self.name!r}")
        return columns


class _Damaged(Exception):  # noqa: N818 - what does not match
    """Something loaded does not match its digest; or it was changed during the load."""


def _compare(stored: bytes | None, actual: dict[str, Any], of: str, without: tuple[str, ...] = ()) -> None:
    """Raise `_Damaged` unless digests match the stored ones."""
    try:
        expected = json.loads(stored or b"{}")
    except ValueError:
        expected = {}
    for name in {**actual, **expected}:
        if name not in without and expected.get(name) != actual.get(name):
            raise _Damaged(f"the {name} of {of}")


@dataclass(frozen=True)
class LoadedState:
    """A state whose digests match, and these digests."""

    state: StoredState
    seal: PartitionSeal


async def load_state(fetch: Fetch, keys: Keys, partition: int) -> LoadedState | None:
    """Load a partition's state; return None if it changed during the load, which is then to be repeated."""
    meta, names = await fetch([("HGETALL", keys.meta), ("HGETALL", keys.benchmarks)])
    try:
        seal = _begin_seal(partition, meta, names)
        benchmarks: list[_Replies] = []
        born = _born(names)
        for start in range(0, len(born), _BENCHMARKS_AT_ONCE):
            part = born[start : start + _BENCHMARKS_AT_ONCE]
            benchmarks += _read_heads(keys, part, await fetch(_head_calls(keys, part)))
        _check_offsets(benchmarks, _offset(meta))
        for columns in _slices(benchmarks):
            (values,) = await fetch([("MGET", *(keys.score(replies.key, k) for replies, k in columns))])
            for (replies, _), value in zip(columns, values, strict=True):
                replies.columns.append(value)
        if await changed_since(fetch, keys, meta):
            return None
        return _decode_state(seal, partition, meta, benchmarks)
    except _Damaged as damage:
        if await changed_since(fetch, keys, meta):
            return None
        raise refusal(keys, str(damage)) from damage


async def load_state_at_once(fetch: Fetch, transact: Fetch, keys: Keys, partition: int) -> LoadedState | None:
    """Load a partition's state in one transaction, for which its writer waits; return None if benchmarks or models were added before it."""
    (names,) = await fetch([("HGETALL", keys.benchmarks)])
    born = _born(names)
    models = await fetch([("GET", keys.of("models", key)) for key, _ in born]) if born else []
    sizes = [len(unpack_contestants(value or b"")) for value in models]
    columns = [
        ("MGET", *(keys.score(key, k) for k in range(size))) for (key, _), size in zip(born, sizes, strict=True) if size
    ]
    meta, now, *replies = await transact(
        [("HGETALL", keys.meta), ("HGETALL", keys.benchmarks), *_head_calls(keys, born), *columns]
    )
    if now != names:
        return None
    try:
        seal = _begin_seal(partition, meta, names)
        heads = len(replies) - len(columns)
        benchmarks = _read_heads(keys, born, replies[:heads])
        if [len(each.contestants) for each in benchmarks] != sizes:
            return None
        for each, values in zip((each for each in benchmarks if each.contestants), replies[heads:], strict=True):
            each.columns += values
        _check_offsets(benchmarks, _offset(meta))
        return _decode_state(seal, partition, meta, benchmarks)
    except _Damaged as damage:
        raise refusal(keys, str(damage)) from damage


def refusal(keys: Keys, damage: str) -> StateRefused:
    """Return the error of a state of which a part is not what was written."""
    return StateRefused(
        f"the state {keys.tag} is damaged: {damage} {_DOES_NOT_MATCH}; delete the state (redis-cli --scan --pattern '{keys.tag}:*' | "
        "xargs redis-cli DEL; of `watch`, the folder valkey in its data directory) to fold the log again"
    )


def _begin_seal(partition: int, meta: dict[bytes, bytes], names: dict[bytes, bytes]) -> PartitionSeal:
    """Return the digests of the partition itself; raise `_Damaged` unless they match the stored ones."""
    seal = PartitionSeal()
    seal.fields.set(meta)
    seal.names.set(names)
    if b"off" in meta or names:
        _compare(meta.get(FIELD.encode()), seal.digests(_offset(meta)), f"partition {partition}")
    return seal


def _born(names: Mapping[bytes, bytes]) -> list[tuple[str, str]]:
    """Return key and name of each benchmark, in the order in which they began."""
    born = sorted((*json.loads(value), key.decode()) for key, value in names.items())
    return [(key, name) for _, _, name, key in born]


def _decode_state(
    seal: PartitionSeal, partition: int, meta: dict[bytes, bytes], benchmarks: list[_Replies]
) -> LoadedState:
    sources, origins = {}, {}
    for name, value in meta.items():
        if name.startswith(b"origin:"):
            origins[int(name.removeprefix(b"origin:"))] = tuple(json.loads(value))
        if name.startswith(b"source:"):
            path, *position = json.loads(value)
            sources[path] = Source(*position)
    seal.benchmarks = {replies.key: replies.seal for replies in benchmarks}
    state = StoredState(
        partition=partition,
        off=_offset(meta),
        log=meta[b"log"].decode() if b"log" in meta else None,
        benchmarks=[_decode(replies, replies.check_scores()) for replies in benchmarks],
        sources=sources,
        origins=origins,
        last=parse_last(meta.get(b"last")),
        gaps=parse_gaps(meta.get(b"gaps")),
        suspects=read_suspects(meta),
        boards=read_boards(meta),
        readings=[
            FileReading.parse(value) for name, value in sorted(meta.items()) if value and name.startswith(b"file:")
        ],
        counters=json.loads(meta.get(b"counters", b"{}")),
    )
    return LoadedState(state, seal)


def _check_offsets(benchmarks: list[_Replies], off: int) -> None:
    """Raise `_Damaged` for a benchmark that is ahead of its partition: it is part of a torn transaction, and matches its own digests."""
    for replies in benchmarks:
        if int(replies.spec[b"off"]) > off:
            raise _Damaged(f"the offset of benchmark {replies.name!r}")


def _offset(meta: Mapping[bytes, bytes]) -> int:
    """Return the offset of a state, 0 for one that was never written."""
    off = meta.get(b"off", b"0")
    if not off.isdigit():
        raise _Damaged("the offset")
    return int(off)


async def changed_since(fetch: Fetch, keys: Keys, meta: Mapping[bytes, bytes]) -> bool:
    """Return whether a commit has changed the state since its ``:meta`` was read."""
    (now,) = await fetch([("HMGET", keys.meta, *_GUARD)])
    return bool(now != [meta.get(name.encode()) for name in _GUARD])


async def load_times(fetch: Fetch, keys: Keys, names: Iterable[str] | None = None) -> dict[str, CommitTimes]:
    """Load the commit times of some benchmarks, by default all, by name; they have no digest, so only what is no number is noticed."""
    if names is None:
        (entries,) = await fetch([("HVALS", keys.benchmarks)])
        names = [json.loads(entry)[-1] for entry in entries]
    names = list(names)
    times: dict[str, CommitTimes] = {}
    for start in range(0, len(names), _BENCHMARKS_AT_ONCE):
        part = names[start : start + _BENCHMARKS_AT_ONCE]
        calls: list[tuple[str | int, ...]] = []
        for key in map(benchmark_key, part):
            calls.append(("HGET", keys.of("spec", key), "at"))
            calls += [("GET", keys.of(kind, key)) for kind in ("latches", "terms", "latched_at")]
        replies = iter(await fetch(calls))
        for name, last, *latches in zip(part, *[replies] * 4, strict=True):
            try:
                times[name] = unpack_times(float(last or 0), *(value or b"" for value in latches))
            except ValueError as error:
                raise refusal(keys, f"a commit time of benchmark {name!r}") from error
    return times


def _head_calls(keys: Keys, names: list[tuple[str, str]]) -> list[tuple[str | int | bytes, ...]]:
    """Return the commands that read everything of some benchmarks but their scores."""
    calls: list[tuple[str | int | bytes, ...]] = []
    for key, _ in names:
        calls.append(("HGETALL", keys.of("spec", key)))
        calls += [("GET", keys.of(kind, key)) for kind in _STRINGS]
    return calls


def _read_heads(keys: Keys, names: list[tuple[str, str]], values: Iterable[Any]) -> list[_Replies]:
    replies, heads = iter(values), []
    for key, name in names:
        spec = next(replies)
        strings = {kind: next(replies) or b"" for kind in _STRINGS}
        if spec.get(b"name") != name.encode():
            raise _Damaged(f"the declaration of benchmark {name!r} ({keys.of('spec', key)})")
        heads.append(_Replies(key, name, spec, strings))
    return heads


def _slices(benchmarks: list[_Replies]) -> Iterator[list[tuple[_Replies, int]]]:
    """Group the columns of all benchmarks into fetches of a bounded size."""
    part: list[tuple[_Replies, int]] = []
    size = 0
    for replies in benchmarks:
        for k in range(len(replies.contestants)):
            if part and (len(part) == _KEYS_AT_ONCE or size >= _BYTES_AT_ONCE):
                yield part
                part, size = [], 0
            part.append((replies, k))
            size += len(replies.rows) * replies.width
    if part:
        yield part


def _decode(replies: _Replies, columns: list[NDArray[Any]]) -> StoredBenchmark:
    undeclared, mixed = json.loads(replies.spec.get(b"undeclared", b'["", false]'))
    off = int(replies.spec[b"off"])
    return StoredBenchmark(
        key=replies.key,
        name=replies.name,
        off=off,
        spec=replies.spec[b"spec"].decode() if b"spec" in replies.spec else None,
        rows=replies.rows,
        contestants=replies.contestants,
        # The codes of 0 and 1 are fixed, so their values are not stored.
        values=[0, SCORE_UNIT, *np.frombuffer(replies.strings["values"], "<i8").tolist()],
        width=replies.width,
        columns=columns,
        registered=np.frombuffer(replies.strings["family"], "<u4"),
        changes=unpack(replies.name, replies.contestants, replies.strings["latches"], replies.strings["terms"]),
        counters=json.loads(replies.spec[b"counters"]),
        pairs=_snapshot(replies.strings["pairs"], off),
        arrival=np.frombuffer(replies.strings["arrival"], "<i8").reshape(-1, 4),
        listed=np.frombuffer(replies.strings["conflicts"], "<u4").reshape(-1, 4),
        peaks=np.frombuffer(replies.strings["peaks"], "<f8"),
        again=np.frombuffer(replies.strings["again"], "<i8").reshape(-1, 2),
        votes=np.frombuffer(replies.strings["votes"], "<i4").reshape(-1, COLUMNS),
        judges=unpack_judges(replies.strings["judges"]),
        run_lines=unpack_lines(replies.strings["run_lines"]),
        run_scores=np.frombuffer(replies.strings["run_scores"], RUN_SCORE),
        run_state=json.loads(replies.spec.get(b"runs", b"{}")),
        undeclared=undeclared,
        mixed=mixed,
        ended=json.loads(replies.spec.get(b"ended", b"[]")),
        gaps=parse_gaps(replies.spec.get(b"gaps")),
        unknown_units=json.loads(replies.spec.get(b"unknown_units", b"false")),
        seed=Seed(*json.loads(replies.spec[b"seed"])) if b"seed" in replies.spec else None,
        finding=OrderFinding(*json.loads(replies.spec[b"finding"])) if b"finding" in replies.spec else None,
    )


def decode_benchmark(
    name: str, spec: Mapping[str, str], strings: Mapping[str, bytes], scores: list[bytes]
) -> StoredBenchmark:
    """Return a benchmark of the values of its keys; raise ValueError unless they match their digests."""
    fields = {field.encode(): value.encode() for field, value in spec.items()}
    try:
        (replies,) = _read_heads(
            Keys("archive", 0), [(benchmark_key(name), name)], [fields, *map(strings.get, _STRINGS)]
        )
        replies.columns += scores
        return _decode(replies, replies.check_scores())
    except _Damaged as damage:
        raise ValueError(f"{damage} differ from their digest") from damage


def read_suspects(meta: Mapping[bytes, bytes]) -> list[Suspect]:
    """Return the benchmarks that are set aside or have unreadable records, from the fields of ``:meta``."""
    entries = sorted((name, value) for name, value in meta.items() if value and name.startswith(b"quarantine:"))
    return [Suspect(*json.loads(value)) for _, value in entries]


def read_boards(meta: Mapping[bytes, bytes]) -> list[BoardEntry]:
    """Return the boards that are not as they began, from the fields of ``:meta``."""
    entries = sorted((name, value) for name, value in meta.items() if value and name.startswith(b"board:"))
    return [BoardEntry.parse(value) for _, value in entries]


def parse_gaps(value: bytes | None) -> list[Gap]:
    """Parse the field ``gaps``; it may be missing."""
    return [Gap(*gap) for gap in json.loads(value or b"[]")]


def parse_last(value: bytes | None) -> tuple[int, str] | None:
    """Parse the field ``last`` of ``:meta``; it may be missing."""
    if value is None:
        return None
    offset, digest = json.loads(value)
    return int(offset), str(digest)


def _snapshot(data: bytes, off: int) -> PairSnapshot | None:
    snapshot = unpack_snapshot(data) if data else None
    return snapshot if snapshot is not None and snapshot.off == off else None

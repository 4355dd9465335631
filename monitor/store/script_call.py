"""Encode a delta as the keys and commands of one call of commit.lua."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.changes import BenchmarkDelta, Delta, benchmark_key
from monitor.store.latches import LATCH_BYTES, OrderedLatches, PackedLatches, in_order, pack
from monitor.store.layout import STRINGS, Keys, code_type, dump_json, pack_lines
from monitor.store.outbox import Announced, Part, parts
from monitor.store.seal import FIELD, BenchmarkSeal, PartitionSeal
from monitor.store.versions import VERSIONS

Argument = bytes | str | int

_ANNOUNCED_BYTES = 1 << 26
"""Verdict changes of one command: a server takes no argument above 512 MB, and a thousand models can change 700,000 at once."""


class ScriptCall:
    """Collects the keys and commands of one script call; the first key is its guard."""

    def __init__(self, guard: str) -> None:
        self.keys = [guard]
        self.commands: list[Argument] = []
        self._index = {guard: 1}

    def key(self, name: str) -> int:
        """Return the index of a key, counted from 1 as in Lua."""
        index = self._index.get(name)
        if index is None:
            self.keys.append(name)
            index = self._index[name] = len(self.keys)
        return index

    def add(self, command: str, key: str, *arguments: Argument) -> None:
        """Append a command."""
        self.commands += (command, self.key(key), len(arguments), *arguments)


def commit_call(keys: Keys, delta: Delta, seal: PartitionSeal, at: float = 0.0) -> ScriptCall:
    """Return the call that writes a delta and its commit time (0: none), guarded by the partition's offset; the seal is updated."""
    call = ScriptCall(keys.meta)
    announced = []
    for deleted in delta.deleted:
        seal.names.remove(deleted.key)
        seal.benchmarks.pop(deleted.key, None)
        call.add("HDEL", keys.benchmarks, deleted.key)
        for kind in ("spec", "pairs", *STRINGS):
            call.add("DEL", keys.of(kind, deleted.key))
        for contestant in range(deleted.contestants):
            call.add("DEL", keys.score(deleted.key, contestant))
        announced.append(Announced.of(deleted.name, deleted.changes, in_order(deleted.changes)))
    for place, benchmark in enumerate(delta.benchmarks):
        entry = {benchmark.key: dump_json([delta.off, place, benchmark.name])}
        call.add("HSETNX", keys.benchmarks, *chain.from_iterable(entry.items()))
        seal.names.set(entry, once=True)
        latches = in_order(benchmark.changes)
        _add_benchmark(call, keys, benchmark, latches, seal.benchmarks.setdefault(benchmark.key, BenchmarkSeal()), at)
        announced.append(Announced.of(benchmark.name, benchmark.changes, latches))
    _announce(call, keys, announced)
    for key in dict.fromkeys(benchmark.key for benchmark in delta.benchmarks):
        call.add("HSET", keys.of("spec", key), FIELD, dump_json(seal.benchmarks[key].digests()))
    meta = _meta(delta)
    seal.fields.set(meta)
    meta[FIELD] = dump_json(seal.digests(delta.off))
    call.add("HSET", keys.meta, *chain.from_iterable(meta.items()))
    return call


def _meta(delta: Delta) -> dict[str, Argument]:
    """Return the changed fields of ``:meta``, without their digests."""
    meta: dict[str, Argument] = {**VERSIONS}
    for name, suspect in delta.suspects.items():
        meta[f"quarantine:{benchmark_key(name)}"] = "" if suspect.clear else dump_json(suspect)
    for name, entry in delta.boards.items():
        meta[f"board:{benchmark_key(name)}"] = "" if entry.clear else dump_json(entry)
    if delta.counters:
        meta["counters"] = dump_json(delta.counters)
    for path, source in delta.sources.items():
        meta[f"source:{benchmark_key(path)}"] = dump_json([path, *source])
    for path, reading in delta.readings.items():
        meta[f"file:{benchmark_key(path)}"] = reading
    if delta.gaps is not None:
        meta["gaps"] = dump_json(delta.gaps)
    if delta.last is not None:
        meta["last"] = dump_json(delta.last)
    for partition, origin in delta.origins.items():
        meta[f"origin:{partition}"] = dump_json(origin)
    return meta


def _add_benchmark(
    call: ScriptCall, keys: Keys, delta: BenchmarkDelta, latches: OrderedLatches, seal: BenchmarkSeal, at: float
) -> None:
    spec: dict[str, Argument] = {
        "name": delta.name,
        "off": delta.off,
        "width": delta.width,
        "counters": dump_json(delta.counters),
    }
    if delta.spec is not None:
        spec["spec"] = delta.spec
    once = {
        "finding": delta.finding,
        "undeclared": delta.undeclared,
        "ended": delta.ended,
        "gaps": delta.gaps,
        "unknown_units": delta.unknown_units,
        "seed": delta.seed,
        "runs": delta.run_state,
    }
    spec |= {name: dump_json(value) for name, value in once.items() if value is not None}
    if at:
        spec["at"] = repr(at)
    seal.fields.set(spec)
    call.add("HSET", keys.of("spec", delta.key), *chain.from_iterable(spec.items()))
    _add_growing(call, keys, delta, pack(latches, seal.numbers), seal, at)
    if delta.arrival is not None and delta.arrival[0].size:
        seal.write("arrival", *delta.arrival)
        _add_numbers(call, keys.of("arrival", delta.key), *delta.arrival)
    if delta.conflicts is not None and delta.conflicts.contestants.size:
        counts = delta.conflicts.contestants, delta.conflicts.again
        seal.write("again", *counts)
        _add_numbers(call, keys.of("again", delta.key), *counts)
    if delta.peaks is not None:
        pair, peak = delta.peaks
        seal.peaks(pair, peak)
        _add_numbers(call, keys.of("peaks", delta.key), pair, peak.astype("<f8").view("<i8")[:, None])
    if delta.columns is not None:
        seal.replace_scores(delta.columns)
        for contestant, column in enumerate(delta.columns):
            call.add("SET", keys.score(delta.key, contestant), column.astype(code_type(delta.width)).tobytes())
    elif delta.cells is not None and delta.cells[0].size:
        seal.scores(*delta.cells, delta.filled)
        _add_cells(call, keys, delta, *delta.cells)


def _add_growing(
    call: ScriptCall, keys: Keys, delta: BenchmarkDelta, latches: PackedLatches, seal: BenchmarkSeal, at: float
) -> None:
    """Write at the end of the strings that only grow: at its place, so that a server that repeats the write doubles nothing."""
    growing = {
        "rows": pack_lines(delta.rows),
        "models": pack_lines(delta.contestants),
        "values": np.array(delta.values, "<i8").tobytes(),
        "family": b"".join(part.astype("<u4").tobytes() for part in delta.registered),
        "conflicts": b"" if delta.conflicts is None else delta.conflicts.listed.astype("<u4").tobytes(),
        "votes": b"".join(votes.astype("<i4").tobytes() for votes in delta.votes),
        "judges": pack_lines([(name,) for name in delta.judges]),
        "run_lines": pack_lines(delta.run_lines),
        "run_scores": delta.run_scores.tobytes(),
        "terms": latches.terms,
        "latches": latches.records,
    }
    if at and latches.records:
        first, count = seal.ends["latches"] // LATCH_BYTES, len(latches.records) // LATCH_BYTES
        add_times(call, keys, delta.key, np.arange(first, first + count), np.full(count, at))
    for kind, data in growing.items():
        key = keys.of(kind, delta.key)
        if kind == "family" and delta.redeclared:
            seal.replace(kind, data)
            call.add("SET", key, data)
        elif data:
            call.add("CELLS", key, np.array([call.key(key), seal.grow(kind, data), len(data)], "<u4").tobytes(), data)


def add_times(call: ScriptCall, keys: Keys, key: str, place: NDArray[Any], at: NDArray[Any]) -> None:
    """Write the commit times of latches of a benchmark, by their places, ascending."""
    _add_numbers(call, keys.of("latched_at", key), place, at.astype("<f8").view("<i8")[:, None])


def _add_numbers(call: ScriptCall, key: str, place: NDArray[Any], state: NDArray[Any]) -> None:
    """Write int64 columns of some contestants or pairs, ascending, in ranges of consecutive ones."""
    starts = np.flatnonzero(np.diff(place, prepend=-2) != 1)
    ranges = np.empty((starts.size, 3), "<u4")
    ranges[:, 0] = call.key(key)
    ranges[:, 1] = place[starts]
    ranges[:, 2] = np.diff(starts, append=place.size)
    ranges[:, 1:] *= 8 * state.shape[1]
    call.add("CELLS", key, ranges.tobytes(), state.astype("<i8").tobytes())


def _add_cells(
    call: ScriptCall, keys: Keys, delta: BenchmarkDelta, row: NDArray[Any], contestant: NDArray[Any], code: NDArray[Any]
) -> None:
    """Write the new scores in ranges of consecutive rows of one contestant."""
    starts = np.flatnonzero((np.diff(contestant, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 1))
    # The cells are sorted, so each contestant's key is looked up once.
    contestants, of_range = np.unique(contestant[starts], return_inverse=True)
    index = np.array([call.key(keys.score(delta.key, k)) for k in contestants.tolist()])
    ranges = np.empty((starts.size, 3), "<u4")
    ranges[:, 0] = index[of_range]
    ranges[:, 1] = row[starts]
    ranges[:, 2] = np.diff(starts, append=row.size)
    ranges[:, 1:] *= delta.width
    call.add("CELLS", call.keys[int(index[0]) - 1], ranges.tobytes(), code.astype(code_type(delta.width)).tobytes())


def _announce(call: ScriptCall, keys: Keys, boards: list[Announced]) -> None:
    """Put the verdict changes of all benchmarks on the outbox, in the order of their ids as a stream requires."""
    for some in _by_bytes(parts(boards)):
        sizes = np.array([(len(part.last), len(part.data), part.changes) for part in some], "<u4")
        data = b"".join(chain.from_iterable((part.last, part.data) for part in some))
        call.add("ANNOUNCE", keys.outbox, sizes.tobytes(), data)


def _by_bytes(entries: Iterator[Part]) -> Iterator[list[Part]]:
    """Yield consecutive parts of at most `_ANNOUNCED_BYTES`, or a single one."""
    some: list[Part] = []
    length = 0
    for part in entries:
        length += len(part.data)
        if some and length > _ANNOUNCED_BYTES:
            yield some
            some, length = [], len(part.data)
        some.append(part)
    if some:
        yield some

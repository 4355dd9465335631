"""A delta as the commands of one run of the script (commit.lua says what each command does)."""

from itertools import chain
from operator import itemgetter
from typing import Final

import numpy as np

from monitor.engine.latch.base import STATISTICS_VERSION
from monitor.engine.state.delta import STATE_VERSION, BenchmarkDelta, Delta
from monitor.engine.state.keys import benchmark_key
from monitor.store.layout import Keys, code_type, dump_json, pack_lines

Argument = bytes | str | int

VERSIONS: Final = {"state_version": STATE_VERSION, "statistics_version": STATISTICS_VERSION}
"""What a stored state has to agree on with this program."""


class ScriptCall:
    """The keys and commands of one run of the script; the first key is its guard."""

    def __init__(self, guard: str) -> None:
        self.keys = [guard]
        self.commands: list[Argument] = []
        self._index = {guard: 1}

    def key(self, name: str) -> int:
        """Return the index of a key, counted from 1 as Lua does."""
        index = self._index.get(name)
        if index is None:
            self.keys.append(name)
            index = self._index[name] = len(self.keys)
        return index

    def add(self, command: str, key: str, *arguments: Argument) -> None:
        """Append a command."""
        self.commands += (command, self.key(key), len(arguments), *arguments)


def commit_call(keys: Keys, delta: Delta, at: float = 0.0) -> ScriptCall:
    """Turn a delta into a call guarded by the partition's offset.

    Parameters
    ----------
    keys : Keys
    delta : Delta
    at : float
        Seconds since 1970, stored next to the benchmarks and verdict changes; 0: no time is stored.
    """
    call = ScriptCall(keys.meta)
    meta: dict[str, Argument] = {**VERSIONS}
    if delta.counters:
        meta["counters"] = dump_json(delta.counters)
    for path, source in delta.sources.items():
        meta[f"source:{benchmark_key(path)}"] = dump_json([path, *source])
    if delta.last is not None:
        meta["last"] = dump_json(delta.last)
    for partition, origin in delta.origins.items():
        meta[f"origin:{partition}"] = dump_json(origin)
    call.add("HSET", keys.meta, *chain.from_iterable(meta.items()))
    for place, benchmark in enumerate(delta.benchmarks):
        call.add("HSETNX", keys.benchmarks, benchmark.key, dump_json([delta.off, place, benchmark.name]))
        _add_benchmark(call, keys, benchmark, at)
        for field, _ in benchmark.changes if at else ():
            call.add("HSETNX", keys.of("times", benchmark.key), field, repr(at))
    _add_changes(call, keys, delta.benchmarks)
    return call


def _add_benchmark(call: ScriptCall, keys: Keys, delta: BenchmarkDelta, at: float) -> None:
    spec: dict[str, Argument] = {
        "name": delta.name,
        "off": delta.off,
        "width": delta.width,
        "counters": dump_json(delta.counters),
    }
    if delta.spec is not None:
        spec["spec"] = delta.spec
    if delta.finding is not None:
        spec["finding"] = dump_json(delta.finding)
    if at:
        spec["at"] = repr(at)
    call.add("HSET", keys.of("spec", delta.key), *chain.from_iterable(spec.items()))
    appended = {
        "rows": pack_lines(delta.rows),
        "models": pack_lines(delta.contestants),
        "values": np.array(delta.values, "<u4").tobytes(),
        "family": delta.registered.astype("<u4").tobytes(),
    }
    for kind, data in appended.items():
        if data:
            call.add("APPEND", keys.of(kind, delta.key), data)
    if delta.arrival is not None and delta.arrival[0].size:
        _add_arrival(call, keys, delta)
    if delta.columns is not None:
        for contestant, column in enumerate(delta.columns):
            call.add("SET", keys.score(delta.key, contestant), column.astype(code_type(delta.width)).tobytes())
    elif delta.cells is not None:
        _add_cells(call, keys, delta)


def _add_arrival(call: ScriptCall, keys: Keys, delta: BenchmarkDelta) -> None:
    """Write the state of contestants that had new scores, by runs of consecutive contestants."""
    assert delta.arrival is not None
    contestant, state = delta.arrival
    key = keys.of("arrival", delta.key)
    starts = np.flatnonzero(np.diff(contestant, prepend=-2) != 1)
    runs = np.empty((starts.size, 3), "<u4")
    runs[:, 0] = call.key(key)
    runs[:, 1] = contestant[starts]
    runs[:, 2] = np.diff(starts, append=contestant.size)
    runs[:, 1:] *= 8 * state.shape[1]
    call.add("CELLS", key, runs.tobytes(), state.astype("<i8").tobytes())


def _add_cells(call: ScriptCall, keys: Keys, delta: BenchmarkDelta) -> None:
    """Group the new scores into runs of consecutive rows of one contestant."""
    assert delta.cells is not None
    row, contestant, code = delta.cells
    if row.size == 0:
        return
    starts = np.flatnonzero((np.diff(contestant, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 1))
    # A contestant's key is looked up once; its runs follow each other because the cells are sorted.
    named, of_run = np.unique(contestant[starts], return_inverse=True)
    index = np.array([call.key(keys.score(delta.key, k)) for k in named.tolist()])
    runs = np.empty((starts.size, 3), "<u4")
    runs[:, 0] = index[of_run]
    runs[:, 1] = row[starts]
    runs[:, 2] = np.diff(starts, append=row.size)
    runs[:, 1:] *= delta.width
    call.add("CELLS", call.keys[int(index[0]) - 1], runs.tobytes(), code.astype(code_type(delta.width)).tobytes())


def _add_changes(call: ScriptCall, keys: Keys, deltas: list[BenchmarkDelta]) -> None:
    """Put the verdict changes of all benchmarks on the outbox, in the order of their ids: a stream takes no other."""
    changes = [
        (_parts(change.id), call.key(keys.of("verdicts", delta.key)), field, change)
        for delta in deltas
        for field, change in delta.changes
    ]
    if not changes:
        return
    entries, body = [], []
    for _, key, field, change in sorted(changes, key=itemgetter(0)):
        texts = [text.encode() for text in (field, change.id, change.model_dump_json())]
        entries.append((key, *map(len, texts)))
        body += texts
    call.add("LATCH", keys.outbox, np.array(entries, "<u4").tobytes(), b"".join(body))


def _parts(identifier: str) -> tuple[int, int]:
    offset, _, sequence = identifier.partition("-")
    return int(offset), int(sequence)

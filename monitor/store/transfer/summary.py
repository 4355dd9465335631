"""Count what a stored partition holds."""

import json
from dataclasses import dataclass

from monitor.store.latches import LATCH_BYTES
from monitor.store.layout import STRINGS, Keys
from monitor.store.outbox import waiting_changes
from monitor.store.server.connection import Connection, slices


@dataclass(frozen=True)
class PartitionSummary:
    """The counts of one partition."""

    partition: int
    off: int  # the log is folded up to this offset
    log: str  # the log it was folded from; empty if it is not bound to one yet
    benchmarks: int
    # rows, models: over all benchmarks
    rows: int
    models: int
    events: int
    duplicates: int
    conflicts: int
    rejected: int
    latches: int  # latched verdicts
    waiting: int  # verdict changes that are not published yet
    stored_bytes: int  # memory that its keys take in the server


async def summarize(connection: Connection, topic: str, number: int) -> PartitionSummary:
    """Count the contents of a partition."""
    keys = Keys(topic, number)
    meta, names = await connection.fetch([("HGETALL", keys.meta), ("HKEYS", keys.benchmarks)])
    total = dict.fromkeys(
        ("rows", "models", "latches", "stored_bytes", "events", "duplicates", "conflicts", "rejected"), 0
    )
    total["rejected"] = json.loads(meta.get(b"counters", b"{}")).get("rejected", 0)
    for key in map(bytes.decode, names):
        rows, models, latches, counters = await connection.fetch(
            [
                ("GET", keys.of("rows", key)),
                ("GET", keys.of("models", key)),
                ("STRLEN", keys.of("latches", key)),
                ("HGET", keys.of("spec", key), "counters"),
            ]
        )
        contestants = (models or b"").count(b"\n")
        total["rows"] += (rows or b"").count(b"\n")
        total["models"] += contestants
        total["latches"] += latches // LATCH_BYTES
        for name, value in json.loads(counters or b"{}").items():
            if name in total:
                total[name] += value
        total["stored_bytes"] += await _memory(connection, _keys_of(keys, key, contestants))
    total["stored_bytes"] += await _memory(connection, [keys.meta, keys.benchmarks, keys.outbox, keys.relays])
    off, log = meta.get(b"off", b"0"), meta.get(b"log", b"").decode()
    return PartitionSummary(number, int(off), log, len(names), waiting=await waiting_changes(connection, keys), **total)


async def _memory(connection: Connection, keys: list[str]) -> int:
    total = 0
    for part in slices(keys):
        sizes = await connection.fetch([("MEMORY", "USAGE", key) for key in part])
        total += sum(size or 0 for size in sizes)
    return total


def _keys_of(keys: Keys, key: str, contestants: int) -> list[str]:
    kinds = ("spec", "pairs", *STRINGS)
    return [*(keys.of(kind, key) for kind in kinds), *(keys.score(key, k) for k in range(contestants))]

"""Export a partition in parts of a bounded size: what it takes of memory does not grow with the state."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from monitor.store.errors import StoreError
from monitor.store.layout import OF_ONE_KIND, STRINGS, Keys, dump_json
from monitor.store.load import changed_since
from monitor.store.server.connection import Connection
from monitor.store.transfer.archive import ArchiveWriter
from monitor.store.versions import check_meta

_FIELDS_AT_ONCE: Final = 2_000
_ENTRIES_AT_ONCE: Final = 70  # of the outbox: 500 changes each, about 40 kB

_BYTES_AT_ONCE: Final = 3 << 20  # divisible by 3, so that parts in base64 can be joined


async def export_partition(connection: Connection, keys: Keys, number: int, writer: ArchiveWriter) -> int:
    """Write a partition and its benchmarks; return the number of benchmarks."""
    meta, benchmarks = await connection.fetch([("HGETALL", keys.meta), ("HGETALL", keys.benchmarks)])
    check_meta(meta, keys.tag, connection.address)
    await writer.line(_partition(connection, keys, number, meta))
    for key, entry in sorted(benchmarks.items()):
        await writer.line(_benchmark(connection, keys, number, key.decode(), entry))
    if await changed_since(connection.fetch, keys, meta):
        raise (
            StoreError(
                f"the state {keys.tag} changed during the export; stop the workers (and `watch`), then export again"
            )
        )
    return len(benchmarks)


async def _partition(connection: Connection, keys: Keys, number: int, meta: dict[bytes, bytes]) -> AsyncIterator[str]:
    """Yield the JSON of a `PartitionLine`."""
    (relays,) = await connection.fetch([("HGETALL", keys.relays)])
    yield _open({"partition": number, "meta": _texts(meta), "relays": _texts(relays)}) + ',"outbox":['
    after, separator = "-", ""
    while True:
        (entries,) = await connection.fetch([("XRANGE", keys.outbox, after, "+", "COUNT", _ENTRIES_AT_ONCE)])
        for identifier, fields in entries:
            yield separator + dump_json(
                [
                    identifier.decode(),
                    {
                        name.decode(): _encode(value) if name == b"latches" else value.decode()
                        for name, value in fields.items()
                    },
                ]
            )
            separator = ","
        if len(entries) < _ENTRIES_AT_ONCE:
            break
        after = f"({entries[-1][0].decode()}"
    yield "]}"


async def _benchmark(connection: Connection, keys: Keys, number: int, key: str, entry: bytes) -> AsyncIterator[str]:
    """Yield the JSON of a `BenchmarkLine`."""
    *born, name = json.loads(entry)
    (spec,) = await connection.fetch([("HGETALL", keys.of("spec", key))])
    head = {"partition": number, "benchmark": name, "born": born, "spec": _texts(spec)}
    yield _open(head)
    lines = dict.fromkeys(STRINGS, 0)
    for place, kind in enumerate(STRINGS):
        if kind in OF_ONE_KIND and not (await connection.fetch([("EXISTS", keys.of(kind, key))]))[0]:
            continue
        yield ("," if place else ',"strings":{') + f'"{kind}":"'
        start = 0
        while True:
            end = start + _BYTES_AT_ONCE
            (data,) = await connection.fetch([("GETRANGE", keys.of(kind, key), start, end - 1)])
            lines[kind] += data.count(b"\n")
            yield _encode(data)
            if len(data) < _BYTES_AT_ONCE:
                break
            start = end
        yield '"'
    yield '},"scores":['
    size = lines["rows"] * int(spec.get(b"width", b"1"))
    at_once = min(_FIELDS_AT_ONCE, max(1, _BYTES_AT_ONCE // max(1, size)))
    for start in range(0, lines["models"], at_once):
        names = [keys.score(key, k) for k in range(start, min(start + at_once, lines["models"]))]
        (columns,) = await connection.fetch([("MGET", *names)])
        yield ("," if start else "") + ",".join(f'"{_encode(column or b"")}"' for column in columns)
    yield "]}"


def _open(fields: dict[str, Any]) -> str:
    """Return a JSON object without its end, for more fields."""
    return dump_json(fields)[:-1]


def _texts(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in fields.items()}


def _encode(data: bytes) -> str:
    return b64encode(data).decode("ascii")

"""Write the state of one partition to an archive."""

import json
from collections.abc import Mapping

from monitor.store.errors import StoreError
from monitor.store.layout import STRINGS, Keys, unpack_contestants
from monitor.store.load import changed_since
from monitor.store.server.connection import Connection
from monitor.store.transfer.archive import ArchiveWriter, BenchmarkLine, PartitionLine
from monitor.store.transfer.slices import slices
from monitor.store.versions import check_meta


async def export_partition(connection: Connection, topic: str, number: int, writer: ArchiveWriter) -> int:
    """Write a partition and its benchmarks; return the number of benchmarks.

    Raises
    ------
    StateRefused
        If another version wrote it, or its import is unfinished.
    StoreError
        If it changes during the export.
    """
    keys = Keys(topic, number)
    meta, benchmarks, relays, outbox = await connection.fetch(
        [
            ("HGETALL", keys.meta),
            ("HGETALL", keys.benchmarks),
            ("HGETALL", keys.relays),
            ("XRANGE", keys.outbox, "-", "+"),
        ]
    )
    check_meta(meta, keys.tag, connection.address)
    waiting = [(identifier.decode(), fields[b"change"].decode()) for identifier, fields in outbox]
    writer.partition(PartitionLine(number, _texts(meta), _texts(relays), waiting))
    for key, entry in sorted(benchmarks.items()):
        writer.benchmark(await _read_benchmark(connection, keys, number, key.decode(), entry))
    if await changed_since(connection.fetch, keys, meta):
        raise StoreError(
            f"partition {number} of {topic} changed during the export: stop the workers (and `watch`), then export again"
        )
    return len(benchmarks)


async def _read_benchmark(connection: Connection, keys: Keys, number: int, key: str, entry: bytes) -> BenchmarkLine:
    *born, name = json.loads(entry)
    spec, verdicts, times, *values = await connection.fetch(
        [
            ("HGETALL", keys.of("spec", key)),
            ("HGETALL", keys.of("verdicts", key)),
            ("HGETALL", keys.of("times", key)),
            *(("GET", keys.of(kind, key)) for kind in STRINGS),
        ]
    )
    strings = {kind: data or b"" for kind, data in zip(STRINGS, values, strict=True)}
    scores: list[bytes] = []
    for part in slices(range(len(unpack_contestants(strings["models"])))):
        (columns,) = await connection.fetch([("MGET", *(keys.score(key, k) for k in part))])
        scores += [column or b"" for column in columns]
    return BenchmarkLine(
        partition=number,
        benchmark=name,
        born=born,
        spec=_texts(spec),
        verdicts=_texts(verdicts),
        strings=strings,
        scores=scores,
        times=_texts(times),
    )


def _texts(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in fields.items()}

"""A sentinel in a real server that is killed between commits, loses its last writes, and is exported: its state is the fold of the log."""

import asyncio
import json

from monitor.engine.chunk_fold import Partition
from monitor.store.redis_store import RedisStore
from schemas.records.chunks import Chunk
from tests.fold_log import FoldLog
from tests.redis_server import RedisServer
from tests.report_factory import without
from tests.unit.engine.test_sentinel import STREAMS, declaration, facts, said

SIZE = 150


def chunks(records):
    raw = [json.dumps(record).encode() for record in records]
    return [
        Chunk(
            0, start, min(start + SIZE, len(raw)), range(start, min(start + SIZE, len(raw))), raw[start : start + SIZE]
        )
        for start in range(0, len(raw), SIZE)
    ]


async def folded(server, given, *, kill_every):
    """Fold chunks through a server that is killed now and then; a restart goes on from what it has."""
    store = await RedisStore.open(server.url, "t")
    partition = Partition.restore(await store.load(0))
    for number, chunk in enumerate(given):
        if chunk.end <= partition.off:
            continue
        await store.commit(partition.fold(chunk))
        if number % kill_every == kill_every - 1:
            await store.close()
            server.kill()
            server.start()
            store = await RedisStore.open(server.url, "t")
            partition = Partition.restore(await store.load(0))
            assert partition.off == chunk.end
    await store.close()
    return partition


def test_a_killed_server_loses_and_doubles_no_run(tmp_path):
    drift, runs = STREAMS["both"]
    records = [declaration(**drift), *(each for run in runs for each in run)]
    whole = FoldLog()
    whole.send(*records)
    with RedisServer(tmp_path) as server:
        partition = asyncio.run(folded(server, chunks(records), kill_every=3))
    parts = FoldLog()
    parts.partition = partition
    assert facts(parts) == facts(whole)
    # Offsets differ: one record took ten there.
    assert [without(each, "id") for each in said(parts)] == [without(each, "id") for each in said(whole)]
    assert parts.bench.sentinel.dump() == whole.bench.sentinel.dump()

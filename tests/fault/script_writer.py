"""Write rows, changes and pair sums in commits, for a test that kills the process between them."""

import asyncio
import sys

from monitor.engine.state.stored import PairSnapshot
from monitor.store.redis_store import RedisStore
from monitor.store.server.embedded import EmbeddedValkey
from tests.store_model import one_row, verdict

END = 80


async def write(directory, end):
    """Go on from what is stored, as a worker does, until the log ends; return the state."""
    async with EmbeddedValkey(directory) as valkey, await RedisStore.open(valkey.options, "topic") as store:
        await store.bind_log(0, "log")
        state = await store.load(0)
        for start in range(state.off, end, 10):
            delta = one_row(start, changes=[(f"{start}:anytime:decided", verdict(f"{start}-9"))])
            await store.commit(delta)
            await store.save_pairs(0, delta.benchmarks[0].key, PairSnapshot(delta.off, {}, {"at": delta.off}))
        return await store.load(0), await store.read_outbox(0)


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], END))

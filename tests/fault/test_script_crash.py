"""Kill the process before and after the script, really, and its embedded server with it; then go on."""

import os
import signal
import subprocess
import sys

import pytest

from monitor.crash_points import VARIABLE
from monitor.engine.state.delta import PairSnapshot
from monitor.store.redis_store import RedisStore
from monitor.store.server.embedded import EmbeddedValkey
from tests.store_model import one_row, verdict

END = 80

WRITER = """
import asyncio, sys
from tests.fault.test_script_crash import END, write

asyncio.run(write(sys.argv[1], END))
"""


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


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize(("point", "stored"), [("before-script", 10), ("after-script", 20), ("snapshot", 20)])
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_nothing_is_lost_or_written_twice(tmp_path, point, stored, count):
    stored += 10 * (count - 2)

    def crash():
        ended = subprocess.run(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            env={**os.environ, VARIABLE: f"{point}:{count}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ended.returncode == -signal.SIGKILL, ended.stderr

    crash()
    state, outbox = await write(tmp_path, 0)
    assert (state.off, len(outbox)) == (stored, stored // 10)
    crash()
    state, outbox = await write(tmp_path, END)
    (benchmark,) = state.benchmarks
    assert state.off == END
    assert [row.item for row in benchmark.rows] == [f"item {k}" for k in range(0, END, 10)]
    assert benchmark.columns[0].tolist() == [3] * (END // 10)
    assert [identifier for identifier, _ in outbox] == [f"{k}-9" for k in range(0, END, 10)]
    assert benchmark.pairs is not None
    assert benchmark.pairs.meta == {"at": END}

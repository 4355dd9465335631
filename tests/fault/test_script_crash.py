"""Kill the process before and after the script, really, and its embedded server with it; then go on."""

import os
import signal
import sys

import pytest

from monitor.crash_points import VARIABLE
from tests import forked
from tests.fault.script_writer import END, write

COMMAND = [sys.executable, "-m", "tests.fault.script_writer"]


@pytest.mark.fault("store", "process killed before and after the commit script", "nothing is lost or written twice")
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize(("point", "stored"), [("before-script", 10), ("after-script", 20), ("snapshot", 20)])
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_nothing_is_lost_or_written_twice(tmp_path, point, stored, count):
    stored += 10 * (count - 2)

    def crash():
        env = {**os.environ, VARIABLE: f"{point}:{count}"}
        ended = forked.run([*COMMAND, str(tmp_path)], env=env, timeout=60)
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

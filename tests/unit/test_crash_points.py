import os
import signal
import subprocess
import sys

import pytest

from monitor import crash_points

LOOP = """
from monitor.crash_points import armed, crash_point
print(armed("snapshot"), armed("append"), flush=True)
for number in range(5):
    crash_point("append")
    crash_point("snapshot")
    print(number, flush=True)
"""


def run(setting):
    environment = {**os.environ, crash_points.VARIABLE: setting}
    return subprocess.run([sys.executable, "-c", LOOP], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("setting", "passed"), [("snapshot", 0), ("snapshot:1", 0), ("snapshot:4", 3)])
def test_the_process_is_killed_at_the_passing_that_was_armed(setting, passed):
    ended = run(setting)
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout.split() == ["True", "False", *map(str, range(passed))]


@pytest.mark.parametrize("setting", ["", "snapshot:6"])
def test_a_point_that_is_not_reached_kills_nobody(setting):
    ended = run(setting)
    assert ended.returncode == 0
    assert ended.stdout.split()[2:] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("setting", ["nowhere", "append:0", "append:", "append:-1", "append:two", ":2"])
def test_a_setting_that_names_no_point_is_refused(setting):
    ended = run(setting)
    assert ended.returncode == 1
    assert f"RANKWATCH_CRASH_AT={setting!r} names no crash point: use name or name:count" in ended.stderr

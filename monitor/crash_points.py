"""Let a test kill the process at a named point, to show that nothing is lost or counted twice there.

``RANKWATCH_CRASH_AT=name`` or ``name:count`` in the environment kills the process with SIGKILL when it passes that point
for the first or the count-th time. Without the variable a point costs one dictionary lookup.
"""

import os
import signal
from itertools import count

VARIABLE = "RANKWATCH_CRASH_AT"
POINTS = ("append", "append-torn", "before-script", "after-script", "before-relay", "snapshot", "import", "check")


def _armed() -> dict[str, tuple[int, "count[int]"]]:
    setting = os.environ.get(VARIABLE, "")
    if not setting:
        return {}
    name, _, number = setting.partition(":")
    if name not in POINTS or (":" in setting and not (number.isdecimal() and int(number) > 0)):
        rule = f"use name or name:count with a count of at least 1 and a name of {', '.join(POINTS)}"
        raise ValueError(f"{VARIABLE}={setting!r} names no crash point: {rule}")
    return {name: (int(number or 1), count(1))}


_points = _armed()


def armed(name: str) -> bool:
    """Return whether the point `name` is set to kill the process; does not count as passing it."""
    return name in _points


def crash_point(name: str) -> None:
    """Kill this process without cleanup if the point `name` is set and has now been passed often enough."""
    point = _points.get(name)
    if point is not None and next(point[1]) == point[0]:
        os.kill(os.getpid(), signal.SIGKILL)

"""Named points at which a test may kill the process, to show that nothing is lost or counted twice there.

``RANKWATCH_CRASH_AT=name`` or ``name:count`` in the environment ends the process with SIGKILL at the first, or the
count-th, passing of that point. Without the variable a point costs one dictionary lookup.
"""

import os
import signal
from itertools import count

VARIABLE = "RANKWATCH_CRASH_AT"
POINTS = ("append", "append-torn", "before-script", "after-script", "before-relay", "snapshot", "import")


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
    """Whether the next passing of the point `name` kills the process; counts as no passing."""
    return name in _points


def crash_point(name: str) -> None:
    """Kill this process, with no chance to clean up, if `name` is armed and this is the passing it was armed for."""
    point = _points.get(name)
    if point is not None and next(point[1]) == point[0]:
        os.kill(os.getpid(), signal.SIGKILL)

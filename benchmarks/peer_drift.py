"""Name the runs at which river's detectors call a drift: ``PYTHON benchmarks/peer_drift.py FILE``.

Run by the Python of an environment with river. FILE is an array of streams, runs and items, saved by numpy. Each detector has its defaults
and starts again after an alarm. It reads the items of all runs in turn, or the mean of each run; a rise is not counted. Prints,
for each detector, the runs of each stream.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from river.drift import ADWIN, PageHinkley

DETECTORS = {"ADWIN": ADWIN, "Page-Hinkley": lambda: PageHinkley(mode="down")}


def alarms(detector: Any, values: Sequence[float]) -> list[int]:  # noqa: ANN401 - river's detectors have no common type
    """Return at which values a detector calls a fall."""
    found: list[int] = []
    before: list[float] = []
    for place, value in enumerate(values):
        detector.update(value)
        before.append(value)
        if detector.drift_detected:
            if isinstance(detector, PageHinkley) or detector.estimation < np.mean(before):
                found.append(place)
            before = []
    return found


def main() -> None:
    """Print the runs."""
    streams = np.load(sys.argv[1])
    size = streams.shape[2]
    called = {}
    for name, made in DETECTORS.items():
        called[f"{name}, items in turn"] = [
            sorted({place // size for place in alarms(made(), each.ravel().tolist())}) for each in streams
        ]
        called[f"{name}, means of runs"] = [alarms(made(), each.mean(1).tolist()) for each in streams]
    print(json.dumps(called))


if __name__ == "__main__":
    main()

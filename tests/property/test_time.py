"""No clock enters a statistic: whatever the times of events say, and whatever this machine's clock does, the verdicts are the same."""

import random
import time

import pytest

from tests.commands import events
from tests.fold_log import FoldLog, counts_of

TIMES = {
    "none": lambda k: None,
    "in order": lambda k: f"2026-01-01T00:00:{k % 60:02d}Z",
    "backwards": lambda k: f"2026-01-01T00:00:{59 - k % 60:02d}Z",
    "the ends of time": lambda k: ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"][k % 2],
    "all at once": lambda k: "1970-01-01T00:00:00-12:00",
}
RECORDS = events(random.Random(61), {"alpha": 0.9, "bravo": 0.4}, 60)


def folded(at):
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(*({**event, "timestamp": at(k)} for k, event in enumerate(RECORDS)))
    changes = {key: (c.after, c.evidence.n, c.evidence.b, c.evidence.c) for key, c in log.changes.items()}
    return counts_of(log.bench, "alpha", "bravo"), changes, log.bench.counters


@pytest.mark.fault("processes", "times of events from year 1 to 9999, in any order", "the same verdicts")
@pytest.mark.parametrize("when", TIMES)
def test_times_of_events_enter_nothing(when):
    plain = folded(TIMES["none"])
    assert plain[1]
    assert folded(TIMES[when]) == plain


@pytest.mark.fault("processes", "the clock steps", "the same verdicts")
def test_a_clock_that_steps_changes_nothing(monkeypatch):
    plain = folded(TIMES["none"])
    for name in ("time", "time_ns", "monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, lambda: -1e9)
    assert folded(TIMES["none"]) == plain

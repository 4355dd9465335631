"""Record when commits happened, by the wall clock; only metrics use it."""

from dataclasses import dataclass, field

from monitor.engine.state.changes import Delta


@dataclass
class CommitTimes:
    """Seconds since 1970 of the commits of one benchmark."""

    last: float = 0.0  # the last commit that changed the benchmark; 0 if none is recorded
    # the commit of each verdict change, by field of the table of latches
    changes: dict[str, float] = field(default_factory=dict)


def record_commit(times: dict[str, CommitTimes], delta: Delta, at: float) -> None:
    """Record the time of a commit in every benchmark it changed; a verdict change keeps its first time."""
    for deleted in delta.deleted:
        times.pop(deleted.name, None)
    for changed in delta.benchmarks:
        benchmark = times.setdefault(changed.name, CommitTimes())
        benchmark.last = at
        for name in changed.changes:
            benchmark.changes.setdefault(name, at)

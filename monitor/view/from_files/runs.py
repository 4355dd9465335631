"""Runs of a newer epoch, which may inherit from an older one."""

from collections.abc import Mapping

from monitor.engine.state.benchmark import Benchmark
from monitor.view.board import BoardView
from schemas.records.events import Ended


def newer_runs(benchmarks: Mapping[str, Benchmark]) -> list[Ended]:
    """Return the end of each run that replaces an older epoch, with the epoch before as its base; older runs first."""
    return [
        Ended(ended=name, model=model, epoch=epoch, base=base)
        for name, benchmark in benchmarks.items()
        for model, epoch in sorted(benchmark.contestants, key=lambda contestant: contestant.epoch)
        if (base := epoch_before(benchmark, model, epoch)) is not None
    ]


def epoch_before(benchmark: Benchmark | BoardView, model: str, epoch: int) -> int | None:
    """Return the newest epoch of a model that is older than one, or None."""
    known = (benchmark.contestants[k].epoch for k in benchmark.epochs.get(model, ()))
    return max((each for each in known if each < epoch), default=None)

"""Find the runs that end: those whose scores files hold, and those that inherit from an older epoch."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from monitor.engine.state.benchmark import Benchmark
from monitor.files.epochs import Epochs
from monitor.files.streams.read import read_files
from monitor.files.streams.stream import OpenStream, open_stream
from schemas.records.battles import models_of
from schemas.records.events import Ended


def ends_of_runs(
    files: Sequence[Path], opener: OpenStream = open_stream, epochs: Epochs | None = None, *, inherit: bool = False
) -> list[Ended]:
    """Return the end of each run whose scores files hold, in the order of their first events.

    Parameters
    ----------
    files : sequence of Path
    opener : callable
        Opens a file: `Importer.open` for logs of any format.
    epochs : Epochs, optional
        What gives these events an epoch where they carry none.
    inherit : bool
        Whether runs of a newer epoch inherit from the epoch before.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    runs: dict[tuple[str, str, int], None] = {}
    segments = read_files(files, opener=opener)
    for segment in segments if epochs is None else map(epochs, segments):
        runs |= dict.fromkeys(
            (event.benchmark, model, event.epoch) for event in segment.events for model in models_of(event)
        )
    return [
        Ended(ended=name, model=model, epoch=epoch or None, base=epoch - 1 if epoch and inherit else None)
        for name, model, epoch in runs
    ]


def newer_runs(benchmarks: Mapping[str, Benchmark]) -> list[Ended]:
    """Return the end of each run that replaces an older epoch, with the epoch before as its base; older runs first."""
    return [
        Ended(ended=name, model=model, epoch=epoch, base=base)
        for name, benchmark in benchmarks.items()
        for model, epoch in sorted(benchmark.contestants, key=lambda contestant: contestant.epoch)
        if (base := epoch_before(benchmark, model, epoch)) is not None
    ]


def epoch_before(benchmark: Benchmark, model: str, epoch: int) -> int | None:
    """Return the newest epoch of a model that is older than one, or None."""
    known = (benchmark.contestants[k].epoch for k in benchmark.epochs.get(model, ()))
    return max((each for each in known if each < epoch), default=None)

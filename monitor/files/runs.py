"""Find the runs that end: those whose scores files hold, and those that inherit from an older epoch."""

from collections.abc import Sequence
from pathlib import Path

from monitor.files.epochs import Epochs
from monitor.files.streams.read import read_files
from monitor.files.streams.stream import OpenStream, open_stream
from schemas.records.battles import models_of
from schemas.records.events import Ended


def ends_of_runs(
    files: Sequence[Path], opener: OpenStream = open_stream, epochs: Epochs | None = None, *, inherit: bool = False
) -> list[Ended]:
    """Return the end of each run whose scores files hold, in the order of their first events."""
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

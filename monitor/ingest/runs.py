"""Find the runs whose scores files hold."""

from collections.abc import Sequence
from pathlib import Path

from monitor.ingest.epochs import Epochs
from monitor.ingest.files.read import read_files
from monitor.ingest.files.streams import OpenStream, open_stream
from schemas.events import Ended


def ends_of_runs(files: Sequence[Path], opener: OpenStream = open_stream, epochs: Epochs | None = None) -> list[Ended]:
    """Return the end of each run whose scores files hold, in the order of their first events.

    Parameters
    ----------
    files : sequence of Path
    opener : callable
        Opens a file: `Importer.open` for logs of any format.
    epochs : Epochs, optional
        What gave these events an epoch where they carry none.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    runs: dict[tuple[str, str, int], None] = {}
    for segment in read_files(files, opener=opener):
        runs |= dict.fromkeys((event.benchmark, event.model, event.epoch) for event in segment.events)
    if epochs is not None:
        runs = dict.fromkeys((name, model, epoch or epochs.of(name, model)) for name, model, epoch in runs)
    return [Ended(ended=name, model=model, epoch=epoch or None) for name, model, epoch in runs]

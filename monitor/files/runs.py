"""Find the runs that end, whose scores files hold, and the benchmarks of files that break off: their end is not the end of a run."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from monitor.files.epochs import Epochs
from monitor.files.streams.encodings import OpenStream, open_stream
from monitor.files.streams.paths import show
from monitor.files.streams.read import read_files
from schemas.records.declaration import Spec
from schemas.records.events import Ended, models_of


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


def not_whole(declared: Mapping[str, Spec]) -> dict[str, str]:
    """Return the benchmarks whose scores are an export of files that were not read whole, each with the clause for a report."""
    clause = "the scores are an export of results that were not read whole"
    return {name: clause for name, spec in declared.items() if spec.provenance.not_whole}


def incomplete_benchmarks(
    incomplete: Mapping[Path, str], benchmarks: Iterable[str], opener: OpenStream = open_stream
) -> dict[str, str]:
    """Return the benchmarks with results in files that break off, each with a clause that names the first such file."""
    every, clauses = list(benchmarks), dict[str, str]()
    for path, missing in incomplete.items():
        read = {event.benchmark for segment in read_files([path], opener=opener) for event in segment.events}
        for name in read or every:
            clauses.setdefault(name, f"{show(path)} is incomplete ({missing})")
    return clauses

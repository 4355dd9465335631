"""The epoch that `--epoch` gives to events that carry none."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from monitor.cli.shared.errors import USAGE, stop
from monitor.engine.state.benchmark import Benchmark
from monitor.ingest.epochs import NEXT, Epochs
from monitor.ingest.files.paths import origin
from monitor.ingest.importer import Importer
from schemas.events import MAX_INDEX


def parse_epoch(text: str | None) -> int | str | None:
    """Return a number or "next"; anything else ends the command."""
    if text is None or text == NEXT:
        return text
    if not text.isdecimal() or int(text) > MAX_INDEX:
        stop(f"--epoch {text}: use a whole number from 0 to {MAX_INDEX}, or next", USAGE)
    return int(text)


def by_path(epoch: int | str, importer: Importer, paths: Sequence[str]) -> tuple[list[Path], Epochs]:
    """Return the files of paths in the order of the paths, and the epochs that make each path a generation."""
    place: dict[str, int] = {}
    files: list[Path] = []
    for number, path in enumerate(paths):
        fresh = [file for file in importer.find([path]) if origin(file) not in place]
        files += fresh
        place |= dict.fromkeys(map(origin, fresh), number)
    return files, Epochs(epoch, group=place.get)


def after_state(epoch: int | str | None, benchmarks: Mapping[str, Benchmark]) -> Epochs | None:
    """Return the epochs of files whose scores come after a state, as it is now."""
    if epoch is None:
        return None
    newest = {
        name: benchmark.latest_epoch
        | {alias: benchmark.latest_epoch.get(model, 0) for alias, model in benchmark.spec.aliases.items()}
        for name, benchmark in benchmarks.items()
    }
    return Epochs(epoch, newest=lambda benchmark: newest.get(benchmark, {}))

"""The epoch that `--epoch` gives to events that carry none, and what `--inherit` keeps of the epoch before."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from monitor.cli.shared.errors import USAGE, note, stop
from monitor.files.epochs import NEXT, EpochRecord, Epochs
from monitor.files.importer import Importer
from monitor.files.streams.paths import origin, show
from monitor.view.board import BoardView
from monitor.words.counts import counted
from schemas.records.events import Ended
from schemas.records.names import MAX_INDEX


def parse_epoch(text: str | None, *, inherit: bool) -> int | str | None:
    """Return a number or "next"; anything else ends the command, as does `--inherit` without an epoch."""
    if inherit and text is None:
        stop("--inherit: give the epoch of the new scores with --epoch N or --epoch next", USAGE)
    if text is None or text == NEXT:
        return text
    if not text.isdecimal() or int(text) > MAX_INDEX:
        stop(f"--epoch {text}: use a whole number from 0 to {MAX_INDEX}, or next", USAGE)
    return int(text)


def by_path(
    epoch: int | str, importer: Importer, paths: Sequence[str], aliases: Mapping[str, str]
) -> tuple[list[Path], Epochs]:
    """Return the files of paths in the order of the paths, and the epochs that make each path a generation."""
    place: dict[str, int] = {}
    files: list[Path] = []
    for number, path in enumerate(paths):
        fresh = [file for file in importer.find([path]) if origin(file) not in place]
        files += fresh
        place |= dict.fromkeys(map(origin, fresh), number)
    return files, Epochs(epoch, group=lambda file: place[file], aliases=aliases)


def after_state(epoch: int | str | None, benchmarks: Mapping[str, BoardView], record: EpochRecord) -> Epochs:
    """Return the epochs of files whose scores come after a state, as it is now."""
    newest = {
        name: dict(benchmark.latest_epoch)
        | {alias: benchmark.latest_epoch.get(model, 0) for alias, model in benchmark.spec.aliases.items()}
        for name, benchmark in benchmarks.items()
    }
    return Epochs(epoch, newest=lambda benchmark: newest.get(benchmark, {}), record=record)


def note_read_before(epoch: int | str | None, files: Iterable[Path]) -> None:
    """Print which files have the epoch of the command already, and why nothing of them is read again."""
    names = list(map(show, files))
    if epoch is None or not names:
        return
    others = len(names) - 1
    which, verb, them = (
        (f"{names[0]} and {counted(others, 'more file')}", "were", "them") if others else (names[0], "was", "it")
    )
    note(
        f"{which} {verb} read with --epoch {epoch} before, and nothing new was read; to read {them} again, give a newer number "
        "(--epoch N)"
    )


def inherited(ends: Iterable[Ended]) -> str:
    """Return a clause with how many of these runs inherit; empty where none does."""
    count = sum(end.base is not None for end in ends)
    keep = "keeps" if count == 1 else "keep"
    return f"; {count:,} of them {keep} the scores of the epoch before where there is no new one" if count else ""

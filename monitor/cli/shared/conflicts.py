"""The file that `--conflicts` writes."""

from collections.abc import Iterable
from pathlib import Path

from monitor.cli.shared.errors import USAGE, file_error, note, stop
from monitor.render.conflicts import SUFFIXES, write_conflicts
from monitor.view.board import BoardView


def check_conflicts_file(path: Path | None) -> None:
    """End the command if the suffix of a file names no format, or its folder does not exist."""
    if path is None:
        return
    if path.suffix.lower() not in SUFFIXES:
        stop(f"--conflicts {path}: use a file name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}", USAGE)
    if not path.absolute().parent.is_dir():
        stop(f"--conflicts {path}: {path.parent} is not a folder; create it, or choose another one", USAGE)


def save_conflicts(boards: Iterable[BoardView], path: Path | None) -> None:
    """Write the conflicts of all benchmarks, if a file was given; report how many."""
    if path is None:
        return
    try:
        written, total = write_conflicts(boards, path)
    except OSError as error:
        stop(file_error(error, path))
    rest = "" if written == total else f" of {total:,}; only the first 10,000 of a benchmark are kept"
    note(f"{path}: {written:,} conflicts written{rest}")

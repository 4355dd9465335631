"""The boards of an export, and the folder that they are written to."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from monitor.cli.shared.errors import writing
from monitor.cli.shared.options import Pairs
from monitor.cli.shared.settings import read_settings
from monitor.render.board.exporters import MANIFEST, is_inside
from monitor.render.board.standings import Board, board_of
from monitor.view.board import BoardView
from monitor.view.build import report_views


def boards_of(boards: Mapping[str, BoardView], pairs: Pairs) -> Iterator[Board]:
    """Return the boards of complete files."""
    low_coverage = read_settings().low_coverage
    several = len(boards) > 1
    for view in report_views(boards, pairs=pairs.value, assert_complete=True):
        yield board_of(view, low_coverage, several=several)


def earlier_files(folder: Path) -> list[str] | None:
    """Return the files of an earlier export in a folder, none if it is empty or missing; None if it holds anything else."""
    if not folder.exists() or not any(folder.iterdir()):
        return []
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    inside = isinstance(files, list) and all(isinstance(name, str) and is_inside(name) for name in files)
    return files if inside else None


def write_files(folder: Path, earlier: Sequence[str], files: Mapping[str, str]) -> int:
    """Write the files and a list of them, delete those of an earlier export that are gone, and return how many there are."""
    _write(folder / MANIFEST, _listed({*earlier, *files}))  # an export that breaks off is one, too
    for name, text in files.items():
        _write(folder / name, text)
    for name in set(earlier) - files.keys() - {MANIFEST}:
        (folder / name).unlink(missing_ok=True)
    _write(folder / MANIFEST, _listed(files))
    return len(files) + 1


def _listed(names: Iterable[str]) -> str:
    return json.dumps({"files": sorted(names)}, indent=1) + "\n"


def _write(path: Path, text: str) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")

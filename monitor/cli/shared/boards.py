"""The boards of an export, and the folder that they are written to."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from monitor.cli.shared.options import Pairs
from monitor.cli.shared.settings import read_settings
from monitor.engine.partition import Partition
from monitor.render.board.site import MANIFEST, Board, site
from monitor.render.board.standings import standings
from monitor.render.document import ReportDocument
from monitor.render.flags import named_flags
from monitor.report.build import report_views
from monitor.report.evidence_path import chart_data
from monitor.report.tie_bands import tie_bands, tied_with


def boards_of(partitions: Iterable[Partition], pairs: Pairs) -> Iterator[Board]:
    """Return the boards of complete files."""
    low_coverage = read_settings().low_coverage
    for view in report_views(partitions, pairs=pairs.value, assert_complete=True):
        report = named_flags(view.report)
        places = standings(report, tied_with(view.table), tie_bands(view.table, low_coverage))
        yield Board(ReportDocument(report, chart_data(view.table), low_coverage), places)


def earlier_files(folder: Path) -> list[str] | None:
    """Return the files of an earlier export in a folder, none if it is empty or missing; None if it holds anything else."""
    if not folder.exists() or not any(folder.iterdir()):
        return []
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    inside = isinstance(files, list) and all(isinstance(name, str) and _is_inside(name) for name in files)
    return files if inside else None


def _is_inside(name: str) -> bool:
    parts = Path(name).parts
    return bool(parts) and not Path(name).is_absolute() and ".." not in parts


def write_site(folder: Path, earlier: Sequence[str], boards: Iterable[Board]) -> int:
    """Write the files, delete those of an earlier export that are gone, and return how many there are."""
    files = site(boards)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for name in set(earlier) - files.keys() - {MANIFEST}:
        (folder / name).unlink(missing_ok=True)
    return len(files)

"""The contract of an exporter: what every one keeps, ours and those of packages. Call `check_exporter` in a test of yours."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from monitor.render.board.exporters import Context, Exporter, ExportError, export_files
from monitor.render.board.standings import Board, board_of
from monitor.view.build import report_views
from monitor.view.from_files.fold import boards_of_records

_LOW_COVERAGE: Final = 0.9
_NAMES: Final = (
    "plain",
    "org/name",
    "Org/Name",
    "../../etc/passwd",
    "<img src=x onerror=alert(1)>",
    "a\"b'c",
    "=1+1",
    "a: b # c",
    "- x",
    "模型 é",
    "x" * 200,
)
"""Names of models that mean something to a file system, to HTML, to a spreadsheet, or to YAML."""


def made_boards(*, complete: bool = True) -> Iterator[Board]:
    """Return boards as results may give them: ties, names of any kind, graded scores, a model without a score, one model, and battles."""
    right = [9, 8, 8, 5, 5, 4, 4, 3, 2, 1, 0]
    events: list[dict[str, Any]] = [
        {"benchmark": "ties & <names>", "item_id": str(k), "model": name, "score": int(k % 10 < limit)}
        for k in range(120)
        for name, limit in zip(_NAMES, right, strict=True)
    ]
    events += [
        {"benchmark": "graded", "item_id": str(k), "model": m, "score": k % 5 / 4} for k in range(9) for m in "ab"
    ]
    events += [{"benchmark": "graded", "item_id": "0", "model": "never scored", "score": None}]
    events += [{"benchmark": "Graded", "item_id": "1", "model": "only", "score": 1}]
    battle = {"benchmark": "battles", "model_a": "a", "model_b": "b"}
    events += [{**battle, "item_id": str(k), "winner": "a" if k % 3 else "tie"} for k in range(30)]
    records = [json.dumps(event).encode() for event in events]
    for view in report_views(boards_of_records(records), pairs="all", assert_complete=complete):
        yield board_of(view, _LOW_COVERAGE)


def check_exporter(exporter: Exporter, context: Context | None = None) -> None:
    """Check what an exporter makes of boards of many kinds.

    Parameters
    ----------
    exporter : Exporter
    context : Context, optional
        What the exporter needs, for the benchmarks of `made_boards`.

    Raises
    ------
    AssertionError
        With what the exporter did not keep.
    """
    notes: list[str] = []
    context = replace(context or Context(), note=notes.append)
    boards = list(made_boards())
    files = _files(exporter, boards, context)
    _require(bool(files), "boards with scores give no file")
    _require(files == _files(exporter, boards, context), "the same boards give other files a second time")
    for path, text in files.items():
        _require(bool(text.strip()), f"{path} is empty")
        _require(all(c.isprintable() or c in "\n\t" for c in text), f"{path} has characters that cannot be printed")
        text.encode()
    _require(all(note.isprintable() for note in notes), "a note has characters that cannot be printed")
    _files(exporter, list(made_boards(complete=False)), context)
    for board in boards:
        _files(exporter, [board], context)
    _files(exporter, [], context)


def _files(exporter: Exporter, boards: list[Board], context: Context) -> dict[str, str]:
    try:
        return export_files(exporter, boards, context)
    except ExportError as error:
        raise AssertionError(f"boards are refused: {error}") from error


def _require(kept: bool, problem: str) -> None:  # noqa: FBT001 - a condition
    if not kept:
        raise AssertionError(problem)

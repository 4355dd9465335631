"""Scores of benchmarks as a file: JSON lines, Parquet or Arrow."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from monitor.cli.shared.errors import USAGE, note, stop, writing
from monitor.files.streams.paths import show
from monitor.render.arrow import ArrowError, require_pyarrow
from monitor.render.arrow import write_scores as write_table
from monitor.words.counts import counted

if TYPE_CHECKING:
    from monitor.render.arrow import Form


_TABLES: "Final[dict[str, Form]]" = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow"}
SUFFIXES: Final = frozenset({".jsonl", ".ndjson", *_TABLES})  # names of files of scores


def check_scores_file(path: Path) -> None:
    """End the command if a file cannot be written, or needs what is not installed."""
    if not path.parent.is_dir():
        stop(
            f"{show(str(path))}: the folder {show(str(path.parent))} does not exist; create it, or choose another file",
            USAGE,
        )
    if path.suffix.lower() in _TABLES:
        try:
            require_pyarrow()
        except ArrowError as error:
            stop(str(error))


def write_scores(parts: Iterable[bytes], path: Path | None) -> None:
    """Write scores to standard output as JSON lines, or to a file in the format of its name; it is replaced once all is written."""
    if path is None:
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        # It holds the questions of an evaluation.
        with writing(path), os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            form = _TABLES.get(path.suffix.lower())
            written = _lines(parts, file) if form is None else _table(parts, file, form)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    note(f"{written} written to {path}")


def _lines(parts: Iterable[bytes], file: BinaryIO) -> str:
    lines = 0
    for part in parts:
        lines += part.count(b"\n")
        file.write(part)
    return f"{lines:,} lines"


def _table(parts: Iterable[bytes], file: BinaryIO, form: "Form") -> str:
    try:
        table = write_table(parts, file, form)
    except ArrowError as error:
        stop(str(error))
    if table.declarations:
        note(
            f"a table has scores only: {counted(table.declarations, 'declaration')} omitted; a file .jsonl has all records"
        )
    return counted(table.rows, "row")

"""From the PATH arguments of a command to files, and from a file in any format to its contents as event lines."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from monitor.ingest.files.paths import SUFFIXES, PathError, find_files, show
from monitor.ingest.files.streams import Stream, open_stream
from monitor.ingest.files.translated import LineStream, WholeStream
from monitor.ingest.formats.choices import Choices
from monitor.ingest.formats.detect import Format, format_of, looks_like_results
from monitor.ingest.formats.log_file import Notes, Reading
from monitor.ingest.formats.runs import Runs

FOUND: Final = (*SUFFIXES, ".eval", ".json", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
"""What a file of results is called inside a folder; one that is named itself may be called anything."""


def named_path(path: str | os.PathLike[str]) -> tuple[str | None, Path]:
    """Split ``NAME=PATH`` into the name of a model and a path; a path that exists as it is written has no name."""
    model, _, rest = os.fspath(path).partition("=")
    return (None, Path(path)) if not rest or Path(path).exists() else (model, Path(rest))


class Importer:
    """Finds files of results and opens them; remembers what has to agree between them.

    Parameters
    ----------
    choices : Choices
    tell : callable, optional
        Takes a sentence on what was chosen or passed over; each is told once.
    """

    def __init__(self, choices: Choices | None = None, tell: Callable[[str], None] | None = None) -> None:
        self.choices = choices or Choices()
        self._notes = Notes(tell)
        self._runs = Runs(self._notes)
        self._models: dict[Path, str] = {}

    def find(self, paths: Sequence[str | os.PathLike[str]], *, strict: bool = True) -> list[Path]:
        """List the files of results that paths stand for, as `find_files` does.

        Parameters
        ----------
        paths : sequence of path
            Files and folders; ``NAME=PATH`` names the model of what is there. One that exists as it is written is taken so.
        strict : bool
            As for `find_files`.

        Raises
        ------
        PathError
            As for `find_files`; and if a file is named in two ways.
        """
        found: set[Path] = set()
        plain: list[str | os.PathLike[str]] = []
        for path in paths:
            model, place = named_path(path)
            if model is None:
                plain.append(path)
                continue
            for file in self._find([place], strict=strict):
                found.add(file)
                if self._models.setdefault(file, model) != model and strict:
                    raise PathError(f"{show(file)} is named {show(self._models[file])} and {show(model)}: name it once")
        return sorted(found | set(self._find(plain, strict=strict)))

    def open(self, path: Path) -> Stream:
        """Open a file as a stream of event lines.

        Raises
        ------
        OSError
            If it cannot be opened.
        """
        reading = Reading(path, self._models.get(path), self.choices, self._runs, self._notes)
        stream = self._open(reading)
        stream.tell = reading.note
        return stream

    def _open(self, reading: Reading) -> Stream:
        match format_of(reading.path):
            case Format.INSPECT:
                from monitor.ingest.formats import inspect_log

                return WholeStream(reading.path, lambda: inspect_log.read(reading))
            case Format.PARQUET:
                from monitor.ingest.formats import parquet

                return WholeStream(reading.path, lambda: parquet.read(reading))
            case Format.TABLE:
                from monitor.ingest.formats.tables import Table

                return LineStream(open_stream(reading.path), lambda header: Table(header, reading))
            case Format.LINES:
                from monitor.ingest.formats.json_lines import choose

                return LineStream(open_stream(reading.path), lambda first: choose(first, reading))

    def _find(self, paths: Sequence[str | os.PathLike[str]], *, strict: bool) -> list[Path]:
        return find_files(paths, strict=strict, suffixes=FOUND, accept=self._accept)

    def _accept(self, file: Path) -> bool:
        """Say whether a file inside a folder is one of results: tables and JSON documents lie about for many reasons."""
        taken = looks_like_results(file, self.choices)
        if not taken and not file.name.startswith("results") and file.stat().st_size:
            self._notes(f"{show(file)} does not look like results, and is passed over: name it to have it read")
        return taken

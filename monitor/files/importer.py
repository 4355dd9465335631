"""Find the files of results that the PATH arguments of a command name, and open each as event lines."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from monitor.files.formats.choices import LOWER, ChoiceError, Choices
from monitor.files.formats.detect import NO_BENCHMARK, Kind, format_of, looks_like_results
from monitor.files.formats.log_file import LogFile, Notices, RunRegistry, Title, titles
from monitor.files.formats.plugins import problems
from monitor.files.formats.registry import COPIES, Format, is_companion
from monitor.files.streams.copies import Copies
from monitor.files.streams.encodings import is_utf16
from monitor.files.streams.paths import (
    ANY_URL,
    SUFFIXES,
    UNREADABLE,
    PathError,
    find_files,
    is_remote,
    named_path,
    show,
)
from monitor.files.streams.regular import Refusal
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import DocumentStream
from schemas.records.text import mask_url, shorten

if TYPE_CHECKING:
    from monitor.files.formats.results import Tool
    from monitor.files.maps.table import FileMap

_KINDS = {
    Kind.INSPECT: "tools.inspect_log",
    Kind.PARQUET: "tables.parquet",
    Kind.TABLE: "tables.tables",
    Kind.ROWS: "tables.row_document",
    Kind.FOREIGN: "formats.foreign",
    Kind.LINES: "tables.json_lines",
}


def open_format(kind: Kind | Format, log: LogFile) -> Stream:
    """Open a file as a stream of event lines."""
    if isinstance(kind, Kind):
        stream: Stream = import_module(f"monitor.files.{_KINDS[kind]}").open_log(log)
        return stream
    if kind.refusal is not None:
        return DocumentStream(log.path, _refusing(Refusal("file", f"a file of {kind.name}", kind.refusal)))
    from monitor.files.formats.result_writer import open_tool  # noqa: PLC0415 - start-up: most files are events

    return open_tool(load_tool(kind), log, plugin=kind.name if kind.tool is not None else None)


def open_mapped(maps: "Sequence[FileMap]", log: LogFile) -> Stream:
    """Open a file as a stream of event lines, under the mappings that match it."""
    from monitor.files.formats.result_writer import open_tool  # noqa: PLC0415
    from monitor.files.maps.mapped import mapped_tool  # noqa: PLC0415 - start-up: few files have a mapping

    return open_tool(mapped_tool(maps, log.path), log)


def load_tool(kind: Format) -> "Tool":
    """Return the tool of a format that is read."""
    if kind.tool is not None:
        tool: Tool = kind.tool
        return tool
    loaded: Tool = getattr(import_module(f"monitor.files.tools.{kind.module}"), kind.attribute)
    return loaded


def _refusing(refusal: Refusal):  # type: ignore[no-untyped-def]  # noqa: ANN202
    def read():  # type: ignore[no-untyped-def]  # noqa: ANN202
        raise refusal
        yield b""

    return read


if TYPE_CHECKING:
    from monitor.files.maps.table import FileMap
    from schemas.records.reading import Reading
    from schemas.records.text import Found

MAP_FILE: Final = "rankwatch.toml"  # the file next to results with mappings (and declarations)

RESULT_SUFFIXES: Final = (*SUFFIXES, ".eval", ".json", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".xlsx", ".parquet")
"""How the names of results in a folder end; a file given as a PATH may have any name."""

_FEW: Final = 2


def show_argument(path: str) -> str:
    """Return a PATH argument as a message may repeat it: a URL without its secrets."""
    return mask_url(path) if is_remote(named_path(path)[1]) else path


class Importer:
    """Finds files of results and opens them; checks that they can be compared."""

    def __init__(
        self, choices: Choices | None = None, report: Callable[[str], None] | None = None, *, runs: bool = False
    ) -> None:
        self._runs_of_models = runs  # each file is a run of some model: its path is no model
        self.choices = choices or Choices()
        self._notices = Notices(report)
        self._runs = RunRegistry(self._notices)
        self._models: dict[Path, str] = {}
        self._copies = Copies()
        self._titles: Mapping[Path, Title] = {}  # what the paths of the files that were named give
        self._folders: set[Path] = set()
        self._nameless: set[Path] = set()  # files of folders that lack a name for their benchmark
        self._skipped: set[Path] = set()  # paths that are not read
        self._alike: dict[Path, Title] = {}  # what the paths of those that are read give
        self._maps: dict[Path, list[FileMap]] = {}
        self._given = self._read_maps(Path(self.choices.map)) if self.choices.map is not None else []

    def find(self, paths: Sequence[str | os.PathLike[str]], *, strict: bool = True) -> list[Path]:
        """List the files of results that paths name, in their order, as `find_files` does."""
        files: dict[Path, None] = {}
        plain: set[tuple[int, int]] = set()
        named: list[Path] = []
        for path in paths:
            model, place = named_path(path)
            if ANY_URL.match(place) and not is_remote(place) and not Path(place).exists():
                scheme = place.partition(":")[0]
                raise PathError(
                    f"{mask_url(place)}: {scheme}:// is not read; use http:// or https://, or the path of a file"
                )
            if is_remote(place):
                place = str(self._copies.file(place))
            if Path(place).is_dir():
                self._folders.add(Path(place).resolve())
            found = self._found(place, strict=strict, listed=plain if model is None else set())
            files |= dict.fromkeys(found)
            for file in found:
                self._maps_of(file)  # a mapping that is not valid ends the command here
            if model is not None:
                self._name(found, model, strict=strict)
            if not Path(place).is_dir():
                named += found
        self._titles = titles(named, models=not self._runs_of_models) if len(paths) == len(named) else {}
        self._titles = {**self._alike, **self._titles}
        return list(files)

    def _found(self, place: str, *, strict: bool, listed: set[tuple[int, int]]) -> list[Path]:
        """Find the files of a place; those without a name for their benchmark have its, if a folder holds several, and no other results."""
        seen = {*listed}
        found = self._find(place, strict=strict, listed=seen)
        nameless = {file for file in found if file in self._nameless and file not in self._alike}
        if nameless and (len(nameless) < _FEW or not {*found} <= nameless | self._alike.keys()):
            self._skipped |= nameless
            return self._find(place, strict=strict, listed=listed)
        for folder in {file.parent for file in nameless}:
            alike = sorted(each for each in nameless if each.parent == folder)
            self._alike |= titles(alike, models=not self._runs_of_models)
        listed |= seen
        return found

    def _name(self, files: Iterable[Path], model: str, *, strict: bool) -> None:
        for file in files:
            if self._models.setdefault(file, model) != model and strict:
                raise PathError(f"{show(file)} is named {show(self._models[file])} and {show(model)}; name it once")

    def open(self, path: Path) -> Stream:
        """Open a file as a stream of event lines."""
        log = LogFile(path, self._models.get(path), self.choices, self._runs, self._notices, self._titles.get(path))
        maps = self._maps_of(path)
        for problem in problems():
            self._notices(problem)
        stream = open_mapped(maps, log) if maps else open_format(format_of(path, own=bool(self.choices.columns)), log)
        stream.note = log.note
        if not stream.whole and is_utf16(path):
            log.note("the text is UTF-16 and is read as UTF-8")
        return stream

    @property
    def chooses_scores(self) -> bool:
        """Whether options or mappings choose which of several scores of an item is read."""
        return self.choices.choose_scores or bool(self._given) or any(self._maps.values())

    def describe(self, readings: Mapping[str, "Reading"]) -> None:
        """Add to what is known of the files of benchmarks what the files that were read show of them."""
        for name, reading in readings.items():
            self._runs.describe(name, reading)

    def resume(self, chosen: Mapping[str, Mapping[str, str]]) -> None:
        """Read files by the metric, filter, scorer or judge that an earlier command has read others of the benchmark by."""
        self._runs.chosen |= {name: dict(each) for name, each in chosen.items()}

    def keep_direction(self, benchmarks: Iterable[str]) -> None:
        """Keep the direction of each benchmark's score column; refuse a column or direction that earlier results contradict."""
        column = f"score={self.choices.columns.get('score', 'score')}{LOWER if self.choices.lower else ''}"
        for name in benchmarks:
            if self.choices.lower or "columns" in self.chosen.get(name, {}):
                known = self._runs.chosen.setdefault(name, {}).setdefault("columns", column)
                if known != column:
                    raise ChoiceError(
                        f"{shorten(name)}: its earlier results were read with --columns {shorten(known)}, where less is better; add "
                        "it, or send these results under another --benchmark"
                    )

    @property
    def chosen(self) -> Mapping[str, dict[str, str]]:
        """By which metric, filter, scorer or judge the files of each benchmark are read."""
        return self._runs.chosen

    def take_news(self, path: Path) -> "Found | None":
        """Return what the files have shown of benchmarks since the last call; `path` was read last. None if nothing."""
        return self._runs.take_news(path)

    def _maps_of(self, path: Path) -> list["FileMap"]:
        """Return the mappings of a file: of the option, else those next to it, else those in the folder that was given."""
        maps = [each for each in self._given if each.matches(path)]
        folders = [path.parent, *(folder for folder in sorted(self._folders) if folder in path.parents)]
        for folder in folders if not maps else ():
            beside = folder / MAP_FILE
            if beside not in self._maps:
                self._maps[beside] = self._read_beside(beside)
            maps = [each for each in self._maps[beside] if each.matches(path)]
            if maps:
                self._notices.kind(path, f"read by {maps[0].where}")
                break
        return maps

    def _read_beside(self, file: Path) -> list["FileMap"]:
        try:
            return self._read_maps(file, found=True) if os.path.lexists(file) and not file.is_dir() else []
        except ChoiceError as error:
            raise PathError(str(error)) from None

    @staticmethod
    def _read_maps(file: Path, *, found: bool = False) -> list["FileMap"]:
        from monitor.files.maps.table import read_mappings  # noqa: PLC0415 - start-up: few files have a mapping

        return read_mappings(file, found=found)

    def _find(self, place: str, *, strict: bool, listed: set[tuple[int, int]]) -> list[Path]:
        return find_files(
            [place],
            strict=strict,
            listed=listed,
            suffixes=RESULT_SUFFIXES,
            accept=self._accept,
            follow=self.choices.follow_symlinks,
            note=self._notices,
        )

    def _accept(self, file: Path) -> bool:
        """Return whether a file in a folder holds results: folders hold other tables and JSON documents too."""
        if self._maps_of(file):
            return True
        original = COPIES.get(file.name)
        if original is not None and file.with_name(original).exists():
            self._notices.kind(file, f"the file is skipped: it repeats {original}")
            return False
        accepted = looks_like_results(file, self.choices)
        if accepted is None:
            self._nameless.add(file.resolve())
            if file.resolve() not in self._skipped:
                return True
            accepted = NO_BENCHMARK
        if isinstance(accepted, str):
            if not is_companion(file):
                self._notices.kind(file, f"the file is skipped: {accepted}")
            return False
        if not accepted and not is_companion(file) and file.stat().st_size:
            readable = os.access(file, os.R_OK)
            reason = "does not look like results; give its path to read it" if readable else UNREADABLE
            self._notices(f"{show(file)} is skipped: it {reason}")
        return accepted

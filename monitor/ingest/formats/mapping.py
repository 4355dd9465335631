"""Read files of any shape by a mapping: tables ``[[map]]`` in a `rankwatch.toml` next to the results, or in the file of ``--map``.

    [[map]]
    files = "*.json"
    records = "performances.*"
    item_id = "sample_id"
    model = "model"
    score = "Pass@1"
    scale = 100
    benchmark = { value = "livecodebench" }

`records` leads from the document to its records: names with dots, `*` for every element or field, `{model}` for every field whose name
is the model (or another field of an event). Paths of the other fields begin at the record; `.` is the record itself, `../` what holds it.
"""

import csv
import io
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from monitor.ingest.files.event_lines import Refusal
from monitor.ingest.files.paths import show
from monitor.ingest.formats.choices import FIELDS, ChoiceError
from monitor.ingest.formats.documents import decode_document, read_bytes
from monitor.ingest.formats.log_file import LogFile
from monitor.ingest.formats.parquet import open_table
from monitor.ingest.formats.results import Entry, Result, Tool
from schemas.decode import Fault
from schemas.lenient import read_index, read_name, read_score
from schemas.text import shorten

FILE: Final = "rankwatch.toml"
_KEYS: Final = (
    *FIELDS, "files", "records", "models", "scores", "scale", "lower_is_better", "threshold", "items", "others",
)  # fmt: skip
_REQUIRED: Final = ("item_id", "model", "score")
_EVERY: Final = "*"
_CAPTURE: Final = re.compile(r"\{(\w+)\}")
_MOST_ITEMS: Final = 1_000_000
_LONGEST_TEXT: Final = 4_000
"""Longest path of a file that a regular expression is tried on."""

Node = tuple[Any, "Node | None", Mapping[str, str]]
"""A value, what holds it, and the names that were captured on the way to it."""


@dataclass(frozen=True)
class Source:
    """Where a field of an event comes from: a path in the record, a fixed value, or a group of an expression on the file's path."""

    path: tuple[str, ...] | None = None
    up: int = 0
    value: object = None
    expression: re.Pattern[str] | None = None

    @property
    def name(self) -> str:
        """The source, as messages name it."""
        return ".".join(self.path) if self.path else "the record" if self.path is not None else shorten(self.value)

    def read(self, node: Node, file: Path) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of a record, None if it has none."""
        if self.expression is not None:
            match = self.expression.search(file.as_posix()[-_LONGEST_TEXT:])
            return match[1] if match else None
        if self.path is None:
            return self.value
        at: Node | None = node
        for _ in range(self.up):
            at = at[1] if at is not None else None
        value = at[0] if at is not None else None
        for name in self.path:
            value = _inner(value, name)
        return value


def _inner(value: object, name: str) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and len(name) < 10 and int(name) < len(value):
        return value[int(name)]
    return None


@dataclass(frozen=True)
class FileMap:
    """How the files of one kind are read."""

    where: str
    files: str
    records: tuple[str, ...]
    sources: Mapping[str, Source]
    models: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    scale: float = 1.0
    lower_is_better: bool = False
    threshold: float | None = None
    items: Path | None = None
    others: float | None = None

    def matches(self, path: Path) -> bool:
        """Return whether a file is read by this mapping."""
        return path.match(self.files)

    @classmethod
    def parse(cls, table: object, where: str, folder: Path) -> Self:
        """Parse a table; raise `ChoiceError` with what is wrong in it."""
        if not isinstance(table, dict):
            raise ChoiceError(f"{where}: it is not a table; write [[map]]")
        for key in table:
            if key not in _KEYS:
                raise ChoiceError(f"{where}: unknown key '{shorten(key)}'; use {', '.join(_KEYS)}")
        records = _path(table.get("records", ""), where, "records")
        captured = {match[1] for name in records if (match := _CAPTURE.fullmatch(name))}
        if unknown := captured - set(FIELDS):
            raise ChoiceError(
                f"{where}: records: {{{min(unknown)}}} is no field of an event; use one of {', '.join(FIELDS)}"
            )
        sources = {name: _source(table[name], where, name) for name in FIELDS if name in table}
        for name in _REQUIRED:
            if name not in sources and name not in captured:
                raise ChoiceError(f"{where}: {name} is missing; give its path in the record, or {{ value = ... }}")
        scale, lower = _number(table, "scale", where), table.get("lower_is_better", False)
        if scale is not None and not 0 < scale < math.inf:
            raise ChoiceError(f"{where}: scale: use the largest score, above 0")
        if not isinstance(lower, bool):
            raise ChoiceError(f"{where}: lower_is_better: use true or false")
        items, others = _rest(table, where, folder)
        return cls(
            where, _pattern(table, where), records, sources, _names(table, where), _scores(table, where),
            1.0 if scale is None else scale, lower, _number(table, "threshold", where), items, others,
        )  # fmt: skip


def read_mappings(file: Path) -> list[FileMap]:
    """Read the mappings in a file.

    Raises
    ------
    ChoiceError
        If one is not valid, or the file cannot be read.
    """
    try:
        content = tomllib.loads(file.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ChoiceError(
            f"{show(file)}: {error.strerror or error}; give the path of a TOML file with tables [[map]]"
        ) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        raise ChoiceError(f"{show(file)}: the file is not valid TOML; correct it") from None
    tables = content.get("map", [])
    if not isinstance(tables, list):
        raise ChoiceError(f"{show(file)}: map is not a list of tables; write [[map]]")
    return [
        FileMap.parse(table, f"{show(file)}: [[map]] {number}", file.parent) for number, table in enumerate(tables, 1)
    ]


def _path(value: object, where: str, key: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    if isinstance(value, str):
        return tuple(name for name in value.split(".") if name)
    raise ChoiceError(f'{where}: {key}: use a path such as "results.id", or a list of names')


def _source(value: object, where: str, key: str) -> Source:
    if isinstance(value, dict):
        if value.keys() == {"value"}:
            return Source(value=value["value"])
        if value.keys() == {"file"} and isinstance(value["file"], str):
            try:
                expression = re.compile(value["file"])
            except (re.error, RecursionError, OverflowError):
                raise ChoiceError(f"{where}: {key}: the regular expression is not valid; correct it") from None
            if expression.groups < 1:
                raise ChoiceError(f"{where}: {key}: the regular expression needs a group, for example '([^/]+)/[^/]+$'")
            return Source(expression=expression)
        raise ChoiceError(f"{where}: {key}: use a path, {{ value = ... }} or {{ file = 'expression' }}")
    up = 0
    while isinstance(value, str) and value.startswith("../"):
        value, up = value[3:], up + 1
    return Source(_path(value, where, key), up)


def _pattern(table: Mapping[str, Any], where: str) -> str:
    files = table.get("files", _EVERY)
    if isinstance(files, str) and files:
        return files
    raise ChoiceError(f'{where}: files: use a pattern of file names, for example "*.json"')


def _rest(table: Mapping[str, Any], where: str, folder: Path) -> tuple[Path | None, float | None]:
    """Return the list of all items, and the score of those without a record."""
    items, others = table.get("items"), _number(table, "others", where)
    if items is not None and not isinstance(items, str):
        raise ChoiceError(f"{where}: items: use the path of a file with one item a line")
    if (items is None) != (others is None):
        raise ChoiceError(
            f"{where}: items lists all items, and others gives the score of those without a record; use both or none"
        )
    return None if items is None else folder / items, others


def _number(table: Mapping[str, Any], key: str, where: str) -> float | None:
    value = table.get(key)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)):
        return None if value is None else float(value)
    raise ChoiceError(f"{where}: {key}: use a number")


def _names(table: Mapping[str, Any], where: str) -> tuple[str, ...]:
    names = table.get("models", [])
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return tuple(names)
    raise ChoiceError(f'{where}: models: use a list of names, for example ["a", "b"]')


def _scores(table: Mapping[str, Any], where: str) -> dict[str, float]:
    scores = table.get("scores", {})
    if isinstance(scores, dict) and all(
        isinstance(score, int | float) and 0 <= score <= 1 for score in scores.values()
    ):
        return {name: float(score) for name, score in scores.items()}
    raise ChoiceError(f"{where}: scores: use words with scores from 0 to 1, for example {{ pass = 1, fail = 0 }}")


def mapped_tool(mappings: Sequence[FileMap], path: Path) -> Tool:
    """Return the reader of a file under the mappings that match it: line by line if it is JSON lines, else as a whole."""
    if _is_lines(path) and all(mapping.others is None for mapping in mappings):
        return Tool(_NAME, lines=lambda log: _line_reader(mappings, log), record=object)
    return Tool(_NAME, read=lambda log: _read(mappings, log))


_NAME: Final = "a file that is read by a mapping"
_TABLES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_LINES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


def _is_lines(path: Path) -> bool:
    return path.name.lower().endswith(_LINES)


def _line_reader(mappings: Sequence[FileMap], log: LogFile) -> Any:  # noqa: ANN401 - a callable
    number = 0

    def read(record: object) -> Iterator[Entry]:
        nonlocal number
        number += 1
        for mapping in mappings:
            yield from _entries(mapping, record, log, number)

    return read


def _read(mappings: Sequence[FileMap], log: LogFile) -> Iterator[Entry]:
    for row in read_rows(log.path):
        for mapping in mappings:
            seen: dict[tuple[str, str], set[str]] = {}
            for entry in _entries(mapping, row, log, 1):
                if isinstance(entry, Result) and mapping.others is not None:
                    seen.setdefault((entry.benchmark, entry.model), set()).add(entry.item)
                yield entry
            if mapping.items is not None:
                yield from _others(mapping, row, log, seen)


def read_rows(path: Path) -> list[Any]:
    """Return a document, the rows of a table as one array, or the records of JSON lines as one."""
    name = path.name.lower()
    if name.endswith(".parquet"):
        with open_table(path) as table:
            return [table.read().to_pylist()]
    data = read_bytes(path)
    if name.endswith(_TABLES):
        try:
            text = data.decode("utf-8")
            separator = "\t" if ".tsv" in name else max(",;\t", key=text.partition("\n")[0].count)
            return [list(csv.DictReader(io.StringIO(text), delimiter=separator))]
        except (UnicodeDecodeError, csv.Error) as error:
            raise Refusal("file", "a table", "the table is not valid CSV in UTF-8; write it again") from error
    if name.endswith(_LINES):
        return [[decode_document(line, object, _NAME) for line in data.splitlines() if line.strip()]]
    return [decode_document(data, object, _NAME)]


def _records(mapping: FileMap, root: object) -> Iterator[Node]:
    """Return the records of a document, with the names that were captured; a table and JSON lines begin at a row."""
    start: list[Node] = [(root, None, {})]
    if isinstance(root, list) and (not mapping.records or not _leads_into_list(mapping.records[0])):
        start = [(row, (root, None, {}), {}) for row in root]
    for name in mapping.records:
        start = [inner for node in start for inner in _step(mapping, node, name)]
    yield from start


def _leads_into_list(name: str) -> bool:
    return name == _EVERY or name.isdecimal()


def _step(mapping: FileMap, node: Node, name: str) -> list[Node]:
    value, captured = node[0], node[2]
    capture = _CAPTURE.fullmatch(name)
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    if capture:
        wanted = mapping.models if capture[1] == "model" else ()
        return [
            (inner, node, {**captured, capture[1]: str(key)}) for key, inner in pairs if not wanted or key in wanted
        ]
    if name == _EVERY:
        return [(inner, node, captured) for _, inner in pairs]
    inner = _inner(value, name)
    return [] if inner is None else [(inner, node, captured)]


def _entries(mapping: FileMap, root: object, log: LogFile, first: int) -> Iterator[Entry]:
    for number, node in enumerate(_records(mapping, root), first):
        data = {name: source.read(node, log.path) for name, source in mapping.sources.items()}
        data = {**node[2], **data}
        benchmark = read_name(data.get("benchmark")) if "benchmark" in data else log.choices.benchmark
        names = {
            "item_id": read_name(data.get("item_id")),
            "model": read_name(data.get("model")),
            "benchmark": benchmark,
        }
        if log.model is not None and names["model"] is None:
            names["model"] = log.model
        wrong = next((name for name, value in names.items() if not isinstance(value, str)), None)
        repeat, epoch = read_index(data.get("repeat")), read_index(data.get("epoch"))
        if wrong is not None or not isinstance(repeat, int) or not isinstance(epoch, int):
            wrong = wrong or ("epoch" if isinstance(repeat, int) else "repeat")
            yield _missing(mapping, wrong, data.get(wrong))
            continue
        tags = {"cluster": data["cluster"]} if data.get("cluster") is not None else {}
        values = {"score": _score(mapping, data.get("score"))}
        yield Result(
            str(names["benchmark"]), str(names["model"]), str(names["item_id"]), values, repeat, tags, None, number, epoch=epoch
        )  # fmt: skip


def _missing(mapping: FileMap, name: str, value: object) -> Fault:
    source = mapping.sources.get(name)
    if source is None:
        return Fault(name, "nothing", f"the mapping has no {name}; add it to {mapping.where}, or use --benchmark NAME")
    what = (
        "the file's path does not match" if source.expression else f"there is no text or whole number at {source.name}"
    )
    return Fault(name, "nothing" if value is None else shorten(value), f"{what}; correct {name} in {mapping.where}")


def _score(mapping: FileMap, value: object) -> object:
    """Return a score on the scale from 0 to 1 of which more is better; a value that is no number is left for its message."""
    if isinstance(value, str) and value in mapping.scores:
        return mapping.scores[value]
    if isinstance(value, bool):
        value = mapping.scores.get(str(value).lower(), value)
    number = read_score(value)
    if not isinstance(number, int | float) or (isinstance(number, float) and math.isnan(number)):
        return number
    if mapping.threshold is not None:
        return (number <= mapping.threshold) if mapping.lower_is_better else (number >= mapping.threshold)
    if mapping.scale != 1 and not isinstance(number, bool):
        number = number / mapping.scale if abs(number) < 1e300 else math.inf
    return 1 - number if mapping.lower_is_better and 0 <= number <= 1 else number


def _others(mapping: FileMap, root: object, log: LogFile, seen: Mapping[tuple[str, str], set[str]]) -> Iterator[Entry]:
    """Return the items of a list that have no record, with the score that the mapping gives them."""
    assert mapping.items is not None, "the caller checks"
    try:
        with mapping.items.open("rb") as file:
            text = file.read(1 << 28).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = (error.strerror or "cannot be read") if isinstance(error, OSError) else "is not UTF-8"
        reason = f"the list of items {show(mapping.items)}: {problem}; correct items in {mapping.where}"
        raise Refusal("items", show(mapping.items), reason) from None
    items = list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))[:_MOST_ITEMS]
    runs = dict(seen)
    if not runs:  # nothing is listed: everything passed, if the file's name names the model
        names = [
            mapping.sources[name].read((root, None, {}), log.path) if name in mapping.sources else None
            for name in ("benchmark", "model")
        ]
        benchmark, model = names[0] or log.choices.benchmark, names[1] or log.model
        if not (isinstance(benchmark, str) and isinstance(model, str)):
            reason = (
                f"no record names the model, and no item is listed; use {{ file = 'expression' }} in {mapping.where}"
            )
            raise Refusal("model", "nothing", reason)
        runs = {(benchmark, model): set()}
    for (benchmark, model), done in runs.items():
        unknown = done - set(items)
        if unknown:
            reason = f"{shorten(min(unknown))} is not in {show(mapping.items)}; list all items there"
            raise Refusal("items", shorten(min(unknown)), reason, benchmark)
        rest = [item for item in items if item not in done]
        log.note(
            f"{shorten(model)}: {len(done):,} items have a record; the other {len(rest):,} of {show(mapping.items)} get {mapping.others:g}"
        )
        for number, item in enumerate(rest, 1):
            yield Result(benchmark, model, item, {"score": mapping.others}, number=number)

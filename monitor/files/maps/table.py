"""A table ``[[map]]``: where the records of files are, and which fields of an event come from where."""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from monitor.files.formats.choices import FIELDS, ChoiceError, ends_of
from monitor.files.streams.paths import show
from monitor.files.streams.regular import UnsafePathError, parse_settings, read_settings
from monitor.files.tools.open_telemetry import NAME, SOURCES
from schemas.records.text import shorten

FILE: Final = "rankwatch.toml"
_KEYS: Final = (
    *FIELDS, "files", "records", "models", "only", "scores", "scale", "lower_is_better", "threshold", "items", "others",
    "evaluation", "spans",
)  # fmt: skip
_REQUIRED: Final = ("item_id", "model", "score")
EVERY: Final = "*"  # every field or element, every file, every evaluation

CAPTURE: Final = re.compile(r"\{(\w+)\}")  # a field or element whose name is a field of the event

_LONGEST_TEXT: Final = 4_000  # longest path of a file that a regular expression is tried on

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
            value = step_into(value, name)
        return value


def step_into(value: object, name: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return a field of an object or an element of a list, None if there is none."""
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
    only: tuple[str, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    scale: float = 1.0
    lowest: float = 0.0
    lower_is_better: bool = False
    threshold: float | None = None
    folder: Path = Path()
    items: str | None = None
    others: float | None = None
    evaluation: str | None = None
    spans: str | None = None

    def matches(self, path: Path) -> bool:
        """Return whether a file is read by this mapping."""
        return path.match(self.files)

    def reads(self, attributes: Mapping[str, Any]) -> bool:
        """Return whether an evaluation of OpenTelemetry is read by this mapping."""
        return self.evaluation is not None and self.evaluation in (EVERY, attributes.get(NAME))

    @classmethod
    def parse(cls, table: object, where: str, folder: Path) -> Self:
        """Parse a table; raise `ChoiceError` with what is wrong in it."""
        if not isinstance(table, dict):
            raise ChoiceError(f"{where}: it is not a table; write [[map]]")
        for key in table:
            if key not in _KEYS:
                raise ChoiceError(f"{where}: unknown key '{shorten(key)}'; use {', '.join(_KEYS)}")
        evaluation, spans = _evaluation(table, where)
        if evaluation is not None:
            table = _of_attributes(table)
        records = _path(table.get("records", ""), where, "records")
        captured = {match[1] for name in records if (match := CAPTURE.fullmatch(name))}
        if unknown := captured - set(FIELDS):
            raise ChoiceError(
                f"{where}: records: {{{min(unknown)}}} is no field of an event; use one of {', '.join(FIELDS)}"
            )
        sources = {name: _source(table[name], where, name) for name in FIELDS if name in table}
        for name in _REQUIRED:
            if name not in sources and name not in captured:
                raise ChoiceError(f"{where}: {name} is missing; give its path in the record, or {{ value = ... }}")
        (lowest, scale), lower = _scale(table, where), table.get("lower_is_better", False)
        if not isinstance(lower, bool):
            raise ChoiceError(f"{where}: lower_is_better: use true or false")
        items, others = _rest(table, where)
        return cls(
            where, _pattern(table, where), records, sources, _names(table, where, "models"), _names(table, where, "only"),
            _scores(table, where),
            scale, lowest, lower, _number(table, "threshold", where), folder, items, others, evaluation, spans,
        )  # fmt: skip


def _scale(table: Mapping[str, Any], where: str) -> tuple[float, float]:
    """Return the smallest and the largest score: a number is the largest, and text has both."""
    scale = table.get("scale", 1.0)
    if isinstance(scale, str):
        with suppress(ValueError):
            smallest, largest = ends_of(scale)
            if math.isfinite(largest - smallest) and smallest < largest:
                return smallest, largest
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < math.inf:
        raise ChoiceError(f'{where}: scale: use the largest score, above 0, or both ends as in "-10:10"')
    return 0.0, float(scale)


def read_mappings(file: Path, *, found: bool = False) -> list[FileMap]:
    """Read the mappings in a file."""
    try:
        content = parse_settings(read_settings(file) if found else file.read_bytes())
    except UnsafePathError as error:
        raise ChoiceError(f"{show(file)}: {error.strerror}") from None
    except OSError as error:
        raise ChoiceError(
            f"{show(file)}: {error.strerror or error}; give the path of a TOML file with tables [[map]]"
        ) from None
    except (ValueError, RecursionError):
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
    while isinstance(value, list) and value[:1] == [".."]:
        value, up = value[1:], up + 1
    return Source(_path(value, where, key), up)


def _evaluation(table: Mapping[str, Any], where: str) -> tuple[str | None, str | None]:
    """Return the name of the evaluation of a mapping of OpenTelemetry, and the file of the spans of its log records."""
    name, spans = table.get("evaluation"), table.get("spans")
    if name is not None and (not isinstance(name, str) or not name):
        raise ChoiceError(f'{where}: evaluation: use the value of {NAME}, or "*" for every evaluation')
    if spans is not None and (name is None or not isinstance(spans, str)):
        raise ChoiceError(f"{where}: spans: use the path of a file of traces, together with evaluation")
    if wrong := table.keys() & {"records", "models", "only", "items", "others"} if name is not None else ():
        raise ChoiceError(f"{where}: {min(wrong)} has no meaning with evaluation; remove it")
    return name, spans


def _of_attributes(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table in which the names of attributes, which have dots, are paths."""
    fields = {name: table.get(name, SOURCES.get(name)) for name in FIELDS if name in table or name in SOURCES}
    return {**table, **{name: [value] if isinstance(value, str) else value for name, value in fields.items()}}


def _pattern(table: Mapping[str, Any], where: str) -> str:
    files = table.get("files", EVERY)
    if isinstance(files, str) and files:
        return files
    raise ChoiceError(f'{where}: files: use a pattern of file names, for example "*.json"')


def _rest(table: Mapping[str, Any], where: str) -> tuple[str | None, float | None]:
    """Return the list of all items, and the score of those without a record."""
    items, others = table.get("items"), _number(table, "others", where)
    if items is not None and not isinstance(items, str):
        raise ChoiceError(f"{where}: items: use the path of a file with one item a line")
    if (items is None) != (others is None):
        raise ChoiceError(
            f"{where}: items lists all items, and others gives the score of those without a record; use both or none"
        )
    return items, others


def _number(table: Mapping[str, Any], key: str, where: str) -> float | None:
    value = table.get(key)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)):
        return None if value is None else float(value)
    raise ChoiceError(f"{where}: {key}: use a number")


def _names(table: Mapping[str, Any], where: str, key: str) -> tuple[str, ...]:
    names = table.get(key, [])
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return tuple(names)
    raise ChoiceError(f'{where}: {key}: use a list of names, for example ["a", "b"]')


def _scores(table: Mapping[str, Any], where: str) -> dict[str, float]:
    scores = table.get("scores", {})
    if isinstance(scores, dict) and all(
        isinstance(score, int | float) and 0 <= score <= 1 for score in scores.values()
    ):
        return {name: float(score) for name, score in scores.items()}
    raise ChoiceError(f"{where}: scores: use words with scores from 0 to 1, for example {{ pass = 1, fail = 0 }}")

"""Which column of a table is which field of an event."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from monitor.ingest.formats.choices import FIELDS, NONE, Choices
from schemas.decode import Fault, check_object
from schemas.events import Declaration, EventFields
from schemas.text import shorten

USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "benchmark": ("benchmark", "task", "dataset"),
    "item_id": ("item_id", "item", "question_id", "doc_id", "sample_id", "id"),
    "model": ("model", "model_name", "model_id"),
    "score": ("score", "correct", "is_correct", "acc", "exact_match"),
    "cluster": ("cluster", "category", "subject"),
    "repeat": ("repeat",),
    "epoch": ("epoch",),
}
"""What the columns are usually called, the first that is there counts; upper and lower case are the same."""

_TRUE: Final = frozenset({"true", "yes"})
_FALSE: Final = frozenset({"false", "no"})
_NOTHING: Final = frozenset({"", "null", "none", "nan", "na", "n/a"})


class ColumnError(ValueError):
    """A table some field of an event cannot be found in."""


class Columns:
    """The columns of a table.

    Parameters
    ----------
    names : sequence of str
        As the table has them.
    choices : Choices
    model : str, optional
        The model of all rows, as named on the command line.

    Attributes
    ----------
    told : str
        Which column was taken for what.

    Raises
    ------
    ColumnError
        If there is none for a field that is needed, or a column that was chosen is not there.
    """

    def __init__(self, names: Sequence[str], choices: Choices, model: str | None) -> None:
        self._model, self._benchmark = model, choices.benchmark
        self._columns = _find(names, choices)
        if model is not None:
            self._columns.pop("model", None)
        taken = set(self._columns.values())
        self._models = [name for name in names if name not in taken] if "models" in choices.columns else None
        self._require(names)
        pairs = [f"{field} = {shorten(column)}" for field, column in self._columns.items()]
        if self._models is not None:
            pairs.append(f"models = {', '.join(map(shorten, self._models))}")
        self.told = f"columns: {', '.join(pairs)}"

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return [*self._columns.values(), *(self._models or ())]

    def events(self, row: Mapping[str, Any]) -> Iterator[EventFields | Fault]:
        """Make the events of a row: one, or one a model where each model has a column."""
        columns = self._columns
        data = {field: row.get(column) for field, column in columns.items()}
        common = {
            "benchmark": _name(data["benchmark"]) if "benchmark" in columns else self._benchmark,
            "item_id": _name(data["item_id"]),
            "cluster": _name(data.get("cluster")) or None,
            "repeat": _index(data.get("repeat")),
            "epoch": _index(data.get("epoch")),
        }
        if self._models is None:
            model = self._model if self._model is not None else _name(data.get("model"))
            yield _event({**common, "model": model, "score": score_of(data["score"])})
            return
        for model in self._models:
            yield _event({**common, "model": model, "score": score_of(row.get(model))})

    def _require(self, names: Sequence[str]) -> None:
        there = ", ".join(map(shorten, names))
        wanted = ["item_id", *(() if self._models is not None else ("score",))]
        missing = [field for field in wanted if field not in self._columns]
        if missing:
            raise ColumnError(
                f"no column for {' and '.join(missing)} among {there}: say which with --columns {missing[0]}=COLUMN"
            )
        if self._models is None and "model" not in self._columns and self._model is None:
            raise ColumnError(
                f"no column for the model among {there}: say --columns model=COLUMN, or name it with NAME=PATH"
            )
        if self._models is not None and not self._models:
            raise ColumnError(f"no column is left for a model among {there}")
        if "benchmark" not in self._columns and self._benchmark is None:
            raise ColumnError(
                f"no column for the benchmark among {there}: say --columns benchmark=COLUMN, or name it with --benchmark NAME"
            )


def _find(names: Sequence[str], choices: Choices) -> dict[str, str]:
    lower = {name.lower(): name for name in reversed(names)}
    chosen = {field: column for field, column in choices.columns.items() if field != "models"}
    if choices.cluster is not None:
        chosen["cluster"] = choices.cluster
    for field, column in chosen.items():
        if column not in names and not (field == "cluster" and column == NONE):
            raise ColumnError(f"no column {shorten(column)} for {field} among {', '.join(map(shorten, names))}")
    found = {}
    for field in FIELDS:
        if field in chosen:
            found[field] = chosen[field]
        elif "models" in choices.columns and field in {"model", "score"}:
            continue
        elif usual := next((lower[name] for name in USUAL[field] if name in lower), None):
            found[field] = usual
    if choices.cluster == NONE:
        found.pop("cluster", None)
    return found


def flat(record: dict[str, Any]) -> dict[str, Any]:
    """Name the fields of nested objects by their path.

    Examples
    --------
    >>> flat({"id": 1, "meta": {"subject": "law"}})
    {'id': 1, 'meta.subject': 'law'}
    """
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": leaf for inner, leaf in flat(value).items()}
        else:
            found[name] = value
    return found


def score_of(value: object) -> object:
    """Read a score from a cell: text that means true, false, a number or nothing; all else stays what it is."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in _NOTHING:
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        try:
            return float(text)
        except ValueError:
            return value
    return None if isinstance(value, float) and math.isnan(value) else value


def _name(value: object) -> object:
    """Read a name from a cell: whole numbers are names too."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _index(value: object) -> object:
    if (
        value is None
        or (isinstance(value, str) and not value.strip())
        or (isinstance(value, float) and math.isnan(value))
    ):
        return 0
    if isinstance(value, float) and value.is_integer():
        return int(value)
    # Python reads no number of thousands of digits, and none that long is an index.
    return int(value) if isinstance(value, str) and len(value) < 100 and value.strip().isdecimal() else value


def _event(data: dict[str, object]) -> EventFields | Fault:
    try:
        return msgspec.convert(data, EventFields)
    except (msgspec.ValidationError, UnicodeError, OverflowError):
        found = check_object(data)
        assert not isinstance(found, Declaration), "none of its fields is `declare`"
        return found

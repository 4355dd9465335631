"""Read values whose meaning is certain although their type is not the one of an event: numbers as names, and text as numbers."""

import math
import re
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS: Final = {"true": True, "yes": True, "false": False, "no": False}
_NOTHING: Final = frozenset({"", "null", "none", "nan", "na", "n/a"})
_LARGEST: Final = 10**199  # beyond it a whole number has more digits than a name has characters

_EXACT: Final = 2.0**53  # below it every whole number is a float of its own


def read_name(value: object) -> object:
    """Return a whole number as text, any other value unchanged.

    >>> read_name(17), read_name(17.0), read_name("017"), read_name(True), read_name(1.5)
    ('17', '17', '017', True, 1.5)
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return str(value)
    return value


def read_score(value: object) -> object:
    """Return text as the number or the boolean that it writes, any other value unchanged.

    >>> read_score("0.5"), read_score(" 1 "), read_score("True"), read_score("0,5"), read_score(1)
    (0.5, 1.0, True, '0,5', 1)
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    return float(text) if _NUMBER.fullmatch(text) else _WORDS.get(text.lower(), value)


def without_value(value: object) -> object:
    """Return the value of a cell; None for the text and the NaN with which tables write that there is none.

    >>> without_value(""), without_value("NaN"), without_value(float("nan")), without_value(0)
    (None, None, None, 0)
    """
    if isinstance(value, str):
        return None if value.strip().lower() in _NOTHING else value
    return None if isinstance(value, float) and math.isnan(value) else value


def read_index(value: object) -> object:
    """Return a repeat or an epoch as a whole number: text, a whole float, or null, which means 0; any other value unchanged.

    >>> read_index("3"), read_index(3.0), read_index(None), read_index("x"), read_index(1.5)
    (3, 3, 0, 'x', 1.5)
    """
    number = read_score(value) if isinstance(value, str) else value
    if number is None:
        return 0
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < _EXACT else value


def read_whole(value: object) -> object:
    """Return text and whole floats as a whole number; any other value unchanged.

    >>> read_whole("30"), read_whole(30.0), read_whole(None), read_whole("all")
    (30, 30, None, 'all')
    """
    return value if value is None else read_index(value)


def read_number(value: object) -> object:
    """Return text as the number that it writes; any other value unchanged.

    >>> read_number("0.05"), read_number("yes"), read_number(0.05)
    (0.05, 'yes', 0.05)
    """
    number = read_score(value)
    return value if isinstance(number, bool) else number


def read_names(value: object) -> object:
    """Return a list, or an object, with every whole number in it as text, at any depth; any other value unchanged.

    >>> read_names([1, "2", [3.0]]), read_names({"new": 7})
    (['1', '2', ['3']], {'new': '7'})
    """
    read: object
    if isinstance(value, list):
        read = list(map(read_names, value))
    elif isinstance(value, dict):
        read = {key: read_names(each) for key, each in value.items()}
    else:
        return read_name(value)
    return value if read == value else read


def read_family(value: object) -> object:
    """Return a family with its models, and those of its pairs, as text and its size as a whole number; any other value unchanged.

    >>> read_family({"pairs": [[7, "m"]], "size": "1"}), read_family("spending")
    ({'pairs': [['7', 'm']], 'size': 1}, 'spending')
    """
    if not isinstance(value, dict):
        return value
    parts = {"pairs": read_names, "models": read_names, "size": read_whole}
    read = {key: parts[key](each) if key in parts else each for key, each in value.items()}
    return value if read == value else read


Kinds = Literal["event", "battle", "declaration", "end"]


class _Field(NamedTuple):
    """How a field of a record is read, the types of values that need no reading, and what is reported of the others."""

    read: Callable[[object], object]
    kinds: frozenset[type]
    clause: str


_NAME: Final = _Field(read_name, frozenset({str, bool}), "is a number and is read as text")
_OPTIONAL_NAME: Final = _NAME._replace(kinds=_NAME.kinds | {type(None)})
_SCORE: Final = _Field(
    lambda value: read_score(without_value(value)),
    frozenset({int, float, bool, type(None)}),
    "is text and is read as the number or boolean that it writes",
)
_INDEX: Final = _Field(read_index, frozenset({int, bool}), "is {kind} and is read as {whole}")
_WHOLE: Final = _INDEX._replace(read=read_whole)
_NUMBER_FIELD: Final = _Field(read_number, frozenset({int, float, bool, type(None)}), "is text and is read as a number")
_NAMES: Final = _Field(read_names, frozenset(), "holds a number, which is read as text")
_FAMILY: Final = _NAMES._replace(
    read=read_family, clause="names models by numbers, or has a size in text; they are converted"
)

_FIELDS: Final[dict[Kinds, dict[str, _Field]]] = {
    "event": {
        "benchmark": _NAME,
        "item_id": _NAME,
        "model": _NAME,
        "cluster": _OPTIONAL_NAME,
        "score": _SCORE,
        "repeat": _INDEX,
        "epoch": _INDEX,
        "unit": _OPTIONAL_NAME,
    },
    "battle": {
        "benchmark": _NAME,
        "item_id": _NAME,
        "model_a": _NAME,
        "model_b": _NAME,
        "cluster": _OPTIONAL_NAME,
        "repeat": _INDEX,
    },
    "declaration": {
        "declare": _NAME,
        "items": _WHOLE,
        "item_ids": _NAMES,
        "units": _NAMES,
        "repeats": _WHOLE,
        "version": _WHOLE,
        "alpha": _NUMBER_FIELD,
        "power": _NUMBER_FIELD,
        "margin": _NUMBER_FIELD,
        "family": _FAMILY,
        "aliases": _NAMES,
        "anchor": _OPTIONAL_NAME,
    },
    "end": {"ended": _NAME, "model": _OPTIONAL_NAME, "epoch": _WHOLE, "base": _WHOLE},
}

_TYPES: Final = {type(None): "null", str: "text", float: "a decimal number"}


def _clause(name: str, field: _Field, kind: type, new: object) -> str:
    """Return what was converted, for the reader of a note."""
    if field is _SCORE and new is None:
        return f"{name} is blank or NaN and is read as null: the item is skipped"
    whole = "0" if kind is type(None) else "a whole number"
    return f"{name} {field.clause.format(kind=_TYPES.get(kind), whole=whole)}"


def convert(record: dict[str, Any], kind: Kinds = "event") -> tuple[dict[str, Any], list[str]]:
    """Convert the fields of a record whose meaning is certain.

    >>> convert({"item_id": 17, "model": "m", "score": 1})
    ({'item_id': '17', 'model': 'm', 'score': 1}, ['item_id is a number and is read as text'])
    """
    changed: dict[str, Any] = {}
    clauses: list[str] = []
    for name, field in _FIELDS[kind].items():
        if name in record:
            value = record[name]
            special = type(value) not in field.kinds or value != value  # NaN is no number  # noqa: PLR0124
            if special and (new := field.read(value)) is not value:
                changed[name] = new
                clauses.append(_clause(name, field, type(value), new))
    return ({**record, **changed}, clauses) if changed else (record, clauses)


def convert_column(name: str, values: list[Any], clauses: set[str]) -> list[Any]:
    """Convert the values of one field of many events as `convert` does, and add to `clauses`.

    >>> convert_column("repeat", [1, "2", 3.0, "x"], set())
    [1, 2, 3, 'x']
    """
    field = _FIELDS["event"].get(name)
    if field is None:
        return values
    for kind in set(map(type, values)) - field.kinds:
        # Values of one type that are equal mean the same, and most come often.
        known = {value: field.read(value) for value in {value for value in values if type(value) is kind}}
        values = [known[value] if type(value) is kind else value for value in values]
        clauses |= {_clause(name, field, kind, new) for old, new in known.items() if new is not old}
    return values

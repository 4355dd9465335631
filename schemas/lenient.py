"""Read values whose meaning is certain although their type is not the one of an event: numbers as names, and text as numbers."""

import re
from collections.abc import Callable
from typing import Any, Final

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS: Final = {"true": True, "yes": True, "false": False, "no": False}
_LARGEST: Final = 10**199
"""Beyond it a whole number has more digits than a name has characters."""

_EXACT: Final = 2.0**53
"""Below it every whole number is a float of its own."""


def read_name(value: object) -> object:
    """Return a whole number as text, any other value unchanged.

    Examples
    --------
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

    Examples
    --------
    >>> read_score("0.5"), read_score(" 1 "), read_score("True"), read_score("0,5"), read_score(1)
    (0.5, 1.0, True, '0,5', 1)
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    return float(text) if _NUMBER.fullmatch(text) else _WORDS.get(text.lower(), value)


def read_index(value: object) -> object:
    """Return a repeat or an epoch as a whole number: text, a whole float, or null, which means 0; any other value unchanged.

    Examples
    --------
    >>> read_index("3"), read_index(3.0), read_index(None), read_index("x"), read_index(1.5)
    (3, 3, 0, 'x', 1.5)
    """
    number = read_score(value) if isinstance(value, str) else value
    if number is None:
        return 0
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < _EXACT else value


def convert(record: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Convert the fields of an event whose meaning is certain.

    Returns
    -------
    dict, and list of str
        The record with these values, and a clause for each field whose value has another type now.

    Examples
    --------
    >>> convert({"item_id": 17, "model": "m", "score": 1})
    ({'item_id': '17', 'model': 'm', 'score': 1}, ['item_id is a number and is read as text'])
    """
    changed: dict[str, Any] = {}
    clauses: list[str] = []
    for field, (read, kinds) in _FIELDS.items():
        if field in record:
            value = record[field]
            if type(value) not in kinds and (new := read(value)) is not value:
                changed[field] = new
                clauses.append(_clause(field, type(value)))
    return ({**record, **changed}, clauses) if changed else (record, clauses)


def convert_column(field: str, values: list[Any], clauses: set[str]) -> list[Any]:
    """Convert the values of one field of many events as `convert` does, and add to `clauses`.

    Examples
    --------
    >>> convert_column("repeat", [1, "2", 3.0, "x"], set())
    [1, 2, 3, 'x']
    """
    read, kinds = _FIELDS[field]
    for kind in set(map(type, values)) - kinds:
        # Values of one type that are equal mean the same, and most come often.
        known = {value: read(value) for value in {value for value in values if type(value) is kind}}
        values = [known[value] if type(value) is kind else value for value in values]
        if any(new is not old for old, new in known.items()):
            clauses.add(_clause(field, kind))
    return values


_NAME_KINDS: Final = frozenset({str, bool})
_INDEX_KINDS: Final = frozenset({int, bool})
_FIELDS: Final[dict[str, tuple[Callable[[object], object], frozenset[type]]]] = {
    "benchmark": (read_name, _NAME_KINDS),
    "item_id": (read_name, _NAME_KINDS),
    "model": (read_name, _NAME_KINDS),
    "cluster": (read_name, _NAME_KINDS | {type(None)}),
    "score": (read_score, frozenset({int, float, bool, type(None)})),
    "repeat": (read_index, _INDEX_KINDS),
    "epoch": (read_index, _INDEX_KINDS),
}
"""By field: what reads a value of another type, and the types that need no reading."""

_KINDS: Final = {type(None): "null", str: "text", float: "a decimal number"}


def _clause(field: str, kind: type) -> str:
    """Return what was converted, for the reader of a note."""
    if field == "score":
        return "score is text and is read as the number or boolean that it writes"
    if field in ("repeat", "epoch"):
        return f"{field} is {_KINDS[kind]} and is read as {'0' if kind is type(None) else 'a whole number'}"
    return f"{field} is a number and is read as text"

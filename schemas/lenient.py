"""Read values whose meaning is certain although their type is not the one of an event: numbers as names, and text as numbers."""

import re
from typing import Any, Final

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS: Final = {"true": True, "yes": True, "false": False, "no": False}
_LARGEST: Final = 10**199
"""Beyond it a whole number has more digits than a name has characters."""

_EXACT: Final = 2.0**53
"""Below it every whole number is a float of its own."""

_NUMBERS: Final = (int, float)
_NAME_CLAUSES: Final = {
    field: f"{field} is a number and is read as text" for field in ("benchmark", "item_id", "model", "cluster")
}
_SCORE_CLAUSE: Final = "score is text and is read as the number or boolean that it writes"
_INDICES: Final = ("repeat", "epoch")


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
    for field, clause in _NAME_CLAUSES.items():
        value = record.get(field)
        if type(value) in _NUMBERS and (name := read_name(value)) is not value:
            changed[field] = name
            clauses.append(clause)
    value = record.get("score")
    if type(value) is str and (score := read_score(value)) is not value:
        changed["score"] = score
        clauses.append(_SCORE_CLAUSE)
    for field in _INDICES:
        value = record.get(field, 0)
        if type(value) is not int and (index := read_index(value)) is not value:
            changed[field] = index
            kind = "null" if value is None else "text" if isinstance(value, str) else "a decimal number"
            clauses.append(f"{field} is {kind} and is read as {'0' if value is None else 'a whole number'}")
    return ({**record, **changed}, clauses) if changed else (record, clauses)

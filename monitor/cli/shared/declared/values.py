"""Declared values, names and flags as text."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from schemas.records.text import shorten

_LISTED_NAMES: Final = 10


def similar_first(name: str, names: Iterable[str]) -> str:
    """List names, the most similar to one first."""
    from difflib import SequenceMatcher

    def distance(other: str) -> tuple[float, str]:
        return -SequenceMatcher(None, name.lower(), other.lower()).ratio(), other

    return first_names(sorted(names, key=distance)) or "none"


def first_names(names: Sequence[str]) -> str:
    """List the first of some names, and count the others."""
    rest = len(names) - _LISTED_NAMES
    return ", ".join(map(shorten, names[:_LISTED_NAMES])) + (f" and {rest:,} more" if rest > 0 else "")


def show_aliases(aliases: Mapping[str, str]) -> str:
    """Return aliases as flags name them."""
    return ", ".join(f"{shorten(alias)}={shorten(model)}" for alias, model in aliases.items())


def flag_text(field: str, value: object, name: str = "") -> str:
    """Return the flag that declares a value, of the benchmark `name` ends with `=` names."""
    if field == "family" and isinstance(value, dict) and "models" in value:
        quoted = (f'"{model}"' if {",", "="} & set(model) else model for model in value["models"])
        return f"--models {shlex.quote(name + ','.join(quoted))}"
    if field in {"weights", "clusters"}:
        return f"--{field} {shlex.quote(name + show_value(field, value))}"
    return f"--{field} {name}{show_value(field, value).replace(',', '')}"  # a number in a command has no separators


def show_value(field: str, value: object) -> str:
    """Return the declared value of a field as text; a long list by its length."""
    if isinstance(value, int):
        return f"{value:,}"
    if field == "family" and isinstance(value, dict) and value.get("models"):
        return f"{len(value['models']):,} models ({first_names(value['models'])})"
    if field in {"weights", "clusters"} and isinstance(value, dict):
        return ",".join(
            f"{name}:{number:g}" if field == "weights" else f"{name}:{number}" for name, number in value.items()
        )
    if isinstance(value, dict):
        return ":".join(f"{part:,}" if isinstance(part, int) else str(part) for part in value.values())
    return f"{len(value):,} items" if field == "item_ids" and isinstance(value, list) else shorten(value)

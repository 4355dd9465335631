"""Declared values, names and flags as text."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import Final

from pydantic import ValidationError

from monitor.cli.shared.errors import USAGE, stop
from schemas.records.declaration import OrderSpec
from schemas.records.decode import describe_error
from schemas.records.names import natural
from schemas.records.text import shorten

_LISTED_NAMES: Final = 10

_TIED_NAMES: Final = 50  # names that are compared again, where many are as close to one


def similar_first(name: str, names: Iterable[str]) -> str:
    """List names, the most similar to one first."""
    return first_names(by_similarity(name, names)) or "none"


def name_hint(wanted: Sequence[str], names: Iterable[str], otherwise: str) -> str:
    """Return the names that are close to one of those wanted, the closest first, else what there is, in natural order.

    >>> name_hint(["model-3x"], [f"model-{k}" for k in range(1, 30)], "the files have")
    'did you mean model-3, model-13, model-23?'
    """
    known = sorted(set(names), key=natural)
    close = [match for name in wanted for match in by_similarity(name, get_close_matches(name, known, _TIED_NAMES))[:3]]
    return f"did you mean {first_names(list(dict.fromkeys(close)))}?" if close else f"{otherwise} {first_names(known)}"


def by_similarity(name: str, names: Iterable[str]) -> list[str]:
    """Sort names, the most similar to one first, and those that are as similar in natural order."""
    return sorted(
        names, key=lambda other: (-SequenceMatcher(None, name.lower(), other.lower()).ratio(), natural(other))
    )


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
    if field == "units" and isinstance(value, dict):
        return f"{len(value):,} items in {len(set(value.values())):,} units"
    if isinstance(value, dict):
        return ":".join(f"{part:,}" if isinstance(part, int) else str(part) for part in value.values())
    return f"{len(value):,} items" if field == "item_ids" and isinstance(value, list) else shorten(value)


def check_seed(seed: str) -> None:
    """End the command if a text is no seed of an order."""
    try:
        OrderSpec(policy="committed", seed=seed)
    except ValidationError as error:
        stop(f"--seed: {describe_error(error.errors(include_url=False)[0])}", USAGE)

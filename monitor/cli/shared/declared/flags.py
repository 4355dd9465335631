"""The flags that declare, parsed: by field, and by benchmark."""

import csv
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from monitor.cli.shared.declared.values import flag_text, show_value
from monitor.cli.shared.errors import USAGE, file_error, stop
from monitor.cli.shared.options import DeclareOptions
from monitor.files.unit_list import UnitListError, read_units
from schemas.records.declaration import Spec, alias_problem
from schemas.records.decode import describe_error
from schemas.records.goals import GOAL_FORMS, named_goal, parse_goal
from schemas.records.text import shorten

Fields = dict[str, Any]  # fields of a declaration, as in an event, without the name


class Flags(NamedTuple):
    """The values of the flags that declare: by field, and by benchmark or None for every benchmark; and the aliases of models."""

    values: dict[str, dict[str | None, Any]]
    aliases: dict[str, str]

    def of(self, benchmark: str) -> Fields:
        """Return the fields that flags declare of a benchmark."""
        fields = {
            field: named.get(benchmark, named.get(None))
            for field, named in self.values.items()
            if benchmark in named or None in named
        }
        return {**fields, "aliases": self.aliases} if self.aliases else fields

    def named(self) -> set[str]:
        """Return the benchmarks that a flag names."""
        return {name for named in self.values.values() for name in named if name is not None}

    def for_all(self) -> list[str]:
        """Return the fields that a flag declares of every benchmark."""
        return [field for field, named in self.values.items() if None in named]


def parse_flags(options: DeclareOptions) -> Flags:
    """Parse flags of the form VALUE or NAME=VALUE; a wrong one ends the command."""
    values: dict[str, dict[str | None, Any]] = {}
    given = asdict(options)
    aliases: dict[str, str] = {}
    for entry in given.pop("alias") or ():
        name, model = _alias(entry)
        if aliases.setdefault(name, model) != model:
            stop(f"--alias {entry}: {name} is an alias of {aliases[name]} too; give each alias one model", USAGE)
    if problem := alias_problem(aliases):
        stop(f"--alias: {problem}", USAGE)
    for field, entries in given.items():
        for entry in entries or ():
            name, equals, text = _named(field, entry)
            if equals and not name:
                stop(f"--{field} {entry}: the name of the benchmark is missing; use VALUE or NAME=VALUE", USAGE)
            value = _parse(field, entry, text)
            declares = _DECLARES.get(field, field)
            first = values.setdefault(declares, {}).setdefault(name if equals else None, value)
            if first != value:
                of = f" of {shorten(name)}" if equals else ""
                what, show = (f"--{field}", show_value) if declares != "family" else ("the family", flag_text)
                stop(
                    f"{what}{of} is given twice, as {show(declares, first)} and {show(declares, value)}; give it once",
                    USAGE,
                )
    return Flags(values, aliases)


def _named(field: str, entry: str) -> tuple[str, str, str]:
    """Split VALUE or NAME=VALUE into the name, the equals sign and the value; models in quotes may hold one."""
    if field == "goal":
        return named_goal(entry)
    if field != "models":
        return entry.rpartition("=")
    head = re.match(r'[^",]*', entry)
    name, equals, first = ("", "", "") if head is None else head[0].rpartition("=")
    return name, equals, first + entry[len(name + equals + first) :]


def _alias(entry: str) -> tuple[str, str]:
    name, _, model = entry.rpartition("=")
    if not name or not model or name == model:
        stop(f"--alias {entry}: name two different models, as NEW=OLD", USAGE)
    return name, model


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(text)
    return int(text)


def _repeats(text: str) -> int | str:
    return text if text == "all" else _whole(text)


def _family(text: str) -> Fields:
    policy, colon, size = text.partition(":")
    if (policy, colon) == ("spending", ""):
        return {"policy": "spending"}
    if policy != "capacity":
        raise ValueError(text)
    return {"policy": "capacity", "size": _whole(size)}


class _LoneModelError(ValueError):
    """A list of models has one: a pair has two."""


def _models(text: str) -> Fields:
    """Parse names between commas; a name in double quotes may hold commas itself."""
    try:
        names = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        raise ValueError(text) from None
    if len(names) == 1:
        raise _LoneModelError
    return {"policy": "capacity", "models": [name.strip() for name in names]}


def _weights(text: str) -> str | dict[str, float]:
    return text if text == "equal-clusters" else {name: float(value) for name, value in _by_cluster(text)}


def _clusters(text: str) -> dict[str, int]:
    return {name: _whole(value) for name, value in _by_cluster(text)}


def _by_cluster(text: str) -> list[tuple[str, str]]:
    """Parse CLUSTER:VALUE between commas; a name in double quotes may hold commas itself."""
    try:
        entries = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        raise ValueError(text) from None
    pairs = [(name.strip(), value) for name, _, value in (entry.rpartition(":") for entry in entries)]
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError(text)
    return pairs


def _units(text: str) -> dict[str, str]:
    return read_units(Path(text))


def _goal(text: str) -> str:
    return parse_goal(text).text


_PARSERS: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "items": (_whole, "give an item count from 1, as N or NAME=N"),
    "alpha": (float, "give an error rate from 1e-100 to below 0.5, as ALPHA or NAME=ALPHA"),
    "repeats": (_repeats, "give a number of repeats from 1, or all, as R or NAME=R"),
    "units": (_units, "name a file of units that can be read, as FILE or NAME=FILE"),
    "weights": (
        _weights,
        'use equal-clusters, or each cluster once with a positive weight, as CLUSTER:WEIGHT,... ("A,B:1" for a name with a comma)',
    ),
    "clusters": (_clusters, "give each cluster once with its number of items from 1, as CLUSTER:N,..."),
    "goal": (_goal, f"use {GOAL_FORMS}"),
    "anchor": (str, "name a model, as MODEL or NAME=MODEL"),
    "family": (_family, "use spending, or capacity:M for M pairs that share alpha"),
    "models": (
        _models,
        'give names between commas, as A,B,C or NAME=A,B,C; write a name that holds a comma or = as "A,B"',
    ),
}
"""By flag: what parses its value, and what to do about one that cannot be right."""


_DECLARES: Final = {"models": "family"}  # by flag: the field that it declares, where that has another name


_CHOICES: Final = {  # by flag: the words it takes
    "order": "completion, committed or trusted",
    "scores": "binary or graded",
    "missing": "worst or ignorable",
}


def _parse(field: str, entry: str, text: str) -> object:
    if field in _CHOICES:
        if text not in _CHOICES[field].replace(",", "").split() or text == "or":
            stop(f"--{field} {entry}: use {_CHOICES[field]}", USAGE)
        return text
    parse, advice = _PARSERS[field]
    try:
        value = parse(text)
        alone = {"weights": "equal-clusters"} if field == "clusters" else {}
        Spec.model_validate(alone | {_DECLARES.get(field, field): value})
    except OSError as error:
        stop(f"--{field}: {file_error(error, Path(text))}", USAGE)
    except ValueError as error:  # a ValidationError is one
        if field == "models" and isinstance(error, ValidationError):
            fault = error.errors(include_url=False)[0]
            advice = describe_error(fault) if fault["type"] == "value_error" else advice
        if isinstance(error, UnitListError):
            stop(f"--units: {error}", USAGE)
        if isinstance(error, _LoneModelError):
            advice = "a family of 1 model has no pair; list the models in one flag, as in --models A,B,C"
        stop(f"--{field} {shorten(entry)}: {advice}", USAGE)
    return value

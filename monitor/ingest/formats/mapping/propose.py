"""Propose a mapping for a file: where its records are, and which of their fields are those of an event."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from monitor.ingest.files.event_lines import Refusal
from monitor.ingest.formats.mapping.mapped import read_rows
from monitor.ingest.formats.tabular.columns import USUAL, flatten
from schemas.records.lenient import read_score
from schemas.records.text import shorten

_DEPTH: Final = 4
_EVERY: Final = "*"
_ALIKE: Final = 2
_LONGEST_ID: Final = 100
_LOOKED_AT: Final = 200
_SCORES: Final = (
    *USUAL["score"],
    "pass@1",
    "passed",
    "pass",
    "success",
    "resolved",
    "is_resolved",
    "reward",
    "value",
    "result",
    "accuracy",
)
_MODELS: Final = (*USUAL["model"], "system", "agent")
_ITEMS: Final = (*USUAL["item_id"], "task_id", "instance_id", "qid", "name", "key")
_USUAL: Final[Mapping[str, tuple[str, ...]]] = {**USUAL, "score": _SCORES, "model": _MODELS, "item_id": _ITEMS}
_WORDS: Final = {
    "pass": 1,
    "passed": 1,
    "correct": 1,
    "resolved": 1,
    "success": 1,
    "fail": 0,
    "failed": 0,
    "incorrect": 0,
    "error": 0,
    "timeout": 0,
}


class Proposal(NamedTuple):
    """A table ``[[map]]`` as text, and what of it is a guess."""

    text: str
    guesses: list[str]


def propose(path: Path) -> Proposal:
    """Propose a mapping.

    Raises
    ------
    Refusal
        If the file has no records with a score.
    Broken
        If it cannot be read.
    """
    root = read_rows(path)[0]
    best = max(_candidates(root, []), key=lambda found: found.fit, default=None)
    if best is None:
        reason = "no list or object in the file has records with a score; write the mapping by hand (docs/how-to/map-files.md)"
        raise Refusal("file", "no records", reason)
    return _table(path, best)


def _candidates(value: object, names: list[str]) -> Iterator["_Found"]:
    """Return every list, and every object of alike values, that may hold the records."""
    if len(names) > _DEPTH:
        return
    if isinstance(value, list):
        yield from _fitting(value, [*names, _EVERY])
        if value and isinstance(value[0], list | dict):
            yield from _candidates(value[0], [*names, _EVERY])
    elif isinstance(value, dict) and value:
        inner = list(value.values())
        if len(inner) > 1 and all(isinstance(each, bool | int | float) or _is_word(each) for each in inner):
            yield _Found((2, len(inner)), [*names, "{item_id}"], inner[:_LOOKED_AT])
        elif _alike(inner):
            yield from _fitting(inner, [*names, "{item_id}"])
            for found in _candidates(inner[0], [*names, "{model}"]):
                yield found._replace(fit=(found.fit[0], found.fit[1] * len(inner)))
        else:
            for name, each in value.items():
                yield from _candidates(each, [*names, name])


def _alike(values: list[Any]) -> bool:
    """Return whether the values of an object have one shape, so that its names are data."""
    if len(values) < _ALIKE or not all(isinstance(each, dict) for each in values):
        return False
    first, second = values[0], values[1]
    scalars = all(not isinstance(each, dict | list) for each in (*first.values(), *second.values()))
    return first.keys() == second.keys() or scalars


def _fitting(values: list[Any], names: list[str]) -> Iterator["_Found"]:
    records = values[:_LOOKED_AT]
    if not records or not all(isinstance(record, dict) for record in records):
        return
    rows = [flatten(record) for record in records]
    if _find(rows, "score") is not None:
        yield _Found((1 + sum(_find(rows, name) is not None for name in _USUAL), len(values)), names, records)
    elif models := _wide(rows):
        yield _Found((3, len(values)), [*names, "{model}"], records, models)


class _Found(NamedTuple):
    """Records: how well they fit and how many there are, their path, the first of them, and the columns that are models."""

    fit: tuple[int, int]
    names: list[str]
    records: list[Any]
    models: tuple[str, ...] = ()


def _wide(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the columns that hold scores in every row, if there are two or more: each may be a model."""
    item = _find(rows, "item_id")
    columns = [
        name
        for name in rows[0]
        if name != item and "." not in name and all(not isinstance(read_score(row.get(name, "")), str) for row in rows)
    ]
    return tuple(columns) if item is not None and len(columns) > 1 else ()


def _is_word(value: object) -> bool:
    return isinstance(value, str) and (value.lower() in _WORDS or not isinstance(read_score(value), str))


def _find(rows: Sequence[Mapping[str, Any]], name: str) -> str | None:
    """Return the path of a field: by its usual names, in the record or below; else an id by its distinct values, a score by its type."""
    record = rows[0]
    lower = {key.lower(): key for key in reversed(list(record))}
    last = {key.rpartition(".")[2].lower(): key for key in reversed(list(record))}
    usual = [found for each in _USUAL[name] if (found := lower.get(each) or last.get(each)) is not None]
    usual = [found for found in usual if not isinstance(record[found], list)]
    if name == "item_id" and len(usual) > 1:
        model = _find(rows, "model")
        once = [each for each in usual if _once([(row.get(model or ""), row.get(each)) for row in rows])]
        usual = once or usual  # an id that comes several times a model names a group of items
    if usual:
        return usual[0]
    if name == "score":
        return next((key for key, value in record.items() if isinstance(value, bool)), None)
    if name == "item_id":
        return next((key for key in record if len(rows) > 1 and _distinct([row.get(key) for row in rows])), None)
    return None


def _once(keys: list[Any]) -> bool:
    return all(isinstance(key[1], str | int) for key in keys) and len(set(map(str, keys))) == len(keys)


def _distinct(values: list[Any]) -> bool:
    return all(isinstance(value, str) and 0 < len(value) <= _LONGEST_ID for value in values) and len(
        set(values)
    ) == len(values)


def _table(path: Path, found: _Found) -> Proposal:
    names, rows = found.names, [flatten(record) for record in found.records if isinstance(record, dict)]
    fields, guesses = dict[str, str](), list[str]()
    captured = {name[1:-1] for name in names if name.startswith("{")}
    for name in ("benchmark", "item_id", "model", "score", "cluster", "repeat"):
        field = _find(rows, name) if rows and name not in captured else None
        if field is not None and not (found.models and name == "score"):
            literal = "." in field and field in found.records[0]
            fields[name] = _quoted_names([field]) if literal else _quoted(("../" if found.models else "") + field)
    if found.models or not rows:
        fields["score"] = '"."'
    if found.models:
        fields["models"] = json.dumps(found.models, ensure_ascii=False)
        guesses.append(f"the columns {', '.join(map(shorten, found.models))} are models")
    if rows and not found.models:
        guesses.append(f"score = {fields['score']}")
    if "item_id" not in fields and "item_id" not in captured:
        fields["item_id"] = '"item_id"'
        guesses.append("item_id: no field has a usual name; correct it")
    if "model" not in fields and "model" not in captured:
        fields["model"] = "{ file = '([^/]+)/[^/]+$' }"
        guesses.append(f"the model is the folder of the file, {path.resolve().parent.name}")
    if "benchmark" not in fields and "benchmark" not in captured:
        stem = path.name.partition(".")[0] or "benchmark"
        fields["benchmark"] = f"{{ value = {json.dumps(stem, ensure_ascii=False)} }}"
        guesses.append(f"the benchmark is called {stem}, like the file")
    fields |= _scale(found, fields["score"], guesses)
    names = names[1:] if names[:1] == [_EVERY] else names
    lines = ["[[map]]", f"files = {json.dumps('*' + path.suffix, ensure_ascii=False)}"]
    lines += [f"records = {_quoted_names(names)}"] if names else []
    lines += [f"{name} = {value}" for name, value in fields.items()]
    return Proposal("\n".join(lines) + "\n", guesses)


def _quoted(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)


def _quoted_names(names: Sequence[str]) -> str:
    plain = all(name and "." not in name for name in names)
    return json.dumps(".".join(names) if plain else names, ensure_ascii=False)


def _scale(found: _Found, source: str, guesses: list[str]) -> dict[str, str]:
    """Return the scale that the scores need, or the words that they are."""
    path = json.loads(source)
    if found.models:
        values = [record.get(name) for record in found.records for name in found.models]
    else:
        name = path if isinstance(path, str) else path[0]
        values = [record if name == "." else flatten(record).get(name) for record in found.records]
    values = [read_score(value) for value in values]
    words = {value for value in values if isinstance(value, str) and isinstance(read_score(value), str)}
    if words:
        known = {word: _WORDS.get(word.lower()) for word in sorted(words)}
        if any(score is None for score in known.values()):
            guesses.append("some words are no scores; give each a number in scores")
        pairs = ", ".join(f"{json.dumps(word, ensure_ascii=False)} = {score or 0}" for word, score in known.items())
        return {"scores": f"{{ {pairs} }}"}
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    largest = max(numbers, default=0)
    if largest <= 1:
        return {}
    scale = next((each for each in (5, 10, 100) if largest <= each), None)
    if scale is None:
        guesses.append(f"the largest score is {largest:g}; give its scale")
        return {"scale": f"{largest:g}"}
    guesses.append(f"scale = {scale}: the largest score is {largest:g}")
    return {"scale": str(scale)}

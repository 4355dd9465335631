"""Propose a mapping for a file: where its records are, and which of their fields are those of an event."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from monitor.ingest.files.event_lines import Refusal
from monitor.ingest.formats.mapping.mapped import percentage, read_rows
from monitor.ingest.formats.tabular.columns import USUAL, flatten
from schemas.records.lenient import read_score
from schemas.records.text import shorten

_DEPTH: Final = 8
_EVERY: Final = "*"
_ALIKE: Final = 2
_LONGEST_ID: Final = 100
_LOOKED_AT: Final = 200
_LISTED: Final = 12
_REPEATS: Final = ("repeat", "trial", "attempt", "run", "seed", "sample", "rep", "iteration", "epoch")
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
_MODELS: Final = (*USUAL["model"], "system", "agent", "llm", "engine", "provider", "generator")
_ITEMS: Final = (*USUAL["item_id"], "task_id", "instance_id", "qid", "name", "key")
_USUAL: Final[Mapping[str, tuple[str, ...]]] = {**USUAL, "score": _SCORES, "model": _MODELS, "item_id": _ITEMS}
_NO_SCORES: Final = re.compile(
    r"(?:^|[^a-z])(?:ms|s|sec|seconds|time|timestamp|date|latency|duration|tokens?|cost|price|count|length|size|seed|index|line)(?:$|[^a-z])"
)
"""Names of numbers that are not scores."""

_LOWER: Final = re.compile(r"(?:^|[^a-z])(?:error|errors|loss|wer|cer|perplexity|mae|mse|rmse|distance)(?:$|[^a-z])")
"""Names of scores of which less is better."""

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
    best = max(_candidates(root, [], ()), key=lambda found: found.fit, default=None)
    if best is None:
        raise Refusal("file", "no records", f"{_missing(root)}; write the mapping by hand (docs/how-to/map-files.md)")
    return _table(path, best)


def _missing(root: object) -> str:
    """Return what a file lacks, with the fields of its first record."""
    first = root[0] if isinstance(root, list) and root else root
    if not isinstance(first, dict) or not first:
        return "the file has no list or object of records"
    names = list(flatten(first))
    return f"no list or object in the file has records with a score, and its first fields are {_some(names)}"


def _candidates(value: object, names: list[str], above: tuple[object, ...]) -> Iterator["_Found"]:
    """Return every list, and every object of alike values, that may hold the records."""
    if len(names) > _DEPTH:
        return
    if isinstance(value, list):
        yield from _fitting(value, [*names, _EVERY], (value, *above))
        if value and isinstance(value[0], list | dict):
            yield from _candidates(value[0], [*names, _EVERY], (value, *above))
    elif isinstance(value, dict) and value:
        inner = list(value.values())
        if len(inner) > 1 and all(isinstance(each, bool | int | float) or _is_word(each) for each in inner):
            yield _Found((2, len(inner)), [*names, "{item_id}"], inner[:_LOOKED_AT], (value, *above))
        elif _alike(inner):
            yield from _fitting(inner, [*names, "{item_id}"], (value, *above))
            for found in _candidates(inner[0], [*names, "{model}"], (value, *above)):
                yield found._replace(fit=(found.fit[0], found.fit[1] * len(inner)))
        else:
            for name, each in value.items():
                yield from _candidates(each, [*names, name], (value, *above))


def _alike(values: list[Any]) -> bool:
    """Return whether the values of an object have one shape, so that its names are data."""
    if len(values) < _ALIKE or not all(isinstance(each, dict) for each in values):
        return False
    first, second = values[0], values[1]
    scalars = all(not isinstance(each, dict | list) for each in (*first.values(), *second.values()))
    return first.keys() == second.keys() or scalars


def _fitting(values: list[Any], names: list[str], above: tuple[object, ...]) -> Iterator["_Found"]:
    records = values[:_LOOKED_AT]
    if not records or not all(isinstance(record, dict) for record in records):
        return
    rows = [flatten(record) for record in records]
    if _find(rows, "score") is not None:
        yield _Found((1 + sum(_find(rows, name) is not None for name in _USUAL), len(values)), names, records, above)
    elif (numbers := _numbers(rows)) and (len(numbers) == 1 or _find(rows, "model") is not None):
        yield _Found((1, len(values)), names, records, above, scores=numbers)
    elif models := _wide(rows):
        yield _Found((3, len(values)), [*names, "{model}"], records, above, models)


class _Found(NamedTuple):
    """Records: how well they fit and how many there are, their path, the first of them, and what they are in, the nearest first.

    `models` are the columns that are models. `scores` are the fields that may be the score where none has a usual name.
    """

    fit: tuple[int, int]
    names: list[str]
    records: list[Any]
    above: tuple[object, ...] = ()
    models: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()


def _numbers(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the fields that hold a number or a verdict in every row, and are no other field of an event."""
    others = {_find(rows, name) for name in _USUAL if name != "score"}
    names = [name for name in rows[0] if name not in others and not _NO_SCORES.search(name.lower())]
    ids = {"id", "index", "number", "nr", "no", "turn", *_REPEATS}
    names = [name for name in names if name.rpartition(".")[2].rpartition("_")[2].lower() not in ids]
    return tuple(name for name in names if all(_is_word(row.get(name)) or _is_number(row.get(name)) for row in rows))


def _is_number(value: object) -> bool:
    return isinstance(percentage(value), bool | int | float)


def _inherited(found: _Found, name: str) -> str | None:
    """Return the path to a field of what the records are in: `../..` leads from an element of a list to what holds the list."""
    for level, outer in enumerate(found.above, 1):
        if isinstance(outer, dict):
            scalars = {
                key: value
                for key, value in flatten(outer).items()
                if isinstance(value, str | int) and not isinstance(value, bool)
            }
            if (path := _find([scalars], name, usual=True) if scalars else None) is not None:
                return "../" * level + path
    return None


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


def _find(rows: Sequence[Mapping[str, Any]], name: str, *, usual: bool = False) -> str | None:
    """Return the path of a field: by its usual names, in the record or below; else an id by its distinct values, a score by its type."""
    only_usual = usual
    record = rows[0]
    lower = {key.lower(): key for key in reversed(list(record))}
    last = {key.rpartition(".")[2].lower(): key for key in reversed(list(record))}
    named = [found for each in _USUAL[name] if (found := lower.get(each) or last.get(each)) is not None]
    named = [found for found in named if not isinstance(record[found], list)]
    named = named or [
        key for key in record if name == "model" and key.lower().endswith(("model.name", "system.name", "agent.name"))
    ]
    if name == "item_id" and len(named) > 1:
        model = _find(rows, "model")
        once = [each for each in named if _once([(row.get(model or ""), row.get(each)) for row in rows])]
        named = once or named  # an id that comes several times a model names a group of items
    if named or only_usual:
        return named[0] if named else None
    if name == "score":
        return next((key for key, value in record.items() if isinstance(value, bool)), None)
    if name == "item_id":
        kinds = (str, int) if len(rows) > 1 else ()
        fields = [key for key in record if key.lower() not in _SCORES and not _NO_SCORES.search(key.lower())]
        return next((key for kind in kinds for key in fields if _distinct([row.get(key) for row in rows], kind)), None)
    return None


def _once(keys: list[Any]) -> bool:
    return all(isinstance(key[1], str | int) for key in keys) and len(set(map(str, keys))) == len(keys)


def _distinct(values: list[Any], kind: type) -> bool:
    each_fits = all(type(value) is kind and 0 < len(str(value)) <= _LONGEST_ID for value in values)
    return each_fits and len(set(values)) == len(values)


def _table(path: Path, found: _Found) -> Proposal:
    names, rows = found.names, [flatten(record) for record in found.records if isinstance(record, dict)]
    guesses = list[str]()
    captured = {name[1:-1] for name in names if name.startswith("{")}
    if captured >= {"model", "item_id"} and not found.models:
        guesses.append("the outer names are models, and the inner ones items")
    fields = _fields(found, rows, captured, guesses)
    for name, (value, guess) in _defaults(path).items():
        if name not in fields and name not in captured:
            fields[name] = value
            guesses.append(guess)
    fields |= _scale(found, fields["score"], guesses)
    if rows and "repeat" not in fields and captured.isdisjoint({"item_id", "model"}):
        fields |= _repeats(found, rows, fields, guesses)
    names = names[1:] if names[:1] == [_EVERY] else names
    lines = ["[[map]]", f"files = {_quoted('*' + path.suffix)}"]
    lines += [f"records = {_quoted_names(names)}"] if names else []
    lines += [f"{name} = {value}" for name, value in fields.items()]
    return Proposal("\n".join(lines) + "\n", guesses)


def _defaults(path: Path) -> dict[str, tuple[str, str]]:
    """Return the value of a field that the records do not have, and the guess."""
    stem = path.name.partition(".")[0] or "benchmark"
    return {
        "item_id": ('"item_id"', "item_id: no field has a usual name; correct it"),
        "model": ("{ file = '([^/]+)/[^/]+$' }", f"the model is the folder of the file, {path.resolve().parent.name}"),
        "benchmark": (f"{{ value = {_quoted(stem)} }}", f"the benchmark is called {stem}, like the file"),
    }


def _fields(found: _Found, rows: Sequence[Mapping[str, Any]], captured: set[str], guesses: list[str]) -> dict[str, str]:
    """Return where each field of an event comes from."""
    fields = dict[str, str]()
    up = "../" if found.models else ""
    for name in ("benchmark", "item_id", "model", "cluster", "repeat"):
        if name in captured or not rows:
            continue
        field = _find(rows, name)
        if field is not None:
            literal = "." in field and field in found.records[0]
            fields[name] = _quoted_names([field]) if literal else _quoted(up + field)
        elif name in {"model", "benchmark"} and (outer := _inherited(found, name)) is not None:
            fields[name] = _quoted(up + outer)
    if found.models or not rows:
        fields["score"] = '"."'
    if found.models:
        fields["models"] = f"[{', '.join(map(_quoted, found.models))}]"
        guesses.append(f"the columns {_some(found.models)} are models")
    elif rows:
        score = found.scores[0] if found.scores else _find(rows, "score") or ""
        literal = "." in score and score in found.records[0]
        fields["score"] = _quoted_names([score]) if literal else _quoted(score)
        others = f"; {_some(found.scores[1:])} may be it too" if found.scores[1:] else ""
        guesses.append(f"score = {fields['score']}{others}")
    return fields


def _some(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(map(shorten, names[:_LISTED])) + (f" and {more:,} more" if more > 0 else "")


def _repeats(
    found: _Found, rows: Sequence[Mapping[str, Any]], fields: Mapping[str, str], guesses: list[str]
) -> dict[str, str]:
    """Return the field that numbers the records of one model and item, where there are several."""
    own = [json.loads(fields[name]) for name in ("benchmark", "model", "item_id") if fields[name].startswith('"')]
    if found.models or any(field not in rows[0] for field in own):
        return {}
    keys = [tuple(str(row.get(field)) for field in own) for row in rows]
    if len(set(keys)) == len(keys):
        return {}
    for name in rows[0]:
        whole = all(type(row.get(name)) is int and row[name] >= 0 for row in rows)
        if whole and len({(key, row[name]) for key, row in zip(keys, rows, strict=True)}) == len(keys):
            guesses.append(f"{shorten(name)} numbers the repeats of an item")
            return {"repeat": _quoted(name)}
    guesses.append(
        "several records of one model and item, and no field that numbers them: the first counts; correct item_id or model, or add repeat"
    )
    return {}


def _quoted(path: str) -> str:
    """Return text as TOML; what a terminal would not print as it is comes as an escape."""
    return "".join(
        each if each.isprintable() else f"\\u{ord(each):04x}" if ord(each) < 1 << 16 else f"\\U{ord(each):08x}"
        for each in json.dumps(path, ensure_ascii=False)
    )


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
    values = [percentage(value) for value in values]
    if not found.models and _LOWER.search((path if isinstance(path, str) else path[0]).lower()):
        guesses.append("lower_is_better: the score counts one minus its value")
        return {"lower_is_better": "true", **_largest(values, guesses)}
    words = {value for value in values if isinstance(value, str) and isinstance(read_score(value), str)}
    if words:
        known = {word: _WORDS.get(word.lower()) for word in sorted(words)}
        if any(score is None for score in known.values()):
            guesses.append("some words are no scores; give each a number in scores")
        pairs = ", ".join(f"{json.dumps(word, ensure_ascii=False)} = {score or 0}" for word, score in known.items())
        return {"scores": f"{{ {pairs} }}"}
    return _largest(values, guesses)


def _largest(values: Sequence[object], guesses: list[str]) -> dict[str, str]:
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

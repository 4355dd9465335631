"""Propose a mapping for a file: where its records are, and which of their fields are those of an event."""

import json
import math
import re
import string
from collections.abc import Callable, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

from monitor.files.formats.detect import Kind, format_of, is_inspect
from monitor.files.formats.log_file import table_name
from monitor.files.formats.outline import outline
from monitor.files.formats.registry import Format
from monitor.files.maps import hints
from monitor.files.maps.mapped import percentage, read_rows
from monitor.files.maps.places import EVERY, KEYED, Column, holds_columns, places
from monitor.files.maps.roles import Roles, assign, counts, some
from monitor.files.streams.encodings import open_stream
from monitor.files.streams.regular import Refusal
from monitor.files.tables.battle_columns import is_battle, refusal_of
from monitor.files.tables.columns import answer_remedy, flatten
from monitor.files.tables.json_lines import is_sample
from monitor.files.tables.parquet import is_lighteval
from monitor.files.tables.tables import SUMMARY, SUMMARY_REMEDY
from schemas.records.lenient import read_score, without_value
from schemas.records.text import shorten

_FEW: Final = 2
_LINE_BYTES: Final = 1 << 20
_HEAD_BYTES: Final = 4_096
_SCALES: Final = (5, 10, 100)
_WORD: Final = string.ascii_letters + string.digits + "."
"""Characters of one word of a file's name: 4.1 and 4.5 are versions, and not parts of them."""


class Proposal(NamedTuple):
    """Tables ``[[map]]`` as text, and what of them is a guess."""

    text: str
    guesses: list[str]


def harness_of(path: Path) -> str | None:
    """Return the harness whose results a file holds, None for tables and unknown files, which a mapping may describe."""
    found = format_of(path)
    if isinstance(found, Format):
        return found.name if found.refusal is None else None
    if found is Kind.INSPECT:
        return "Inspect" if is_inspect(path) else None
    if found is Kind.PARQUET:
        return "lighteval" if is_lighteval(path) else None
    return (
        "lm-evaluation-harness"
        if found is Kind.LINES and is_sample(_head(path, _LINE_BYTES).partition(b"\n")[0])
        else None
    )


def _head(path: Path, size: int = _HEAD_BYTES) -> bytes:
    stream = open_stream(path)
    try:
        return stream.read(size).lstrip()
    finally:
        stream.close()


def propose(path: Path, note: Callable[[str], None] | None = None) -> Proposal:
    """Propose a mapping; `note` as for `read_rows`."""
    known = format_of(path)
    if isinstance(known, Format) and known.refusal is not None:
        raise Refusal("file", f"a file of {known.name}", known.refusal)
    root = read_rows(path, note)[0]
    first = root[0] if isinstance(root, list) and root else None
    if isinstance(first, dict) and (reason := _refusal(list(flatten(first)))) is not None:
        raise Refusal("columns", "rows of another kind", reason)
    if (verdicts := _lists_of_ids(root, path)) is not None:
        return verdicts
    found = [roles for place in places(root) if (roles := assign(place)) is not None]
    best = max(found, key=lambda roles: roles.fit, default=None)
    if best is None:
        answers = dict.fromkeys(c.label for place in places(root) for c in place.columns if hints.is_answer(c.label))
        if len(answers) > 1:
            raise Refusal("score", "no score", answer_remedy(list(answers)))
        if totals := list(dict.fromkeys(c.label for place in places(root) for c in place.columns if counts(c))):
            reason = f"its records sum up items ({some(totals)}), and a total is no score of an item; give the file with a score an item"
            raise Refusal("score", "totals", reason)
        if crowded := [roles for place in places(root) if (roles := assign(place, crowded=True)) is not None]:
            raise _swapped(max(crowded, key=lambda roles: roles.fit))
        raise Refusal("file", "no records", f"{_missing(root)}; write the mapping by hand (docs/how-to/map-files.md)")
    return _table(path, best)


def _swapped(roles: Roles) -> Refusal:
    """Return the refusal of records that would have more models than items."""
    item, model = roles.columns["item_id"], roles.columns["model"]
    names = list(dict.fromkeys(map(str, model.values)))
    items = len(set(map(str, item.values)))
    reason = (
        f"{len(names):,} models ({some(names)}) on {items:,} item{'' if items == 1 else 's'} are most likely items, or no names of "
        "models; swap item_id and model (tables: --columns item_id=...,model=...), or write the mapping by hand "
        "(docs/how-to/map-files.md)"
    )
    return Refusal("model", f"{len(names)} models", reason)


def _refusal(names: list[str]) -> str | None:
    """Return what to do with rows that are battles, or totals, None if they are not."""
    if set(names) >= SUMMARY:
        return SUMMARY_REMEDY
    if is_battle(names):
        return "the rows are battles of two models, which are read without a mapping (docs/how-to/rank-battles.md)"
    return refusal_of(names)


def _missing(root: object) -> str:
    """Return what a file lacks, with the fields of its first record."""
    first = root[0] if isinstance(root, list) and root else root
    if not isinstance(first, dict) or not first:
        return "the file has no list or object of records"
    if holds_columns(first):
        return "the file has a list for each column; write it with an object for each record"
    names = list(flatten(first))
    if any(_is_ids(value) and _verdict(name) is not None for name, value in first.items()):
        return (
            f"the file lists items of one verdict ({some(names)}); a mapping reads it with a list of all items: "
            'items = "items.txt" and others = 1 (or 0)'
        )
    return f"no list or object in the file has records with an item and a score, and its first fields are {some(names)}"


def _verdict(name: str) -> int | None:
    """Return the score that a name such as `resolved_ids` gives its items."""
    parts = [word for word in hints.words(name) if word in hints.VERDICTS]
    return hints.VERDICTS[parts[0]] if len(parts) == 1 else None


def _is_ids(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, str | int) and not isinstance(each, bool) for each in value)
    )


def _lists_of_ids(root: object, path: Path) -> Proposal | None:
    """Return a table for each list of ids whose name is a verdict, if they have two verdicts or more and share no id."""
    if not isinstance(root, dict):
        return None
    lists = {name: value for name, value in root.items() if _verdict(name) is not None and _is_ids(value)}
    ids = [str(each) for value in lists.values() for each in value]
    if len({_verdict(name) for name in lists}) < _FEW or len(set(ids)) < len(ids):
        return None
    scalars = {name: value for name, value in root.items() if isinstance(value, str)}
    fields, guesses = dict[str, str](), list[str]()
    model = max(scalars, key=lambda name: hints.rank("model", name), default=None)
    if model is not None and hints.rank("model", model) > 0:
        fields["model"] = _source(Column(model, [], 2, (model,)))
    alike = _alike_files(path)
    fields |= _from_path(path, alike, fields, guesses)
    tables = []
    for name in lists:
        guesses.append(f"the items of {shorten(name)} have the score {_verdict(name)}")
        own = {"item_id": '"."', **fields, "score": f"{{ value = {_verdict(name)} }}"}
        tables += [_lines(pattern, (name, EVERY), own) for pattern in _patterns(path, alike)]
    return Proposal("\n".join(tables), guesses)


def _table(path: Path, roles: Roles) -> Proposal:
    names, columns = list(roles.place.names), roles.columns
    for field, column in columns.items():
        if column.level is not None:
            names[column.level] = f"{{{field}}}"
    in_list = names[:1] == [EVERY] and names[1:2] != [EVERY]  # the elements of a list are records without a path
    names = [EVERY if name == KEYED else name for name in names[in_list:]]
    order = ("benchmark", "item_id", "model", "cluster", "repeat", "epoch", "score")
    fields = {name: _source(columns[name]) for name in order if name in columns and columns[name].level is None}
    guesses = list(roles.guesses)
    if roles.place.only:
        fields["models" if names[-1] == "{model}" else "only"] = f"[{', '.join(map(_quoted, roles.place.only))}]"
    alike = _alike_files(path)
    fields |= _from_path(path, alike, {**fields, **columns}, guesses)
    fields |= _scale(columns["score"], guesses)
    return Proposal("\n".join(_lines(pattern, names, fields) for pattern in _patterns(path, alike)), guesses)


def _lines(files: str, names: Sequence[str], fields: Mapping[str, str]) -> str:
    lines = ["[[map]]", f"files = {_quoted(files)}"]
    lines += [f"records = {_path(names)}"] if names else []
    lines += [f"{name} = {value}" for name, value in fields.items()]
    return "\n".join(lines) + "\n"


def _patterns(path: Path, alike: Sequence[Path]) -> list[str]:
    """Return the names of a file and of its neighbours of the same shape: one pattern, if it matches no other shape."""
    path = path.resolve()
    pattern = f"{escape(_common(path, alike)[0])}*{escape(path.suffix)}"
    if alike and {each for each in path.parent.glob(pattern) if each.is_file()} <= {path, *alike}:
        return [pattern]
    return [escape(each.name) for each in (path, *alike)]


def _from_path(path: Path, others: Sequence[Path], known: Mapping[str, Any], guesses: list[str]) -> dict[str, str]:
    """Return a model and a benchmark that the records do not have: what differs between files, of their folders or of their names."""
    fields = dict[str, str]()
    path = path.resolve()
    stem, folder = table_name(path) or "benchmark", path.parent.name
    beside = any(each.joinpath(path.name).is_file() for each in _folders(path.parent.parent) if each != path.parent)
    by_name = "model" not in known and bool(others) and not beside
    alone = not others and not beside and hints.is_model(stem) and not hints.is_model(folder)
    if by_name:
        start, end = _common(path, others)
        fields["model"] = f"{{ file = '{re.escape(start)}([^/]+?){re.escape(end + path.name[len(stem) :])}$' }}"
        model = stem[len(start) : len(stem) - len(end)]
        near, are = some([each.name for each in others[:3]]), "is" if len(others) == 1 else "are"
        guesses.append(f"the model is {shorten(model)}, of the name of the file, as {near} {are} next to it")
    elif "model" not in known and alone:
        by_name = True
        fields["model"] = f"{{ file = '([^/]+?){re.escape(path.name[len(stem) :])}$' }}"
        guesses.append(f"the model is {shorten(stem)}, the name of the file")
    elif "model" not in known:
        fields["model"] = "{ file = '([^/]+)/[^/]+$' }"
        guesses.append(f"the model is the folder of the file, {folder}")
    if "benchmark" not in known:
        fields["benchmark"] = f"{{ value = {_quoted(folder if by_name else stem)} }}"
        guesses.append(
            f"the benchmark is called {folder if by_name else stem}, like the {'folder' if by_name else 'file'}"
        )
    return fields


def _common(path: Path, others: Sequence[Path]) -> tuple[str, str]:
    """Return what the names of files have in common before and after the part that differs."""
    return _around([table_name(each) for each in (path.resolve(), *others)])


def _alike_files(path: Path) -> list[Path]:
    """Return the files of one kind and shape next to a file."""
    path = path.resolve()
    return [each for each in sorted(path.parent.iterdir()) if each.is_file() and each != path and _alike(path, each)]


def _alike(path: Path, other: Path) -> bool:
    """Return whether two files are of one kind and shape, as far as their beginnings show."""
    if path.suffix != other.suffix:
        return False
    first, second = map(_head, (path, other))
    if path.suffix in {".json", ".jsonl", ".ndjson", ".yaml", ".yml"}:
        return _names(outline(first)) == _names(outline(second))
    return first.partition(b"\n")[0] == second.partition(b"\n")[0]


def _names(value: object) -> object:
    """Return the names of the fields of a value, of lists those of the first element."""
    if isinstance(value, list):
        return [_names(value[0])] if value else []
    return sorted(value) if isinstance(value, dict) else None


def _around(stems: Sequence[str]) -> tuple[str, str]:
    """Return what names have in common before and after the part that differs, in whole words.

    >>> _around(["results_gpt-4_v2", "results_llama_v2"])
    ('results_', '_v2')
    >>> _around(["gpt-4.1", "gpt-4.5"])
    ('gpt-', '')
    """
    start = _shared(stems)
    end = _shared([stem[len(start) :][::-1] for stem in stems])[::-1]
    return start.rstrip(_WORD), end.lstrip(_WORD)


def _shared(texts: Sequence[str]) -> str:
    """Return the longest beginning of texts that is the same."""
    first, last = min(texts), max(texts)
    return first[: next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def _folders(folder: Path) -> list[Path]:
    try:
        return [each for each in folder.iterdir() if each.is_dir()]
    except OSError:
        return []


def _source(column: Column) -> str:
    """Return where a field comes from, as TOML."""
    if not column.path:
        return '"."'
    if any("." in name or not name for name in column.path):
        return f"[{', '.join(map(_quoted, (*['..'] * column.up, *column.path)))}]"
    return _quoted("../" * column.up + ".".join(column.path))


def _path(names: Sequence[str]) -> str:
    """Return a path as TOML: text, or a list where a name has a dot."""
    plain = all(name and "." not in name for name in names)
    return _quoted(".".join(names)) if plain else f"[{', '.join(map(_quoted, names))}]"


def _quoted(text: str) -> str:
    """Return text as TOML; what a terminal would not print as it is comes as an escape."""
    return "".join(
        each if each.isprintable() else f"\\u{ord(each):04x}" if ord(each) < 1 << 16 else f"\\U{ord(each):08x}"
        for each in json.dumps(text, ensure_ascii=False)
    )


def _scale(score: Column, guesses: list[str]) -> dict[str, str]:
    """Return the scale that the scores need, their direction, and the words that they are."""
    values = [percentage(value) for value in map(without_value, score.values) if value is not None]
    fields = dict[str, str]()
    if hints.lower_is_better(score.label):
        guesses.append("lower_is_better: the score counts one minus its value")
        fields["lower_is_better"] = "true"
    texts = sorted({value for value in values if isinstance(value, str) and isinstance(read_score(value), str)})
    if texts:
        known = {word: hints.VERDICTS[word.strip().lower()] for word in texts if word.strip().lower() in hints.VERDICTS}
        if unknown := [word for word in texts if word not in known]:
            guesses.append(
                f"{some(unknown)}: no score is known for them, and they are rejected; give each a number in scores"
            )
        pairs = ", ".join(f"{_quoted(word)} = {number}" for word, number in known.items())
        fields["scores"] = f"{{ {pairs} }}" if pairs else "{}"
    return fields | _largest(score.label, values, guesses)


def _largest(label: str, values: Sequence[object], guesses: list[str]) -> dict[str, str]:
    numbers = [
        value
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]
    largest = max(numbers, default=0)
    if (smallest := min(numbers, default=0)) < 0:
        size = max(largest, -smallest)
        end = next((each for each in (1, *_SCALES) if size <= each), size)
        guesses.append(
            f'scale = "-{end:g}:{end:g}": scores go from {smallest:g} to {largest:g}; correct both ends if a score can be another'
        )
        return {"scale": f'"-{end:g}:{end:g}"'}
    if largest <= 1:
        return {}
    stated = hints.largest(label)
    usual = None if hints.lower_is_better(label) else next((each for each in _SCALES if largest <= each), None)
    scale = stated if stated is not None and largest <= stated else usual
    if scale is None:
        guesses.append(f"the largest score is {largest:g}; give its scale")
        return {"scale": f"{largest:g}"}
    doubt = "" if scale in {largest, stated} else "; correct it if a score can be another"
    guesses.append(f"scale = {scale}: the largest score is {largest:g}{doubt}")
    return {"scale": str(scale)}

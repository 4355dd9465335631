"""Exports with a row an answer and a column a metric, as CSV, JSON or JSON lines: the metric is chosen as for other harnesses."""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final, NamedTuple

from monitor.files.formats.documents import broken, decode_as, read_bytes
from monitor.files.formats.log_file import LogFile, table_name
from monitor.files.formats.results import Entry, Result, ResultColumns
from monitor.files.streams.regular import Broken, Refusal
from monitor.files.streams.translated import MAX_SAMPLE_BYTES
from schemas.records.lenient import read_score, without_value
from schemas.records.text import shorten

_SEPARATORS: Final = ",;\t"
_JSON: Final = frozenset(b"[{")

_MOST: Final = 1 << 53  # whole numbers from which not all are floats

Rows = Mapping[str, Sequence[Any]]  # the cells of each column


class Titles(NamedTuple):
    """What the path of a file names, where the file does not."""

    benchmark: str
    model: str


def titles_of(log: LogFile, tool: str) -> Titles:
    """Return the benchmark and the model of a file that names neither: its folder, and its own name."""
    named = log.title if log.title is not None and log.title.model is not None else None
    benchmark = named.benchmark if named else log.path.parent.name or tool
    return Titles(benchmark, named.model if named and named.model else table_name(log.path))


def read_rows(log: LogFile) -> Rows:
    """Read a file as columns of cells, all of one length."""
    data = read_bytes(log.path, log.note)
    if data.lstrip()[:1] and data.lstrip()[0] in _JSON:
        return _by_name(_objects(data))
    return _table(log, data)


def _objects(data: bytes) -> list[dict[str, Any]]:
    """Return the objects of an array, or of JSON lines; of a document with a column a field, as pandas writes it, its rows."""
    try:
        document = decode_as(data, object)
    except (ValueError, RecursionError) as error:
        lines = data.splitlines()
        try:
            document = [decode_as(line, object) for line in lines if line.strip()]
        except (ValueError, RecursionError):
            raise broken(data, error) from error
    if isinstance(document, dict) and all(isinstance(column, dict) for column in document.values()):
        keys = dict.fromkeys(key for column in document.values() for key in column)
        document = [{name: column.get(key) for name, column in document.items()} for key in keys]
    document = [document] if isinstance(document, dict) else document
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise Refusal("file", "a JSON document", "the file is not an array of rows; use it as the tool writes it")
    return document


def _by_name(rows: list[dict[str, Any]]) -> Rows:
    shapes = dict.fromkeys(map(tuple, rows))
    if len(shapes) == 1 and any(shapes):
        return dict(zip(rows[0], zip(*(row.values() for row in rows), strict=True), strict=True))
    names = dict.fromkeys(name for shape in shapes for name in shape)
    return {name: [row.get(name) for row in rows] for name in names}


def _table(log: LogFile, data: bytes) -> Rows:
    """Return the cells of a table; the file is refused from where it does not hold together."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise broken(data, error, "the table") from error
    csv.field_size_limit(MAX_SAMPLE_BYTES)  # prompts are longer than what the module takes for a cell
    header = text.partition("\n")[0]
    separator = max(_SEPARATORS, key=header.count)
    try:
        names, *rows = filter(any, csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise Broken("the table is not valid CSV; remove NUL characters and unescaped line breaks") from error
    except ValueError:
        raise Broken("the file is empty") from None
    if text.count('"') % 2 or (rows and len(rows[-1]) < len(names)):
        raise Broken("the table breaks off within its last row")
    if not text.endswith("\n"):
        log.note("no line end follows the last row; if the file was cut off, the last cell may be too")
    wrong = next((k for k, row in enumerate(rows, 2) if len(row) != len(names) or row == names), None)
    if wrong is not None:
        found = (
            "repeats the names of the columns" if rows[wrong - 2] == names else f"has {len(rows[wrong - 2]):,} cells"
        )
        reason = f"row {wrong:,} {found}, and the table has {len(names):,} columns; give each table a file, as the tool writes it"
        raise Refusal("record", f"row {wrong:,}", reason)
    return dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))


def metrics_of(rows: Rows, others: Collection[str]) -> dict[str, Sequence[Any]]:
    """Return the columns that hold scores, as numbers; text, and what `others` names, is none."""
    found = {}
    for name in rows.keys() - others if rows else ():
        scores = _numbers(rows[name])
        if any(isinstance(score, bool | int | float) for score in scores):
            found[name] = scores
    return {name: found[name] for name in rows if name in found}


def _numbers(cells: Sequence[Any]) -> list[Any]:
    """Return cells as scores: a number, text that writes one, or a list, whose mean counts."""
    known: dict[tuple[type, Any], object] = {}
    scores = []
    for cell in cells:
        value = cell[0] if type(cell) is list and len(cell) == 1 else cell
        key = type(value), value  # 1 and true are equal
        try:
            scores.append(known[key])
        except KeyError:
            scores.append(known.setdefault(key, _number(value)))
        except TypeError:  # a list or an object
            scores.append(_number(value))
    return scores


def _number(cell: object) -> object:
    if isinstance(cell, str) and cell.startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return cell
    if isinstance(cell, list):
        values: list[Any] = [read_score(without_value(each)) for each in cell]
        if len(values) > 1 and all(isinstance(each, int | float) for each in values):
            return math.fsum(values) / len(values)
        cell = values[0] if values else None
    score = read_score(without_value(cell))
    return float(score) if type(score) is int and abs(score) < _MOST else score


def texts(cells: Iterable[Any]) -> list[str]:
    """Return cells as the text that names an item; an object is written as JSON."""
    return [
        cell if isinstance(cell, str) else "" if cell is None else json.dumps(cell, sort_keys=True, ensure_ascii=False)
        for cell in cells
    ]


def results_of(
    log: LogFile,
    tool: str,
    items: Sequence[str],
    metrics: Mapping[str, Sequence[Any]],
    *,
    models: Sequence[str | None] | None = None,
    failures: Sequence[str | None] | None = None,
    attempts: Sequence[int] | None = None,
    unscored: bool = True,
    benchmark: str | None = None,
) -> Iterator[Entry]:
    """Return the results of rows: the columns of each model, and failed ones one by one."""
    # The file names the benchmark, and the model of a row, where they are not given. Without `attempts` rows of one item are its repeats;
    # rows without a score are omitted unless `unscored`.
    titles = titles_of(log, tool)
    titles = titles._replace(benchmark=benchmark or titles.benchmark)
    names = [name or titles.model for name in models] if models is not None else [titles.model] * len(items)
    if log.model is None and titles.model in names:
        log.note(
            f"the model is called {shorten(titles.model)} and the benchmark {shorten(titles.benchmark)}, like the file"
        )
    failed = [reason is not None for reason in failures] if failures is not None else [False] * len(items)
    if not metrics and not any(failed):
        reason = "no column has scores; check that the run was scored, or name the columns of a table with --columns"
        raise Refusal("metric", "no scores", reason)
    scored = [True] * len(items)
    if not unscored:
        scored = [any(each is not None for each in row) for row in zip(*metrics.values(), strict=True)] or failed
    keep = [bool(item) and (has or fails) for item, has, fails in zip(items, scored, failed, strict=True)]
    if len(keep) > sum(keep):
        lack = "item" if unscored else "score, or no item,"
        log.note(f"{len(keep) - sum(keep):,} of {len(keep):,} rows have no {lack} and are omitted")
    if attempts is None:
        attempts = _repeats(log, names, items, keep)
    of: dict[str, list[int]] = {}
    for k in compress(range(len(names)), keep):
        of.setdefault(names[k], []).append(k)
    for model, places in of.items():
        good = [k for k in places if not failed[k]]
        yield ResultColumns(
            titles.benchmark,
            model,
            [items[k] for k in good],
            {name: [column[k] for k in good] for name, column in metrics.items()},
            repeats=[attempts[k] for k in good] if any(attempts) else None,
            numbers=[k + 1 for k in good],
        )
        for k in places:
            if failures is not None and failed[k]:
                values = {name: column[k] for name, column in metrics.items()}
                yield Result(titles.benchmark, model, items[k], values, attempts[k], failure=failures[k], number=k + 1)


def _repeats(log: LogFile, models: Sequence[str], items: Sequence[str], keep: Sequence[bool]) -> list[int]:
    """Count how often the item of each row came before with its model."""
    seen: Counter[tuple[str, str]] = Counter()
    repeats = []
    for key, kept in zip(zip(models, items, strict=True), keep, strict=True):
        repeats.append(seen[key])
        seen[key] += kept
    if any(count > 1 for count in seen.values()):
        log.note("rows of one item and model are its repeats")
    return repeats

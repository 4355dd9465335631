"""OpenCompass: ``results/MODEL/DATASET.json`` of a run with ``--dump-eval-details``."""

import os
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, ResultColumns, Tool
from monitor.files.streams.regular import Refusal
from schemas.records.text import Fault, shorten

_VERDICTS: Final = ("is_correct", "correct")
_SPLIT: Final = re.compile(r"(.+)_(\d+)")


class Results(msgspec.Struct):
    """What is read of a file of results."""

    details: list[dict[str, Any]] | dict[str, Any]


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of a dataset."""
    details = read_document(log.path, Results, TOOL.name).details
    model, benchmark, part = log.path.parent.name, log.path.name.partition(".json")[0], None
    split = _SPLIT.fullmatch(benchmark)
    if split and os.path.lexists(log.path.with_name(f"{split[1]}_0.json")):
        benchmark, part = split[1], split[2]
    rows = details.items() if isinstance(details, dict) else ((str(k), row) for k, row in enumerate(details))
    log.note(f"the model is called {shorten(model)}, like the folder")
    if (results := _by_column(details, benchmark, model, log)) is not None:
        yield results
        return
    for number, (key, row) in enumerate(rows, 1):
        if not isinstance(row, dict):
            continue  # a dict of details also has counts of the whole set
        name = next((name for name in _VERDICTS if name in row), None)
        if name is None:
            reason = f"detail {shorten(key)} has none of {', '.join(_VERDICTS)}; use an evaluator that judges each item, or --map"
            raise Refusal("details", shorten(key), reason, benchmark)
        item = row.get("example_abbr")
        item = item if isinstance(item, str) else key if part is None else f"{part}/{key}"
        verdicts = row[name] if isinstance(row[name], list) else [row[name]]
        if not verdicts:
            yield Fault(name, "an empty list", f"{shorten(item)} has no verdict; run it again", benchmark)
        for repeat, verdict in enumerate(verdicts):
            yield Result(benchmark, model, item, {name: verdict}, repeat, row, number=number)


def _by_column(details: object, benchmark: str, model: str, log: LogFile) -> ResultColumns | None:
    """Return the results of rows with a name and one verdict each; None if they are not all like that."""
    rows = details if isinstance(details, list) else []
    name = next((name for name in _VERDICTS if rows and name in rows[0]), _VERDICTS[0])
    first = _VERDICTS[0]
    try:
        items = [row["example_abbr"] for row in rows]
        lists = [row[name] for row in rows]
        verdicts = [verdict for (verdict,) in lists]
    except (KeyError, TypeError, ValueError):
        return None
    if (
        set(map(type, items)) != {str}
        or set(map(type, lists)) != {list}
        or (name != first and any(first in row for row in rows))
    ):
        return None
    field = log.choices.cluster_field(rows[0])
    tags = {field: [row.get(field) for row in rows]} if field is not None else {}
    return ResultColumns(benchmark, model, items, {name: verdicts}, tags)


TOOL: Final = Tool("results of OpenCompass", read)

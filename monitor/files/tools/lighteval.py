"""lighteval: ``details/ORG/MODEL/DATE/details_TASK_DATE.parquet``, a row a document."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_beside, scalars
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Run, Tool
from schemas.records.text import Fault, shorten

COLUMNS: Final = frozenset({"doc", "metric"})
_FILE: Final = re.compile(r"details_(.+)_(\d{4}-\d\d-\d\dT.+)\.parquet")


class General(msgspec.Struct):
    """The configuration of a run."""

    model_name: str | None = None


class Results(msgspec.Struct):
    """The results file of a run."""

    config_general: General = msgspec.field(default_factory=General)


def results(log: LogFile, rows: Iterable[Mapping[str, Any]]) -> Iterator[Entry]:
    """Return the results of a task."""
    match = _FILE.fullmatch(log.path.name)
    task, date = (match[1], match[2]) if match else (log.path.stem, log.path.parent.name)
    model = _model(log, date)
    yield Run(task, model, name=date)
    for number, row in enumerate(rows, 1):
        doc, metric = row.get("doc"), row.get("metric")
        doc, metric = _struct(doc), _struct(metric)
        item = doc.get("id")
        if not isinstance(item, str | int) or not metric:
            yield Fault("doc.id", shorten(item), "the row has no id or no metric; write the details again", task)
            continue
        yield Result(task, model, str(item), metric, tags=scalars(_struct(doc.get("specific"))), number=number)


def _struct(value: object) -> dict[str, Any]:
    """Return a struct; some versions write it as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _model(log: LogFile, date: str) -> str:
    """Return the model from the results file of the run, or from the folders ORG and MODEL."""
    folders = log.path.parent.parent
    parts: list[str] = []
    above: Path = folders
    while above.name and above.name != "details" and len(parts) < 3:
        parts.insert(0, above.name)
        above = above.parent
    if above.name == "details":
        found = read_beside(
            above.parent.joinpath("results", *parts, f"results_{date}.json"), Results, above=len(parts) + 1
        )
        if found is not None and found.config_general.model_name:
            return found.config_general.model_name
        name = "/".join(parts)
    else:
        name = folders.name
    log.note(f"the model is called {shorten(name)}, like its folder")
    return name


TOOL: Final = Tool("details of lighteval")

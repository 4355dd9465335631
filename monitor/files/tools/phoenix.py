"""Phoenix: an experiment as JSON, a list of runs with their annotations."""

from collections import ChainMap
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile, table_name
from monitor.files.formats.results import Entry, Result, Tool
from schemas.records.text import shorten


class Annotation(msgspec.Struct):
    """A score of a run."""

    name: str
    score: Any = None
    label: Any = None


class Run(msgspec.Struct):
    """What is read of a run."""

    example_id: int | str
    repetition_number: int = 1
    error: Any = None
    annotations: list[Annotation] = []


def read(log: LogFile) -> Iterator[Entry]:
    """Return the runs of an experiment: an annotation is a metric, by its score, else its label; the file is the model."""
    titled = log.title if log.title is not None and log.title.model is not None else None
    benchmark = titled.benchmark if titled else log.path.parent.name or "phoenix"
    model = titled.model if titled and titled.model else table_name(log.path)
    if log.model is None:
        log.note(f"the model is called {shorten(model)} and the benchmark {shorten(benchmark)}, like the file")
    runs = read_document(log.path, list[Run], TOOL.name)
    names: dict[str, Any] = dict.fromkeys(each.name for run in runs for each in run.annotations)
    for number, run in enumerate(runs, 1):
        found = {each.name: each.label if each.score is None else each.score for each in run.annotations}
        failure = "error" if run.error is not None else None
        repeat = max(run.repetition_number - 1, 0)
        values = ChainMap(found, names)  # a run may lack any annotation of another
        yield Result(benchmark, model, str(run.example_id), values, repeat, failure=failure, number=number)


TOOL: Final = Tool("an experiment of Phoenix", read)

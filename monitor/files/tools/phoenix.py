"""Phoenix: an experiment as JSON, a list of runs with their annotations, or as CSV, with columns for each annotation."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Tool
from monitor.files.tools.scored_rows import metrics_of, read_rows, results_of, texts
from schemas.records.text import shorten

_SCORE: Final = re.compile(r"annotation_(.+)_(score|label)")


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


class Experiment(msgspec.Struct):
    """An experiment of a dataset."""

    id: str
    name: str
    runs: list[Run]


class Experiments(msgspec.Struct):
    """The experiments of a dataset, as they are fetched by the API."""

    dataset: str
    experiments: list[Experiment]


def read(log: LogFile) -> Iterator[Entry]:
    """Return the runs of an experiment: an annotation is a metric, by its score, else its label; the file is the model."""
    yield from _results(log, read_document(log.path, list[Run], TOOL.name))


def read_experiments(log: LogFile) -> Iterator[Entry]:
    """Return the runs of the experiments of a dataset: each is a model."""
    document = read_document(log.path, Experiments, EXPERIMENTS.name)
    for each in document.experiments:
        if not each.runs:
            log.note(f"the experiment {shorten(each.name)} has no runs, and is skipped")
    named = Counter(each.name for each in document.experiments if each.runs)
    models = [
        each.name if named[each.name] == 1 else f"{each.name} {each.id}"
        for each in document.experiments
        for _ in each.runs
    ]
    yield from _results(log, [run for each in document.experiments for run in each.runs], models, document.dataset)


def _results(
    log: LogFile, runs: list[Run], models: list[str] | None = None, benchmark: str | None = None
) -> Iterator[Entry]:
    found = [{each.name: each.label if each.score is None else each.score for each in run.annotations} for run in runs]
    names = dict.fromkeys(name for each in found for name in each)
    yield from results_of(
        log,
        "phoenix",
        [str(run.example_id) for run in runs],
        metrics_of({name: [each.get(name) for each in found] for name in names}, ()),
        models=models,
        failures=["error" if run.error is not None else None for run in runs],
        attempts=[max(run.repetition_number - 1, 0) for run in runs],
        benchmark=benchmark,
    )


def read_table(log: LogFile) -> Iterator[Entry]:
    """Return the runs of an experiment that was exported as CSV."""
    rows = read_rows(log)
    columns: dict[str, dict[str, Any]] = {}
    for column in rows:
        if (match := _SCORE.fullmatch(column)) is not None:
            columns.setdefault(match[1], {})[match[2]] = rows[column]
    given = {
        name: [
            label if score in {None, ""} else score
            for score, label in zip_longest(*(each.get(key, ()) for key in ("score", "label")))
        ]
        for name, each in columns.items()
    }
    repeats = [int(cell) - 1 if str(cell).isdecimal() and int(cell) else 0 for cell in rows["repetition_number"]]
    failures = ["error" if cell not in {None, ""} else None for cell in rows.get("error", ())] or None
    yield from results_of(
        log, "phoenix", texts(rows["example_id"]), metrics_of(given, ()), failures=failures, attempts=repeats
    )


TOOL: Final = Tool("an experiment of Phoenix", read)
TABLE: Final = Tool("an experiment of Phoenix", read_table)
EXPERIMENTS: Final = Tool("experiments of Phoenix", read_experiments)

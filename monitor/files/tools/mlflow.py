"""MLflow: the traces of ``mlflow.genai.evaluate``, as ``search_traces`` returns them, with ``runs.csv`` next to them."""

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import bytes_beside, field_at, item_of, read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from schemas.records.text import shorten

_RUN: Final = "mlflow.sourceRun"


class Feedback(msgspec.Struct):
    """The value of an assessment."""

    value: Any = None
    error: Any = None


class Assessment(msgspec.Struct):
    """What a scorer, a judge or a person gave."""

    assessment_name: str
    feedback: Feedback | None = None
    valid: bool = True


class Info(msgspec.Struct):
    """What is read of a trace."""

    trace_location: dict[str, Any] = {}
    trace_metadata: dict[str, Any] = {}
    assessments: list[Assessment] = []
    tags: dict[str, Any] = {}
    request_preview: str | None = None
    trace_id: str = ""


class Trace(msgspec.Struct):
    """A trace."""

    info: Info


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of traces; expectations are no results, and a trace has a new id in each run."""
    traces = read_document(log.path, list[Trace], TOOL.name)
    models = _models(log)
    for number, trace in enumerate(traces, 1):
        info = trace.info
        run = str(info.trace_metadata.get(_RUN, ""))
        model = models.get(run)
        if model is None:
            model = run or log.path.stem
            if log.model is None:
                log.note(
                    f"no runs.csv next to the file has params.model of run {shorten(run)}; the model is called "
                    f"{shorten(model)}; name it with NAME=PATH (the field model of an upload)"
                )
        experiment = field_at(info.trace_location, "mlflow_experiment", "experiment_id")
        benchmark = f"mlflow-{experiment}" if isinstance(experiment, str) and experiment else "mlflow"
        feedback = {
            each.assessment_name: each.feedback for each in reversed(info.assessments) if each.feedback and each.valid
        }
        if not feedback:
            continue
        values = {name: feedback[name].value for name in sorted(feedback)}
        yield Result(benchmark, model, _item(info), values, tags=info.tags, number=number)


def _item(info: Info) -> str:
    name = info.tags.get("item_id")
    return item_of(name if isinstance(name, str) and name else info.request_preview or info.trace_id)


def _models(log: LogFile) -> dict[str, str]:
    """Read which model each run had from ``runs.csv``, as ``search_runs`` returns it."""
    data = bytes_beside(log.path.with_name("runs.csv")) or b""
    try:
        rows = list(csv.DictReader(io.StringIO(data.decode("utf-8", "replace"))))
    except csv.Error:
        return {}
    return {row["run_id"]: model for row in rows if row.get("run_id") and (model := row.get("params.model"))}


TOOL: Final = Tool("traces of MLflow", read)

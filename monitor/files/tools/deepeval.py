"""DeepEval: a test run in its results folder."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, ResultColumns, Tool
from schemas.records.text import shorten


class Metric(msgspec.Struct):
    """The result of a metric."""

    name: str
    score: Any = None
    success: Any = None
    error: Any = None


class TestCase(msgspec.Struct):
    """What is read of a test case."""

    name: str | None = None
    input: str | None = None
    metrics: list[Metric] | None = msgspec.field(default=None, name="metricsData")
    tags: list[Any] | None = None


class Run(msgspec.Struct):
    """What is read of a test run."""

    cases: list[TestCase] = msgspec.field(name="testCases")
    identifier: str | None = None
    hyperparameters: dict[str, Any] | None = None


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of a test run: the score of each metric, and `METRIC.success`, whether it reached its threshold."""
    run = read_document(log.path, Run, TOOL.name)
    named = (run.hyperparameters or {}).get("model")
    model = named if isinstance(named, str) and named else run.identifier
    if model is None:
        model = log.path.stem
        if log.model is None:
            log.note(
                f"the run names no model; it is called {shorten(model)}, like the file; name it with NAME=PATH (the field model of an "
                "upload)"
            )
    if (results := _by_column(run.cases, model)) is not None:
        yield results
        return
    for number, case in enumerate(run.cases, 1):
        values: dict[str, Any] = {}
        for metric in case.metrics or ():
            values[metric.name] = metric.score
        for metric in case.metrics or ():
            values[f"{metric.name}.success"] = metric.success
        error = next((True for metric in case.metrics or () if metric.error), False)
        tags = {"tag": case.tags[0]} if case.tags else {}
        failed = "metric error" if error and all(value is None for value in values.values()) else None
        if values:
            yield Result(_BENCHMARK, model, _item(case), values, tags=tags, failure=failed, number=number)


def _by_column(cases: Sequence[TestCase], model: str) -> ResultColumns | None:
    """Return the results of cases that have the same metrics, none of which failed; None if they are not all like that."""
    metrics = [case.metrics or [] for case in cases]
    names = [metric.name for metric in metrics[0]] if metrics else []
    same = all([metric.name for metric in each if not metric.error] == names for each in metrics)
    if not names or not same or len(set(names)) < len(names) or any(case.tags for case in cases):
        return None
    values = {name: [each[k].score for each in metrics] for k, name in enumerate(names)}
    values |= {f"{name}.success": [each[k].success for each in metrics] for k, name in enumerate(names)}
    return ResultColumns(_BENCHMARK, model, list(map(_item, cases)), values)


def _item(case: TestCase) -> str:
    return case.name or hashlib.sha256((case.input or "").encode("utf-8", "replace")).hexdigest()[:16]


_BENCHMARK: Final = "deepeval"

TOOL: Final = Tool("a test run of DeepEval", read)

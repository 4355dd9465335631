"""LiveCodeBench: the performances of its leaderboard, one document for all models, and the ``eval_all.json`` of a run."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_document, text_of
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, ResultColumns, Tool
from monitor.files.streams.regular import Refusal
from schemas.records.text import Fault, shorten


class Document(msgspec.Struct):
    """What is read of the document."""

    performances: list[dict[str, Any]]


_FIELDS: Final = frozenset({"model", "question_id", "sample_id", "date", "difficulty", "platform"})


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of all models: a sample is an item, and its question a cluster."""
    number = 1
    for model, group in groupby(
        read_document(log.path, Document, TOOL.name).performances, lambda row: row.get("model")
    ):
        rows = list(group)
        results = _by_column(rows, model, number) if isinstance(model, str) else None
        if results is not None:
            yield results
        else:
            yield from _one_by_one(rows, number)
        number += len(rows)


def _by_column(rows: Sequence[dict[str, Any]], model: str, number: int) -> ResultColumns | None:
    """Return the results of a model, from place `number` on; None unless all rows have the same fields, and a sample."""
    fields = rows[0].keys()
    if not fields >= {"question_id", "sample_id"} or any(row.keys() != fields for row in rows):
        return None
    columns = {name: [row[name] for row in rows] for name in fields}
    questions, samples = (list(map(text_of, columns[name])) for name in ("question_id", "sample_id"))
    if None in questions or None in samples:
        return None
    values = {name: column for name, column in columns.items() if name not in _FIELDS}
    tags = {**columns, "question_id": questions}
    return ResultColumns(_BENCHMARK, model, samples, values, tags, numbers=range(number, number + len(rows)))  # type: ignore[arg-type]


def _one_by_one(rows: Sequence[dict[str, Any]], start: int) -> Iterator[Entry]:
    for number, row in enumerate(rows, start):
        question, sample, model = text_of(row.get("question_id")), text_of(row.get("sample_id")), row.get("model")
        if question is None or not isinstance(model, str):
            name = "question_id" if question is None else "model"
            yield Fault(name, shorten(row.get(name)), f"the performance has no {name}; add it", _BENCHMARK)
            continue
        values = {name: value for name, value in row.items() if name not in _FIELDS}
        item = question if sample is None else sample
        tags = {**row, "question_id": question} if sample is not None else row
        yield Result(_BENCHMARK, model, item, values, tags=tags, number=number)


_BENCHMARK: Final = "livecodebench"

TOOL: Final = Tool(
    "performances of LiveCodeBench",
    read,
    metrics=("Pass@1", "pass@1"),
    scale={"Pass@1": 100.0, "pass@1": 100.0, "Pass@1-COT": 100.0},
    cluster="question_id",
)

_SCENARIO: Final = re.compile(r"(?:Scenario\.)?([a-z]+)_.*")


class Question(msgspec.Struct):
    """What is read of a question of a run."""

    question_id: int | str
    graded_list: list[Any] | None = None
    id: int | str | None = None
    test_id: int | str | None = None


def read_samples(log: LogFile) -> Iterator[Entry]:
    """Return the answers of a model to each question, which are repeats of it; the folder names the model."""
    model, scenario = log.path.parent.name, _SCENARIO.fullmatch(log.path.name)
    benchmark = f"{_BENCHMARK}-{scenario[1]}" if scenario else _BENCHMARK
    if log.model is None:
        log.note(f"the model is called {shorten(model)}, like the folder")
    questions = read_document(log.path, list[Question], SAMPLES.name)
    if any(question.graded_list is None for question in questions):
        raise Refusal(
            "graded_list", "nothing", "the file has answers without grades; give the *_eval_all.json of the run"
        )
    number = 0
    for question in questions:
        item = (
            f"{question.question_id}/{question.test_id}"
            if question.test_id is not None
            else str(question.question_id if question.id is None else question.id)
        )
        for repeat, passed in enumerate(question.graded_list or [None]):
            number += 1
            yield Result(
                benchmark,
                model,
                item,
                {"passed": passed},
                repeat,
                {"question_id": str(question.question_id)},
                number=number,
            )


SAMPLES: Final = Tool("answers of LiveCodeBench", read_samples)

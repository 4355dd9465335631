"""Single grades of an LLM judge: FastChat's ``MODEL_JUDGMENT/JUDGE_single.jsonl``, and its variant with a field for each turn."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import bytes_beside, text_of
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from schemas.records.text import Fault, shorten

_FAILED: Final = -1


class Grade(msgspec.Struct):
    """The grade of an answer."""

    question_id: Any = None
    model: str | None = None
    judge: list[Any] | str | None = None
    score: Any = None
    turn: int | None = None
    model_id: str | None = None
    judge_id: str | None = None
    score_turn1: Any = None
    score_turn2: Any = None
    category: str | None = None


def lines(log: LogFile) -> Callable[[Grade], Iterator[Entry]]:
    """Return a reader of grades; the turns of a dialogue are two items."""
    categories = _categories(log)
    first: str | None = None

    def read(grade: Grade) -> Iterator[Entry]:
        nonlocal first
        judge = grade.judge[0] if isinstance(grade.judge, list) and grade.judge else grade.judge or grade.judge_id
        judge = judge if isinstance(judge, str) else "unknown"
        question, model = text_of(grade.question_id), grade.model or grade.model_id
        if question is None or model is None:
            name = "question_id" if question is None else "model"
            yield Fault(name, "nothing", f"the grade has no {name}; add it", _BENCHMARK)
            return
        if first is None:
            first = judge
            log.runs.choose(_BENCHMARK, "judge", judge)
            log.note(f"grades of the judge {shorten(judge)}; the turns of a question are items of their own")
        if judge != first:
            reason = f"{shorten(judge)} is a second judge after {shorten(first)}; give each judge a file of its own"
            yield Fault("judge", shorten(judge), reason, _BENCHMARK)
            return
        category = grade.category or categories.get(question)
        tags = {"category": category} if category else {}
        turns = [(grade.turn or 1, grade.score)]
        if grade.model is None:
            turns = [(1, grade.score_turn1)] + ([(2, grade.score_turn2)] if grade.score_turn2 is not None else [])
        for turn, score in turns:
            item = f"{question}/{turn}"
            failure = "no grade" if score == _FAILED or score is None else None
            yield Result(_BENCHMARK, model, item, {"score": score}, tags=tags, failure=failure)

    return read


class _Question(msgspec.Struct):
    question_id: Any = None
    category: str | None = None


def _categories(log: LogFile) -> dict[str, str]:
    """Read the categories of the questions from ``question.jsonl`` in the folder above."""
    path = log.path.parent.parent / "question.jsonl"
    categories: dict[str, str] = {}
    decoder = msgspec.json.Decoder(_Question)
    for line in (bytes_beside(path) or b"").splitlines():
        try:
            question = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        name = text_of(question.question_id)
        if name is not None and question.category:
            categories[name] = question.category
    return categories


_BENCHMARK: Final = "mt_bench"

TOOL: Final = Tool("grades of a judge", lines=lines, record=Grade, metrics=("score",), scale={"score": 10.0})

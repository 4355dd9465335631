"""LiveBench: ``ground_truth_judgment.jsonl``, one judgment a line."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import text_of
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from schemas.records.text import Fault


class Judgment(msgspec.Struct):
    """The score of an answer."""

    question_id: Any = None
    task: str | None = None
    model: str | None = None
    score: Any = msgspec.UNSET
    category: str | None = None
    subtask: str | None = None


def lines(_: LogFile) -> Callable[[Judgment], Iterator[Entry]]:
    """Return a reader of judgments; ids are those of a task."""

    def read(judgment: Judgment) -> Iterator[Entry]:
        question = text_of(judgment.question_id)
        if question is None or judgment.model is None or judgment.task is None:
            name = "question_id" if question is None else "model" if judgment.model is None else "task"
            yield Fault(name, "nothing", f"the judgment has no {name}; add it", _BENCHMARK)
            return
        tags = {name: value for name in ("category", "task") if (value := getattr(judgment, name))}
        if judgment.subtask:
            tags[_CLUSTER] = f"{judgment.task}/{judgment.subtask}"
        yield Result(_BENCHMARK, judgment.model, question, {"score": judgment.score}, tags=tags, part=judgment.task)

    return read


_BENCHMARK: Final = "livebench"
_CLUSTER: Final = "task/subtask"

TOOL: Final = Tool("judgments of LiveBench", lines=lines, record=Judgment, cluster=_CLUSTER)

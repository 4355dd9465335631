"""aider: ``.aider.results.json`` of each exercise of its benchmark."""

from collections.abc import Iterator
from typing import Final

import msgspec

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Run, Tool

_TRIES: Final = 2  # tries of the published score
_MOST_TRIES: Final = 10
_PRACTICE: Final = "practice"


class Exercise(msgspec.Struct):
    """What is read of an exercise."""

    testcase: str
    model: str
    tests_outcomes: list[bool]


def read(log: LogFile) -> Iterator[Entry]:
    """Return the result of an exercise: `pass@K` is whether one of the first K tries passed the tests."""
    exercise = read_document(log.path, Exercise, TOOL.name)
    tries = min(max(_TRIES, len(exercise.tests_outcomes)), _MOST_TRIES)
    values = {f"pass@{k}": any(exercise.tests_outcomes[:k]) for k in range(1, tries + 1)}
    folders = log.path.parts[:-1]
    language = folders[-4] if len(folders) > 3 and folders[-2] == _PRACTICE else None
    item = f"{language}/{exercise.testcase}" if language else exercise.testcase
    yield Run("aider", exercise.model, name="exercise")
    yield Result("aider", exercise.model, item, values, tags={"language": language} if language else {})


TOOL: Final = Tool("an exercise of aider", read, metrics=(f"pass@{_TRIES}",), cluster="language")

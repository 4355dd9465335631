"""An importer for a harness: copy this file, and write what your harness writes.

The files look like ``{"acme_version": 1, "system": "a", "suite": "quiz", "answers": [{"q": "q1", "grade": 0.5, "crashed": false}]}``.
"""

from collections.abc import Iterator

import msgspec

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.registry import Format
from monitor.files.formats.results import Entry, Result, Tool


class Answer(msgspec.Struct):
    """An answer; fields that are not named here are skipped."""

    q: str
    grade: float | None = None
    crashed: bool = False


class Document(msgspec.Struct):
    """What is read of a file."""

    system: str
    suite: str
    answers: list[Answer]


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of a file; rankwatch picks the metric, and applies the options of the command line."""
    document = read_document(log.path, Document, TOOL.name)
    for number, answer in enumerate(document.answers, 1):
        yield Result(
            benchmark=document.suite,
            model=document.system,
            item=answer.q,
            values={"grade": answer.grade},
            failure="crash" if answer.crashed else None,
            number=number,
        )


TOOL = Tool("results of acme", read)
FORMAT = Format("acme", document=("acme_version", "answers.*.q"), tool=TOOL)

"""Terminal-Bench: ``results.json`` of a run, with ``run_metadata.json`` next to it."""

import re
import zlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.choices import FAILED_ZERO
from monitor.files.formats.documents import read_beside, read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Run, Tool
from schemas.records.names import MAX_INDEX
from schemas.records.text import shorten

_ATTEMPT: Final = re.compile(r".*\.(\d+)-of-(\d+)\..*", re.DOTALL)


class Trial(msgspec.Struct):
    """One attempt at a task."""

    task_id: str
    trial_name: str = ""
    is_resolved: bool | msgspec.UnsetType | None = msgspec.UNSET
    failure_mode: str | None = None


class Document(msgspec.Struct):
    """What is read of the results of a run."""

    results: list[Trial]


class Metadata(msgspec.Struct):
    """What is read of the description of a run."""

    agent_name: str | None = None
    model_name: str | None = None
    dataset_name: str | None = None
    dataset_version: str | None = None
    task_ids: list[Any] | None = None


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of a run; each run, and each attempt, is a repeat."""
    document = read_document(log.path, Document, TOOL.name)
    meta = read_beside(log.path.with_name("run_metadata.json"), Metadata) or Metadata()
    run, submission = log.path.parent.name, log.path.parent.parent.name
    model = " ".join(name for name in (meta.agent_name, meta.model_name) if name) if meta.model_name else submission
    if log.model is None and not meta.model_name:
        log.note(f"run_metadata.json names no model; it is called {shorten(model)}, like the folder of its runs")
    benchmark = meta.dataset_name or "terminal-bench"
    yield Run(benchmark, model, len(meta.task_ids) if meta.task_ids else None, meta.dataset_version, submission)
    base = zlib.crc32(run.encode("utf-8", "replace")) % (MAX_INDEX // 1_000) * 1_000
    log.notices.kind(log.path, "each run is a repeat of its tasks, with a number made from the name of its folder")
    for number, trial in enumerate(document.results, 1):
        attempt = _ATTEMPT.fullmatch(trial.trial_name)
        repeat = base + (int(attempt[1]) - 1) % 1_000 if attempt else base
        failure = None if trial.is_resolved is not None else trial.failure_mode or "no verdict"
        yield Result(
            benchmark, model, trial.task_id, {"resolved": trial.is_resolved}, repeat, failure=failure, number=number
        )


TOOL: Final = Tool("results of Terminal-Bench", read, failed=FAILED_ZERO)

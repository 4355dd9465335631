"""Harbor: ``result.json`` of each trial of a job."""

import zlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import field_at, read_document, scalars
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Run, Tool
from schemas.records.names import MAX_INDEX
from schemas.records.text import shorten


class Trial(msgspec.Struct):
    """What is read of the result of a trial."""

    task_name: str
    trial_name: str
    source: str | None = None
    agent_info: dict[str, Any] | None = None
    verifier_result: dict[str, Any] | None = None
    exception_info: Any = None


def read(log: LogFile) -> Iterator[Entry]:
    """Return the result of a trial; the trials of a task are its repeats, named by the end of the trial's name."""
    # A reward counts, with or without an exception: the verifier judges an agent that ran out of time too.
    trial = read_document(log.path, Trial, TOOL.name)
    names = field_at(trial.agent_info, "name"), field_at(trial.agent_info, "model_info", "name")
    model = " ".join(name for name in names if isinstance(name, str)) or log.path.parent.parent.name
    if log.model is None and names[1] is None:
        log.notices.kind(log.path, f"no model is named; it is called {shorten(model)}, like the agent")
    benchmark = trial.source or "harbor"
    log.notices.kind(log.path, "each trial is a repeat of its task, with a number made from the end of its name")
    suffix = trial.trial_name.rpartition("__")[2]
    repeat = zlib.crc32(suffix.encode("utf-8", "replace")) % MAX_INDEX
    rewards = scalars(field_at(trial.verifier_result, "rewards"))
    failure = None
    if not rewards:
        kind = field_at(trial.exception_info, "exception_type")
        failure = kind if isinstance(kind, str) else "exception" if trial.exception_info is not None else "no reward"
    yield Run(benchmark, model, name="trial")
    yield Result(benchmark, model, trial.task_name, rewards, repeat, failure=failure)


TOOL: Final = Tool("a trial of Harbor", read, metrics=("reward",))

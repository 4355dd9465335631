"""HAL, the harness of the Holistic Agent Leaderboard: ``RUN_UPLOAD.json``, with the tasks that an agent solved and failed."""

from collections.abc import Iterator
from typing import Final

import msgspec

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Run, Tool
from monitor.files.streams.regular import Refusal


class Config(msgspec.Struct):
    """What was run."""

    agent_name: str
    benchmark_name: str
    run_id: str | None = None


class Tasks(msgspec.Struct):
    """The tasks by their outcome."""

    successful_tasks: list[int | str] | None = None
    failed_tasks: list[int | str] | None = None


class Document(msgspec.Struct):
    """What is read of a run."""

    config: Config
    results: Tasks


def read(log: LogFile) -> Iterator[Entry]:
    """Return the tasks of a run: solved counts as 1, failed as 0."""
    document = read_document(log.path, Document, TOOL.name)
    config, tasks = document.config, document.results
    if tasks.successful_tasks is None or tasks.failed_tasks is None:
        reason = (
            "the run has totals, and no successful_tasks and failed_tasks; run a version of HAL that writes both lists"
        )
        raise Refusal("results", "totals", reason)
    yield Run(config.benchmark_name, config.agent_name, name=config.run_id)
    outcomes = [(task, True) for task in tasks.successful_tasks] + [(task, False) for task in tasks.failed_tasks]
    for number, (task, solved) in enumerate(outcomes, 1):
        yield Result(config.benchmark_name, config.agent_name, str(task), {"success": solved}, number=number)


TOOL: Final = Tool("a run of HAL", read)

"""tau-bench: the list of trials of a run, and the results of tau2-bench, whose document names its agent."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from monitor.files.formats.choices import FAILED_ZERO
from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile, table_name
from monitor.files.formats.results import Entry, Result, Run, Tool
from schemas.records.text import shorten

_RUN: Final = re.compile(r"(.+?)(?:-[0-9.]+)?_range_.*")
_DOMAIN: Final = re.compile(r"airline|retail|telecom")


class Task(msgspec.Struct):
    """What was asked."""

    instruction: Any = None


class Info(msgspec.Struct):
    """What is read of the details of a trial."""

    error: Any = None
    task: Task | None = None


class Trial(msgspec.Struct):
    """One attempt at a task."""

    task_id: int | str
    reward: Any = msgspec.UNSET
    trial: int = 0
    info: Info | None = None


def read(log: LogFile) -> Iterator[Entry]:
    """Return the trials of a run: the file names the model and, as far as it or its folder does, the domain."""
    model, domain = _names(log.path)
    benchmark = f"tau-bench-{domain}" if domain else "tau-bench"
    if log.model is None:
        log.note(f"the model is called {shorten(model)} and the benchmark {shorten(benchmark)}, like the file")
    for number, trial in enumerate(read_document(log.path, list[Trial], TOOL.name), 1):
        info = trial.info or Info()
        if info.task is not None and isinstance(info.task.instruction, str):
            text = info.task.instruction.encode("utf-8", "replace")
            log.runs.add_item(log.path, benchmark, str(trial.task_id), text, log.choices.benchmark or benchmark)
        failure = "error" if info.error is not None else None
        yield Result(
            benchmark, model, str(trial.task_id), {"reward": trial.reward}, trial.trial, failure=failure, number=number
        )


def _names(path: Path) -> tuple[str, str | None]:
    stem = table_name(path)
    run, found = _RUN.fullmatch(stem), _DOMAIN.search(stem) or _DOMAIN.search(path.parent.name)
    model = run[1] if run else stem
    return (model.removesuffix(f"-{found[0]}") if found else model), found[0] if found else None


class Agent(msgspec.Struct):
    """What acted."""

    llm: str | None = None
    implementation: str | None = None


class Environment(msgspec.Struct):
    """Where it acted."""

    domain_name: str | None = None


class Setup(msgspec.Struct):
    """What is read of the setup of a run."""

    agent_info: Agent
    environment_info: Environment


class Reward(msgspec.Struct):
    """What a simulation earned."""

    reward: Any = msgspec.UNSET


class Simulation(msgspec.Struct):
    """One attempt at a task."""

    task_id: int | str
    trial: int = 0
    reward_info: Reward | None = None
    termination_reason: Any = None


class Document(msgspec.Struct):
    """What is read of the results of tau2-bench."""

    info: Setup
    simulations: list[Simulation] = []
    tasks: list[Any] = []


def read_second(log: LogFile) -> Iterator[Entry]:
    """Return the simulations of a run; one without a reward failed."""
    document = read_document(log.path, Document, SECOND.name)
    agent, domain = document.info.agent_info, document.info.environment_info.domain_name
    model, benchmark = agent.llm or agent.implementation or table_name(log.path), f"tau2-bench-{domain or 'unknown'}"
    yield Run(benchmark, model, len(document.tasks) or None)
    for number, each in enumerate(document.simulations, 1):
        failure = None
        if each.reward_info is None:
            failure = each.termination_reason if isinstance(each.termination_reason, str) else "no reward"
        values = {"reward": each.reward_info.reward} if each.reward_info else {}
        yield Result(benchmark, model, str(each.task_id), values, each.trial, failure=failure, number=number)


TOOL: Final = Tool("results of tau-bench", read, metrics=("reward",), failed=FAILED_ZERO)
SECOND: Final = Tool("results of tau2-bench", read_second, metrics=("reward",), failed=FAILED_ZERO)

"""EvalPlus and tools of its kind: ``eval_results.json`` with base and plus tests of each task."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from monitor.ingest.files.event_lines import Refusal
from monitor.ingest.formats.documents import read_unique
from monitor.ingest.formats.log_file import LogFile
from monitor.ingest.formats.results import Entry, Result, Run, Tool
from schemas.records.decode import Fault
from schemas.records.text import shorten

_FILE: Final = re.compile(r"(?:(.+?)[._])?eval_results(?:_pretty)?\.json(?:\.gz)?")
_PASSED: Final = "pass"


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of a model: a position in a task's list is a repeat."""
    document = read_unique(log.path)
    tasks = document.get("eval")
    if not isinstance(tasks, dict):
        raise Refusal("eval", "nothing", "the field eval is not an object of tasks; use a file as EvalPlus writes it")
    dataset = next(iter(tasks), "").partition("/")[0]
    model, benchmark = _names(log.path, dataset)
    if log.model is None:
        log.note(
            f"the model is called {shorten(model)} and the benchmark {shorten(benchmark)}, like its folder or file"
        )
    version = document.get("hash")
    yield Run(benchmark, model, version=version if isinstance(version, str) else None)
    for number, (task, samples) in enumerate(tasks.items(), 1):
        for repeat, sample in enumerate(_samples(samples)):
            if not isinstance(sample, dict) or not isinstance(sample.get("base_status"), str):
                reason = f"{shorten(task)} has no base_status; use a file as EvalPlus writes it"
                yield Fault("base_status", "nothing", reason, benchmark)
                continue
            values: dict[str, Any] = {"base": sample["base_status"] == _PASSED}
            if sample.get("plus_status") is not None:
                values["plus"] = values["base"] and sample["plus_status"] == _PASSED
            yield Result(benchmark, model, task, values, repeat, number=number)


def _samples(samples: object) -> list[Any]:
    """Return the samples of a task; early versions have lists by name."""
    if isinstance(samples, dict):
        samples = samples.get("base", [])
    return samples if isinstance(samples, list) else [samples]


def _names(path: Path, dataset: str) -> tuple[str, str]:
    """Return the model and the benchmark, from the file's name or its folders."""
    match = _FILE.fullmatch(path.name)
    prefix = match[1] if match else None
    folder = path.parent.name
    of_dataset = bool(dataset) and folder.lower().startswith(dataset.lower())
    benchmark = folder if of_dataset else dataset or folder
    return prefix or (path.parent.parent.name if of_dataset else folder), benchmark


TOOL: Final = Tool("results of EvalPlus", read, metrics=("plus", "base"))

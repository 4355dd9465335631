"""EvalPlus and tools of its kind: ``eval_results.json`` with base and plus tests of each task, or one status as in BigCodeBench."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec

from monitor.files.formats.documents import read_bytes, read_unique
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, ResultColumns, Run, Tool
from monitor.files.streams.regular import Refusal
from schemas.records.text import Fault, shorten

_FILE: Final = re.compile(r"(?:(.+?)[._])?eval_results(?:_pretty)?\.json(?:\.gz)?")
_PASSED: Final = "pass"
_STATUS: Final = {"base_status": "base", "status": "passed"}
_BIG: Final = re.compile(r"(.+?)--(?:main--)?(bigcodebench(?:-hard)?-(?:complete|instruct))--.*")


class Sample(msgspec.Struct):
    """A sample of a task."""

    base_status: str = ""
    status: str = ""
    plus_status: str | None = None


class Usual(msgspec.Struct):
    """What is read of a file with a list of samples a task."""

    tasks: dict[str, list[Sample]] = msgspec.field(name="eval")
    hash: str | None = None


def read(log: LogFile) -> Iterator[Entry]:
    """Return the results of a model: a position in a task's list is a repeat."""
    usual = _usual(read_bytes(log.path))
    document = read_unique(log.path) if usual is None else {"eval": usual.tasks, "hash": usual.hash}
    tasks = document.get("eval")
    if not isinstance(tasks, dict):
        raise Refusal("eval", "nothing", "the field eval is not an object of tasks; use a file as EvalPlus writes it")
    first, slash, _ = next(iter(tasks), "").partition("/")
    dataset = first if slash else ""
    model, benchmark = _names(log.path, dataset)
    if log.model is None:
        log.note(
            f"the model is called {shorten(model)} and the benchmark {shorten(benchmark)}, like its folder or file"
        )
    version = document.get("hash")
    yield Run(benchmark, model, version=version if isinstance(version, str) else None)
    if usual is not None:
        yield _by_column(usual.tasks, benchmark, model)
        return
    for number, (task, samples) in enumerate(tasks.items(), 1):
        for repeat, sample in enumerate(_samples(samples)):
            status = next(
                (name for name in _STATUS if isinstance(sample, dict) and isinstance(sample.get(name), str)), None
            )
            if status is None:
                reason = (
                    f"{shorten(task)} has no base_status or status; use a file as EvalPlus or BigCodeBench writes it"
                )
                yield Fault("base_status", "nothing", reason, benchmark)
                continue
            values: dict[str, Any] = {_STATUS[status]: sample[status] == _PASSED}
            if status == "base_status" and sample.get("plus_status") is not None:
                values["plus"] = values["base"] and sample["plus_status"] == _PASSED
            yield Result(benchmark, model, task, values, repeat, number=number)


def _usual(data: bytes) -> Usual | None:
    """Decode results whose samples all have the same tests; None if they are not all like that, or a task may come twice."""
    try:
        document = msgspec.json.decode(data, type=Usual)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    samples = list(chain.from_iterable(document.tasks.values()))
    with_plus = sum(sample.plus_status is not None for sample in samples)
    based = sum(bool(sample.base_status) for sample in samples)
    whole = based == len(samples) or (not based and all(sample.status for sample in samples))
    once = data.count(b'"base_status"' if based else b'"status"') == len(samples) and b"\\u00" not in data
    return document if samples and once and whole and with_plus in {0, len(samples)} else None


def _by_column(tasks: dict[str, list[Sample]], benchmark: str, model: str) -> ResultColumns:
    samples = [
        (number, task, k, each) for number, (task, some) in enumerate(tasks.items(), 1) for k, each in enumerate(some)
    ]
    numbers, items, repeats, each = zip(*samples, strict=True)
    base = [(sample.base_status or sample.status) == _PASSED for sample in each]
    values = {"base" if each[0].base_status else "passed": base}
    if each[0].plus_status is not None:
        values["plus"] = [passed and sample.plus_status == _PASSED for passed, sample in zip(base, each, strict=True)]
    return ResultColumns(benchmark, model, items, values, repeats=repeats, numbers=numbers)


def _samples(samples: object) -> list[Any]:
    """Return the samples of a task; early versions have lists by name."""
    if isinstance(samples, dict):
        samples = samples.get("base", [])
    return samples if isinstance(samples, list) else [samples]


def _names(path: Path, dataset: str) -> tuple[str, str]:
    """Return the model and the benchmark, from the file's name or its folders."""
    if big := _BIG.fullmatch(path.name):
        return big[1].replace("--", "/"), big[2]
    match = _FILE.fullmatch(path.name)
    prefix = match[1] if match else None
    folder = path.parent.name
    of_dataset = bool(dataset) and folder.lower().startswith(dataset.lower())
    benchmark = folder if of_dataset else dataset or folder
    return prefix or (path.parent.parent.name if of_dataset else folder), benchmark


TOOL: Final = Tool("results of EvalPlus", read, metrics=("plus", "base"))
BIG: Final = Tool("results of BigCodeBench", read)

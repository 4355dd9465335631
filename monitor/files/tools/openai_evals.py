"""OpenAI evals: the log of ``oaieval``, one record a line; `match` and `metrics` records have scores."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from monitor.files.formats.log_file import LogFile
from monitor.files.formats.results import Entry, Result, Tool
from schemas.records.text import Fault

_SCORED: Final = ("match", "metrics")
_NO_METRICS: Final = frozenset({"expected", "picked", "sampled", "options"})


class Spec(msgspec.Struct):
    """What was run."""

    completion_fns: list[str] = []
    eval_name: str | None = None
    base_eval: str | None = None


class Record(msgspec.Struct):
    """A line of the log."""

    spec: Spec | None = None
    type: str | None = None
    sample_id: str | int | None = None
    data: Any = None
    final_report: Any = None


def lines(_: LogFile) -> Callable[[Record], Iterator[Entry]]:
    """Return a reader of the records of one run."""
    run = Spec()

    def read(record: Record) -> Iterator[Entry]:
        nonlocal run
        if record.spec is not None:
            run = record.spec
            return
        if record.type is None and record.final_report is None:
            reason = "the line is no record of OpenAI evals: it has no type; keep the lines of each tool in a file of their own"
            yield Fault("type", "nothing", reason)
        if record.type not in _SCORED or not isinstance(record.data, dict):
            return
        benchmark = run.base_eval or run.eval_name
        if benchmark is None or not run.completion_fns:
            reason = "no earlier line has a spec, which names the model; copy the log again, from its first line"
            yield Fault("spec", "nothing", reason)
        elif record.sample_id is None:
            yield Fault("sample_id", "nothing", "the record has no sample_id; check the eval", benchmark)
        else:
            values = {
                name: value
                for name, value in record.data.items()
                if name not in _NO_METRICS and isinstance(value, bool | int | float | None)
            }
            yield Result(benchmark, ",".join(run.completion_fns), str(record.sample_id), values)

    return read


TOOL: Final = Tool(
    "a log of OpenAI evals", lines=lines, record=Record, metrics=("correct", "accuracy", "score"), partial=True
)

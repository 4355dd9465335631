"""HumanEval: ``evaluate_functional_correctness samples.jsonl``, whose results have a line a sample."""

from collections.abc import Iterator
from typing import Final

from monitor.files.formats.log_file import LogFile, model_of
from monitor.files.formats.results import Entry, Tool
from monitor.files.tools.scored_rows import metrics_of, read_rows, results_of, texts
from schemas.records.text import shorten


def read(log: LogFile) -> Iterator[Entry]:
    """Return the samples: a task's samples are its repeats, the file or its folder is the model, and ids name the benchmark."""
    rows = read_rows(log)
    tasks = texts(rows["task_id"])
    model, (benchmark, slash, _) = model_of(log.path), tasks[0].partition("/")
    if log.model is None:
        log.note(f"the model is called {shorten(model)}, like the file or its folder")
    metrics = metrics_of(rows, {"task_id", "completion", "result"})
    named = benchmark if slash else None
    yield from results_of(log, "HumanEval", tasks, metrics, models=[model] * len(tasks), benchmark=named)


TOOL: Final = Tool("results of HumanEval", read, metrics=("passed",))

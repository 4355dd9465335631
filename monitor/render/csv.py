"""The report as comma-separated values: one row a pair."""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import Any, Final

from pydantic import BaseModel

from schemas.report import ClusterReport, Decided, ModelReport, PairReport, Report, Resolved

_NESTED: Final[dict[str, type[BaseModel]]] = {"decided": Decided, "resolved": Resolved, "cluster": ClusterReport}
_RUN: Final = ("repeats_min", "repeats_mean", "repeats_max", "run_ended")
_UNKNOWN: Final = (None,) * len(_RUN)
"""The cells of a run whose epoch is not ranked."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def columns() -> list[str]:
    """Return the column titles in order."""
    titles = ["benchmark", "order_policy"]
    for name in PairReport.model_fields:
        nested = _NESTED.get(name)
        titles += [f"{name}_{inner}" for inner in nested.model_fields] if nested else [name]
    return titles + [f"{name}_{side}" for side in "ab" for name in _RUN]


def render_csv(report: Report) -> str:
    """Write every pair of a report as one row; an empty cell is an unknown value.

    Text that a spreadsheet would take for a formula is prefixed with an apostrophe. Numbers are written in full and read back unchanged.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns())
    for benchmark in report.benchmarks:
        head = [cell(benchmark.benchmark), benchmark.order.policy]
        runs = {(m.model, m.epoch): _run(m) for m in benchmark.models}
        for pair in benchmark.pairs:
            both = ((pair.model_a, pair.epoch_a), (pair.model_b, pair.epoch_b))
            writer.writerow([*head, *_cells(pair), *(value for run in both for value in runs.get(run, _UNKNOWN))])
    return text.getvalue()


def _run(model: ModelReport) -> tuple[Any, ...]:
    """Return the cells of a run, in the order of `_RUN`."""
    counts = model.repeats
    repeats = (None, None, None) if counts is None else (counts.min, counts.mean, counts.max)
    return *repeats, cell(model.run_ended)


def _cells(pair: PairReport) -> Iterator[Any]:
    for name in PairReport.model_fields:
        value = getattr(pair, name)
        if name in _NESTED:
            yield from (None if value is None else cell(getattr(value, inner)) for inner in _NESTED[name].model_fields)
        else:
            yield cell(value)


def cell(value: Any) -> Any:  # noqa: ANN401 - any value of a field
    """Return a value as a cell that no spreadsheet takes for a formula."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA) else value

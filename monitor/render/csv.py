"""The report as comma-separated values: one row a pair."""

import csv
from collections.abc import Iterable, Iterator
from typing import Any, Final, TextIO

import msgspec

from schemas.results.answer import Answer
from schemas.results.report import BenchmarkReport, ClusterReport, Decided, ModelReport, PairReport, Resolved

_NESTED: Final[dict[str, type[Answer]]] = {"decided": Decided, "resolved": Resolved, "cluster": ClusterReport}
_COLUMNS: Final = [name for name in PairReport.__struct_fields__ if name != "facts"]
"""The fields that are cells: facts are lists, and `reason` has them in words."""

_RUN: Final = {"repeats_min": int, "repeats_mean": float, "repeats_max": int, "run_ended": bool}
_UNKNOWN: Final = (None,) * len(_RUN)  # the cells of a run whose epoch is not ranked

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def columns() -> dict[str, Any]:
    """Return the type of each column by its title, in order."""
    types: dict[str, Any] = {"benchmark": str, "order_policy": str}
    of_pair = _types(PairReport)
    for name in _COLUMNS:
        inner = _types(_NESTED[name]) if name in _NESTED else {}
        types |= {f"{name}_{each}": kind for each, kind in inner.items()} or {name: of_pair[name]}
    return types | {f"{name}_{side}": kind for side in "ab" for name, kind in _RUN.items()}


def _types(answer: type[Answer]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(answer)}


def rows(reports: Iterable[BenchmarkReport]) -> Iterator[list[Any]]:
    """Yield the values of each pair in the order of `columns`; None is an unknown value."""
    for benchmark in reports:
        head = [benchmark.benchmark, benchmark.order.policy]
        runs = {(m.model, m.epoch): _run(m) for m in benchmark.models}
        for pair in benchmark.pairs:
            both = ((pair.model_a, pair.epoch_a), (pair.model_b, pair.epoch_b))
            yield [*head, *_values(pair), *(value for run in both for value in runs.get(run, _UNKNOWN))]


def write_csv(reports: Iterable[BenchmarkReport], file: TextIO) -> None:
    """Write every pair of reports as one row; an empty cell is an unknown value."""
    # Text that a spreadsheet would take for a formula is prefixed with an apostrophe. Numbers are written in full and read back unchanged.
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns())
    writer.writerows(map(cell, row) for row in rows(reports))


def _run(model: ModelReport) -> tuple[Any, ...]:
    """Return the values of a run, in the order of `_RUN`."""
    counts = model.repeats
    repeats = (None, None, None) if counts is None else (counts.min, counts.mean, counts.max)
    return *repeats, model.run_ended


def _values(pair: PairReport) -> Iterator[Any]:
    for name in _COLUMNS:
        value = getattr(pair, name)
        if name in _NESTED:
            yield from (None if value is None else getattr(value, inner) for inner in _NESTED[name].__struct_fields__)
        else:
            yield value


def cell(value: Any) -> Any:  # noqa: ANN401 - any value of a field
    """Return a value as a cell that no spreadsheet takes for a formula."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA) else value

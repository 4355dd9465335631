"""Why the fold refuses events that can be read: scores of ended runs, items that are not declared, and names beyond a limit."""

from typing import Any

from monitor.engine.limits import Limits
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.codes import ABSENT, ONE, SCORE_UNIT, SKIPPED
from monitor.engine.state.delta import Refusal
from schemas.decode import Fault
from schemas.events import EventFields
from schemas.names import name_fault
from schemas.text import shorten
from stats.graded import MAX_ITEMS


class Admission:
    """Finds the events that the fold would refuse, if these were the next ones in the log.

    Parameters
    ----------
    benchmark : Benchmark
    limits : Limits
    folded : bool
        Whether the state has all that the log has of the benchmark. If not, only scores of ended runs are refused: their end is permanent,
        but a declaration that is not folded yet may list more items or give a model another name.
    """

    def __init__(self, benchmark: Benchmark, limits: Limits, *, folded: bool) -> None:
        self._benchmark, self._limits, self._folded = benchmark, limits, folded
        self._rows: set[tuple[str, int]] = set()
        self._items: set[str] = set()
        self._contestants: set[tuple[str, int]] = set()
        self._values: set[int] = set()

    def needed(self, events: int, contestants: int) -> bool:
        """Return whether any of so many events, of so many contestants, may be refused."""
        benchmark, limits = self._benchmark, self._limits
        rows = min(limits.rows, MAX_ITEMS) if benchmark.graded else limits.rows
        return (
            bool(benchmark.ended)
            or benchmark.declared_items is not None
            or len(benchmark.rows) + events > rows
            or len(benchmark.contestants) + contestants > limits.contestants
            or len(benchmark.table) + events > limits.values
        )

    def fault(self, event: EventFields) -> Fault | None:
        """Return why the fold would refuse the next event, or None."""
        benchmark, limits = self._benchmark, self._limits
        key = event.item_id, event.repeat
        row = benchmark.repeat_row_of.get(key) if event.repeat else benchmark.row_of.get(event.item_id)
        contestant = benchmark.epoch_contestant_of.get((event.model, event.epoch))
        if contestant in benchmark.ended and (fault := ended_fault(benchmark, event, row, contestant)):
            return fault
        if not self._folded:
            return None
        run = benchmark.spec.aliases.get(event.model, event.model), event.epoch
        units = None if event.score is None else round(event.score * SCORE_UNIT)
        new_row = row is None and key not in self._rows
        new_run = contestant is None and run not in self._contestants
        new_value = units is not None and units not in benchmark.table.code_of and units not in self._values
        fault = (
            (new_row and row_fault(benchmark, event, limits, len(self._rows), len(self._items)))
            or (new_run and contestant_fault(benchmark, event, limits, len(self._contestants)))
            or (new_value and value_fault(benchmark, event, limits, len(self._values)))
            or None
        )
        if fault is None:
            if new_row:
                self._rows.add(key)
                if not benchmark.has_item(event.item_id):
                    self._items.add(event.item_id)
            if new_run:
                self._contestants.add(run)
            if new_value and units is not None:
                self._values.add(units)
        return fault


def benchmark_fault(name: str, count: int, limits: Limits) -> Fault | None:
    """Return why a benchmark cannot begin next to `count` others, or None."""
    if count < limits.benchmarks:
        return None
    reason = f"{shorten(name)} is beyond the limit of {limits.benchmarks:,} benchmarks; send fewer benchmarks"
    return Refusal("benchmark", shorten(name), reason)


def ended_fault(benchmark: Benchmark, event: EventFields, row: int | None, contestant: int | None) -> Fault | None:
    """Return why a score of an ended run is refused; None if the run has that cell, so that it is a duplicate or a conflict."""
    existing = ABSENT if row is None or row >= len(benchmark.scores) else benchmark.scores[row, contestant]
    if not is_new(benchmark, existing, SKIPPED if event.score is None else ONE):
        return None
    model = shorten(event.model)
    reason = f"the run of {model} has ended; send changed scores under a new epoch"
    return Refusal("model", model, reason, benchmark.name)


def is_new(benchmark: Benchmark, existing: Any, code: Any) -> Any:  # noqa: ANN401 - a code, or an array of codes
    """Return whether a code would enter the matrix where another one is."""
    return (existing == ABSENT) | ((existing == SKIPPED) & (code != SKIPPED) & benchmark.skips_wait)


def row_fault(benchmark: Benchmark, event: EventFields, limits: Limits, rows: int = 0, items: int = 0) -> Fault | None:
    """Return why a new row is refused, when so many rows and items come before it that the state does not have yet."""
    # The first event of a row sets its cluster; the fold ignores later ones, however the log is chunked.
    fault = _name_fault(benchmark, "item_id", event.item_id) or _name_fault(benchmark, "cluster", event.cluster)
    if fault is not None:
        return fault
    fault = _unlisted_fault(benchmark, event)
    if fault is not None:
        return fault
    if benchmark.graded and not benchmark.has_item(event.item_id):
        fault = _limit_fault(benchmark, "item_id", event.item_id, benchmark.items + items, MAX_ITEMS)
    return fault or _limit_fault(benchmark, "item_id", event.item_id, len(benchmark.rows) + rows, limits.rows)


def _unlisted_fault(benchmark: Benchmark, event: EventFields) -> Fault | None:
    """Return why a score of an item is refused that is not in the declared list."""
    listed = benchmark.declared_items
    if listed is None or event.item_id in listed:
        return None
    reason = (
        f"{shorten(event.item_id)} is not in the declared list of {len(listed):,} items; correct the id, or "
        "declare the list under another benchmark name"
    )
    return Refusal("item_id", shorten(event.item_id), reason, benchmark.name)


def contestant_fault(benchmark: Benchmark, event: EventFields, limits: Limits, more: int = 0) -> Fault | None:
    """Return why a new contestant is refused, when so many come before it that the state does not have yet."""
    count = len(benchmark.contestants) + more
    fault = _name_fault(benchmark, "model", event.model)
    return fault or _limit_fault(benchmark, "model", event.model, count, limits.contestants)


def value_fault(benchmark: Benchmark, event: EventFields, limits: Limits, more: int = 0) -> Fault | None:
    """Return why a new score is refused, when so many come before it that the state does not have yet."""
    return _limit_fault(benchmark, "score", event.score, len(benchmark.table) + more, limits.values)


def _name_fault(benchmark: Benchmark, field: str, name: str | None) -> Fault | None:
    reason = None if name is None else name_fault(name)
    if reason is None:
        return None
    return Fault(field, shorten(name), f"the name {reason}; use 1 to 200 printable characters", benchmark.name)


def _limit_fault(benchmark: Benchmark, field: str, value: object, count: int, most: int) -> Fault | None:
    if count < most:
        return None
    noun = {"item_id": "items", "model": "models", "score": "different scores"}[field]
    reason = f"{shorten(value)} is beyond the limit of {most:,} {noun} a benchmark; send fewer {noun}"
    return Refusal(field, shorten(value), reason, benchmark.name)

"""Find, ahead of the fold, the events that it would refuse: scores of ended runs, items that are not declared, names beyond a limit."""

from monitor.engine.fold.battles import board_fault
from monitor.engine.fold.locate import contestant_fault, ended_fault, role_fault, row_fault, unit_fault, value_fault
from monitor.engine.limits import Limits, Usage, exceeds
from monitor.engine.state.battles import event_fault
from monitor.engine.state.benchmark import Benchmark
from schemas.records.events import BattleFields, EventFields
from schemas.records.scores import SCORE_UNIT
from schemas.records.text import Fault


class Admission:
    """Finds the events that the fold would refuse, if these were the next ones in the log."""

    def __init__(self, benchmark: Benchmark, limits: Limits, *, folded: bool) -> None:
        self._benchmark, self._limits, self._folded = benchmark, limits, folded
        self._rows: set[tuple[str, int]] = set()
        self._items: set[str] = set()
        self._contestants: set[tuple[str, int]] = set()
        self._values: set[int] = set()

    def needed(self, events: int, contestants: int, *, battles: bool) -> bool:
        """Return whether any of so many events, of so many contestants, may be refused; `battles` if any is a battle."""
        benchmark, limits = self._benchmark, self._limits
        rows = min(limits.rows, benchmark.bets.most_items)
        most = Usage.sized(len(benchmark.rows) + events, len(benchmark.contestants) + contestants)
        return (
            bool(benchmark.ended)
            or battles
            or benchmark.declared_items is not None
            or benchmark.spec.weights is not None
            or benchmark.spec.units is not None
            or len(benchmark.rows) + events > rows
            or len(benchmark.contestants) + contestants > limits.contestants
            or len(benchmark.table) + events > limits.values
            or exceeds(limits.others.plus(most), limits.budget)
        )

    def fault(self, event: EventFields) -> Fault | None:
        """Return why the fold would refuse the next event, or None; limits of battles are left to the fold."""
        if isinstance(event, BattleFields):
            board = board_fault(self._benchmark, event) if self._folded else None
            return board or event_fault(self._benchmark.name, self._benchmark.spec.aliases, event)
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
            unit_fault(benchmark, event)
            or role_fault(benchmark, event)
            or (new_row and row_fault(benchmark, event, limits, len(self._rows), len(self._items)))
            or (new_run and contestant_fault(benchmark, event, limits, len(self._contestants)))
            or (new_value and value_fault(benchmark, event, limits, len(self._values)))
            or None
        )
        if fault is None:
            if new_row:
                self._rows.add(key)
                if event.item_id not in benchmark.by_item:
                    self._items.add(event.item_id)
            if new_run:
                self._contestants.add(run)
            if new_value and units is not None:
                self._values.add(units)
        return fault

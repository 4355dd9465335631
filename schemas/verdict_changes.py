"""Verdict changes by their field in the table of latches; what closed together stays in columns until somebody reads a change."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from schemas.changes import VerdictChange, change_order

Order = tuple[int, int]
"""The id of a change as numbers; changes of one partition are ordered by it."""


class Columns(Protocol):
    """Verdict changes that are not made yet."""

    def change(self, place: int) -> VerdictChange:
        """Make one of them."""

    def order(self, place: int) -> Order:
        """Return the id of one of them."""

    def entries(self) -> Iterator[tuple[Order, bytes]]:
        """Yield the id and the JSON of each, which is what `change` makes."""


class VerdictChanges(Mapping[str, VerdictChange]):
    """Verdict changes by field, in the order in which they were recorded."""

    def __init__(self, made: Mapping[str, VerdictChange] | None = None) -> None:
        self._changes: dict[str, VerdictChange | int] = dict(made or {})
        """A change, or its number among all that came in columns."""
        self._columns: list[Columns] = []
        self._starts: list[int] = []
        self._numbered = 0

    def __getitem__(self, field: str) -> VerdictChange:
        """Return the change of a field; it is made on first use."""
        change = self._changes[field]
        if isinstance(change, int):
            columns, place = self._place(change)
            change = self._changes[field] = columns.change(place)
        return change

    def __contains__(self, field: object) -> bool:
        """Return whether a field has a change."""
        return field in self._changes

    def __iter__(self) -> Iterator[str]:
        """Iterate over the fields."""
        return iter(self._changes)

    def __len__(self) -> int:
        """Return the number of changes."""
        return len(self._changes)

    def add(self, field: str, change: VerdictChange) -> None:
        """Add one change."""
        self._changes[field] = change

    def extend(self, fields: Sequence[str], columns: Columns) -> None:
        """Add changes that are not made yet."""
        start = self._numbered
        self._numbered += len(fields)
        self._columns.append(columns)
        self._starts.append(start)
        self._changes.update(zip(fields, range(start, self._numbered), strict=True))

    def order(self, field: str) -> Order:
        """Return the id of a change without making it."""
        change = self._changes[field]
        if isinstance(change, int):
            columns, place = self._place(change)
            return columns.order(place)
        return change_order(change.id)

    def entries(self) -> Iterator[tuple[Order, str, bytes]]:
        """Yield the id, the field and the JSON of each change, without making those in columns."""
        made = [entry for columns in self._columns for entry in columns.entries()]
        for field, change in self._changes.items():
            if isinstance(change, int):
                order, text = made[change]
                yield order, field, text
            else:
                yield change_order(change.id), field, change.model_dump_json().encode()

    def _place(self, number: int) -> tuple[Columns, int]:
        block = bisect_right(self._starts, number) - 1
        return self._columns[block], number - self._starts[block]

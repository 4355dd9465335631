"""Verdict changes by their field in the table of latches; they are kept as records, and made when somebody reads one."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.records.scores import Contestant
from schemas.results.changes import AnyChange, Claim, Kind, VerdictChange, change_order

Order = tuple[int, int]  # the id of a change as numbers; changes of one partition are ordered by it


class Columns(Protocol):
    """Latches as records, of which verdict changes are made."""

    @property
    def records(self) -> NDArray[np.void]:
        """The records, shape (latches,); `monitor.engine.latch.records.RECORD` has their fields."""

    @property
    def terms(self) -> Sequence[tuple[object, ...]]:
        """What they share, by their field `terms`."""

    @property
    def contestants(self) -> Sequence[Contestant] | Mapping[int, Contestant]:
        """The models whose pairs they are of, by their number."""

    def fields(self) -> list[str]:
        """Return the field of each in the table of latches."""

    def kinds(self) -> dict[tuple[Claim, Kind], int]:
        """Return how many there are of each claim and kind."""

    def change(self, place: int) -> VerdictChange:
        """Make the change of one of them."""

    def orders(self) -> list[Order]:
        """Return the id of each."""

    def texts(self, places: Sequence[int]) -> list[bytes]:
        """Return the JSON of some of them."""

    def ended(
        self, some: NDArray[np.int64], offset: int, sequence: NDArray[np.uint64], ending: tuple[str | int, ...]
    ) -> "Columns":
        """Return how decisions end: their places, and the ids of the changes that end them."""


class VerdictChanges(Mapping[str, AnyChange]):
    """Verdict changes by field, in the order in which they were recorded."""

    def __init__(self, made: Mapping[str, AnyChange | int] | None = None) -> None:
        self._changes: dict[str, AnyChange | int] = dict(made or {})
        """A change that an earlier version has stored whole, or its number among all records."""
        self.columns: list[Columns] = []
        self._starts: list[int] = []
        self._numbered = 0

    def __getitem__(self, field: str) -> AnyChange:
        """Make the change of a field."""
        change = self._changes[field]
        if isinstance(change, int):
            columns, place = self._place(change)
            return columns.change(place)
        return change

    def verdict(self, field: str) -> VerdictChange:
        """Make the change of a field that is of a pair."""
        change = self[field]
        assert isinstance(change, VerdictChange), "a field of a pair has a verdict"
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

    def copy(self) -> "VerdictChanges":
        """Return a copy, to which changes are added without adding them here."""
        other = VerdictChanges(self._changes)
        other.columns, other._starts, other._numbered = [*self.columns], [*self._starts], self._numbered
        return other

    def add(self, field: str, change: AnyChange) -> None:
        """Add one change that is kept whole."""
        self._changes[field] = change

    def extend(self, fields: Sequence[str], columns: Columns) -> None:
        """Add changes that are kept as records."""
        start = self._numbered
        self._numbered += len(fields)
        self.columns.append(columns)
        self._starts.append(start)
        self._changes.update(zip(fields, range(start, self._numbered), strict=True))

    def orders(self, fields: Iterable[str]) -> Iterator[Order]:
        """Yield the ids of the changes of some fields without making them; a block of records is read once."""
        of_blocks: dict[int, list[Order]] = {}
        for field in fields:
            change = self._changes[field]
            if not isinstance(change, int):
                yield change_order(change.id)
                continue
            block = self._block(change)
            if block not in of_blocks:
                of_blocks[block] = self.columns[block].orders()
            yield of_blocks[block][change - self._starts[block]]

    def texts(self, fields: Sequence[str]) -> list[bytes]:
        """Return the JSON of the changes of some fields: those of one block of records are made together."""
        texts: list[bytes] = []
        located = ((field, self.locate(field)) for field in fields)
        for _, group in groupby(located, key=lambda each: each[1] and id(each[1][0])):
            some = list(group)
            if some[0][1] is None:
                texts += (self[field].as_json() for field, _ in some)
            else:
                texts += some[0][1][0].texts([place[1] for _, place in some if place is not None])
        return texts

    def whole(self) -> dict[str, AnyChange]:
        """Return those that are kept whole, by field."""
        return {field: change for field, change in self._changes.items() if not isinstance(change, int)}

    def shared_items(self, field: str) -> int | None:
        """Return the shared items of a pair at a change without making it; None if there is no such change."""
        if field not in self._changes:
            return None
        located = self.locate(field)
        if located is None:
            return self.verdict(field).evidence.n
        columns, place = located
        return int(columns.records["n"][place])

    def locate(self, field: str) -> tuple[Columns, int] | None:
        """Return the columns of a change and its place in them; None for one that is kept whole."""
        change = self._changes[field]
        return self._place(change) if isinstance(change, int) else None

    def _place(self, number: int) -> tuple[Columns, int]:
        block = self._block(number)
        return self.columns[block], number - self._starts[block]

    def _block(self, number: int) -> int:
        return bisect_right(self._starts, number) - 1


def change_field(pair: int | str, procedure: str, kind: str, version: int) -> str:
    """Return the field of a change in the table of latches; each version of the declaration has fields of its own."""
    return f"{pair}:{procedure}:{kind}" if version == 1 else f"{pair}:{procedure}:{kind}:{version}"

"""Columns of events: what the fold reads of many events at once, without an object for each where the log has none."""

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, pairwise
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from schemas.records.events import EventFields, has_battles

Index = NDArray[np.int64]
Scores = NDArray[np.float64]  # scores of events; NaN for a skipped item


class Names(Protocol):
    """The names that a benchmark has."""

    @property
    def row_of(self) -> dict[str, int]:
        """Row of each item, of repeat 0."""

    @property
    def contestant_of(self) -> dict[str, int]:
        """Contestant of each model, of epoch 0."""

    @property
    def epoch_contestant_of(self) -> dict[tuple[str, int], int]:
        """Contestant of each model and epoch."""


class EventColumns(Sequence[EventFields]):
    """Events of one benchmark in the order of the log. An event is made when somebody asks for one."""

    @overload
    def __getitem__(self, place: int) -> EventFields: ...
    @overload
    def __getitem__(self, place: slice) -> "EventColumns": ...
    @abstractmethod
    def __getitem__(self, place: int | slice) -> "EventFields | EventColumns":
        """Return one event, or some consecutive ones."""

    @abstractmethod
    def rows(self, names: Names) -> Index:
        """Return the row of each item, -1 for a new one; of repeat 0."""

    @abstractmethod
    def contestants(self, names: Names) -> Index:
        """Return the contestant of each event that is plain, -1 for a new one."""

    @abstractmethod
    def scores(self) -> Scores:
        """Return the score of each event."""

    @abstractmethod
    def items(self, places: Index) -> tuple[list[str], list[str | None]]:
        """Return the item and the cluster of some of the events, by ascending place."""

    @abstractmethod
    def plain(self) -> NDArray[np.bool_] | None:
        """Return of which events `rows` and `contestants` are right; None of all. The others have a repeat, an epoch or a unit."""

    def has_battles(self) -> bool:
        """Return whether any of them is a battle."""
        return False


class EventList(EventColumns):
    """Events that the log has one by one."""

    def __init__(self, events: list[EventFields]) -> None:
        self._events = events
        self._has_battles: bool | None = None

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[EventFields]:
        return iter(self._events)

    @overload
    def __getitem__(self, place: int) -> EventFields: ...
    @overload
    def __getitem__(self, place: slice) -> "EventList": ...
    def __getitem__(self, place: int | slice) -> "EventFields | EventList":
        chosen = self._events[place]
        return EventList(chosen) if isinstance(chosen, list) else chosen

    @override
    def rows(self, names: Names) -> Index:
        # Comprehensions are faster here than `map` with `attrgetter`, and `fromiter` is faster than `array`.
        row_of = names.row_of.get
        return np.fromiter([row_of(event.item_id, -1) for event in self._events], np.int64, len(self))

    @override
    def contestants(self, names: Names) -> Index:
        contestant_of = names.contestant_of.get
        return np.fromiter([contestant_of(event.model, -1) for event in self._events], np.int64, len(self))

    @override
    def scores(self) -> Scores:
        return np.array([event.score for event in self._events], np.float64)  # None becomes NaN

    @override
    def items(self, places: Index) -> tuple[list[str], list[str | None]]:
        events = [self._events[place] for place in places.tolist()]
        return [event.item_id for event in events], [event.cluster for event in events]

    @override
    def plain(self) -> NDArray[np.bool_] | None:
        if not [event for event in self._events if event.repeat or event.epoch or event.unit or event.role]:
            return None
        return np.array([not (event.repeat or event.epoch or event.unit or event.role) for event in self._events])

    @override
    def has_battles(self) -> bool:
        if self._has_battles is None:  # a fold asks more than once
            self._has_battles = has_battles(self._events)
        return self._has_battles

    @classmethod
    def joined(cls, parts: Sequence["EventList"]) -> "EventList":
        """Return several lists as one."""
        return parts[0] if len(parts) == 1 else cls(list(chain.from_iterable(parts)))


class JoinedEvents(EventColumns):
    """Events of several records, of which some are runs."""

    def __init__(self, parts: Sequence[EventColumns]) -> None:
        self.parts = parts
        self._starts = [*accumulate(map(len, parts), initial=0)]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __iter__(self) -> Iterator[EventFields]:
        return chain.from_iterable(self.parts)

    @overload
    def __getitem__(self, place: int) -> EventFields: ...
    @overload
    def __getitem__(self, place: slice) -> EventColumns: ...
    def __getitem__(self, place: int | slice) -> EventFields | EventColumns:
        if isinstance(place, slice):
            start, stop, _ = place.indices(len(self))
            if stop <= start:
                return join_columns([])
            # Only the parts inside are looked at: of a board that begins with a thousand runs, each brings a new model.
            inside = range(bisect_right(self._starts, start) - 1, bisect_left(self._starts, stop))
            parts = ((self.parts[k], self._starts[k]) for k in inside)
            return join_columns([part[max(0, start - first) : stop - first] for part, first in parts])
        which = bisect_right(self._starts, place) - 1
        return self.parts[which][place - self._starts[which]]

    @override
    def rows(self, names: Names) -> Index:
        return np.concatenate([part.rows(names) for part in self.parts])

    @override
    def contestants(self, names: Names) -> Index:
        return np.concatenate([part.contestants(names) for part in self.parts])

    @override
    def scores(self) -> Scores:
        return np.concatenate([part.scores() for part in self.parts])

    @override
    def items(self, places: Index) -> tuple[list[str], list[str | None]]:
        ends = np.searchsorted(places, self._starts).tolist()
        items: list[str] = []
        clusters: list[str | None] = []
        for part, start, (low, high) in zip(self.parts, self._starts, pairwise(ends), strict=False):
            some = part.items(places[low:high] - start)
            items += some[0]
            clusters += some[1]
        return items, clusters

    @override
    def plain(self) -> NDArray[np.bool_] | None:
        parts = [(part.plain(), len(part)) for part in self.parts]
        if all(plain is None for plain, _ in parts):
            return None
        return np.concatenate([np.ones(size, bool) if plain is None else plain for plain, size in parts])

    @override
    def has_battles(self) -> bool:
        return any(part.has_battles() for part in self.parts)


def join_columns(parts: Sequence[EventColumns]) -> EventColumns:
    """Return the events of several records as one; lists in sequence become one list."""
    joined: list[EventColumns] = []
    lists: list[EventList] = []
    for part in (*parts, None):
        if isinstance(part, EventList):
            lists.append(part)
            continue
        if lists:
            joined.append(EventList.joined(lists))
            lists = []
        if part is not None:
            joined.append(part)
    if not joined:
        return EventList([])
    return joined[0] if len(joined) == 1 else JoinedEvents(joined)


@dataclass
class EventBatch:
    """Events of one benchmark in the order of the log, each with its record offset and its index in the record."""

    benchmark: str
    events: EventColumns
    offsets: Sequence[int]
    indices: Sequence[int]
    redeclared: bool = False
    """Whether its verdict changes are those under a new declaration, which come after the changes that the same event ends."""
    choice_at: int | None = None
    """The first event that gives an item several scores of a model; the benchmark had none before. See `has_choice`."""

    def note_choice(self, position: int | None) -> None:
        """Note the first such event, or none."""
        self.choice_at = position if self.choice_at is None else self.choice_at

    def part(self, start: int, stop: int) -> "EventBatch":
        """Return some consecutive events."""
        part = slice(start, stop)
        return EventBatch(self.benchmark, self.events[part], self.offsets[part], self.indices[part])

    def by_kind(self) -> Iterator["EventBatch"]:
        """Yield runs of consecutive scores, or of consecutive battles."""
        if not self.events.has_battles():
            yield self
            return
        start = 0
        for _, run in groupby(self.events, key=type):
            stop = start + len(list(run))
            yield self.part(start, stop)
            start = stop

    @classmethod
    def joined(cls, batches: Sequence["EventBatch"]) -> "EventBatch":
        """Return several batches of one benchmark as one."""
        if len(batches) == 1:
            return batches[0]
        offsets, indices = (
            list(chain.from_iterable(column))
            for column in zip(*((batch.offsets, batch.indices) for batch in batches), strict=True)
        )
        return cls(batches[0].benchmark, join_columns([batch.events for batch in batches]), offsets, indices)

    @classmethod
    def at(cls, benchmark: str, offset: int, index: int, size: int = 1) -> "EventBatch":
        """Return a batch of steps that one event of the log takes."""
        return cls(benchmark, EventList([]), [offset] * size, [index] * size)

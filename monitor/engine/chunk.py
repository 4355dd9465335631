"""Input of the fold: consecutive records of one partition, and runs of events of one benchmark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import numpy as np
from numpy.typing import NDArray

from schemas.records.columns import EventColumns, EventList, Index, join_columns


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
    """The first event with which an item has several scores of a model, in a benchmark that had none before; see `has_choice`."""

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


@dataclass
class Located:
    """A batch with the row, contestant and code of each event; code ABSENT for a refused event."""

    batch: EventBatch
    row: Index
    contestant: Index
    code: NDArray[np.uint32]
    cut: int
    """The first event with an item too many, from which nothing is settled, nor decided under policy completion; else the length."""
    newer: dict[int, int]  # contestant of each event that begins a newer epoch of a model, by the event's position
    held: bool  # whether the declared assumption held before the batch
    exceeded: bool  # whether there were items too many before the batch
    undeclared: tuple[int, str] | None = None
    """The first event of a unit where none is declared, and why that holds the benchmark."""

"""Input of the fold: consecutive records of one partition, and runs of events of one benchmark."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.columns import EventColumns, EventList, Index, join_columns

ORIGIN_HEADER: Final = "rankwatch-origin"
"""Header of a republished record; its value is an origin with a signature, see `monitor.engine.origins`."""


class Origin(NamedTuple):
    """Place of a record before it was republished to the partition that owns its benchmark.

    Examples
    --------
    >>> Origin.parse(Origin(3, 120, 7).encode())
    Origin(partition=3, offset=120, place=7)
    """

    partition: int
    offset: int
    place: int
    """Number of the event among the misrouted events of its record."""

    def encode(self) -> bytes:
        """Return the origin as text."""
        return f"{self.partition}:{self.offset}:{self.place}".encode()

    @classmethod
    def parse(cls, value: bytes) -> "Origin | None":
        """Parse the text; return None for one that `encode` does not make."""
        parts = value.split(b":")
        return cls(*map(int, parts)) if len(parts) == 3 and all(p.isdigit() and len(p) < 20 for p in parts) else None


class Chunk(NamedTuple):
    """Consecutive records of one partition of a log.

    `start` is the end of the previous chunk (a gap may come before the first record), `end` the start of the next one. `offsets[i]` is
    the offset of `records[i]`: bytes of a file, or messages of a topic; the engine only needs offsets that grow. `origins[i]` is the
    verified origin of a republished record, None for any other; `origins` is None when no record has one. `keys[i]` is the key of the
    record, where the log has keys. `producers[i]` is who sent the record; nothing of it is folded. `lost`: there are no records, because
    what the log held from `start` to `end` was damaged, and given up.
    """

    partition: int
    start: int
    end: int
    offsets: Sequence[int]
    records: Sequence[bytes]
    origins: Sequence[Origin | None] | None = None
    keys: Sequence[bytes | None] | None = None
    producers: Sequence[str | None] | None = None
    lost: bool = False

    def begins(self) -> list[int]:
        """Return how many bytes are ahead of each record, and how many there are."""
        return [*accumulate(map(len, self.records), initial=0)]

    def piece(self, begins: Sequence[int], start: int, size: int, length: float) -> "Chunk":
        """Return at most `size` records from one on, and at most `length` bytes or a single record, given `begins`."""
        end = bisect_right(begins, begins[start] + length, start, min(start + size + 1, len(begins))) - 1
        return self._taken(slice(start, max(start + 1, end)))

    def cut(self, place: int) -> "tuple[Chunk, Chunk | None]":
        """Return the records before a place, and the rest, if any, as two consecutive chunks."""
        if place >= len(self.records):
            return self, None
        first, second = self._taken(slice(place)), self._taken(slice(place, None))
        return first._replace(end=self.offsets[place]), second._replace(start=self.offsets[place])

    def _taken(self, part: slice) -> "Chunk":
        origins = None if self.origins is None else self.origins[part]
        keys = None if self.keys is None else self.keys[part]
        producers = None if self.producers is None else self.producers[part]
        return self._replace(
            offsets=self.offsets[part], records=self.records[part], origins=origins, keys=keys, producers=producers
        )


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
    newer: dict[int, int]
    """Contestant of each event that begins a newer epoch of a model, by the event's position."""
    held: bool
    """Whether the declared assumption held before the batch."""
    exceeded: bool
    """Whether there were items too many before the batch."""
    undeclared: tuple[int, str] | None = None
    """The first event of a unit where none is declared, and why that holds the benchmark."""

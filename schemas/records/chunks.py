"""Consecutive records of a log, and what is known of where they came from and why some were refused."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from schemas.records.text import Sentence

ORIGIN_HEADER: Final = "rankwatch-origin"
"""Header of a republished record; its value is an origin with a signature, see `schemas.records.origins`."""


class Origin(NamedTuple):
    """Place of a record before it was republished to the partition that owns its benchmark.

    >>> Origin.parse(Origin(3, 120, 7).encode())
    Origin(partition=3, offset=120, place=7)
    """

    partition: int
    offset: int
    place: int  # number of the event among the misrouted events of its record

    def encode(self) -> bytes:
        """Return the origin as text."""
        return f"{self.partition}:{self.offset}:{self.place}".encode()

    @classmethod
    def parse(cls, value: bytes) -> "Origin | None":
        """Parse the text; return None for one that `encode` does not make."""
        parts = value.split(b":")
        return cls(*map(int, parts)) if len(parts) == 3 and all(p.isdigit() and len(p) < 20 for p in parts) else None


class Chunk(NamedTuple):
    """Consecutive records of one partition of a log."""

    # `start` is the end of the previous chunk (a gap may come before the first record), `end` the start of the next one. `offsets[i]` is
    # the offset of `records[i]`: bytes of a file, or messages of a topic; the engine only needs offsets that grow. `origins[i]` is the
    # verified origin of a republished record, None for any other; `origins` is None when no record has one. `keys[i]` is the key of the
    # record, where the log has keys. `producers[i]` is who sent the record; nothing of it is folded. `lost`: there are no records, because
    # what the log held from `start` to `end` was damaged, and given up.
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


class Source(NamedTuple):
    """How far a watched file has been read: bytes and lines of its current content, and the hash of those bytes."""

    generation: int
    position: int
    prefix: str
    line: int


class Gap(NamedTuple):
    """Records that their log no longer held when they were to be folded: the offsets from `start` to before `end` of a partition."""

    partition: int
    start: int
    end: int


class DeadLetter(NamedTuple):
    """A rejected record: its place in the log, its origin, and the reason."""

    offset: int
    index: int  # type: ignore[assignment]  # shadows tuple.index
    source: str
    line: int | None
    field: str
    found: str
    reason: Sentence
    benchmark: str | None
    raw: str
    producer: str | None = None  # who sent the record, if a server has identified it


class Misrouted(NamedTuple):
    """A record of another partition's benchmark: republish it to the owner before the state moves on."""

    offset: int
    place: int
    benchmark: str
    payload: bytes
    producer: str | None = None  # who sent it; the fold leaves that to the worker

"""What comes out of a log: a run of consecutive records of one partition."""

from collections.abc import Sequence
from typing import Final, NamedTuple

ORIGIN_HEADER: Final = "rankwatch-origin"
"""The header of a record that was published again; its value is `Origin.encode`."""


class Origin(NamedTuple):
    """Where a record stood before it was published again to the partition that owns its benchmark.

    Examples
    --------
    >>> Origin.parse(Origin(3, 120, 7).encode())
    Origin(partition=3, offset=120, place=7)
    """

    partition: int
    offset: int
    place: int
    """Which one it is of the misrouted events of its record."""

    def encode(self) -> bytes:
        """Return the value of `ORIGIN_HEADER`."""
        return f"{self.partition}:{self.offset}:{self.place}".encode()

    @classmethod
    def parse(cls, value: bytes) -> "Origin | None":
        """Read the header, or return None if it is none of ours."""
        parts = value.split(b":")
        return cls(*map(int, parts)) if len(parts) == 3 and all(p.isdigit() and len(p) < 20 for p in parts) else None


class Chunk(NamedTuple):
    """Consecutive records of one partition of a log.

    `start` is where the previous chunk ended (the first record may stand later, behind a gap), `end` where the next one starts;
    `offsets[i]` is where `records[i]` begins. What an offset counts (bytes of a file, messages of a topic) is the log's own affair: here it
    only grows. `origins[i]` is where a copy stood before it was published again; None, or None in its place, for records that stand where
    their producer put them.
    """

    partition: int
    start: int
    end: int
    offsets: Sequence[int]
    records: Sequence[bytes]
    origins: Sequence[Origin | None] | None = None

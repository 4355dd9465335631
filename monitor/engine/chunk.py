"""What comes out of a log: a run of consecutive records of one partition."""

from collections.abc import Sequence
from typing import NamedTuple


class Chunk(NamedTuple):
    """Consecutive records of one partition of a log.

    `start` is the offset of the first record, `end` the offset from which the next chunk starts; `offsets[i]` is where `records[i]`
    begins. What an offset counts (bytes of a file, messages of a topic) is the log's own affair: here it only grows.
    """

    partition: int
    start: int
    end: int
    offsets: Sequence[int]
    records: Sequence[bytes]

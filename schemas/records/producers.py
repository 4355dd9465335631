"""Who sent a record: the producer that a server has identified, next to the record, where no fold reads it."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from schemas.records.chunks import Chunk
from schemas.records.names import PRODUCER

PRODUCER_HEADER: Final = "rankwatch-producer"
"""Header of a record of a topic; its value is the name of the producer, signed: see `schemas.records.origins`."""

CLAIMED: Final = "claimed:"
"""Begins the name in a header that no server of this service has signed: any writer of the topic may have written it."""

_BEGIN: Final = b'{"producer":"'

ProducerOf = Callable[[Chunk, int], str | None]  # returns who sent a record of a chunk, by its number


def in_packed_record(chunk: Chunk, number: int) -> str | None:
    """Return the producer that a packed record names first: to be believed in a log that only this process writes.

    >>> in_packed_record(Chunk(0, 0, 9, [0], [b'{"producer":"ci","events":[]}']), 0)
    'ci'
    """
    record = chunk.records[number]
    if not record.startswith(_BEGIN):
        return None
    name = record[len(_BEGIN) : len(_BEGIN) + 106].partition(b'"')[0].decode("utf-8", "replace")
    return name if PRODUCER.fullmatch(name) else None


def in_header(chunk: Chunk, number: int) -> str | None:
    """Return the producer that the header of a record names."""
    return None if chunk.producers is None else chunk.producers[number]


def at_offset(chunk: Chunk, offset: int, producer_of: ProducerOf) -> str | None:
    """Return who sent the record at an offset of a chunk."""
    number = bisect_left(chunk.offsets, offset)
    return producer_of(chunk, number) if number < len(chunk.records) and chunk.offsets[number] == offset else None

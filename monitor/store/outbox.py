"""Read the verdict changes that wait for publishers, and trim those that all have relayed; note what people were notified of."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from monitor.engine.latch.records import RECORD, LatchRecords, Records, Terms, latch_of
from monitor.store.latches import OF_WHOLE, OrderedLatches
from monitor.store.layout import Keys, check_publisher, check_topic
from monitor.store.load import refusal
from monitor.store.server.clients import ANSWER_SECONDS
from monitor.store.server.connection import Connection
from schemas.records.scores import Contestant
from schemas.results.changes import AnyChange, change_order, read_change
from schemas.results.verdict_changes import Order, VerdictChanges
from stats.numerics.pairs import pair_members

# Encode verdict changes for the outbox, and decode them.
#
# An entry of the outbox is a part of the changes of a commit, in the order of their ids. It has all that they are made from, because their
# benchmark may have been deleted since.

_PART: Final = 500  # changes of an entry: as many as a relay reads at once

_CRC: Final = 8
_NUMBER: Final = 32  # bits of a number of terms, or of a contestant, in a key of a benchmark and that number

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class Announced(NamedTuple):
    """The new changes of one benchmark."""

    name: str
    contestants: Sequence[Contestant] | Mapping[int, Contestant]
    latches: OrderedLatches

    @classmethod
    def of(cls, name: str, changes: VerdictChanges, latches: OrderedLatches) -> "Announced":
        """Return the changes of a benchmark, given as records too."""
        # Columns that were loaded know the contestants of that time. Contestants are only ever appended, so the longest list is all of
        # them.
        return cls(name, max((each.contestants for each in changes.columns), key=len, default=()), latches)


class Part(NamedTuple):
    """An entry of the outbox."""

    last: bytes  # the id of its last change, which is its own
    data: bytes  # see `parts`
    changes: int


def parts(boards: Sequence[Announced]) -> Iterator[Part]:
    r"""Yield the changes of benchmarks as entries of the outbox, in the order of their ids.

    The data of an entry is eight hexadecimal digits, the CRC-32 of the rest; a JSON array, and ``\n``; then its changes,
    `monitor.engine.latch.records.RECORD` each. The array has a list ``[name, contestants]`` for each benchmark, where contestants are
    ``[number, model, epoch]``, and a list ``[place of the benchmark, values of Terms]`` for each that a record names. An object with
    ``field`` and ``change`` in place of the values is a change that is kept whole.
    """
    boards = [board for board in boards if board.latches.records.size]
    if not boards:
        return
    records = np.concatenate([board.latches.records for board in boards])
    of = np.repeat(np.arange(len(boards)), [board.latches.records.size for board in boards])
    if len(boards) > 1:
        order = np.lexsort((records["sequence"], records["offset"]))
        records, of = records[order], of[order]
    for start in range(0, records.size, _PART):
        yield _part(boards, records[start : start + _PART].copy(), of[start : start + _PART])


def _part(boards: Sequence[Announced], records: Records, of: Any) -> Part:  # noqa: ANN401 - an array of places
    """Return an entry; `of` has the place of the benchmark of each record."""
    used, numbers = np.unique(of << _NUMBER | records["terms"], return_inverse=True)
    lines = [boards[each >> _NUMBER].latches.lines[each & ((1 << _NUMBER) - 1)] for each in used.tolist()]
    records["terms"] = numbers
    made = np.array([line.startswith(b"[") for line in lines])[numbers]
    pair, _, _ = latch_of(records["sequence"][made])
    members = np.unique([of[made] << _NUMBER | each for each in pair_members(pair.astype(np.int64))])
    known: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for each in members.tolist():
        number = each & ((1 << _NUMBER) - 1)
        known[each >> _NUMBER].append((number, *boards[each >> _NUMBER].contestants[number]))
    places = {board: place for place, board in enumerate(dict.fromkeys((used >> _NUMBER).tolist()))}
    names = [(boards[board].name, known[board]) for board in places]
    terms = [
        (places[board], msgspec.Raw(line.rstrip()))
        for board, line in zip((used >> _NUMBER).tolist(), lines, strict=True)
    ]
    rest = _encode((names, terms)) + b"\n" + records.tobytes()
    last = b"%d-%d" % (records["offset"][-1], records["sequence"][-1])
    return Part(last, b"%08x%b" % (crc32(rest), rest), records.size)


def changes_of(data: bytes, after: Order, count: int, keys: Keys) -> list[AnyChange]:
    """Return the first changes of an entry whose ids are after one."""
    rest = memoryview(data)[_CRC:]
    if b"%08x" % crc32(rest) != data[:_CRC]:
        raise refusal(keys, "an entry of the outbox")
    end = data.index(b"\n", _CRC)
    names, terms = _decode(data[_CRC:end])
    records = np.frombuffer(data, RECORD, offset=end + 1)
    offset, sequence = after
    later = (records["offset"] > offset) | (records["offset"] == offset) & (records["sequence"] > np.uint64(sequence))
    records = records[later][:count]
    made: list[Any] = [None] * records.size
    shared = [OF_WHOLE if isinstance(values, dict) else Terms.read(values) for _, values in terms]
    whole = np.array([isinstance(values, dict) for _, values in terms])[records["terms"]]
    board = np.array([place for place, _ in terms])[records["terms"]]
    for place in np.flatnonzero(whole).tolist():
        made[place] = read_change(terms[records["terms"][place]][1]["change"])
    for number in np.unique(board[~whole]).tolist():
        name, listed = names[number]
        contestants = {k: Contestant(model, epoch) for k, model, epoch in listed}
        some = np.flatnonzero((board == number) & ~whole)
        changes = LatchRecords(name, contestants, shared, records[some]).changes()
        for place, change in zip(some.tolist(), changes, strict=True):
            made[place] = change
    return made


START: Final = "0-0"  # the id before every verdict change

_ID: Final = re.compile(r"\d+-\d+")
_LONGEST_BLOCK_MS: Final = int(ANSWER_SECONDS * 1000 / 3)
_FEW_ENTRIES: Final = 2
_MORE_ENTRIES: Final = 8
"""An entry has between one change and as many as a relay reads, so few are asked for first, and then so many times more."""

_LARGEST_SEQUENCE: Final = 2**64 - 1


class StoredOutbox:
    """The outboxes of the partitions of one topic."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self.topic = check_topic(topic)
        self._connection = connection

    async def read_outbox(
        self, partition: int, after_id: str = START, count: int = 100, block_ms: int = 0
    ) -> list[tuple[str, AnyChange]]:
        """Return verdict changes after an id, in the order of the log."""
        if count < 1 or block_ms < 0:
            raise ValueError(f"count {count} must be at least 1, and block_ms {block_ms} at least 0")
        blocking: tuple[str | int, ...] = ("BLOCK", min(block_ms, _LONGEST_BLOCK_MS)) if block_ms else ()
        keys, position, ask = self._keys(partition), _check_id(after_id), _FEW_ENTRIES
        changes: list[AnyChange] = []
        while len(changes) < count:
            command = ("XREAD", "COUNT", min(ask, count), *blocking, "STREAMS", keys.outbox, position)
            (streams,) = await self._connection.fetch([command])
            entries = [entry for _, entries in streams for entry in entries]
            for identifier, fields in entries:
                if len(changes) < count:
                    changes += changes_of_entry(fields, change_order(after_id), count - len(changes), keys)
                    position = identifier.decode()
            if len(entries) < min(ask, count):
                break
            ask, blocking = ask * _MORE_ENTRIES, ()
        return [(change.id, change) for change in changes]

    async def outbox_length(self, partition: int) -> int:
        """Return how many verdict changes wait for a publisher; of an entry that is relayed in part, all."""
        return await waiting_changes(self._connection, self._keys(partition))

    async def relayed(self, partition: int, publisher: str) -> str:
        """Return the id of the last change a publisher relayed; the first call keeps all later changes until it has relayed them."""
        relays = self._keys(partition).relays
        _, identifier = await self._connection.fetch(
            [("HSETNX", relays, check_publisher(publisher), START), ("HGET", relays, publisher)]
        )
        return str(identifier.decode())

    async def mark_relayed(self, partition: int, publisher: str, identifier: str) -> None:
        """Record the last change a publisher relayed, and trim the changes that every publisher has."""
        await self._update_relays(partition, "HSET", check_publisher(publisher), _check_id(identifier))

    async def forget_publisher(self, partition: int, publisher: str) -> None:
        """Stop keeping changes for a publisher that is no longer configured."""
        await self._update_relays(partition, "HDEL", check_publisher(publisher))

    async def notes(self, partition: int, publisher: str) -> dict[str, str]:
        """Return what is noted of the notifications of a publisher, by field."""
        (noted,) = await self._connection.fetch([("HGETALL", self._keys(partition).notes(publisher))])
        return {field.decode(): value.decode() for field, value in noted.items()}

    async def note(self, partition: int, publisher: str, values: Mapping[str, str]) -> None:
        """Note values by field."""
        key = self._keys(partition).notes(publisher)
        await self._connection.fetch([("HSET", key, *chain.from_iterable(values.items()))])

    async def _update_relays(self, partition: int, command: str, *arguments: str) -> None:
        keys = self._keys(partition)
        _, relayed = await self._connection.fetch([(command, keys.relays, *arguments), ("HVALS", keys.relays)])
        if relayed:
            offset, sequence = min(change_order(identifier.decode()) for identifier in relayed)
            next_id = f"{offset}-{sequence + 1}" if sequence < _LARGEST_SEQUENCE else f"{offset + 1}-0"
            await self._connection.fetch([("XTRIM", keys.outbox, "MINID", "=", next_id)])

    def _keys(self, partition: int) -> Keys:
        return Keys(self.topic, partition)


def changes_of_entry(fields: Mapping[bytes, bytes], after: Order, count: int, keys: Keys) -> list[AnyChange]:
    """Return the first changes of an entry that follow an id."""
    return changes_of(fields[b"latches"], after, count, keys)


async def waiting_changes(connection: Connection, keys: Keys) -> int:
    """Return how many verdict changes wait for a publisher; of an entry that is relayed in part, all."""
    key = keys.outbox
    ends = [("XRANGE", key, "-", "+", "COUNT", 1), ("XREVRANGE", key, "+", "-", "COUNT", 1)]
    length, first, last = await connection.fetch([("XLEN", key), *ends])
    if not first or not last:
        return 0
    (_, first_fields), (_, last_fields) = first[0], last[0]
    more = int(last_fields.get(b"before", 0)) + int(last_fields.get(b"count", 1)) - 1
    return int(length) + more - int(first_fields.get(b"before", 0))


def _check_id(identifier: str) -> str:
    if not _ID.fullmatch(identifier):
        raise ValueError(
            f"{identifier!r} is not the id of a verdict change; use <offset>-<sequence>, or {START} for the start"
        )
    return identifier

"""Read the verdict changes that wait for publishers, and trim those that all have relayed; note what people were notified of."""

import re
from collections.abc import Mapping
from itertools import chain
from typing import Final

from monitor.store.announced import changes_of
from monitor.store.layout import Keys, check_publisher, check_topic
from monitor.store.server.clients import ANSWER_SECONDS
from monitor.store.server.connection import Connection
from schemas.results.changes import AnyChange, change_order
from schemas.results.verdict_changes import Order

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

"""Read the verdict changes that wait for publishers, and trim those that all have relayed; note what people were notified of."""

import re
from collections.abc import Mapping
from itertools import chain
from typing import Final

from monitor.store.layout import Keys, check_publisher, check_topic
from monitor.store.server.clients import ANSWER_SECONDS
from monitor.store.server.connection import Connection
from schemas.results.changes import VerdictChange, change_order

START: Final = "0-0"
"""The id before every verdict change."""

_ID: Final = re.compile(r"\d+-\d+")
_LONGEST_BLOCK_MS: Final = int(ANSWER_SECONDS * 1000 / 3)
_LARGEST_SEQUENCE: Final = 2**64 - 1


class StoredOutbox:
    """The outboxes of the partitions of one topic."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self.topic = check_topic(topic)
        self._connection = connection

    async def read_outbox(
        self, partition: int, after_id: str = START, count: int = 100, block_ms: int = 0
    ) -> list[tuple[str, VerdictChange]]:
        """Return verdict changes after an id, in the order of the log.

        Parameters
        ----------
        count : int
            The most changes to return.
        block_ms : int
            How long to wait for the first one, at most 5 seconds; 0 does not wait.
        """
        if count < 1 or block_ms < 0:
            raise ValueError(f"count {count} must be at least 1, and block_ms {block_ms} at least 0")
        blocking = ("BLOCK", min(block_ms, _LONGEST_BLOCK_MS)) if block_ms else ()
        command = ("XREAD", "COUNT", count, *blocking, "STREAMS", self._keys(partition).outbox, _check_id(after_id))
        (streams,) = await self._connection.fetch([command])
        return [
            (identifier.decode(), VerdictChange.model_validate_json(fields[b"change"]))
            for _, entries in streams
            for identifier, fields in entries
        ]

    async def outbox_length(self, partition: int) -> int:
        """Return how many verdict changes wait for a publisher."""
        (length,) = await self._connection.fetch([("XLEN", self._keys(partition).outbox)])
        return int(length)

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


def _check_id(identifier: str) -> str:
    if not _ID.fullmatch(identifier):
        raise ValueError(
            f"{identifier!r} is not the id of a verdict change; use <offset>-<sequence>, or {START} for the start"
        )
    return identifier

"""Export, import and summarize the whole state of a topic."""

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import IO, Any, NamedTuple, Self

from monitor.retries import RetryPolicy
from monitor.store.errors import StateRefused
from monitor.store.layout import Keys, check_topic, origin_secret_key, unpack_contestants
from monitor.store.load import read_boards, read_suspects
from monitor.store.redis_store import RedisStore
from monitor.store.server.connection import Calls, Connection, slices
from monitor.store.transfer.archive import ArchiveHeader, ArchiveWriter, read_archive
from monitor.store.transfer.comparison import BoardComparison, StoredPartition, compare_boards
from monitor.store.transfer.state_export import export_partition
from monitor.store.transfer.state_import import StateImport
from monitor.store.transfer.summary import PartitionSummary, summarize
from monitor.store.versions import VERSIONS, check_versions
from schemas.records.boards import BoardEntry, Suspect
from schemas.records.chunks import Gap


class Position(NamedTuple):
    """How far a partition is folded, and the records that were gone before."""

    off: int = 0
    gaps: list[Gap] = []  # noqa: RUF012 - never changed


class StoredBoard(NamedTuple):
    """A board as it is stored."""

    partition: int
    entry: BoardEntry
    models: frozenset[str]
    counters: dict[str, int]
    spec: str | None  # the declaration as JSON

    @property
    def names(self) -> set[str]:
        """The names of the models, and their aliases."""
        spec = json.loads(self.spec or "{}")
        return {*self.models, *spec.get("aliases", {})}


class Transfer:
    """Reads and writes whole states of one topic while no worker writes to them; open it with `Transfer.open`."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection, self.topic = connection, check_topic(topic)

    @classmethod
    @asynccontextmanager
    async def open(cls, target: str | Mapping[str, Any], topic: str, retries: RetryPolicy) -> AsyncIterator[Self]:
        """Connect to a server, with the checks of `RedisStore.open`."""
        connection = Connection(target, retries)
        try:
            await connection.check_server()
            yield cls(connection, topic)
        finally:
            await connection.close()

    async def partitions(self) -> list[int]:
        """Return the partitions that have a state."""
        pattern = re.compile(re.escape(f"{{{self.topic}:").encode() + rb"(\d+)\}:meta")
        keys = await self._connection.scan(f"{{{self.topic}:*}}:meta")
        return sorted(int(match[1]) for key in keys if (match := pattern.fullmatch(key)))

    async def summarize(self) -> list[PartitionSummary]:
        """Summarize every partition that has a state."""
        return [await summarize(self._connection, self.topic, number) for number in await self.partitions()]

    async def positions(self) -> dict[int, Position]:
        """Return how far each partition is folded, and its gaps; the state is not checked."""
        numbers = await self.partitions()
        calls: Calls = [("HMGET", Keys(self.topic, number).meta, "off", "gaps") for number in numbers]
        replies = await self._connection.fetch(calls)
        return {
            number: Position(max(0, int(off or 0)), [Gap(*gap) for gap in json.loads(gaps or b"[]")])
            for number, (off, gaps) in zip(numbers, replies, strict=True)
        }

    async def quarantine(self) -> list[tuple[int, Suspect]]:
        """Return the benchmarks that are set aside, each with its partition; the state is not checked."""
        numbers = await self.partitions()
        metas = await self._connection.fetch([("HGETALL", Keys(self.topic, number).meta) for number in numbers])
        return [
            (number, suspect)
            for number, meta in zip(numbers, metas, strict=True)
            for suspect in read_suspects(meta)
            if suspect.since is not None
        ]

    async def boards(self) -> list[StoredBoard]:
        """Return every board, deleted ones too; the state is not checked."""
        boards: list[StoredBoard] = []
        for number in await self.partitions():
            keys = Keys(self.topic, number)
            meta, names = await self._connection.fetch([("HGETALL", keys.meta), ("HGETALL", keys.benchmarks)])
            entries = {entry.benchmark: entry for entry in read_boards(meta)}
            for part in slices(names.items()):
                calls: list[tuple[str | int | bytes, ...]] = []
                for key, _ in part:
                    calls += [
                        ("HMGET", keys.of("spec", key.decode()), "counters", "spec"),
                        ("GET", keys.of("models", key.decode())),
                    ]
                replies = iter(await self._connection.fetch(calls))
                for (_, entry), (counters, spec), models in zip(part, replies, replies, strict=True):
                    name = json.loads(entry)[-1]
                    board = entries.pop(name, None) or BoardEntry(name)
                    contestants = unpack_contestants(models or b"")
                    boards.append(
                        StoredBoard(
                            number,
                            board,
                            frozenset(each.model for each in contestants),
                            json.loads(counters or b"{}"),
                            None if spec is None else spec.decode(),
                        )
                    )
            boards += [StoredBoard(number, entry, frozenset(), {}, None) for entry in entries.values()]
        return boards

    async def take_signing_key(self, other: "Transfer") -> bool:
        """Take the key with which the workers of another state sign what they add to records, ahead of the first worker here."""
        secret = await other.find_signing_key()
        if secret is None and not await other.partitions():
            raise other.nothing_there()
        if secret is None:
            return False
        key = origin_secret_key(self.topic)
        await self._connection.fetch([("SET", key, secret, "NX")])
        if await self.find_signing_key() != secret:
            raise StateRefused(
                f"the state of topic {self.topic} at {self._connection.address} has another signing key, because a worker has begun it; "
                f"use an empty database, or delete this state (redis-cli --scan --pattern '{{{self.topic}:*' | xargs redis-cli DEL)"
            )
        return True

    async def find_signing_key(self) -> bytes | None:
        """Return the key with which the workers of this topic sign, or None before the first worker has drawn it."""
        (secret,) = await self._connection.fetch([("GET", origin_secret_key(self.topic))])
        return None if secret is None else bytes(secret)

    def nothing_there(self) -> StateRefused:
        """Return the error that there is no state."""
        return StateRefused(
            f"there is no state of topic {self.topic} at {self._connection.address}; give its topic and its server"
        )

    async def stored_partition(self, number: int) -> StoredPartition:
        """Read a partition to compare it."""
        save_times = RedisStore(self._connection, self.topic).save_times
        return await StoredPartition.read(self._connection, self.topic, number, save_times)

    async def compare(self, other: "Transfer", *, keep_times: bool = False) -> list[BoardComparison]:
        """Compare the verdicts of every board with those of another state of the same topic; workers may run meanwhile."""
        ours, theirs = await self.partitions(), await other.partitions()
        for each, found in ((self, ours), (other, theirs)):
            if not found:
                raise each.nothing_there()
        compared: list[BoardComparison] = []
        for number in sorted({*ours, *theirs}):
            here, there = await self.stored_partition(number), await other.stored_partition(number)
            compared += await compare_boards(here, there, keep_times=keep_times)
        return sorted(compared, key=attrgetter("benchmark"))

    async def write(self, file: IO[bytes]) -> int:
        """Write the state of all partitions as an archive; return the number of benchmarks."""
        numbers = await self.partitions()
        if not numbers:
            raise self.nothing_there()
        writer = ArchiveWriter(file, ArchiveHeader(self.topic, **VERSIONS))
        count = 0
        for number in numbers:
            count += await export_partition(self._connection, Keys(self.topic, number), number, writer)
        writer.end()
        return count

    async def read(
        self,
        file: Iterable[bytes],
        *,
        partitions: int | None = None,
        offsets: Mapping[int, int] | None = None,
        new_log: bool = False,
    ) -> int:
        """Import the state of an archive; return the number of benchmarks."""
        header, lines = read_archive(file)
        check_versions({name: getattr(header, name) for name in VERSIONS}, "the export")
        new_log = new_log or partitions is not None or bool(offsets) or header.topic != self.topic
        incoming = StateImport(self._connection, self.topic, partitions, offsets or {}, new_log=new_log)
        try:
            return await incoming.run(lines)
        except BaseException:
            await incoming.undo()
            raise

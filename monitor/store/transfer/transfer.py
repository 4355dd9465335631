"""Moves a state between servers, and to another number of partitions."""

import json
import re
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain, islice
from typing import IO, Any, Final, Self

from monitor.engine.ownership import owner
from monitor.engine.state.keys import benchmark_key
from monitor.store.errors import StateRefused, StoreError, unfinished
from monitor.store.layout import IMPORTING, STRINGS, Keys, check_topic, dump_json, unpack_contestants
from monitor.store.script_call import VERSIONS
from monitor.store.server.connection import Calls, Connection, Retries
from monitor.store.transfer.archive import (
    ArchiveDamaged,
    ArchiveHeader,
    ArchiveWriter,
    BenchmarkLine,
    PartitionLine,
    read_archive,
)
from monitor.store.transfer.summary import PartitionSummary, summarize

_POSITION: Final = ("off", "writer", "seq")
_SLICE: Final = 500
"""Fields, or keys, in one command."""


class Transfer:
    """Reads and writes whole states of one topic, while no worker writes to them; open it with `Transfer.open`."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection, self.topic = connection, check_topic(topic)

    @classmethod
    @asynccontextmanager
    async def open(cls, target: str | Mapping[str, Any], topic: str, retries: Retries) -> AsyncIterator[Self]:
        """Connect to a server, with the checks of `RedisStore.open`."""
        connection = Connection.to(target, retries)
        try:
            await connection.check_server()
            yield cls(connection, topic)
        finally:
            await connection.close()

    async def partitions(self) -> list[int]:
        """Return the partitions that have a state."""
        pattern = re.compile(re.escape(f"{{{self.topic}:").encode() + rb"(\d+)\}:meta")
        found = await self._connection.scan(f"{{{self.topic}:*}}:meta")
        return sorted(int(match[1]) for key in found if (match := pattern.fullmatch(key)))

    # --- export -----------------------------------------------------------------------------------------------------------------------

    async def write(self, file: IO[bytes]) -> int:
        """Write the state of all partitions as an archive; return how many benchmarks there are.

        Raises
        ------
        StateRefused
            If there is no state, it is another version's, or an import into it was not finished.
        StoreError
            If it is written to meanwhile.
        """
        numbers = await self.partitions()
        if not numbers:
            raise StateRefused(
                f"there is no state of topic {self.topic} at {self._connection.where}: name its topic and its server"
            )
        writer = ArchiveWriter(file, ArchiveHeader(self.topic, **VERSIONS))
        count = 0
        for number in numbers:
            count += await self._write_partition(writer, number)
        writer.end()
        return count

    async def _write_partition(self, writer: ArchiveWriter, number: int) -> int:
        keys = Keys(self.topic, number)
        meta, named, relays, outbox = await self._fetch(
            ("HGETALL", keys.meta),
            ("HGETALL", keys.benchmarks),
            ("HGETALL", keys.relays),
            ("XRANGE", keys.outbox, "-", "+"),
        )
        self._check_versions(keys, meta)
        waiting = [(identifier.decode(), fields[b"change"].decode()) for identifier, fields in outbox]
        writer.partition(PartitionLine(number, _texts(meta), _texts(relays), waiting))
        for key, value in sorted(named.items()):
            writer.benchmark(await self._read_benchmark(keys, key.decode(), value))
        (now,) = await self._fetch(("HMGET", keys.meta, *_POSITION))
        if now != [meta.get(name.encode()) for name in _POSITION]:
            raise StoreError(
                f"partition {number} of {self.topic} is written to: stop the workers (and `watch`) first, then export"
            )
        return len(named)

    async def _read_benchmark(self, keys: Keys, key: str, entry: bytes) -> BenchmarkLine:
        *born, name = json.loads(entry)
        spec, verdicts, times, *strings = await self._fetch(
            ("HGETALL", keys.of("spec", key)),
            ("HGETALL", keys.of("verdicts", key)),
            ("HGETALL", keys.of("times", key)),
            *(("GET", keys.of(kind, key)) for kind in STRINGS),
        )
        found = {kind: data or b"" for kind, data in zip(STRINGS, strings, strict=True)}
        contestants = len(unpack_contestants(found["models"]))
        scores: list[bytes] = []
        for part in _sliced(range(contestants), _SLICE):
            (columns,) = await self._fetch(("MGET", *(keys.score(key, k) for k in part)))
            scores += [column or b"" for column in columns]
        return BenchmarkLine(
            partition=int(keys.tag[1:-1].rpartition(":")[2]),
            benchmark=name,
            born=born,
            spec=_texts(spec),
            verdicts=_texts(verdicts),
            strings=found,
            scores=scores,
            times=_texts(times),
        )

    def _check_versions(self, keys: Keys, meta: Mapping[bytes, bytes]) -> None:
        if meta.get(b"off") == str(IMPORTING).encode():
            raise StateRefused(unfinished(keys.tag, self._connection.where))
        for name, mine in VERSIONS.items():
            if name.encode() in meta and int(meta[name.encode()]) != mine:
                raise StateRefused(
                    f"the state {keys.tag} has {name} {int(meta[name.encode()])}, this program has {mine}: export it with the version "
                    "that wrote it"
                )

    # --- import -----------------------------------------------------------------------------------------------------------------------

    async def read(
        self,
        file: Iterable[bytes],
        *,
        partitions: int | None = None,
        offsets: Mapping[int, int] | None = None,
        new_log: bool = False,
    ) -> int:
        """Make the state that an archive holds; return how many benchmarks there are.

        Parameters
        ----------
        file : iterable of bytes
            Its lines.
        partitions : int, optional
            How many partitions the new log has: each benchmark goes to its owner among them. Default: everything stays where it was.
        offsets : mapping of int to int, optional
            Where the new log is read first, by partition; a partition that is not named is read from its beginning.
        new_log : bool
            Whether the state goes on with another log than the one it was folded from; always so for another topic, with `partitions`,
            and with `offsets`. Offsets, and all that refers to them, are then left behind.

        Raises
        ------
        StateRefused
            If there is a state already, or the archive is another version's.
        ArchiveDamaged
            If it is not whole; then nothing of it is left.
        """
        header, lines = read_archive(file)
        for name, mine in VERSIONS.items():
            if getattr(header, name) != mine:
                raise StateRefused(
                    f"the export has {name} {getattr(header, name)}, this program has {mine}: verdicts of two versions must not be mixed; "
                    "import it with the version that wrote it, or have the log folded anew"
                )
        new_log = new_log or partitions is not None or bool(offsets) or header.topic != self.topic
        incoming = _Import(self._connection, self.topic, partitions, offsets or {}, new_log=new_log)
        try:
            return await incoming.run(lines)
        except BaseException:
            await incoming.undo()
            raise

    async def summarize(self) -> list[PartitionSummary]:
        """Describe every partition that has a state."""
        return [await summarize(self._connection, self.topic, number) for number in await self.partitions()]

    async def _fetch(self, *calls: tuple[str | int, ...]) -> list[Any]:
        return await self._connection.fetch(calls)


class _Import:
    """One import on its way; what it writes is marked as unfinished until all of it is there."""

    def __init__(
        self, connection: Connection, topic: str, partitions: int | None, offsets: Mapping[int, int], *, new_log: bool
    ) -> None:
        self._connection, self._topic, self._new_log = connection, topic, new_log
        self._partitions, self._offsets = partitions, offsets
        self._writer = uuid.uuid4().hex
        self._meta: dict[int, dict[str, str]] = {}
        self._counters: dict[str, int] = {}
        self._written: list[str] = []

    async def run(self, lines: Iterator[PartitionLine | BenchmarkLine]) -> int:
        count = 0
        for number in range(self._partitions or 0):
            await self._claim(number)
        for line in lines:
            if isinstance(line, BenchmarkLine):
                await self._benchmark(line)
                count += 1
            else:
                await self._partition(line)
        if strange := self._offsets.keys() - self._meta.keys():
            raise ValueError(
                f"an offset is given for partition {min(strange)}, of which there is no state: give it for {sorted(self._meta)}"
            )
        for number in sorted(self._meta):
            await self._finish(number)
        return count

    async def undo(self) -> None:
        """Delete everything that was written."""
        for part in _sliced(self._written, _SLICE):
            await self._connection.fetch([("DEL", key) for key in part])

    async def _claim(self, number: int) -> None:
        """Mark a partition as being imported, which no worker takes for a state; refuse one that has a state."""
        keys = Keys(self._topic, number)
        found = await self._connection.fetch([("EXISTS", key) for key in (keys.meta, keys.benchmarks, keys.outbox)])
        if not any(found):
            *_, who = await self._connection.fetch(
                [
                    ("HSETNX", keys.meta, "writer", self._writer),
                    ("HSETNX", keys.meta, "off", IMPORTING),
                    ("HGET", keys.meta, "writer"),
                ]
            )
            if who.decode() == self._writer:
                self._written.append(keys.meta)
                self._meta[number] = {}
                return
        raise StateRefused(
            f"there is a state {keys.tag} at {self._connection.where} already, and it is not overwritten: import under another --topic or "
            f"into another server, or delete it (redis-cli --scan --pattern '{keys.tag}:*' | xargs redis-cli DEL)"
        )

    async def _partition(self, line: PartitionLine) -> None:
        if self._partitions is None:
            await self._claim(line.partition)
        if not self._new_log:
            self._meta[line.partition] = {k: v for k, v in line.meta.items() if k not in {"writer", "seq"}}
            await self._keep_outbox(Keys(self._topic, line.partition), line)
            return
        if line.outbox:
            raise StateRefused(
                f"{len(line.outbox)} verdict changes of partition {line.partition} are not published yet, and their ids count within the "
                "log they come from: run a worker on the old state until `rankwatch state show` has none waiting, and export again"
            )
        for name, value in json.loads(line.meta.get("counters", "{}")).items():
            self._counters[name] = self._counters.get(name, 0) + value
        if self._partitions in {None, 1}:
            # How far files were read is a matter of an importer, and there is one where there is one partition.
            target = self._meta[0 if self._partitions else line.partition]
            target.update({k: v for k, v in line.meta.items() if k.startswith("source:")})

    async def _keep_outbox(self, keys: Keys, line: PartitionLine) -> None:
        calls: list[tuple[str | int, ...]] = []
        if line.relays:
            calls.append(("HSET", keys.relays, *chain.from_iterable(line.relays.items())))
        if line.outbox:
            # What a lost connection makes come twice must not be added twice.
            calls.append(("DEL", keys.outbox))
            calls += [("XADD", keys.outbox, identifier, "change", change) for identifier, change in line.outbox]
        self._written += [keys.relays, keys.outbox]
        await self._connection.fetch(calls)

    async def _benchmark(self, line: BenchmarkLine) -> None:
        number = line.partition if self._partitions is None else owner(line.benchmark, self._partitions)
        if number not in self._meta:
            raise ArchiveDamaged(
                f"benchmark {line.benchmark!r} is of a partition that the export does not have: the file was changed"
            )
        keys, key = Keys(self._topic, number), benchmark_key(line.benchmark)
        entry = dump_json([*line.born, line.benchmark])
        await self._write([keys.benchmarks], [("HSET", keys.benchmarks, key, entry)])
        for kind, fields in (("spec", line.spec), ("verdicts", line.verdicts), ("times", line.times)):
            for part in _sliced(fields.items(), _SLICE):
                await self._write([keys.of(kind, key)], [("HSET", keys.of(kind, key), *chain.from_iterable(part))])
        for kind in STRINGS:
            if data := line.strings.get(kind):
                await self._write([keys.of(kind, key)], [("SET", keys.of(kind, key), data)])
        for part in _sliced(enumerate(line.scores), _SLICE):
            columns = [(keys.score(key, k), codes) for k, codes in part if codes]
            await self._write([name for name, _ in columns], [("SET", name, codes) for name, codes in columns])

    async def _finish(self, number: int) -> None:
        """Put the mark away, with everything else that a worker looks at first."""
        meta = dict(self._meta[number])
        if self._new_log:
            meta |= {name: str(version) for name, version in VERSIONS.items()}
            if number == min(self._meta):
                meta["counters"] = dump_json(self._counters)
            if number in self._offsets:
                meta["off"] = str(self._offsets[number])
        keys = Keys(self._topic, number)
        calls: list[tuple[str | int, ...]] = [("HSET", keys.meta, *chain.from_iterable(meta.items()))]
        calls.append(("HDEL", keys.meta, "writer", *(() if "off" in meta else ("off",))))
        await self._connection.fetch(calls)

    async def _write(self, keys: list[str], calls: Calls) -> None:
        self._written += keys
        await self._connection.fetch(calls)


def _texts(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in fields.items()}


def _sliced(values: Iterable[Any], size: int) -> Iterator[list[Any]]:
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part

"""Import the state of an archive into a server."""

import json
import uuid
from collections.abc import Iterator, Mapping
from itertools import chain

from monitor.engine.state.changes import benchmark_key
from monitor.store.errors import StateRefused
from monitor.store.layout import IMPORTING, STRINGS, Keys, dump_json
from monitor.store.load import decode_benchmark
from monitor.store.seal import FIELD, PartitionSeal, moved_spec
from monitor.store.server.connection import Calls, Connection, slices
from monitor.store.transfer.archive import ArchiveDamaged, BenchmarkLine, PartitionLine
from monitor.store.transfer.soundness import contradiction
from monitor.store.versions import VERSIONS
from schemas.records.boards import BoardEntry, Suspect
from schemas.records.ownership import owner


class StateImport:
    """Writes one archive; each partition is marked as importing until all of it is written."""

    def __init__(
        self, connection: Connection, topic: str, partitions: int | None, offsets: Mapping[int, int], *, new_log: bool
    ) -> None:
        self._connection, self._topic, self._new_log = connection, topic, new_log
        self._partitions, self._offsets = partitions, offsets
        self._writer = uuid.uuid4().hex
        self._meta: dict[int, dict[str, str]] = {}
        self._seals: dict[int, PartitionSeal] = {}
        self._counters: dict[str, int] = {}
        self._written: dict[str, None] = {}

    async def run(self, lines: Iterator[PartitionLine | BenchmarkLine]) -> int:
        """Write the lines; return the number of benchmarks."""
        count = 0
        for number in range(self._partitions or 0):
            await self._claim(number)
        for number, line in enumerate(lines, 2):
            try:
                if isinstance(line, BenchmarkLine):
                    await self._benchmark(line)
                    count += 1
                else:
                    await self._partition(line)
            except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
                # Of what a field holds, which no export writes so.
                where = repr(line.benchmark) if isinstance(line, BenchmarkLine) else f"partition {line.partition}"
                raise ArchiveDamaged(
                    f"line {number}: a field of {where} cannot be read: the file was changed; export again ({error})"
                ) from error
        if unknown := self._offsets.keys() - self._meta.keys():
            raise ValueError(
                f"an offset is given for partition {min(unknown)}, which has no state; give offsets for {sorted(self._meta)}"
            )
        for number in sorted(self._meta):
            await self._finish(number)
        return count

    async def undo(self) -> None:
        """Delete everything this import wrote."""
        for part in slices(self._written):
            await self._connection.fetch([("DEL", key) for key in part])

    async def _claim(self, number: int) -> None:
        """Mark a partition as importing, which no worker takes for a state; refuse one that has a state."""
        keys = Keys(self._topic, number)
        existing = await self._connection.fetch([("EXISTS", key) for key in (keys.meta, keys.benchmarks, keys.outbox)])
        if not any(existing):
            *_, writer = await self._connection.fetch(
                [
                    ("HSETNX", keys.meta, "writer", self._writer),
                    ("HSETNX", keys.meta, "off", IMPORTING),
                    ("HGET", keys.meta, "writer"),
                ]
            )
            if writer.decode() == self._writer:
                self._written[keys.meta] = None
                self._meta[number], self._seals[number] = {}, PartitionSeal()
                return
        raise StateRefused(
            f"there is a state {keys.tag} at {self._connection.address} already, and it is not overwritten; import under another "
            f"--topic or into another server, or delete the state (redis-cli --scan --pattern '{keys.tag}:*' | xargs redis-cli DEL)"
        )

    async def _partition(self, line: PartitionLine) -> None:
        fields = PartitionSeal().fields
        fields.set(line.meta)
        if "off" in line.meta and json.loads(line.meta[FIELD])["fields"] != fields.sum:
            raise ValueError("meta differs from its digest")
        if any(count < 0 for count in json.loads(line.meta.get("counters", "{}")).values()):
            raise ValueError("counters: not counts")
        if self._partitions is None:
            await self._claim(line.partition)
        if not self._new_log:
            self._meta[line.partition] = {k: v for k, v in line.meta.items() if k not in {"writer", "seq"}}
            await self._keep_outbox(Keys(self._topic, line.partition), line)
            return
        if line.outbox:
            raise StateRefused(
                f"{line.waiting} verdict changes of partition {line.partition} are not published yet, and their ids are valid only "
                "with the old log; run a worker on the old state until `rankwatch state show` has none waiting, then export again"
            )
        self._move_quarantine(line)
        self._move_boards(line)
        for name, value in json.loads(line.meta.get("counters", "{}")).items():
            self._counters[name] = self._counters.get(name, 0) + value
        if self._partitions in {None, 1}:
            # Positions in watched files belong to `watch`, which has one partition.
            target = self._meta[0 if self._partitions else line.partition]
            target.update({k: v for k, v in line.meta.items() if k.startswith(("source:", "file:"))})

    def _move_quarantine(self, line: PartitionLine) -> None:
        """Give the entry of each benchmark that is set aside to its new partition; the offsets of the old log have no meaning there."""
        for field, value in line.meta.items():
            if field.startswith("quarantine:") and value:
                suspect = Suspect(*json.loads(value))
                if suspect.since is not None:
                    number = line.partition if self._partitions is None else owner(suspect.benchmark, self._partitions)
                    self._meta[number][field] = dump_json(suspect._replace(since=0, last=0))

    def _move_boards(self, line: PartitionLine) -> None:
        """Give the entry of each board to its new partition: what was deleted stays deleted, and a generation keeps its number."""
        for field, value in line.meta.items():
            if field.startswith("board:") and value:
                entry = BoardEntry.parse(value)
                number = line.partition if self._partitions is None else owner(entry.benchmark, self._partitions)
                self._meta[number][field] = dump_json(entry._replace(since=0, deleted=entry.deleted and 0, begun=0))

    async def _keep_outbox(self, keys: Keys, line: PartitionLine) -> None:
        calls: list[tuple[str | bytes | int, ...]] = []
        if line.relays:
            calls.append(("HSET", keys.relays, *chain.from_iterable(line.relays.items())))
        if line.outbox:
            # After a lost connection the calls run again, and must not add the changes twice.
            calls.append(("DEL", keys.outbox))
            calls += [
                ("XADD", keys.outbox, identifier, *chain.from_iterable(fields.items()))
                for identifier, fields in line.outbox
            ]
        self._written |= {keys.relays: None, keys.outbox: None}
        await self._connection.fetch(calls)

    async def _benchmark(self, line: BenchmarkLine) -> None:
        number = line.partition if self._partitions is None else owner(line.benchmark, self._partitions)
        if number not in self._meta:
            raise ArchiveDamaged(
                f"benchmark {line.benchmark!r} is in partition {number}, which the export lacks: the file was changed; export again"
            )
        keys, key = Keys(self._topic, number), benchmark_key(line.benchmark)
        if keys.of("spec", key) in self._written:
            raise ArchiveDamaged(f"benchmark {line.benchmark!r} comes twice: the file was changed; export again")
        stored = decode_benchmark(line.benchmark, line.spec, line.strings, line.scores)
        if (wrong := contradiction(stored)) is not None:
            raise ValueError(wrong)
        entry = dump_json([*line.born, line.benchmark])
        self._seals[number].names.set({key: entry})
        await self._write([keys.benchmarks], [("HSET", keys.benchmarks, key, entry)])
        spec = moved_spec(line.spec, self._offsets.get(number, 0)) if self._new_log else line.spec
        for part in slices(spec.items()):
            await self._write([keys.of("spec", key)], [("HSET", keys.of("spec", key), *chain.from_iterable(part))])
        for kind in STRINGS:
            if data := line.strings.get(kind):
                await self._write([keys.of(kind, key)], [("SET", keys.of(kind, key), data)])
        for scores in slices(enumerate(line.scores)):
            columns = [(keys.score(key, k), codes) for k, codes in scores if codes]
            await self._write([name for name, _ in columns], [("SET", name, codes) for name, codes in columns])

    async def _finish(self, number: int) -> None:
        """Write the rest of ``:meta``, which removes the importing mark."""
        meta = dict(self._meta[number])
        if self._new_log:
            meta |= {name: str(version) for name, version in VERSIONS.items()}
            if number == min(self._meta):
                meta["counters"] = dump_json(self._counters)
            if number in self._offsets:
                meta["off"] = str(self._offsets[number])
        keys, seal = Keys(self._topic, number), self._seals[number]
        seal.fields.set(meta)
        meta[FIELD] = dump_json(seal.digests(int(meta.get("off", 0))))
        calls: list[tuple[str | int, ...]] = [("HSET", keys.meta, *chain.from_iterable(meta.items()))]
        calls.append(("HDEL", keys.meta, "writer", *(() if "off" in meta else ("off",))))
        await self._connection.fetch(calls)

    async def _write(self, keys: list[str], calls: Calls) -> None:
        self._written |= dict.fromkeys(keys)
        await self._connection.fetch(calls)

"""Read the stored state of a topic's partitions; nothing here writes, so any number of readers may load it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from monitor.engine.state.stored import StoredState
from monitor.retries import RetryPolicy
from monitor.store.errors import StateRefused, StoreError
from monitor.store.layout import CommitTimes, Keys, check_topic, origin_secret_key
from monitor.store.load import (
    LoadedState,
    load_state,
    load_state_at_once,
    load_times,
    parse_gaps,
    parse_last,
    read_suspects,
)
from monitor.store.server.connection import Connection
from monitor.store.versions import VERSIONS, check_meta

_LOAD_ATTEMPTS: Final = 10
_ATTEMPTS_IN_PARTS: Final = 2
"""Attempts to load a state in parts. One that is written all the time is then loaded in one transaction, for which its writer waits."""


class StoredPosition(NamedTuple):
    """How far the stored state of a partition is."""

    off: int
    last: tuple[int, str] | None  # offset and digest of the last folded record
    gaps: tuple[tuple[int, ...], ...]  # records that were gone before they were folded
    log: str | None  # identity of the log; None before a worker has bound the state to one


class StateReader:
    """The stored state of one topic, for a process that does not write; open it with `StateReader.open`."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self.topic = check_topic(topic)
        self._connection = connection

    @classmethod
    async def open(cls, target: str | Mapping[str, Any], topic: str, *, retries: RetryPolicy | None = None) -> Self:
        """Connect to a server and check that it can hold a state."""
        check_topic(topic)
        connection = Connection(target, retries or RetryPolicy())
        try:
            await connection.check_server()
        except BaseException:
            await connection.close()
            raise
        return cls(connection, topic)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; committed state stays."""
        await self._connection.close()

    async def answers(self) -> bool:
        """Return whether the server answers now; there is no retry."""
        return await self._connection.answers(self._keys(0).meta)

    async def load(self, partition: int) -> StoredState:
        """Load the state of a partition; one that was never written has offset 0."""
        return (await self._load(partition)).state

    async def _load(self, partition: int) -> LoadedState:
        keys = self._keys(partition)
        await self._check_versions([partition])
        for attempt in range(_LOAD_ATTEMPTS):
            if attempt < _ATTEMPTS_IN_PARTS:
                loaded = await load_state(self._connection.fetch, keys, partition)
            else:
                loaded = await load_state_at_once(self._connection.fetch, self._connection.transact, keys, partition)
            if loaded is not None:
                return loaded
        raise StoreError(
            f"the state of partition {partition} changed in each of {_LOAD_ATTEMPTS} attempts to load it; start again when fewer new "
            "benchmarks and models arrive"
        )

    async def _check_versions(self, partitions: Iterable[int]) -> None:
        keys = [self._keys(partition) for partition in partitions]
        names = b"off", *map(str.encode, VERSIONS)
        for key, values in zip(
            keys, await self._connection.fetch([("HMGET", k.meta, *names) for k in keys]), strict=True
        ):
            fields = {name: value for name, value in zip(names, values, strict=True) if value is not None}
            check_meta(fields, key.tag, self._connection.address)

    async def commit_times(self, partition: int, names: Iterable[str] | None = None) -> dict[str, CommitTimes]:
        """Return the stored commit times of some benchmarks, by default all, by name."""
        return await load_times(self._connection.fetch, self._keys(partition), names)

    async def positions(self, partitions: Sequence[int]) -> list[StoredPosition]:
        """Return how far the stored states of some partitions are."""
        calls = [("HMGET", self._keys(partition).meta, "off", "last", "gaps", "log") for partition in partitions]
        positions = []
        for partition, (off, last, gaps, log) in zip(partitions, await self._connection.fetch(calls), strict=True):
            try:
                positions.append(
                    StoredPosition(
                        int(off or 0),
                        parse_last(last),
                        tuple(map(tuple, parse_gaps(gaps))),
                        None if log is None else log.decode(),
                    )
                )
            except (ValueError, TypeError) as error:
                raise StateRefused(
                    f"the state {self._keys(partition).tag} is damaged: its offset cannot be read"
                ) from error
        return positions

    async def set_aside(self, partitions: Sequence[int]) -> list[frozenset[tuple[str, int]]]:
        """Return the benchmarks of some partitions that are set aside, each with the offset of its first record that is."""
        metas = await self._connection.fetch([("HGETALL", self._keys(partition).meta) for partition in partitions])
        return [
            frozenset((each.benchmark, each.since) for each in read_suspects(meta) if each.since is not None)
            for meta in metas
        ]

    async def check_states(self, partitions: Sequence[int], identity: str) -> dict[int, StoredPosition]:
        """Check the versions and the log of some partitions' states; return how far each is folded."""
        await self._check_versions(partitions)
        positions = dict(zip(partitions, await self.positions(partitions), strict=True))
        for partition, position in positions.items():
            if position.log is not None and position.log != identity:
                raise self._other_log(partition, position.log, identity)
        return positions

    async def check_log(self, partition: int, identity: str) -> None:
        """Raise `StateRefused` if the state of a partition is bound to another log."""
        ((bound,),) = await self._connection.fetch([("HMGET", self._keys(partition).meta, "log")])
        if bound is not None and bound.decode() != identity:
            raise self._other_log(partition, bound.decode(), identity)

    def _other_log(self, partition: int, bound: str, identity: str) -> StateRefused:
        keys = self._keys(partition)
        return StateRefused(
            f"the state {keys.tag} at {self._connection.address} belongs to another log ({bound}), not to this one ({identity}); use "
            "that log, or another topic name or data directory for this one. If the other log is permanently gone, "
            f"delete the keys {keys.tag}:*; this log is then folded from its start"
        )

    @property
    def cutting_servers(self) -> Sequence[str]:
        """The servers that may cut a torn append-only file inside a transaction; `load` checks what that changes."""
        return self._connection.cutting

    async def find_origin_secret(self) -> bytes | None:
        """Return the key with which the workers of this topic sign, or None if no worker has drawn it, or the server has lost it."""
        (secret,) = await self._connection.fetch([("GET", origin_secret_key(self.topic))])
        return None if secret is None else bytes(secret)

    @property
    def no_origin_secret(self) -> str:
        """What is wrong where there is no signing key, and what to do."""
        return (
            f"Redis has no signing key of topic {self.topic}, because no worker has used it, or it was emptied while none ran; a worker "
            "draws the key, or writes it back, within seconds: start `rankwatch run`"
        )

    def _keys(self, partition: int) -> Keys:
        return Keys(self.topic, partition)

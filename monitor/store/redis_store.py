"""Store the state of a topic's partitions in Redis or Valkey: fold(log[0:off]), versioned by off."""

import secrets
import uuid
from collections.abc import Mapping
from importlib.resources import files
from itertools import count
from typing import Any, Final, Self

import numpy as np
import structlog
from numpy.typing import NDArray

from monitor.background import in_background
from monitor.crash_points import crash_point
from monitor.engine.state.changes import Delta
from monitor.engine.state.stored import PairSnapshot, StoredState
from monitor.retries import RetryPolicy
from monitor.store.errors import StaleState
from monitor.store.layout import origin_secret_key, pack_snapshot
from monitor.store.outbox import StoredOutbox
from monitor.store.script_call import ScriptCall, add_times, commit_call
from monitor.store.seal import PartitionSeal
from monitor.store.server.connection import Connection
from monitor.store.state_reader import StateReader
from schemas.records.origins import OriginKey

log = structlog.get_logger()

_SCRIPT: Final = files(__package__).joinpath("commit.lua").read_text("utf-8")

_LARGE_SNAPSHOT: Final = 1 << 20
"""Bytes beyond which a snapshot is packed in a thread: 2 million pairs take 0.1 s, in which no probe would be answered."""


class RedisStore(StateReader, StoredOutbox):
    """The stored state of one topic, for one writer; open it with `RedisStore.open`."""

    # A delta is written whole or not at all, and only at the offset it was made for. A writer with an older state (a worker that was taken
    # for dead, or any worker after the server lost its last writes) gets `StaleState` and loads again: the log is the truth.

    def __init__(self, connection: Connection, topic: str) -> None:
        super().__init__(connection, topic)
        self.writer = uuid.uuid4().hex
        """Names this writer in the state; never used again, not even by a restart of the same worker."""
        self._script = connection.client.register_script(_SCRIPT)
        self._sequence = count(1)
        self._with_offset: set[int] = set()
        """Partitions whose offset was seen. If it is missing later, the server has lost the state; the partition is not new."""
        self._loaded_from: dict[int, str] = {}  # the last writer of each partition when its state was loaded
        self._seals: dict[int, tuple[int, PartitionSeal]] = {}
        """The digests of each partition, and their offset: absent after a write whose outcome is not known."""
        self._origin_key: OriginKey | None = None
        self._bound: dict[int, str] = {}  # the log of each partition that was bound to one

    @classmethod
    async def open(
        cls,
        target: str | Mapping[str, Any],
        topic: str,
        writer_id: str | None = None,
        *,
        retries: RetryPolicy | None = None,
    ) -> Self:
        """Connect to a server as `StateReader.open`; `writer_id` names this writer in the state, by default a random one."""
        store = await super().open(target, topic, retries=retries)
        store.writer = writer_id or store.writer
        return store

    async def bind_log(self, partition: int, identity: str) -> None:
        """Bind a partition's state to its log the first time, and check that it is the same log from then on."""
        if not identity:
            raise ValueError("identity is empty; give the identity of the log")
        keys = self._keys(partition)
        _, reply = await self._connection.fetch([("HSETNX", keys.meta, "log", identity), ("HGET", keys.meta, "log")])
        if (bound := reply.decode()) != identity:
            raise self._other_log(partition, bound, identity)
        self._bound[partition] = identity

    async def is_unchanged(self, partition: int, off: int) -> bool:
        """Return whether the state of a partition is at an offset, and no other writer has moved it since this one has loaded it."""
        (values,) = await self._connection.fetch([("HMGET", self._keys(partition).meta, "off", "writer")])
        stored, writer = int(values[0] or 0), (values[1] or b"").decode()
        return stored == off and writer in {self.writer, self._loaded_from.get(partition)}

    async def lost_writes(self, offsets: Mapping[int, int]) -> list[int]:
        """Return the partitions whose stored offset is lower than one that this store has loaded or written: the server has lost writes."""
        known = [(partition, off) for partition, off in offsets.items() if partition in self._with_offset]
        stored = await self._connection.fetch([("HGET", self._keys(partition).meta, "off") for partition, _ in known])
        return [partition for (partition, off), at in zip(known, stored, strict=True) if int(at or 0) < off]

    async def origin_key(self, identity: str) -> OriginKey:
        """Return the key that signs origins for the workers of this topic; the first worker draws it. `identity`: of the log."""
        # Each load of a state, and `keep_origin_key`, keep it the one that the server has.
        self._origin_key = OriginKey(await self._origin_secret(secrets.token_hex().encode()), identity)
        return self._origin_key

    async def keep_origin_key(self) -> None:
        """Write the key back if the server has lost it; take the one that another worker has drawn meanwhile."""
        key = self._origin_key
        if key is None:
            return
        secret = await self._origin_secret(key.secret)
        if secret != key.secret:
            log.warning("the server has another signing key, which a worker has drawn after a loss; taking it")
            key.take(secret)

    async def _origin_secret(self, ours: bytes) -> bytes:
        """Return the signing key that the server has; if it has none, write ours."""
        stored = await self.find_origin_secret()
        if stored is None:
            key = origin_secret_key(self.topic)
            _, stored = await self._connection.fetch([("SET", key, ours, "NX"), ("GET", key)])
        return bytes(stored)

    async def load(self, partition: int) -> StoredState:
        """Load the state of a partition as `StateReader.load`, to continue writing from there."""
        (writer,) = await self._connection.fetch([("HGET", self._keys(partition).meta, "writer")])
        self._loaded_from[partition] = (writer or b"").decode()
        loaded = await self._load(partition)
        (self._with_offset.add if loaded.state.off else self._with_offset.discard)(partition)
        self._seals[partition] = loaded.state.off, loaded.seal
        # After the state, so that they are not older. A server that has lost it has lost these, too.
        if partition in self._bound:
            await self.bind_log(partition, self._bound[partition])
        await self.keep_origin_key()
        return loaded.state

    async def commit(self, delta: Delta, at: float = 0.0) -> None:
        """Write the changes of a chunk, all or none."""
        if delta.off <= delta.expected:
            raise ValueError(f"delta.off {delta.off} is not after delta.expected {delta.expected}")
        sequence = next(self._sequence)
        if delta.partition not in self._seals:
            await self.load(delta.partition)
        off, seal = self._seals.pop(delta.partition)
        if off not in {0, delta.expected}:
            (writer,) = await self._connection.fetch([("HGET", self._keys(delta.partition).meta, "writer")])
            raise StaleState(delta.partition, delta.expected, off, (writer or b"").decode())
        keys = self._keys(delta.partition)
        if delta.is_large:
            call = await in_background(lambda: commit_call(keys, delta, seal, at))
        else:
            call = commit_call(keys, delta, seal, at)
        crash_point("before-script")
        stored = await self._run(
            call, delta.expected, delta.off, sequence, must_exist=delta.partition in self._with_offset
        )
        crash_point("after-script")
        # After a lost reply the script runs again. If this very write moved the offset, it had landed.
        if stored is not None and stored != (str(delta.off), self.writer, str(sequence)):
            self._with_offset.discard(delta.partition)
            raise StaleState(delta.partition, delta.expected, int(stored[0] or 0), stored[1])
        self._with_offset.add(delta.partition)
        self._seals[delta.partition] = delta.off, seal

    async def save_pairs(self, partition: int, key: str, snapshot: PairSnapshot) -> bool:
        """Store the pair arrays of a benchmark, so that a restart need not rebuild them."""
        keys = self._keys(partition)
        large = sum(values.nbytes for values in snapshot.arrays.values()) > _LARGE_SNAPSHOT
        packed = await in_background(lambda: pack_snapshot(snapshot)) if large else pack_snapshot(snapshot)
        call = ScriptCall(keys.of("spec", key))
        call.add("SET", keys.of("pairs", key), packed)
        crash_point("snapshot")
        return await self._run(call, snapshot.off, snapshot.off, 0, must_exist=True) is None

    async def save_times(
        self, partition: int, key: str, off: int, places: NDArray[np.integer[Any]], times: NDArray[np.float64]
    ) -> bool:
        """Store the commit times of some verdict changes of a benchmark, by their places among its latches, ascending."""
        keys = self._keys(partition)
        call = ScriptCall(keys.of("spec", key))
        add_times(call, keys, key, places, times)
        return await self._run(call, off, off, 0, must_exist=True) is None

    async def _run(
        self, call: ScriptCall, expected: int, off: int, sequence: int, *, must_exist: bool
    ) -> tuple[str, str, str] | None:
        """Run the script; return None, or the stored off, writer and seq if it rejected the call."""
        arguments = [expected, off, self.writer, sequence, int(must_exist), *call.commands]
        reply = await self._connection.run(lambda: self._script(call.keys, arguments))
        return None if reply == 1 else tuple(part.decode() for part in reply)

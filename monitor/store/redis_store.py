"""The state of a topic's partitions in Redis or Valkey: fold(log[0:off]), with off as its version."""

import re
import uuid
from collections.abc import Mapping
from importlib.resources import files
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

from monitor.crash_points import crash_point
from monitor.engine.state.delta import Delta, PairSnapshot, StoredState
from monitor.store.commit_times import CommitTimes
from monitor.store.errors import StaleState, StateRefused, StoreError, unfinished
from monitor.store.layout import IMPORTING, Keys, check_publisher, check_topic, pack_snapshot
from monitor.store.load import load_state, load_times
from monitor.store.script_call import VERSIONS, ScriptCall, commit_call
from monitor.store.server.clients import ANSWER_SECONDS
from monitor.store.server.connection import Connection, Retries
from schemas.changes import VerdictChange

START: Final = "0-0"
"""The id before every verdict change."""

_SCRIPT: Final = files(__package__).joinpath("commit.lua").read_text("utf-8")
_ID: Final = re.compile(r"\d+-\d+")
_LONGEST_BLOCK_MS: Final = int(ANSWER_SECONDS * 1000 / 3)
_READ_ATTEMPTS: Final = 10
_LARGEST_SEQUENCE: Final = 2**64 - 1


class RedisStore:
    """The stored state of one topic, as one writer sees it; open it with `RedisStore.open`.

    A delta is written whole or not at all, and only onto the offset it was made for. Whoever holds an older state (a worker that was taken
    for dead, or anyone after the server lost its last writes) gets `StaleState` and loads again: the log is the truth.
    """

    def __init__(self, connection: Connection, topic: str, writer: str) -> None:
        self.topic = check_topic(topic)
        self.writer = writer
        self._connection = connection
        self._script = connection.client.register_script(_SCRIPT)
        self._sequence = count(1)
        self._written: set[int] = set()
        """Partitions whose offset was seen: if it is missing later, the server has lost the state, and the partition is not fresh."""

    @classmethod
    async def open(
        cls,
        target: str | Mapping[str, Any],
        topic: str,
        writer_id: str | None = None,
        *,
        retries: Retries | None = None,
    ) -> Self:
        """Connect to a server and check that it can be trusted with a state.

        Parameters
        ----------
        target : str or mapping
            A URL (redis://, rediss://, unix://, redis+sentinel://, redis+cluster://), or keyword arguments of `redis.asyncio.Redis`.
        topic : str
            Name of the topic: 1-249 of A-Z a-z 0-9 . _ -.
        writer_id : str, optional
            Names this writer in the state. Must not be used twice, not even by a restart of the same worker; default: a random one.
        retries : Retries, optional
            How long to wait for a server that is away.

        Raises
        ------
        StoreUnavailable
            If the server does not answer within the deadline.
        StateRefused
            If it evicts keys, is too old, or refuses the login.
        ValueError
            If the topic or the URL cannot be used.
        """
        check_topic(topic)
        connection = Connection.to(target, retries or Retries())
        try:
            await connection.check_server()
        except BaseException:
            await connection.close()
            raise
        return cls(connection, topic, writer_id or uuid.uuid4().hex)

    async def answers(self) -> bool:
        """Whether the server takes commands now, asked once."""
        return await self._connection.answers(self._keys(0).meta)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; what was committed stays."""
        await self._connection.close()

    # --- state ------------------------------------------------------------------------------------------------------------------------

    async def bind_log(self, partition: int, identity: str) -> None:
        """Bind a partition's state to its log the first time, and check that it is the same log ever after.

        Raises
        ------
        StateRefused
            If the state belongs to another log.
        """
        if not identity:
            raise ValueError("identity is empty: give the identity of the log")
        keys = self._keys(partition)
        _, found = await self._connection.fetch([("HSETNX", keys.meta, "log", identity), ("HGET", keys.meta, "log")])
        if found.decode() != identity:
            raise StateRefused(
                f"the state {keys.tag} at {self._connection.where} belongs to another log ({found.decode()}), not to this one "
                f"({identity}): use the log it was made from; or another topic name or data directory for this log; or, if the "
                f"other log is gone for good, delete the keys {keys.tag}:* and let this one be folded from its start"
            )

    async def load(self, partition: int) -> StoredState:
        """Read the state of a partition; one that was never written has offset 0.

        Raises
        ------
        StateRefused
            If another version of this program wrote it.
        """
        keys = self._keys(partition)
        await self._check_versions(keys)
        for _ in range(_READ_ATTEMPTS):
            state = await load_state(self._connection.fetch, keys, partition)
            if state is not None:
                (self._written.add if state.off else self._written.discard)(partition)
                return state
        raise StoreError(
            f"the state of partition {partition} changed {_READ_ATTEMPTS} times while it was read: another worker is writing "
            "to it; stop that one"
        )

    async def commit_times(self, partition: int) -> dict[str, CommitTimes]:
        """Return when the benchmarks of a partition were last committed, and their verdict changes, by benchmark."""
        return await load_times(self._connection.fetch, self._keys(partition))

    async def _check_versions(self, keys: Keys) -> None:
        (found,) = await self._connection.fetch([("HMGET", keys.meta, "off", *VERSIONS)])
        if found == [None] * len(found):
            return
        if found[0] == str(IMPORTING).encode():
            raise StateRefused(unfinished(keys.tag, self._connection.where))
        for (name, mine), value in zip(VERSIONS.items(), found[1:], strict=True):
            if value is None or int(value) != mine:
                raise StateRefused(
                    f"the state {keys.tag} at {self._connection.where} has {name} {int(value) if value else 'missing'}, this "
                    f"program has {mine}: verdicts of two versions must not be mixed. Run the version that wrote it; or use another "
                    "topic name or data directory, and the log is folded anew"
                )

    async def commit(self, delta: Delta, at: float = 0.0) -> None:
        """Write what a chunk changed, all of it or nothing.

        Parameters
        ----------
        delta : Delta
        at : float
            Wall clock, in seconds since 1970, stored for the metrics; 0: no time is stored.

        Raises
        ------
        StaleState
            If the stored state is not at `delta.expected`: nothing was written.
        StoreUnavailable
            If the server did not answer within the deadline; whether the delta was written is then known after the next `load`.
        """
        if delta.off <= delta.expected:
            raise ValueError(
                f"delta.off {delta.off} is not behind delta.expected {delta.expected}: a chunk ends behind its start"
            )
        sequence = next(self._sequence)
        call = commit_call(self._keys(delta.partition), delta, at)
        crash_point("before-script")
        stored = await self._run(call, delta.expected, delta.off, sequence, must_exist=delta.partition in self._written)
        crash_point("after-script")
        # A lost reply is asked for again: if it was this very write that moved the offset, it had landed.
        if stored is not None and stored != (str(delta.off), self.writer, str(sequence)):
            self._written.discard(delta.partition)
            raise StaleState(delta.partition, delta.expected, int(stored[0] or 0), stored[1])
        self._written.add(delta.partition)

    async def save_pairs(self, partition: int, key: str, snapshot: PairSnapshot) -> bool:
        """Store the pair arrays of a benchmark, so that a restart need not rebuild them.

        Returns
        -------
        bool
            False, and nothing written, if the stored benchmark is no longer at the snapshot's offset.
        """
        keys = self._keys(partition)
        call = ScriptCall(keys.of("spec", key))
        call.add("SET", keys.of("pairs", key), pack_snapshot(snapshot))
        crash_point("snapshot")
        return await self._run(call, snapshot.off, snapshot.off, 0, must_exist=True) is None

    async def _run(
        self, call: ScriptCall, expected: int, off: int, sequence: int, *, must_exist: bool
    ) -> tuple[str, str, str] | None:
        """Run the script; return None, or what is stored (off, writer, seq) when it refused."""
        arguments = [expected, off, self.writer, sequence, int(must_exist), *call.commands]
        reply = await self._connection.run(lambda: self._script(call.keys, arguments))
        return None if reply == 1 else tuple(part.decode() for part in reply)

    # --- outbox -----------------------------------------------------------------------------------------------------------------------

    async def read_outbox(
        self, partition: int, after_id: str = START, count: int = 100, block_ms: int = 0
    ) -> list[tuple[str, VerdictChange]]:
        """Read verdict changes behind an id, in the order of the log.

        Parameters
        ----------
        partition : int
        after_id : str
            The last id that is known.
        count : int
            At most so many.
        block_ms : int
            Wait so long for the first one, but no longer than 5 seconds; 0: do not wait.
        """
        if count < 1 or block_ms < 0:
            raise ValueError(f"count {count} must be at least 1, and block_ms {block_ms} at least 0")
        blocking = ("BLOCK", min(block_ms, _LONGEST_BLOCK_MS)) if block_ms else ()
        command = ("XREAD", "COUNT", count, *blocking, "STREAMS", self._keys(partition).outbox, _checked_id(after_id))
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
        """Return the id of the last change a publisher has relayed; from the first call on, nothing it has not relayed is trimmed."""
        relays = self._keys(partition).relays
        _, found = await self._connection.fetch(
            [("HSETNX", relays, check_publisher(publisher), START), ("HGET", relays, publisher)]
        )
        return str(found.decode())

    async def mark_relayed(self, partition: int, publisher: str, identifier: str) -> None:
        """Note how far a publisher has relayed, and trim what every publisher has."""
        keys = self._keys(partition)
        calls = [("HSET", keys.relays, check_publisher(publisher), _checked_id(identifier)), ("HVALS", keys.relays)]
        _, reached = await self._connection.fetch(calls)
        await self._trim(keys, reached)

    async def forget_publisher(self, partition: int, publisher: str) -> None:
        """Stop waiting for a publisher that is no longer configured."""
        keys = self._keys(partition)
        _, reached = await self._connection.fetch(
            [("HDEL", keys.relays, check_publisher(publisher)), ("HVALS", keys.relays)]
        )
        if reached:
            await self._trim(keys, reached)

    async def _trim(self, keys: Keys, reached: list[bytes]) -> None:
        offset, sequence = min(tuple(map(int, identifier.split(b"-"))) for identifier in reached)
        behind = f"{offset}-{sequence + 1}" if sequence < _LARGEST_SEQUENCE else f"{offset + 1}-0"
        await self._connection.fetch([("XTRIM", keys.outbox, "MINID", "=", behind)])

    def _keys(self, partition: int) -> Keys:
        return Keys(self.topic, partition)


def _checked_id(identifier: str) -> str:
    if not _ID.fullmatch(identifier):
        raise ValueError(
            f"{identifier!r} is not the id of a verdict change: use <offset>-<sequence>, or {START} for the start"
        )
    return identifier

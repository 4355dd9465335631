"""Compare the verdicts of two states of one topic, such as those of two versions of this program that fold it side by side."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from monitor.store.errors import StateRefused, StoreError
from monitor.store.layout import IMPORTING, Keys
from monitor.store.load import read_boards
from monitor.store.server.connection import Connection
from monitor.store.transfer.stored_verdicts import FieldCodes, StoredVerdicts, locate
from schemas.records.versions import STATE_VERSION
from schemas.results.changes import AnyChange

SaveTimes = Callable[[int, str, int, NDArray[np.integer[Any]], NDArray[np.float64]], Awaitable[bool]]
"""Stores commit times of verdicts, as `RedisStore.save_times` does."""

What = Literal["other outcome", "other record", "only here", "only there"]
"""How a verdict differs: it names another leader, it was reached at another record and has another id, or one state does not have it."""

_FIRST: Final = 3
"""The first state_version whose verdicts can be compared; some of the versions from there on cannot be loaded."""

_LISTED: Final = 1_000
_TIMES_AT_ONCE: Final = 100_000
_ATTEMPTS: Final = 20
_OTHER_LOG: Final = "its models began in another order: the two states are not of the same log"


class Difference(NamedTuple):
    """A verdict that differs: its change in each state, None where there is none."""

    what: What
    here: AnyChange | None
    there: AnyChange | None


@dataclass
class BoardComparison:
    """The verdicts of one benchmark in two states."""

    benchmark: str
    same: int = 0  # verdicts with the same claim, leader and id
    same_times: int = 0  # how many of them have the same time
    counts: dict[What, int] = field(default_factory=lambda: dict.fromkeys(get_args(What), 0))  # verdicts that differ
    later: int = 0  # verdicts of records that only one state has folded; they are not compared
    differences: list[Difference] = field(default_factory=list)  # the first 1,000
    reason: str = ""  # why the benchmark is not compared; empty where it is

    @property
    def differs(self) -> bool:
        """Whether a verdict differs, or none could be compared."""
        return bool(self.reason) or any(self.counts.values())


@dataclass(frozen=True)
class StoredPartition:
    """A partition of a state: how far it is folded, and its boards by the digest of their names."""

    keys: Keys
    number: int
    off: int
    names: dict[str, str]
    generations: dict[str, int]
    _connection: Connection
    _save_times: SaveTimes

    @classmethod
    async def read(cls, connection: Connection, topic: str, number: int, save_times: SaveTimes) -> "StoredPartition":
        """Read a partition; one that was never written has offset 0."""
        keys = Keys(topic, number)
        meta, names = await connection.fetch([("HGETALL", keys.meta), ("HGETALL", keys.benchmarks)])
        version, off = meta.get(b"state_version"), int(meta.get(b"off", b"0"))
        if version is not None and not _FIRST <= int(version) <= STATE_VERSION:
            raise StateRefused(
                f"the state {keys.tag} at {connection.address} has state_version {int(version)}, which this program cannot read; compare "
                "the states with the later version"
            )
        if off == IMPORTING:
            raise StateRefused(
                f"an import into the state {keys.tag} at {connection.address} is unfinished; wait for it"
            )
        return cls(
            keys,
            number,
            off,
            {key.decode(): json.loads(entry)[-1] for key, entry in names.items()},
            {entry.benchmark: entry.generation for entry in read_boards(meta)},
            connection,
            save_times,
        )

    async def verdicts(self, key: str, codes: FieldCodes) -> StoredVerdicts:
        """Read the verdicts of a board."""
        return await StoredVerdicts.read(self._connection, self.keys, key, self.names[key], codes)

    async def keep_times(self, key: str, off: int, place: NDArray[np.int32], times: NDArray[np.float64]) -> bool:
        """Store times of verdicts by their places; return False if the board is no longer at an offset."""
        order = np.argsort(place)
        for start in range(0, order.size, _TIMES_AT_ONCE):
            some = order[start : start + _TIMES_AT_ONCE]
            if not await self._save_times(self.number, key, off, place[some], times[some]):
                return False
        return True


async def compare_boards(here: StoredPartition, there: StoredPartition, *, keep_times: bool) -> list[BoardComparison]:
    """Compare the boards of a partition in two states, sorted by name."""
    names = here.names | there.names
    return [
        await _compare(here, there, key, names[key], keep_times=keep_times)
        for key in sorted(names, key=names.__getitem__)
    ]


async def _compare(
    here: StoredPartition, there: StoredPartition, key: str, name: str, *, keep_times: bool
) -> BoardComparison:
    for _ in range(_ATTEMPTS):
        compared = BoardComparison(name, reason=_reason(here, there, key, name))
        if compared.reason:
            return compared
        codes = FieldCodes()
        ours, theirs = await here.verdicts(key, codes), await there.verdicts(key, codes)
        shared = min(len(ours.contestants), len(theirs.contestants))
        if ours.contestants[:shared] != theirs.contestants[:shared]:
            compared.reason = _OTHER_LOG
            return compared
        same = await _count(compared, ours, theirs, min(here.off, there.off))
        at = theirs.columns.time[same.there]
        other = (at != 0) & (at != ours.columns.time[same.here])
        compared.same_times = other.size - int(other.sum())
        place = ours.columns.place[same.here[other]]
        if not keep_times or not place.size or place.min() < 0:
            return compared
        if await here.keep_times(key, ours.off, place, at[other]):
            compared.same_times = other.size
            return compared
    raise StoreError(
        f"board {name!r} changed in each of {_ATTEMPTS} attempts to store its times; stop the workers of this state, then compare again"
    )


def _reason(here: StoredPartition, there: StoredPartition, key: str, name: str) -> str:
    """Return why a board cannot be compared, or nothing."""
    if key not in here.names or key not in there.names:
        return "it is only in the other state" if key in there.names else "it is only in this state"
    ours, theirs = (each.generations.get(name, 1) for each in (here, there))
    return "" if ours == theirs else f"it is in generation {ours} here, and in generation {theirs} there"


class _Places(NamedTuple):
    """Verdicts by their index in the columns of both states; one that a state does not have has no meaning there."""

    here: NDArray[np.integer[Any]]
    there: NDArray[np.integer[Any]]

    def where(self, which: NDArray[np.bool_]) -> "_Places":
        return _Places(self.here[which], self.there[which])


async def _count(compared: BoardComparison, ours: StoredVerdicts, theirs: StoredVerdicts, end: int) -> _Places:
    """Count verdicts of records before `end`, and list the first that differ; return those that are the same."""
    here, there = ours.columns, theirs.columns
    place, known = locate(here.field, there.field)
    only_here = np.flatnonzero(~known)
    only_there = np.flatnonzero(~locate(there.field, here.field)[1])
    both = _Places(np.flatnonzero(known).astype(np.int32), place[known])
    compared.later = int(np.sum(here.offset[only_here] >= end)) + int(np.sum(there.offset[only_there] >= end))
    del place, known
    early = np.minimum(here.offset[both.here], there.offset[both.there]) < end
    compared.later += early.size - int(early.sum())
    leader = here.side[both.here] == there.side[both.there]
    record = here.offset[both.here] == there.offset[both.there]
    record &= here.sequence[both.here] == there.sequence[both.there]
    none = np.empty(0, np.int32)
    differences: dict[What, _Places] = {
        "other outcome": both.where(early & ~leader),
        "other record": both.where(early & leader & ~record),
        "only here": _Places(only_here[here.offset[only_here] < end], none),
        "only there": _Places(none, only_there[there.offset[only_there] < end]),
    }
    compared.counts = {what: max(places.here.size, places.there.size) for what, places in differences.items()}
    same = both.where(early & leader & record)
    compared.same = same.here.size
    for what, places in differences.items():
        some = await _list(what, places, ours, theirs, _LISTED - len(compared.differences))
        compared.differences += some
    return same


async def _list(
    what: What, places: _Places, ours: StoredVerdicts, theirs: StoredVerdicts, most: int
) -> list[Difference]:
    """Return the first differences of a kind, in the order of the log."""
    columns, some = (ours.columns, places.here) if places.here.size else (theirs.columns, places.there)
    first = np.lexsort((columns.sequence[some], columns.offset[some]))[:most]
    here: list[AnyChange | None] = [None] * first.size
    there = [*here]
    if places.here.size:
        here = [*await ours.changes(places.here[first])]
    if places.there.size:
        there = [*await theirs.changes(places.there[first])]
    return [Difference(what, *pair) for pair in zip(here, there, strict=True)]

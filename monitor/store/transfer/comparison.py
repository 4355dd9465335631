"""Compare the verdicts of two states of one topic, such as those of two versions of this program that fold it side by side."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

from monitor.engine.state.delta import STATE_VERSION, Contestant
from monitor.store.errors import StateRefused, StoreError
from monitor.store.latches import EarlierLatches, stored_fields, unpack, unpack_times
from monitor.store.layout import EARLIER_HASHES, IMPORTING, Keys, unpack_contestants
from monitor.store.load import read_boards
from monitor.store.redis_store import RedisStore
from monitor.store.server.connection import Connection
from schemas.results.changes import VerdictChange
from schemas.results.verdict_changes import Order, VerdictChanges

What = Literal["other outcome", "other record", "only here", "only there"]
"""How a verdict differs: it names another leader, it was reached at another record and has another id, or one state does not have it."""

_FIRST: Final = 3
"""The first state_version whose verdicts can be compared; some of the versions from there on cannot be loaded."""

_LISTED: Final = 1_000
_ATTEMPTS: Final = 20
_OTHER_LOG: Final = "its models began in another order: the two states are not of the same log"


class Difference(NamedTuple):
    """A verdict that differs: its change in each state, None where there is none."""

    what: What
    here: VerdictChange | None
    there: VerdictChange | None


@dataclass
class BoardComparison:
    """The verdicts of one benchmark in two states.

    Attributes
    ----------
    same : int
        Verdicts with the same claim, leader and id.
    same_times : int
        How many of them have the same time.
    counts : dict of What to int
        Verdicts that differ.
    later : int
        Verdicts of records that only one state has folded; they are not compared.
    differences : list of Difference
        The first 1,000.
    reason : str
        Why the benchmark is not compared; empty where it is.
    """

    benchmark: str
    same: int = 0
    same_times: int = 0
    counts: dict[What, int] = field(default_factory=lambda: dict.fromkeys(get_args(What), 0))
    later: int = 0
    differences: list[Difference] = field(default_factory=list)
    reason: str = ""

    @property
    def differs(self) -> bool:
        """Whether a verdict differs, or none could be compared."""
        return bool(self.reason) or any(self.counts.values())


@dataclass(frozen=True)
class _Verdicts:
    """The verdicts of one board in one state, by their fields in the table of latches."""

    off: int
    contestants: list[Contestant]
    changes: VerdictChanges
    times: dict[str, float]
    places: list[str]
    """The fields in the order in which they are stored as records."""

    def order(self, name: str) -> Order:
        return self.changes.order(name)

    def change(self, name: str) -> VerdictChange | None:
        return self.changes.get(name)


@dataclass(frozen=True)
class StoredPartition:
    """A partition of a state: how far it is folded, and its boards by the digest of their names."""

    store: RedisStore
    number: int
    off: int
    names: dict[str, str]
    generations: dict[str, int]
    _connection: Connection

    @classmethod
    async def read(cls, connection: Connection, topic: str, number: int) -> "StoredPartition":
        """Read a partition; one that was never written has offset 0.

        Raises
        ------
        StateRefused
            If this program cannot read the version of its state, or an import into it is unfinished.
        """
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
            RedisStore(connection, topic),
            number,
            off,
            {key.decode(): json.loads(entry)[-1] for key, entry in names.items()},
            {entry.benchmark: entry.generation for entry in read_boards(meta)},
            connection,
        )

    async def verdicts(self, key: str) -> _Verdicts:
        """Read the verdicts of a board."""
        keys = Keys(self.store.topic, self.number)
        # Latches first: a commit in between adds terms and models that none of them needs.
        kinds = ("latches", "terms", "models", "latched_at")
        off, *strings, earlier, earlier_times = await self._connection.fetch(
            [
                ("HGET", keys.of("spec", key), "off"),
                *(("GET", keys.of(kind, key)) for kind in kinds),
                *(("HGETALL", keys.of(kind, key)) for kind in EARLIER_HASHES),
            ]
        )
        latches, terms, models, at = (each or b"" for each in strings)
        contestants = unpack_contestants(models)
        if earlier:
            changes = EarlierLatches(earlier, earlier_times).decode()
            times = {name.decode(): float(when) for name, when in earlier_times.items()}
        else:
            changes = unpack(self.names[key], contestants, latches, terms)
            times = unpack_times(0.0, latches, terms, at).changes
        return _Verdicts(int(off or 0), contestants, changes, times, [] if earlier else stored_fields(latches, terms))

    async def keep_times(self, key: str, of: dict[str, float], verdicts: _Verdicts) -> bool:
        """Store times of verdicts; return False if the board has changed since they were read."""
        places = {place: of[name] for place, name in enumerate(verdicts.places) if name in of}
        return not places or await self.store.save_times(self.number, key, verdicts.off, places)


async def compare_boards(here: StoredPartition, there: StoredPartition, *, keep_times: bool) -> list[BoardComparison]:
    """Compare the boards of a partition in two states, sorted by name.

    Parameters
    ----------
    keep_times : bool
        Give the verdicts here the times that they have there, where they have the same id.

    Raises
    ------
    StoreError
        If a board changes each time that its times are to be stored.
    """
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
        ours, theirs = await here.verdicts(key), await there.verdicts(key)
        shared = min(len(ours.contestants), len(theirs.contestants))
        if ours.contestants[:shared] != theirs.contestants[:shared]:
            compared.reason = _OTHER_LOG
            return compared
        same = _count(compared, ours, theirs, min(here.off, there.off))
        other = {
            each: theirs.times[each]
            for each in same
            if each in theirs.times and ours.times.get(each) != theirs.times[each]
        }
        compared.same_times = len(same) - len(other)
        if not keep_times or await here.keep_times(key, other, ours):
            compared.same_times += len(other) if keep_times else 0
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


def _count(compared: BoardComparison, ours: _Verdicts, theirs: _Verdicts, end: int) -> list[str]:
    """Count verdicts of records before `end`; return the fields of those that are the same."""
    same = []
    for name, what in _differences(ours, theirs, end):
        if what == "same":
            same.append(name)
        elif what == "later":
            compared.later += 1
        else:
            compared.counts[what] += 1
            if len(compared.differences) < _LISTED:
                compared.differences.append(Difference(what, ours.change(name), theirs.change(name)))
    compared.same = len(same)
    return same


def _differences(ours: _Verdicts, theirs: _Verdicts, end: int) -> Iterator[tuple[str, What | Literal["same", "later"]]]:
    for name in (*ours.changes, *(each for each in theirs.changes if each not in ours.changes)):
        of = [each.order(name) if name in each.changes else None for each in (ours, theirs)]
        if min(order[0] for order in of if order is not None) >= end:
            yield name, "later"
        elif None in of:
            yield name, "only there" if of[0] is None else "only here"
        elif not _same_outcome(ours, theirs, name):
            yield name, "other outcome"
        else:
            yield name, "same" if of[0] == of[1] else "other record"


def _same_outcome(ours: _Verdicts, theirs: _Verdicts, name: str) -> bool:
    """Return whether a verdict names the same leader in both states; making its changes is slow, so records are compared by their side."""
    located = [each.changes.locate(name) for each in (ours, theirs)]
    if None not in located:
        return len({int(columns.records["side"][place]) for columns, place in filter(None, located)}) == 1
    return len({change.after or change.before for change in (ours.changes[name], theirs.changes[name])}) == 1

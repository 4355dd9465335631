"""Read the verdicts of a stored board as columns, in parts: a million of them takes some tens of megabytes."""

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.records import RECORD, LatchRecords, Terms, latch_of
from monitor.store.errors import StoreError
from monitor.store.latches import LATCH_BYTES, TIME_BYTES
from monitor.store.layout import Keys, unpack_contestants
from monitor.store.server.connection import Connection, slices
from schemas.records.scores import Contestant
from schemas.results.changes import CLAIMS, DRIFT_KINDS, KINDS, AnyChange, read_change
from stats.evidence.settled import TIE
from stats.numerics.pairs import pair_members

_LATCHES_AT_ONCE: Final = 20_000
_BYTES_AT_ONCE: Final = 1 << 20
_PAIR_BITS: Final = 33
_CLAIM_BITS: Final = 2
_KIND_BITS: Final = 3
_OF_RUNS: Final = 1 << 63  # the code of a field that is of no pair, with its number

_SIDES: Final = {"a": 1, "b": -1, "tie": TIE}


class FieldCodes:
    """Numbers in place of the fields of the table of latches; those of two states are comparable if they share the object."""

    def __init__(self) -> None:
        self._versions: dict[int, int] = {}
        self._of_runs: dict[str, int] = {}  # the fields of what monitors of sentinels report, which are of no pair

    def version(self, version: int) -> int:
        """Return the number of a version of the declaration."""
        return self._versions.setdefault(version, len(self._versions))

    def of(self, pair: Any, claim: Any, kind: Any, version: Any) -> Any:  # noqa: ANN401 - an integer, or an array of uint64
        """Return the codes of latches; `version` is what `version` returns, `claim` and `kind` are places in `CLAIMS` and `KINDS`."""
        return ((version << _KIND_BITS | kind) << _CLAIM_BITS | claim) << _PAIR_BITS | pair

    def parse(self, field: str) -> int:
        """Return the code of a field."""
        pair, claim, kind, *version = field.split(":")
        if claim == "drift":
            return _OF_RUNS | self._of_runs.setdefault(field, len(self._of_runs))
        number = self.version(int(version[0]) if version else 1)
        return int(self.of(int(pair), CLAIMS.index(claim), KINDS.index(kind), number))


@dataclass
class VerdictColumns:
    """Verdicts, sorted by the codes of their fields."""

    field: NDArray[np.uint64]  # codes of `FieldCodes`
    # offset, sequence: the id
    offset: NDArray[np.int64]
    sequence: NDArray[np.uint64]
    # 1 or -1 for the model of the pair that is first or second by name, `TIE` for a tie; of a verdict that ends, the earlier one
    side: NDArray[np.int8]
    time: NDArray[np.float64]  # seconds since 1970; 0 where none is stored
    place: NDArray[np.int32]  # among the stored records

    @classmethod
    def empty(cls, count: int) -> Self:
        """Return columns of so many verdicts, to be filled and sorted; no time is stored."""
        return cls(
            np.empty(count, np.uint64),
            np.empty(count, np.int64),
            np.empty(count, np.uint64),
            np.empty(count, np.int8),
            np.zeros(count),
            np.full(count, -1, np.int32),
        )

    def sort(self) -> None:
        """Sort by field; of a field that comes twice, the last one counts."""
        order = np.argsort(self.field, kind="stable").astype(np.int32)
        last = np.ones(order.size, np.bool_)
        last[:-1] = self.field[order[1:]] != self.field[order[:-1]]
        order = order[last]
        for each in fields(self):  # one after the other: two copies of all take too much
            setattr(self, each.name, getattr(self, each.name)[order])


@dataclass
class _Lines:
    """The lines of terms: where each begins, and the version of those that latches share, or the code and the side of one whole change."""

    start: "array[int]"
    version: "array[int]"
    field: "array[int]"
    side: "array[int]"


@dataclass
class StoredVerdicts:
    """The verdicts of a board in one state."""

    off: int  # offset up to which the board was folded when they were read
    contestants: list[Contestant]
    columns: VerdictColumns
    _name: str
    _keys: tuple[Connection, Keys, str]
    _starts: "array[int]"

    @classmethod
    async def read(cls, connection: Connection, keys: Keys, key: str, name: str, codes: FieldCodes) -> "StoredVerdicts":
        """Read the verdicts of a board; workers may run meanwhile, and what they add later is not read."""
        latches, terms, at, models = (keys.of(kind, key) for kind in ("latches", "terms", "latched_at", "models"))
        # Latches first: a commit in between adds terms and models that none of them needs.
        calls = [("HGET", keys.of("spec", key), "off"), ("STRLEN", latches), ("STRLEN", terms)]
        off, size, of_terms, packed = await connection.fetch([*calls, ("GET", models)])
        contestants = unpack_contestants(packed or b"")
        lines = await _read_lines(connection, terms, of_terms, codes)
        columns = await _read_packed(connection, (latches, at), size // LATCH_BYTES, lines, contestants, codes)
        return cls(int(off or 0), contestants, columns, name, (connection, keys, key), lines.start)

    async def changes(self, some: NDArray[np.integer[Any]]) -> list[AnyChange]:
        """Make the changes of some verdicts, by their index in the columns."""
        return [change for part in slices(some.tolist()) for change in await self._changes(part)]

    async def _changes(self, some: Sequence[int]) -> list[AnyChange]:
        connection, keys, key = self._keys
        latches, terms = keys.of("latches", key), keys.of("terms", key)
        begins = [int(self.columns.place[k]) * LATCH_BYTES for k in some]
        parts = await connection.fetch([("GETRANGE", latches, begin, begin + LATCH_BYTES - 1) for begin in begins])
        records = np.frombuffer(b"".join(parts), RECORD).copy()
        used, numbers = np.unique(records["terms"], return_inverse=True)
        ends = [self._starts[k + 1] - 1 for k in used.tolist()]
        calls = [("GETRANGE", terms, self._starts[k], end) for k, end in zip(used.tolist(), ends, strict=True)]
        lines = [json.loads(line) for line in await connection.fetch(calls)]
        records["terms"] = 0
        return [
            read_change(line["change"])
            if isinstance(line := lines[number], dict)
            else LatchRecords(self._name, self.contestants, [Terms.read(line)], records).change(place)
            for place, number in enumerate(numbers.tolist())
        ]


async def _read_packed(
    connection: Connection,
    keys: tuple[str, str],
    count: int,
    lines: _Lines,
    contestants: Sequence[Contestant],
    codes: FieldCodes,
) -> VerdictColumns:
    """Read latches that are stored as records, and their times."""
    latches, at = keys
    columns = VerdictColumns.empty(count)
    columns.place[:] = np.arange(count, dtype=np.int32)
    version, whole = np.array(lines.version, np.int64), np.array(lines.field, np.uint64)
    whole_side = np.array(lines.side, np.int8)
    rank = np.argsort(np.array(sorted(range(len(contestants)), key=contestants.__getitem__), np.int64))
    for start in range(0, count, _LATCHES_AT_ONCE):
        end = min(count, start + _LATCHES_AT_ONCE)
        records, times = await connection.fetch(
            [
                ("GETRANGE", latches, start * LATCH_BYTES, end * LATCH_BYTES - 1),
                ("GETRANGE", at, start * TIME_BYTES, end * TIME_BYTES - 1),
            ]
        )
        if len(records) != (end - start) * LATCH_BYTES:
            raise StoreError("a board was deleted, or its server changed, while it was read; compare again")
        part, some = np.frombuffer(records, RECORD), slice(start, end)
        columns.offset[some], columns.sequence[some] = part["offset"], part["sequence"]
        pair, claim, kind = latch_of(part["sequence"])
        terms = part["terms"]
        packed = codes.of(pair, claim.astype(np.uint64), kind.astype(np.uint64), version[terms].astype(np.uint64))
        i, j = pair_members(pair.astype(np.int64))
        by_name = np.where((rank[i] > rank[j]) & (part["side"] != TIE), -part["side"], part["side"])
        kept_whole = version[terms] < 0
        columns.field[some] = np.where(kept_whole, whole[terms], packed)
        columns.side[some] = np.where(kept_whole, whole_side[terms], by_name)
        stored = np.frombuffer(times[: len(times) // TIME_BYTES * TIME_BYTES], "<f8")
        columns.time[start : start + stored.size] = stored
    columns.sort()
    return columns


async def _read_lines(connection: Connection, key: str, size: int, codes: FieldCodes) -> _Lines:
    """Read the lines of terms, each at least in its first part."""
    lines = _Lines(array("q", [0]), array("q"), array("Q"), array("b"))
    rest = b""
    for start in range(0, size, _BYTES_AT_ONCE):
        (part,) = await connection.fetch([("GETRANGE", key, start, min(size, start + _BYTES_AT_ONCE) - 1)])
        *complete, rest = (rest + part).split(b"\n")
        for line in complete:
            value = json.loads(line)
            lines.start.append(lines.start[-1] + len(line) + 1)
            if isinstance(value, list):
                lines.version.append(codes.version(value[0]))
                lines.field.append(0)
                lines.side.append(0)
            else:
                lines.version.append(-1)
                lines.field.append(codes.parse(value["field"]))
                lines.side.append(_side(value["change"]))
    return lines


def locate(some: NDArray[np.uint64], of: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the place of each code among sorted ones, and whether it is there."""
    places = np.searchsorted(of, some).astype(np.int32)
    there = places < of.size
    there[there] = of[places[there]] == some[there]
    return places, there


def _side(change: dict[str, Any]) -> int:
    """Return the side of a change; of one that ends a decision, that of the decision."""
    return 0 if change["kind"] in DRIFT_KINDS else _SIDES[change["after"] or change["before"]]

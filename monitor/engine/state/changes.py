"""The changes of a chunk, as the engine and the store share them, and the scores that contradict an earlier one."""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.records.boards import BoardEntry, Suspect
from schemas.records.chunks import DeadLetter, Gap, Misrouted, Source
from schemas.records.scores import RUN_SCORE, Contestant, RowKey
from schemas.results.assumptions import Seed
from schemas.results.verdict_changes import VerdictChanges
from stats.numerics.pairs import Index
from stats.order import OrderFinding

_LARGE = 500_000  # pairs that joined their families in one chunk


_MANY_CHANGES = 20_000  # verdict changes of one chunk: 0.03 s of encoding


_MANY = 200  # benchmarks that one chunk changed


class DeletedBoard(NamedTuple):
    """A board that a chunk deletes, and the changes that the chunk brought it before and by that."""

    key: str
    name: str
    contestants: int
    changes: VerdictChanges


Listed = NDArray[np.uint32]
"""Row, contestant, the code that counts and the refused one of each conflict, shape (conflicts, 4)."""


Again = NDArray[np.int64]  # duplicates and conflicts of each contestant, shape (contestants, 2)


class ConflictChanges(NamedTuple):
    """What a chunk adds."""

    start: int  # place of the first new entry in the list
    listed: Listed
    contestants: NDArray[np.int64]  # the contestants whose counts have changed, ascending
    again: Again  # their counts


@dataclass
class BenchmarkDelta:
    """The changes of a chunk in one benchmark: appended to the stored state, except `spec` and `counters`, which replace it."""

    key: str
    name: str
    off: int
    spec: str | None = None  # the declaration as JSON when it changed
    rows: list[RowKey] = field(default_factory=list)
    contestants: list[Contestant] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    """New entries of the score table, in units of `SCORE_UNIT`; entry k has code 2 + k."""
    cells: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint32]] | None = None
    """Row, contestant and code of the new scores, sorted by (contestant, row)."""
    filled: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """Row and contestant of those new scores that replace a stored skip."""
    width: int = 1  # bytes a code takes: 1, or 4 once there are more than 254 codes
    columns: NDArray[np.uint32] | None = None
    """The whole score matrix, shape (contestants, rows), when `width` has just changed: it replaces the stored one."""
    registered: list[NDArray[np.uint32]] = field(default_factory=list)
    """Pair indices that joined the family, in the order of joining, in parts: 12 million in one piece hold the event loop."""
    peaks: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None
    """Pairs, ascending, whose largest evidence has changed, and that evidence; see `PairState.peak`."""
    changes: VerdictChanges = field(default_factory=VerdictChanges)
    """New verdict changes, by their field in the table of latches."""
    votes: list[NDArray[np.int32]] = field(default_factory=list)
    """New votes of battles; see `monitor.engine.state.battles`."""
    judges: list[str] = field(default_factory=list)  # new judges of battles
    run_lines: list[tuple[Any, ...]] = field(default_factory=list)
    """Of a sentinel: what its journal gets; see `monitor.engine.kinds.sentinel`."""
    run_scores: NDArray[Any] = field(default_factory=lambda: np.zeros(0, RUN_SCORE))
    run_state: dict[str, Any] | None = None  # what the journal does not show, if it may have changed
    counters: dict[str, int] = field(default_factory=dict)
    arrival: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """Contestants with new scores, and their state in `monitor.engine.state.arrival`."""
    finding: OrderFinding | None = None  # the finding against the arrival order, if made in this chunk
    conflict_offsets: list[int] = field(default_factory=list)
    """The record of each conflict, to find who sent it; not stored."""
    conflicts: ConflictChanges | None = None
    undeclared: tuple[str, bool] | None = None
    """Why a repeat or unit of this chunk holds the benchmark, and whether graded scores had ended the betting before."""
    unknown_units: bool | None = None  # whether an event has named a unit while none was declared, if that has changed
    ended: list[int] | None = None  # all contestants whose runs have ended, if any ended in this chunk
    gaps: list[Gap] | None = None
    """All gaps in the log, which may have held records of the benchmark; None if there are none."""
    redeclared: bool = False
    """Whether a new version of the declaration has begun, after which `registered` replaces what is stored."""
    seed: Seed | None = None  # where the first seed was committed, if in this chunk


@dataclass
class Delta:
    """What one chunk changed in a partition."""

    # `expected` is the offset the stored state must have for this delta to apply, `off` the offset it then has.
    partition: int
    expected: int
    off: int
    benchmarks: list[BenchmarkDelta] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    origins: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Offset and place of the last copy that came from each other partition."""
    gaps: list[Gap] | None = None  # all gaps in the log, if the chunk is one
    last: tuple[int, str] | None = None
    """Offset of the last record, and its digest: a log that holds another record there is another log."""
    counters: dict[str, int] = field(default_factory=dict)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    misrouted: list[Misrouted] = field(default_factory=list)
    suspects: dict[str, Suspect] = field(default_factory=dict)
    """Changed entries of the quarantine, by benchmark; a `clear` one ends."""
    deleted: list[DeletedBoard] = field(default_factory=list)
    """Boards that the chunk deletes, ahead of what it writes: a later one of the same name may be among `benchmarks`."""
    boards: dict[str, BoardEntry] = field(default_factory=dict)
    """Changed entries of the boards, by benchmark; a `clear` one ends."""
    readings: dict[str, str] = field(default_factory=dict)
    """The changed entries of what reading files has shown, by path, as `FileReading.dump` has them; an empty one ends."""
    records: int = 0  # how many records of its chunk it covers: where they bring many verdict changes, not all

    @property
    def change_count(self) -> int:
        """How many verdict changes it puts on the outbox."""
        changes = [each.changes for each in self.deleted] + [each.changes for each in self.benchmarks]
        return sum(map(len, changes))

    @property
    def is_large(self) -> bool:
        """Whether encoding it takes long enough for others to wait."""
        return (
            len(self.benchmarks) > _MANY
            or self.change_count > _MANY_CHANGES
            or sum(part.size for b in self.benchmarks for part in b.registered) > _LARGE
        )


MOST_LISTED: Final = 10_000  # conflicts of a benchmark that are kept one by one; further ones are only counted


class Conflicts:
    """The conflicts of one benchmark, in the order of the log."""

    def __init__(self, listed: Listed | None = None, again: Again | None = None) -> None:
        self.listed: Listed = np.empty((0, 4), np.uint32) if listed is None else listed
        self.again: Again = np.empty((0, 2), np.int64) if again is None else again
        self._stored = len(self.listed)
        self._touched: set[int] = set()

    def add(self, entries: Listed, duplicates: Index, contestants: int) -> None:
        """Add conflicts, in the order of the log, and the contestant of each duplicate."""
        room = MOST_LISTED - len(self.listed)
        if room > 0 and len(entries):
            self.listed = np.concatenate([self.listed, entries[:room]])
        self.again = np.pad(self.again, ((0, contestants - len(self.again)), (0, 0)))
        for column, who in enumerate((duplicates, entries[:, 1].astype(np.int64))):
            counts = np.bincount(who, minlength=contestants)
            self.again[:, column] += counts
            self._touched.update(np.flatnonzero(counts).tolist())

    def by_contestant(self, contestants: int) -> Again:
        """Return the counts of all contestants."""
        return np.pad(self.again, ((0, contestants - len(self.again)), (0, 0)))

    def changed(self) -> ConflictChanges:
        """Return what was added since the last call."""
        start, self._stored = self._stored, len(self.listed)
        touched = np.array(sorted(self._touched), np.int64)
        self._touched.clear()
        return ConflictChanges(start, self.listed[start:], touched, self.again[touched])


def benchmark_key(name: str) -> str:
    """Return the 32 hexadecimal digits (BLAKE2b-128) that identify a benchmark in keys.

    >>> len(benchmark_key("mmlu-pro"))
    32
    """
    return blake2b(name.encode("utf-8"), digest_size=16).hexdigest()


def record_digest(record: bytes) -> str:
    """Return the 32 hexadecimal digits (BLAKE2b-128) that identify a record."""
    return blake2b(record, digest_size=16).hexdigest()

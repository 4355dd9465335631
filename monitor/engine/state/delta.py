"""The types that the engine and the store share: the changes of a chunk, and a whole stored state."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.records.decode import Fault
from schemas.records.text import shorten, utc_text
from schemas.results.assumptions import Seed
from schemas.results.verdict_changes import VerdictChanges
from stats.order import OrderFinding

_LARGE = 500_000
"""Pairs that joined their families in one chunk."""

_MANY_CHANGES = 20_000
"""Verdict changes of one chunk: 0.03 s of encoding."""

_MANY = 200
"""Benchmarks that one chunk changed."""

STATE_VERSION = 12
"""Version of the stored layout."""

EARLIER_STATES = (5, 6, 7, 8, 9, 10)
"""Versions that this program reads, and rewrites by its next commit: those before 9 have verdict changes in place of latches, and
those before 11 put each change on the outbox as an entry of its own, which stays as it is until it is relayed."""


class RowKey(NamedTuple):
    """A row of the score matrix: one repeat of one item, and the cluster the item belongs to."""

    item: str
    repeat: int
    cluster: str | None


class Contestant(NamedTuple):
    """A column of the score matrix: one epoch of one model."""

    model: str
    epoch: int


class Source(NamedTuple):
    """How far a watched file has been read: bytes and lines of its current content, and the hash of those bytes."""

    generation: int
    position: int
    prefix: str
    line: int


class Gap(NamedTuple):
    """Records that their log no longer held when they were to be folded: the offsets from `start` to before `end` of a partition."""

    partition: int
    start: int
    end: int

    def describe(self) -> str:
        """Return which records these are.

        >>> Gap(3, 0, 60_000).describe()
        '0 to 59,999 of partition 3'
        """
        return f"{self.start:,} to {self.end - 1:,} of partition {self.partition}"


class DeadLetter(NamedTuple):
    """A rejected record: its place in the log, its origin, and the reason."""

    offset: int
    index: int  # type: ignore[assignment]  # shadows tuple.index
    source: str
    line: int | None
    field: str
    found: str
    reason: str
    benchmark: str | None
    raw: str
    producer: str | None = None
    """Who sent the record, if a server has identified it."""


class Refusal(Fault):
    """Why a record that can be read is refused: it does not fit the declaration, the runs that have ended, or a limit."""

    __slots__ = ()


class Suspect(NamedTuple):
    """A benchmark with unreadable records, or one that is set aside.

    Attributes
    ----------
    benchmark : str
    weight : int
        The sum of its unreadable records, see `monitor.engine.state.quarantine`.
    since : int or None
        Offset of the first record that is set aside; None while none is.
    reason : str
        Why it is set aside.
    records, last : int
        How many records are set aside (packed ones by their events), and the offset of the last one.
    """

    benchmark: str
    weight: int = 0
    since: int | None = None
    reason: str = ""
    records: int = 0
    last: int = 0

    @property
    def clear(self) -> bool:
        """Whether nothing has to be remembered."""
        return self.since is None and self.weight == 0

    def describe(self) -> str:
        """Return since when it is set aside, why and how that ends.

        >>> Suspect("m", since=7, reason="a record crashed the fold", records=2).describe()
        'its records from offset 7 on are set aside (2 until now), because a record crashed the fold; see `rankwatch quarantine list`'
        """
        return (
            f"its records from offset {self.since or 0:,} on are set aside ({self.records:,} until now), because {self.reason}; "
            "see `rankwatch quarantine list`"
        )


class Undo(NamedTuple):
    """What the last undo of a board withdraws: the events of a producer since a time, or of a model.

    Attributes
    ----------
    producer, model : str or None
    since : int or None
        Milliseconds since 1970; None: all events of the producer.
    former : int
        Offset from which on the log has the records of the generation before.
    kept : int
        How many of its events stay, at least.
    done : bool
        Whether all records that stay have been copied.
    """

    producer: str | None = None
    since: int | None = None
    model: str | None = None
    former: int = 0
    kept: int = 0
    done: bool = False

    def same(self, other: "Undo") -> bool:
        """Return whether another undo withdraws the same."""
        return self[:3] == other[:3]

    def describe(self) -> str:
        """Return which events are withdrawn.

        >>> Undo("ci", 1_767_225_600_000).describe(), Undo(model="ash").describe()
        ('the events of producer ci since 2026-01-01T00:00:00Z', 'the events of model ash')
        """
        if self.producer is None:
            return f"the events of model {shorten(self.model or '')}"
        time = "" if self.since is None else f" since {utc_text(self.since)}"
        return f"the events of producer {shorten(self.producer)}{time}"


class BoardEntry(NamedTuple):
    """What operators have done with the board of a benchmark.

    Attributes
    ----------
    benchmark : str
    state : str
        A deleted board has no benchmark; its name takes no records until it is begun again.
    since : int
        Offset of the record that archived or deleted it; of an open board, of the record that began it, archived meanwhile or not.
    generation : int
        How often the name was begun.
    withdrawn : int
        Family-wise decisions that held when earlier generations ended.
    title : str
        The name to show; empty for that of the benchmark.
    deleted : int or None
        Offset of the last deletion.
    begun : int
        Offset of the record that began this generation; 0 for the first one.
    undo : Undo or None
        What the undo has withdrawn that began this generation.
    titles : dict of str to str
        The names to show for models, by model.
    scored : bool
        Whether a deleted board of the name had scores.
    late : list of str
        The parts that earlier generations declared after their first score; see `Spec.declared_late`.
    """

    benchmark: str
    state: Literal["open", "archived", "deleted"] = "open"
    since: int = 0
    generation: int = 1
    withdrawn: int = 0
    title: str = ""
    deleted: int | None = None
    begun: int = 0
    undo: Undo | None = None
    titles: dict[str, str] = {}  # noqa: RUF012 - never changed in place
    scored: bool = False
    late: list[str] = []  # noqa: RUF012 - never changed in place

    @classmethod
    def parse(cls, stored: bytes | str) -> "BoardEntry":
        """Return the entry that is stored as JSON; earlier versions stored when an open board was restored."""
        entry = cls(*json.loads(stored))
        entry = entry._replace(since=entry.begun) if entry.state == "open" else entry
        return entry if entry.undo is None else entry._replace(undo=Undo(*entry.undo))

    @property
    def clear(self) -> bool:
        """Whether nothing has to be remembered: the board is as it would be without the records that changed it."""
        return self.state == "open" and self.generation == 1 and not self.title and not self.titles

    @property
    def first(self) -> int:
        """Offset from which on the log has the records of this generation."""
        return max(self.begun, self.deleted or 0)

    @property
    def unfinished(self) -> Undo | None:
        """The undo whose copies have not ended, or None."""
        return None if self.undo is None or self.undo.done else self.undo

    @property
    def knows_scores(self) -> bool:
        """Whether scores of an earlier generation are known to those who declare; the copies of an undo repeat what was declared."""
        return self.unfinished is None and (self.scored or self.undo is not None)

    @property
    def note(self) -> str | None:
        """What a reader of the report has to know, or None.

        >>> BoardEntry("m", "archived", 7).note
        'archived: no record from offset 7 on counts'
        >>> BoardEntry("m", generation=2, withdrawn=3, deleted=9).note.partition(", and ")[2]
        '3 family-wise decisions were withdrawn; its alpha was spent'
        """
        notes = []
        if self.state == "archived":
            notes.append(f"archived: no record from offset {self.since:,} on counts")
        if self.generation > 1:
            count = f"{self.withdrawn:,} family-wise decision{' was' if self.withdrawn == 1 else 's were'} withdrawn"
            if self.undo is None:
                ended = f"an earlier board of this name was deleted at offset {self.deleted or 0:,}"
            else:
                ended = f"{self.undo.describe()} were withdrawn at offset {self.begun:,}"
            notes.append(f"generation {self.generation:,}: {ended}, and {count}; its alpha was spent")
        if self.unfinished is not None:
            notes.append(
                "the records that stay are still being copied, so it is partial; `rankwatch board undo` continues that"
            )
        return "; ".join(notes) or None


class DeletedBoard(NamedTuple):
    """A board that a chunk deletes, and the changes that the chunk brought it before and by that."""

    key: str
    name: str
    contestants: int
    changes: VerdictChanges


class Misrouted(NamedTuple):
    """A record of another partition's benchmark: republish it to the owner before the state moves on."""

    offset: int
    place: int
    benchmark: str
    payload: bytes
    producer: str | None = None
    """Who sent it; the fold leaves that to the worker."""


Listed = NDArray[np.uint32]
"""Row, contestant, the code that counts and the refused one of each conflict, shape (conflicts, 4)."""

Again = NDArray[np.int64]
"""Duplicates and conflicts of each contestant, shape (contestants, 2)."""


class ConflictChanges(NamedTuple):
    """What a chunk adds."""

    start: int
    """Place of the first new entry in the list."""
    listed: Listed
    contestants: NDArray[np.int64]
    """The contestants whose counts have changed, ascending."""
    again: Again
    """Their counts."""


@dataclass
class BenchmarkDelta:
    """The changes of a chunk in one benchmark: appended to the stored state, except `spec` and `counters`, which replace it."""

    key: str
    name: str
    off: int
    spec: str | None = None
    """The declaration as JSON when it changed."""
    rows: list[RowKey] = field(default_factory=list)
    contestants: list[Contestant] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    """New entries of the score table, in units of `SCORE_UNIT`; entry k has code 2 + k."""
    cells: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint32]] | None = None
    """Row, contestant and code of the new scores, sorted by (contestant, row)."""
    filled: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """Row and contestant of those new scores that replace a stored skip."""
    width: int = 1
    """Bytes a code takes: 1, or 4 once there are more than 254 codes."""
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
    judges: list[str] = field(default_factory=list)
    """New judges of battles."""
    counters: dict[str, int] = field(default_factory=dict)
    arrival: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """Contestants with new scores, and their state in `monitor.engine.state.arrival`."""
    finding: OrderFinding | None = None
    """The finding against the arrival order, if made in this chunk."""
    conflict_offsets: list[int] = field(default_factory=list)
    """The record of each conflict, to find who sent it; not stored."""
    conflicts: ConflictChanges | None = None
    undeclared: tuple[str, bool] | None = None
    """Why a repeat or unit of this chunk holds the benchmark, and whether graded scores had ended the betting before."""
    unknown_units: bool | None = None
    """Whether an event has named a unit while none was declared, if that has changed."""
    ended: list[int] | None = None
    """All contestants whose runs have ended, if any ended in this chunk."""
    gaps: list[Gap] | None = None
    """All gaps in the log, which may have held records of the benchmark; None if there are none."""
    redeclared: bool = False
    """Whether a new version of the declaration has begun, after which `registered` replaces what is stored."""
    seed: Seed | None = None
    """Where the first seed was committed, if in this chunk."""


@dataclass
class Delta:
    """What one chunk changed in a partition.

    `expected` is the offset the stored state must have for this delta to apply, `off` the offset it then has.
    """

    partition: int
    expected: int
    off: int
    benchmarks: list[BenchmarkDelta] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    origins: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Offset and place of the last copy that came from each other partition."""
    gaps: list[Gap] | None = None
    """All gaps in the log, if the chunk is one."""
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
    records: int = 0
    """How many records of its chunk it covers: where they bring many verdict changes, not all."""

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


@dataclass
class PairSnapshot:
    """The pair arrays of a benchmark as of `off`, so that a restart need not rebuild them.

    Pair (i, j) of contestants i < j has index j (j - 1) / 2 + i. `meta` travels along as JSON (item counts per model and the like).
    """

    off: int
    arrays: dict[str, NDArray[Any]]
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass
class StoredBenchmark:
    """One benchmark as the store holds it (`changes` are all latched verdicts, by field)."""

    key: str
    name: str
    off: int
    spec: str | None
    rows: list[RowKey]
    contestants: list[Contestant]
    values: list[int]
    width: int
    columns: list[NDArray[np.uint8] | NDArray[np.uint32]]
    """One array of codes per contestant; shorter than the number of rows where the rest is absent."""
    registered: NDArray[np.uint32]
    changes: VerdictChanges
    counters: dict[str, int]
    pairs: PairSnapshot | None
    """None when there is no snapshot, or its offset is not the benchmark's."""
    arrival: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    """Four numbers a contestant: see `monitor.engine.state.arrival`; shorter than the number of contestants where the rest is 0."""
    finding: OrderFinding | None = None
    listed: NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 4), np.uint32))
    """The first conflicts: see `monitor.engine.state.conflicts`."""
    again: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Duplicates and conflicts of each contestant; shorter than the number of contestants where the rest is 0."""
    undeclared: str = ""
    mixed: bool = False
    """Whether graded scores had ended the betting before the undeclared repeat."""
    unknown_units: bool = False
    ended: list[int] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    seed: Seed | None = None
    votes: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 6), np.int32))
    """Every vote of its battles; see `monitor.engine.state.battles`."""
    judges: list[str] = field(default_factory=list)
    peaks: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Largest evidence of each pair, see `PairState.peak`; shorter than the number of pairs where the rest is 0."""


@dataclass
class StoredState:
    """The state of a partition as the store holds it; `off` 0 and no log for a partition that was never written."""

    partition: int
    off: int = 0
    log: str | None = None
    benchmarks: list[StoredBenchmark] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    origins: dict[int, tuple[int, int]] = field(default_factory=dict)
    last: tuple[int, str] | None = None
    gaps: list[Gap] = field(default_factory=list)
    suspects: list[Suspect] = field(default_factory=list)
    boards: list[BoardEntry] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)

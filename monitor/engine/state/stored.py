"""A whole stored state, as the engine and the store share it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.records.boards import BoardEntry, Suspect
from schemas.records.chunks import Gap, Source
from schemas.records.reading import FileReading
from schemas.records.scores import RUN_SCORE, Contestant, RowKey
from schemas.records.text import Sentence
from schemas.results.assumptions import Seed
from schemas.results.verdict_changes import VerdictChanges
from stats.order import OrderFinding


@dataclass
class PairSnapshot:
    """The pair arrays of a benchmark as of `off`, so that a restart need not rebuild them."""

    # Pair (i, j) of contestants i < j has index j (j - 1) / 2 + i. `meta` travels along as JSON (item counts per model and the like).
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
    pairs: PairSnapshot | None  # none when there is no snapshot, or its offset is not the benchmark's
    arrival: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    """Four numbers a contestant: see `monitor.engine.state.arrival`; shorter than the number of contestants where the rest is 0."""
    finding: OrderFinding | None = None
    listed: NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 4), np.uint32))
    """The first conflicts: see `monitor.engine.state.changes`."""
    again: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Duplicates and conflicts of each contestant; shorter than the number of contestants where the rest is 0."""
    undeclared: Sentence = ""
    mixed: bool = False  # whether graded scores had ended the betting before the undeclared repeat
    unknown_units: bool = False
    ended: list[int] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    seed: Seed | None = None
    votes: NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 6), np.int32))
    """Every vote of its battles; see `monitor.engine.state.battles`."""
    judges: list[str] = field(default_factory=list)
    run_lines: list[list[Any]] = field(default_factory=list)
    """Of a sentinel: the journal of its runs; see `monitor.engine.kinds.sentinel`."""
    run_scores: NDArray[Any] = field(default_factory=lambda: np.zeros(0, RUN_SCORE))
    run_state: dict[str, Any] = field(default_factory=dict)  # what the journal does not show
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
    readings: list[FileReading] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)

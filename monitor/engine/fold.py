"""The fold of one benchmark: a run of events into its score matrix, pair sums, latches and counters."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Chunk, Crossing, register
from monitor.engine.latch.binary import crossings
from monitor.engine.latch.changes import describe, describe_invalidated, resolution_ratios
from monitor.engine.latch.committed import crossings_along
from monitor.engine.latch.graded import enter_graded
from monitor.engine.limits import Limits
from monitor.engine.state.benchmark import MILLION, Benchmark
from monitor.engine.state.counts import ABSENT, CHUNK_CELLS, ONE, SKIPPED, ZERO, Codes, chunk_counts
from monitor.engine.state.delta import BenchmarkDelta, Contestant
from monitor.engine.state.pairs import Index, chosen
from schemas.decode import Fault
from schemas.events import EventFields
from schemas.names import name_fault
from schemas.text import shorten
from stats.graded import MAX_ITEMS

Cells = tuple[Index, Index, NDArray[np.uint32]]
"""Row, contestant and code of new scores."""

NewCells = tuple[Index, Index, NDArray[np.uint32], Index]
"""The same, and where each stands in the piece."""


@dataclass
class Batch:
    """Events of one benchmark in the order of the log, each with its place: record offset, and index in the record."""

    events: list[EventFields]
    offsets: Sequence[int]
    indices: Sequence[int]

    @classmethod
    def joined(cls, runs: Sequence["Batch"]) -> "Batch":
        """Return runs of events as one; a single run as it is."""
        if len(runs) == 1:
            return runs[0]
        columns = zip(*((run.events, run.offsets, run.indices) for run in runs), strict=True)
        events, offsets, indices = (list(chain.from_iterable(column)) for column in columns)
        return cls(events, offsets, indices)


@dataclass
class _Cells:
    """Where the events of a batch go: row, contestant and code (ABSENT for an event that was refused) of each."""

    row: Index
    contestant: Index
    code: NDArray[np.uint32]
    cut: int
    """The first event at which there is an item too many, so that nothing decided counts; else the length."""
    broken: str
    """What took the verdicts back at `cut`."""


def fold_batch(
    benchmark: Benchmark, batch: Batch, delta: BenchmarkDelta, limits: Limits, cells: list[Cells]
) -> list[tuple[int, Fault]]:
    """Fold events into a benchmark.

    Parameters
    ----------
    benchmark : Benchmark
        Changed in place.
    batch : Batch
        Any number of events.
    delta : BenchmarkDelta
        Gets what the store has to write.
    limits : Limits
        How many names are taken in.
    cells : list of (row, contestant, code)
        Gets the new scores, for `record_cells`.

    Returns
    -------
    list of (position in the batch, Fault)
        The events that were refused.
    """
    refused: list[tuple[int, Fault]] = []
    for start in range(0, len(batch.events), CHUNK_CELLS):
        part = slice(start, start + CHUNK_CELLS)
        piece = Batch(batch.events[part], batch.offsets[part], batch.indices[part])
        standing = benchmark.standing
        found, faults = _locate(benchmark, piece.events, delta, limits)
        refused += [(start + position, fault) for position, fault in faults]
        benchmark.grow()
        rows = len(benchmark.rows)
        benchmark.counts_row[rows - len(delta.rows) : rows] = [row.repeat == 0 for row in delta.rows]
        # An item too many inside the piece: what came before still bets and what follows does not. Fold them apart.
        for low, high, stands in ((0, found.cut, standing), (found.cut, len(piece.events), False)):
            if low < high:
                if standing and not stands:
                    _invalidate(benchmark, piece, low, found.broken, delta)
                cells.append(_apply(benchmark, piece, found, slice(low, high), delta, stands=stands))
    benchmark.counters["events"] += len(batch.events) - len(refused)
    return refused


def _locate(
    benchmark: Benchmark, events: Sequence[EventFields], delta: BenchmarkDelta, limits: Limits
) -> tuple[_Cells, list[tuple[int, Fault]]]:
    """Turn names and scores into rows, contestants and codes; name what is new."""
    namer = _Namer(benchmark, delta, limits)
    size = len(events)
    row_of, contestant_of = benchmark.row_of.get, benchmark.contestant_of.get
    # Comprehensions are faster here than `map` with `attrgetter`, and `fromiter` is faster than `array`.
    rows = [row_of(event.item_id, -1) for event in events]
    contestants = [contestant_of(event.model, -1) for event in events]
    row, contestant = np.fromiter(rows, np.int64, size), np.fromiter(contestants, np.int64, size)
    codes = _known_codes(benchmark, [event.score for event in events])
    plain = codes >= 0
    if [event for event in events if event.repeat or event.epoch]:
        plain &= np.array([not (event.repeat or event.epoch) for event in events])
    unknown = np.flatnonzero((row < 0) | (contestant < 0) | ~plain)
    standing, cut, broken = benchmark.standing, size, ""
    for position, is_plain in zip(unknown.tolist(), plain[unknown].tolist(), strict=True):
        event = events[position]
        # Most of them have names that an event of this piece has just entered.
        if is_plain:
            rows[position] = row_of(event.item_id, -1)
            contestants[position] = contestant_of(event.model, -1)
            if rows[position] >= 0 and contestants[position] >= 0:
                continue
        place = namer.place(event, position)
        rows[position], contestants[position], codes[position] = place or (0, 0, ABSENT)
        if standing and cut == size and not benchmark.standing:
            cut, broken = position, benchmark.broken
    if unknown.size:
        row, contestant = np.fromiter(rows, np.int64, size), np.fromiter(contestants, np.int64, size)
    return _Cells(row, contestant, codes.astype(np.uint32), cut, broken), namer.faults


def _known_codes(benchmark: Benchmark, scores: list[float | None]) -> Index:
    """Return the code of each score, -1 for one that is new."""
    millionths = np.array(scores, np.float64) * MILLION  # None becomes NaN
    np.rint(millionths, out=millionths)
    right = millionths == MILLION
    codes = np.where(right, ONE, ZERO)
    others = np.flatnonzero(~right & (millionths != 0))
    if others.size:
        skipped = np.isnan(millionths[others])
        values = np.where(skipped, 0, millionths[others]).astype(np.int64)
        known = np.fromiter(map(benchmark.value_code.get, values.tolist(), repeat(-1)), np.int64, others.size)
        codes[others] = np.where(skipped, SKIPPED, known)
    return codes


class _Namer:
    """Checks and enters the names and scores that are new; says why an event is refused."""

    def __init__(self, benchmark: Benchmark, delta: BenchmarkDelta, limits: Limits) -> None:
        self.benchmark, self.delta, self.limits = benchmark, delta, limits
        self.faults: list[tuple[int, Fault]] = []

    def place(self, event: EventFields, position: int) -> tuple[int, int, int] | None:
        """Return (row, contestant, code) of an event, or None when it is refused: then nothing of it is entered."""
        benchmark, item, model = self.benchmark, event.item_id, event.model
        # An event of the same batch may have entered them since.
        row = benchmark.repeat_row_of.get((item, event.repeat)) if event.repeat else benchmark.row_of.get(item)
        contestant = (
            benchmark.epoch_contestant_of.get(Contestant(model, event.epoch))
            if event.epoch
            else benchmark.contestant_of.get(model)
        )
        millionths = None if event.score is None else round(event.score * MILLION)
        code = SKIPPED if millionths is None else benchmark.value_code.get(millionths)
        if row is not None and contestant is not None and code is not None:
            return row, contestant, code

        fault = (
            (row is None and self._row_fault(event))
            or (contestant is None and self._contestant_fault(event))
            or (code is None and self._value_fault(event))
        )
        if fault:
            self.faults.append((position, fault))
            return None
        if row is None:
            row = benchmark.add_row(item, event.repeat, event.cluster)
            self.delta.rows.append(benchmark.rows[row])
        if contestant is None:
            contestant = benchmark.add_contestant(model, event.epoch)
            self.delta.contestants.append(benchmark.contestants[contestant])
        if code is None:
            assert millionths is not None
            code = benchmark.add_value(millionths)
            self.delta.values.append(millionths)
        return row, contestant, code

    def _row_fault(self, event: EventFields) -> Fault | None:
        # The cluster is that of the event which names the row; later ones are not looked at, however the events are chunked.
        if fault := self._name_fault("item_id", event.item_id) or self._name_fault("cluster", event.cluster):
            return fault
        benchmark, limits = self.benchmark, self.limits
        if benchmark.listed is not None and event.item_id not in benchmark.listed:
            reason = (
                f"the item is none of the {len(benchmark.listed):,} that were declared: correct the id, or declare the whole list under "
                "another benchmark name"
            )
            return Fault("item_id", shorten(event.item_id), reason, benchmark.name)
        most = min(limits.rows, MAX_ITEMS * benchmark.spec.repeats) if benchmark.graded else limits.rows
        return self._limit_fault("item_id", event.item_id, "items", len(benchmark.rows), most)

    def _contestant_fault(self, event: EventFields) -> Fault | None:
        named = len(self.benchmark.contestants)
        return self._name_fault("model", event.model) or self._limit_fault(
            "model", event.model, "models", named, self.limits.contestants
        )

    def _value_fault(self, event: EventFields) -> Fault | None:
        return self._limit_fault(
            "score", event.score, "different scores", len(self.benchmark.values), self.limits.values
        )

    def _name_fault(self, field: str, name: str | None) -> Fault | None:
        reason = None if name is None else name_fault(name)
        if reason is None:
            return None
        remedy = "use 1-200 characters without control or bidi characters"
        return Fault(field, shorten(name), f"the name {reason}: {remedy}", self.benchmark.name)

    def _limit_fault(self, field: str, found: object, what: str, count: int, most: int) -> Fault | None:
        if count < most:
            return None
        return Fault(
            field, shorten(found), f"the benchmark has {most:,} {what} already, its limit", self.benchmark.name
        )


def _apply(
    benchmark: Benchmark, piece: Batch, found: _Cells, part: slice, delta: BenchmarkDelta, *, stands: bool
) -> Cells:
    """Fold located events: first score wins, then sums, family and latches."""
    position = np.flatnonzero(found.code[part] != ABSENT) + part.start
    # Sorted by row, then contestant, then arrival: the first of equal keys is the one that wins.
    key = found.row[position] * len(benchmark.contestants) + found.contestant[position]
    position = position[np.argsort(key, kind="stable")]
    row, contestant, code = found.row[position], found.contestant[position], found.code[position]
    standing = benchmark.scores[row, contestant].astype(np.uint32)
    first = np.ones(row.size, bool)
    first[1:] = (row[1:] != row[:-1]) | (contestant[1:] != contestant[:-1])
    new = first & (standing == ABSENT)
    if not new.all():
        winner = np.where(standing != ABSENT, standing, code[first][np.cumsum(first) - 1])
        benchmark.counters["conflicts"] += int(((winner != code) & ~new).sum())
        benchmark.counters["duplicates"] += int(((winner == code) & ~new).sum())
        row, contestant, code, position = row[new], contestant[new], code[new], position[new]

    cells = (row, contestant, code, position)
    counts = benchmark.counts_row[row]
    refuted_at = benchmark.arrival.observe(
        benchmark.rows, benchmark.listed, benchmark.scores, (row[counts], contestant[counts], position[counts])
    )
    betting = stands and not benchmark.mixed
    graded = position[counts & (code > ONE)] if benchmark.binary else position[:0]
    benchmark.mixed |= graded.size > 0
    until = graded.min(initial=len(piece.events))
    if refuted_at is not None:
        delta.finding = benchmark.arrival.finding
        if benchmark.refuted:
            until = min(until, refuted_at)
    # What came before the first graded score, or the event that refuted the order, still bets.
    early = position < until
    if not betting or early.all():
        _enter(benchmark, piece, cells, delta, betting=betting)
    else:
        _enter(benchmark, piece, (row[early], contestant[early], code[early], position[early]), delta, betting=True)
        late = ~early
        _enter(benchmark, piece, (row[late], contestant[late], code[late], position[late]), delta, betting=False)
    if stands and refuted_at is not None and benchmark.refuted:
        _invalidate(benchmark, piece, refuted_at, benchmark.broken, delta)
    return row, contestant, code


def _enter(benchmark: Benchmark, piece: Batch, cells: NewCells, delta: BenchmarkDelta, *, betting: bool) -> None:
    """Enter new cells (sorted by row) into the matrix, then add what counts to the sums, and close latches."""
    contestants = len(benchmark.contestants)
    rows, at = _write(benchmark.scores, contestants, cells)
    if benchmark.repeats is not None:
        row, contestant, _, position = cells
        cells = benchmark.repeats.completed(benchmark.scores, benchmark.values, row, contestant, position)
        rows, at = _write(benchmark.repeats.codes, contestants, cells)
        row, contestant, code, position = cells
        bets = np.ones(row.size, bool)
    else:
        row, contestant, code, position = cells
        bets = benchmark.counts_row[row]
    if bets.any():
        _add_sums(benchmark, contestant[bets], code[bets])
        scored = bets & (code >= ZERO)
        events = (at[scored], contestant[scored], code[scored], position[scored])
        _bet(benchmark, piece, rows, events, delta, betting=betting and benchmark.committed is None)
        if benchmark.committed is not None:
            counting = (row[bets], contestant[bets], position[bets])
            advance = benchmark.committed.advance(benchmark.rows, benchmark.matrix(), counting)
            if advance is not None and betting:
                _announce(benchmark, piece, crossings_along(benchmark, advance), delta)


def _write(matrix: Codes, contestants: int, cells: NewCells) -> tuple[tuple[Codes, Codes], Index]:
    """Write new cells; return the rows they touch, before and after, and which of these each cell is in."""
    row, contestant, code, _ = cells
    starts = np.ones(row.size, bool)
    starts[1:] = row[1:] != row[:-1]
    touched, at = row[starts], np.cumsum(starts) - 1
    held: Codes = matrix.take(touched, axis=0)  # ten times as fast as indexing
    before = held[:, :contestants].copy()
    after = before.copy()
    after[at, contestant] = code
    matrix[row, contestant] = code
    return (before, after), at


def _add_sums(benchmark: Benchmark, contestant: Index, code: NDArray[np.uint32]) -> None:
    """Add what new scores bring to each model by itself; float64 is exact for so few and so small integers."""
    table = benchmark.item_values.astype(np.float64)
    size = len(benchmark.contestants)
    for name, weights in (("total", table[code]), ("scored", code >= ZERO), ("skipped", code == SKIPPED)):
        getattr(benchmark, name)[:size] += np.bincount(contestant, weights, size).astype(np.int64)


def _bet(
    benchmark: Benchmark,
    piece: Batch,
    rows: tuple[Codes, Codes],
    cells: tuple[Index, Index, NDArray[np.uint32], Index],
    delta: BenchmarkDelta,
    *,
    betting: bool,
) -> None:
    """Add what new scores bring to every pair they touch, and close the latches they reach."""
    before, after = rows
    row, contestant, code, position = cells
    if row.size == 0 or len(benchmark.contestants) < 2:
        return
    gains = chunk_counts(before, after, row, contestant, code)
    held = benchmark.n[gains.pair]
    fresh = chosen(gains.pair, np.flatnonzero((held == 0) & (gains.n > 0)))
    for name in ("n", "b", "c"):
        getattr(benchmark, name)[gains.pair] += getattr(gains, name)

    graded = benchmark.graded_pairs is not None
    if not fresh.size and not betting and not graded:
        return
    chunk = Chunk.of(before, after, row, contestant, position)
    if fresh.size:
        delta.registered = np.concatenate([delta.registered, register(benchmark, chunk, fresh)])
    if graded:
        _announce(benchmark, piece, enter_graded(benchmark, chunk, gains, betting=betting), delta)
    elif betting:
        _announce(benchmark, piece, crossings(benchmark, chunk, gains), delta)


def _announce(benchmark: Benchmark, piece: Batch, crossed: Sequence[Crossing], delta: BenchmarkDelta) -> None:
    """Note the latches that closed."""
    for crossing, ratio in zip(crossed, resolution_ratios(benchmark, crossed), strict=True):
        place = piece.offsets[crossing.position], piece.indices[crossing.position]
        field_name, change = describe(benchmark, crossing, ratio, *place)
        benchmark.changes[field_name] = change
        delta.changes.append((field_name, change))


def _invalidate(benchmark: Benchmark, piece: Batch, position: int, broken: str, delta: BenchmarkDelta) -> None:
    """Announce, at an event, that what was decided before it no longer counts."""
    place = piece.offsets[position], piece.indices[position]
    for field_name, change in describe_invalidated(benchmark, *place, broken):
        benchmark.changes[field_name] = change
        delta.changes.append((field_name, change))


def record_cells(benchmark: Benchmark, delta: BenchmarkDelta, parts: list[Cells], *, widened: bool) -> None:
    """Put the new cells into the delta, in the order the store writes them; or the whole matrix when its codes have become wider."""
    delta.width = benchmark.width
    if widened:
        delta.columns = np.ascontiguousarray(benchmark.matrix().T, dtype=np.uint32)
    elif parts:
        row, contestant, code = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.lexsort((row, contestant))
        delta.cells = (row[order].astype(np.int32), contestant[order].astype(np.int32), code[order].astype(np.uint32))

"""The fold of one benchmark: events into its score matrix, pair sums, latches and counters."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.fold.locate import Located
from monitor.engine.kinds.repeats import ItemCells
from monitor.engine.latch.changes import announce_closed, invalidate, loop_of, supersede
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.changes import BenchmarkDelta
from monitor.engine.state.codes import Codes
from monitor.engine.state.pairs.counts import CHUNK_CELLS, chunk_counts
from schemas.records.columns import EventBatch, EventList
from schemas.records.events import Ended
from schemas.records.scores import ABSENT, ONE, SKIPPED, ZERO
from schemas.records.text import Fault, Refusal, shorten
from schemas.results.changes import CLAIMS, PROCEDURES
from stats.numerics.pairs import Index, chosen, pair_members

Times = NDArray[np.int16]
NEVER: Final = np.iinfo(np.int16).max  # later than any position in a chunk: a chunk has at most 8,000
ALWAYS: Final = -1
_SLAB_CELLS: Final = 500_000


@dataclass(frozen=True)
class NewScores:
    """The new scores of a chunk and the rows they are in, shape (contestants, rows): the scores of a contestant are contiguous."""

    time: Times  # position of each score in the chunk; ALWAYS if it was there before, NEVER if it is absent or skipped
    after: Codes  # the rows with the new scores

    @classmethod
    def of(cls, before: Codes, after: Codes, row: Index, contestant: Index, position: Index) -> "NewScores":
        """Lay out new scores by time; `before` and `after` have shape (rows, contestants)."""
        time = np.where(before.T.copy() >= ZERO, np.int16(ALWAYS), np.int16(NEVER))
        time[contestant, row] = position
        return cls(time, after.T.copy())

    @property
    def rows(self) -> int:
        """Number of rows with new scores."""
        return int(self.time.shape[1])

    def shared(self, i: Index, j: Index) -> Times:
        """Return when pairs came to share each row, shape (pairs, rows)."""
        times = self.time[i]
        return np.maximum(times, self.time[j], out=times)

    def first_shared(self, i: Index, j: Index) -> Times:
        """Return when pairs that shared nothing before got their first shared item, shape (pairs,)."""
        first = np.empty(i.size, np.int16)
        step = max(1, _SLAB_CELLS // max(1, self.rows))
        for start in range(0, i.size, step):
            self.shared(i[start : start + step], j[start : start + step]).min(axis=1, out=first[start : start + step])
        return first


Flags = NDArray[np.bool_]


class ComparedCells(NamedTuple):
    """What becomes of each event; shape (events,) each."""

    writes: Flags  # its score (or skip) enters the matrix: at most one event a key
    arrives: Flags  # it is the first event ever of its key
    duplicate: Flags  # it repeats what was there at that event
    conflict: Flags  # it differs from what was there, and does not fill a skip
    winner: NDArray[np.uint32]  # code that counts for its key after all of these events


def compare_cells(existing: NDArray[np.uint32], code: NDArray[np.uint32], first: Flags, fills: Flags) -> ComparedCells:
    """Decide between events of the same keys and earlier scores; `fills` marks the keys where a score fills a skip."""
    start, group = np.flatnonzero(first), np.cumsum(first) - 1
    before = existing[start]
    arrives = first & (existing == ABSENT)
    winner = np.where(before != ABSENT, before, code[start])
    leads = arrives.copy()
    early = np.zeros(code.size, bool)
    if fills.any():
        place = np.arange(code.size)
        score_at = np.minimum.reduceat(np.where((code >= ZERO) & fills, place, code.size), start)
        filled = np.flatnonzero((before < ZERO) & (score_at < code.size))
        winner[filled] = code[score_at[filled]]
        leads[start[filled]] = False
        leads[score_at[filled]] = True
        # Skips before the first score meet a skip, or nothing.
        early = fills & (before < ZERO)[group] & (code == SKIPPED) & (place < score_at[group])
    against = winner[group].astype(np.uint32)
    met = ~leads & ~arrives
    conflict = met & (against != code) & ~early
    return ComparedCells(leads, arrives, met & ~conflict, conflict, against)


_CELLS: Final = 4_000_000  # scores of all models on the items that come in a part of a chunk: 32 MB

Cells = tuple[Index, Index, NDArray[np.uint32], NDArray[np.bool_]]
"""Row, contestant and code of new scores, and whether each replaces a skip."""

NewCells = tuple[Index, Index, NDArray[np.uint32], Index]  # row, contestant, code and position in the piece


def fold_located(benchmark: Benchmark, located: Located, delta: BenchmarkDelta, cells: list[Cells]) -> None:
    """Fold located events into a benchmark."""
    # `delta` gets the changes to store, except for the new scores: `cells` gets these, for `record_cells`.
    benchmark.grow()
    batch = located.batch
    # An item too many ends what rests on the count, a newer epoch the verdicts on the older one: fold what is before it on its own.
    ends = sorted({located.cut, *located.newer, len(batch.events)})
    low = 0
    while low < len(batch.events):
        high = ends[bisect_right(ends, low)]
        if low in located.newer:
            supersede(benchmark, batch, low, located.newer[low], delta)
        benchmark.exceeded = located.exceeded or low >= located.cut
        refuted = benchmark.exceeded and benchmark.completion_refuted
        if low == located.cut and not benchmark.undeclared:
            invalidate(benchmark, batch, low, benchmark.excess, delta, claims=CLAIMS if refuted else ("settled",))
        holds = located.held and not (refuted or benchmark.order_refuted or benchmark.undeclared)
        written = _apply(benchmark, located, slice(low, high), delta, holds=holds)
        cells.append(written)
        benchmark.revision += 1
        low = high


def no_scores(benchmark: Benchmark) -> Fault:
    """Return why scores are refused where battles are."""
    reason = f"{benchmark.name!r} holds battles, so it takes no scores of items; give these a benchmark of their own"
    return Refusal("score", "a score", reason, benchmark.name)


def _apply(benchmark: Benchmark, located: Located, part: slice, delta: BenchmarkDelta, *, holds: bool) -> Cells:
    """Fold some located events: first score wins, then sums, family and latches."""
    piece = located.batch
    position = np.flatnonzero(located.code[part] != ABSENT) + part.start
    # By row, then contestant, then arrival: the first of equal keys wins.
    key = located.row[position] * len(benchmark.contestants) + located.contestant[position]
    position = position[np.argsort(key, kind="stable")]
    row, contestant, code = located.row[position], located.contestant[position], located.code[position]
    (row, contestant, code, position), arrived = _compare(benchmark, (row, contestant, code, position), piece, delta)
    written = row, contestant, code, benchmark.scores[row, contestant] == SKIPPED
    if benchmark.undeclared:
        benchmark.scores[row, contestant] = code
        return written
    beyond = _first_undeclared(benchmark, located, part, (row, contestant, code, position))
    if beyond is not None:
        row, contestant, code, position = (x[position < beyond[0]] for x in (row, contestant, code, position))
        arrived = _before(arrived, beyond[0])
    arrived = benchmark.by_item.first_of_items(*arrived)
    refuted_at = benchmark.arrival.observe(benchmark.item_keys, benchmark.item_places, benchmark.present, arrived)
    can_decide = holds and not benchmark.mixed
    graded = position[code > ONE] if benchmark.binary else position[:0]
    benchmark.mixed |= graded.size > 0
    until = graded.min(initial=len(piece.offsets))
    if refuted_at is not None:
        delta.finding = benchmark.arrival.finding
        if benchmark.order_refuted:
            until = min(until, refuted_at)
    # Events before the first graded score, or before the event that refuted the order, may still decide.
    early = (position < until) | (not can_decide)
    for some, decides in ((early, can_decide), (~early, False)):
        if some.any():
            cells = row[some], contestant[some], code[some], position[some]
            _enter(benchmark, piece, cells, delta, can_decide=decides)
    if holds and refuted_at is not None and benchmark.order_refuted:
        # What is settled does not rest on the order.
        invalidate(benchmark, piece, refuted_at, benchmark.invalidation_reason, delta, claims=PROCEDURES)
    if beyond is not None:
        _hold_undeclared(benchmark, piece, beyond, delta, holds=holds)
        benchmark.scores[written[0], written[1]] = written[2]
    return written


def _compare(
    benchmark: Benchmark, cells: NewCells, piece: EventBatch, delta: BenchmarkDelta
) -> tuple[NewCells, tuple[Index, Index, Index]]:
    """Count duplicates and conflicts; return the cells that are written, and (row, contestant, position) of those that arrive first."""
    row, contestant, code, position = cells
    existing = benchmark.scores[row, contestant].astype(np.uint32)
    first = np.ones(row.size, bool)
    first[1:] = (row[1:] != row[:-1]) | (contestant[1:] != contestant[:-1])
    arrived = row, contestant, position
    if not (first & (existing == ABSENT)).all():
        keys, had = compare_cells(existing, code, first, benchmark.skips_wait(contestant)), benchmark.has_choice
        filled = keys.writes & ~keys.arrives
        benchmark.counters["filled"] += int(np.count_nonzero(filled))
        if not had and (chosen_at := position[filled | keys.conflict]).size:
            piece.note_choice(int(chosen_at.min()))
        _count_again(benchmark, cells, keys, piece, delta)
        arrived = row[keys.arrives], contestant[keys.arrives], position[keys.arrives]
        writes = keys.writes
        return (row[writes], contestant[writes], code[writes], position[writes]), arrived
    return cells, arrived


def _before(arrived: tuple[Index, Index, Index], position: int) -> tuple[Index, Index, Index]:
    early = arrived[2] < position
    return arrived[0][early], arrived[1][early], arrived[2][early]


def _first_undeclared(benchmark: Benchmark, located: Located, part: slice, cells: NewCells) -> tuple[int, str] | None:
    """Return the position of the first new repeat or unit that is not declared, and why it holds the benchmark; None without one."""
    first = []
    if located.undeclared is not None and part.start <= located.undeclared[0] < part.stop:
        first.append(located.undeclared)
    if (beyond := benchmark.by_item.first_undeclared(*cells)) is not None:
        first.append((beyond.position, benchmark.undeclared_reason(beyond)))
    return min(first, default=None)


def _hold_undeclared(
    benchmark: Benchmark, piece: EventBatch, beyond: tuple[int, str], delta: BenchmarkDelta, *, holds: bool
) -> None:
    """Stop the betting at a repeat or a unit that is not declared; decisions so far no longer count."""
    position, reason = beyond
    delta.undeclared = reason, benchmark.mixed
    if holds and not benchmark.order_refuted:
        invalidate(benchmark, piece, position, reason, delta)
    benchmark.hold_repeats(reason)


def _count_again(
    benchmark: Benchmark, cells: NewCells, keys: ComparedCells, piece: EventBatch, delta: BenchmarkDelta
) -> None:
    """Count duplicates and conflicts, and list the conflicts in the order of the log."""
    row, contestant, code, position = cells
    conflict = np.flatnonzero(keys.conflict)
    conflict = conflict[np.argsort(position[conflict])]
    entries = np.stack([x[conflict].astype(np.uint32) for x in (row, contestant, keys.winner, code)], axis=1)
    duplicates = contestant[keys.duplicate]
    benchmark.counters["conflicts"] += conflict.size
    benchmark.counters["duplicates"] += duplicates.size
    delta.conflict_offsets += [piece.offsets[place] for place in position[conflict].tolist()]
    benchmark.conflicts.add(entries, duplicates, len(benchmark.contestants))


def _enter(
    benchmark: Benchmark, piece: EventBatch, cells: NewCells, delta: BenchmarkDelta, *, can_decide: bool
) -> None:
    """Write new cells (sorted by row) to the matrix, add those that count to the sums, and close latches."""
    cells, lost = benchmark.by_item.enter(benchmark.scores, cells, benchmark.table.by_code)
    benchmark.skipped[: len(benchmark.contestants)] -= np.bincount(lost, minlength=len(benchmark.contestants))
    matrix = benchmark.by_item.matrix(benchmark.scores)
    if benchmark.by_item.turns is None:
        if cells[0].size:
            _enter_items(benchmark, piece, matrix, cells, delta, can_decide=can_decide)
        return
    for steps, some in _in_steps(piece, cells):
        _enter_items(benchmark, steps, matrix, some, delta, can_decide=can_decide)


def _in_steps(piece: EventBatch, cells: ItemCells) -> Iterator[tuple[EventBatch, ItemCells]]:
    """Yield items in their order as steps of their own, many of which one event of the log may take; each part of them by item."""
    for part in _parts(cells[0].size):
        item, contestant, code = cells[0][part], cells[1][part], cells[2][part]
        at = cells[3][part].tolist()
        steps = EventBatch(
            piece.benchmark, EventList([]), [piece.offsets[k] for k in at], [piece.indices[k] for k in at]
        )
        order: Index = np.lexsort((contestant, item)).astype(np.int64)
        yield steps, (item[order], contestant[order], code[order], order)


def _enter_items(
    benchmark: Benchmark, piece: EventBatch, matrix: Codes, cells: NewCells, delta: BenchmarkDelta, *, can_decide: bool
) -> None:
    """Write new items (sorted by item) to their matrix, add them to the sums, and close latches."""
    item, contestant, code, position = cells
    _add_sums(benchmark, contestant, code, matrix[item, contestant] == SKIPPED)
    order = np.argsort(position, kind="stable")
    if can_decide or benchmark.graded_pairs is not None:
        most = max(1, _CELLS // max(1, len(benchmark.contestants)))
        for start in range(0, order.size, most):
            some = order[start : start + most]
            part = item[some], contestant[some], code[some], position[some]
            _follow(benchmark, piece, matrix, part, delta, can_decide=can_decide)
        return
    rows, at = _write(matrix, len(benchmark.contestants), cells)
    scored = code >= ZERO
    _count(benchmark, rows, (at[scored], contestant[scored], code[scored], position[scored]), delta)
    if benchmark.committed is not None:
        loop_of(benchmark).advance(item[order], contestant[order], code[order])


def _follow(
    benchmark: Benchmark, piece: EventBatch, matrix: Codes, cells: NewCells, delta: BenchmarkDelta, *, can_decide: bool
) -> None:
    """Let new scores go through their pairs one after another."""
    item, contestant, code, position = cells
    loop, score = loop_of(benchmark), benchmark.item_values
    if benchmark.graded_pairs is None:
        found = loop.fold(matrix, item, contestant, code, position)
    else:
        rows, at = np.unique(item, return_inverse=True)
        codes = matrix.take(rows, axis=0)[:, : len(benchmark.contestants)]
        cluster = rows[:0] if benchmark.weighting is None else benchmark.weighting.cluster[rows]
        values = np.where(codes >= ZERO, score[codes], -1), cluster
        value = np.where(code >= ZERO, score[code], -1)
        found = loop.fold_values(values, at, contestant, value, position, decides=can_decide)
    matrix[item, contestant] = code
    announce_closed(benchmark, piece, found, delta)


def _write(matrix: Codes, contestants: int, cells: NewCells) -> tuple[tuple[Codes, Codes], Index]:
    """Write new cells; return the rows they are in, before and after, and which of these rows each cell is in."""
    row, contestant, code, _ = cells
    starts = np.ones(row.size, bool)
    starts[1:] = row[1:] != row[:-1]
    touched, at = row[starts], np.cumsum(starts) - 1
    whole: Codes = matrix.take(touched, axis=0)  # ten times as fast as indexing
    before = whole[:, :contestants].copy()
    after = before.copy()
    after[at, contestant] = code
    matrix[row, contestant] = code
    return (before, after), at


def _add_sums(benchmark: Benchmark, contestant: Index, code: NDArray[np.uint32], filled: NDArray[np.bool_]) -> None:
    """Add new scores to the sums of each contestant, some of which fill a skipped one; float64 is exact for integers this small."""
    size = len(benchmark.contestants)
    skipped = (code == SKIPPED).astype(np.float64) - filled
    for name, weights in (
        ("total", benchmark.item_values[code].astype(np.float64)),
        ("scored", code >= ZERO),
        ("skipped", skipped),
    ):
        getattr(benchmark, name)[:size] += np.bincount(contestant, weights, size).astype(np.int64)


def _count(benchmark: Benchmark, rows: tuple[Codes, Codes], cells: NewCells, delta: BenchmarkDelta) -> None:
    """Add new scores to the sums of their pairs, where nothing decides."""
    before, after = rows
    row, contestant, code, position = cells
    if row.size == 0 or len(benchmark.contestants) < 2:
        return
    gains = chunk_counts(before, after, row, contestant, code)
    fresh = chosen(gains.pair, np.flatnonzero((benchmark.n[gains.pair] == 0) & (gains.n > 0)))
    for name in ("n", "b", "c"):
        getattr(benchmark, name)[gains.pair] += getattr(gains, name)
    benchmark.met += fresh.size
    if fresh.size:
        _register(benchmark, NewScores.of(before, after, row, contestant, position), fresh, delta)


def _register(benchmark: Benchmark, new: NewScores, pair: Index, delta: BenchmarkDelta) -> None:
    """Give pairs with their first shared item their place in the family, in the order of arrival."""
    # One event may give several pairs their first item: these go by the order in which the models came. Never by rank or score: the
    # family-wise error rate would not hold.
    pair = benchmark.eligible(pair)
    if pair.size:
        pair = pair[np.lexsort((pair, new.first_shared(*pair_members(pair))))]
        benchmark.register(pair)
        delta.registered.append(np.asarray(pair, np.uint32))


# --- the end of runs ----------------------------------------------------------------------------------------------------------------------


def end_runs(
    benchmark: Benchmark, ended: Ended, place: tuple[int, int], delta: BenchmarkDelta, cells: list[Cells]
) -> Fault | None:
    """End runs at an event: what they inherit is copied, and their incomplete items bet; return why there is no such run."""
    # `place` is the offset and index of the event in the log. A run that has ended already is unchanged.
    runs = runs_of(benchmark, ended)
    if isinstance(runs, Fault):
        return runs
    fresh = [run for run in runs if run not in benchmark.ended]
    for run in fresh:
        base = benchmark.epoch_contestant_of.get((benchmark.contestants[run].model, ended.base or 0))
        if ended.base is not None and base is not None:
            _inherit(benchmark, run, base, place, delta, cells)
        if not benchmark.undeclared:
            matrix = benchmark.by_item.matrix(benchmark.scores)
            for steps, new in _in_steps(_at_once(benchmark, place, 1), benchmark.by_item.pending(run)):
                _enter_items(benchmark, steps, matrix, new, delta, can_decide=benchmark.can_decide)
    if fresh:
        benchmark.ended.update(fresh)
        delta.ended = sorted(benchmark.ended)
        judge_ended(benchmark, _at_once(benchmark, place, 1), delta)
    return None


def no_runs(name: str) -> Fault:
    """Return why no run of a benchmark can end that has no scores, whether it is known or not."""
    shown = shorten(name)
    return Refusal("ended", shown, f"{shown} has no scores yet, so no run of it can end; send the scores first")


def runs_of(benchmark: Benchmark, ended: Ended) -> list[int] | Fault:
    """Return the contestants whose runs end, or why there are none."""
    if ended.model is None:
        every = enumerate(benchmark.contestants)
        runs = [k for k, contestant in every if ended.epoch is None or contestant.epoch == ended.epoch]
        if runs:
            return runs
        return no_runs(benchmark.name)._replace(benchmark=benchmark.name)
    model, epoch = shorten(ended.model), ended.epoch or 0
    run = benchmark.epoch_contestant_of.get((ended.model, epoch))
    if run is None:
        reason = f"{model} has no scores in epoch {epoch}, so no run of it can end; correct the name or the epoch"
        return Refusal("model", model, reason, benchmark.name)
    if ended.base is not None and (ended.model, ended.base) not in benchmark.epoch_contestant_of:
        reason = f"{model} has no scores in epoch {ended.base} to inherit; give an epoch that has, or omit base"
        return Refusal("base", str(ended.base), reason, benchmark.name)
    return [run]


def _inherit(
    benchmark: Benchmark, run: int, base: int, place: tuple[int, int], delta: BenchmarkDelta, cells: list[Cells]
) -> None:
    """Copy the cells that a run lacks from an older epoch, in the order of the rows."""
    matrix = benchmark.matrix()
    row = np.flatnonzero((matrix[:, run] == ABSENT) & (matrix[:, base] != ABSENT))
    code = matrix[row, base].astype(np.uint32)
    if not benchmark.undeclared and row.size:
        keep = benchmark.by_item.within_declared(row, run, code)
        row, code = row[keep], code[keep]
    for part in _parts(row.size):
        size = row[part].size
        holds, exceeded = benchmark.assumption_holds, benchmark.exceeded
        batch = _at_once(benchmark, place, size)
        located = Located(batch, row[part], np.full(size, run), code[part], size, {}, holds, exceeded)
        cells.append(_apply(benchmark, located, slice(0, size), delta, holds=holds))


def judge_ended(benchmark: Benchmark, batch: EventBatch, delta: BenchmarkDelta) -> None:
    """Judge the pairs of ended runs with nothing missing, if that was declared ignorable."""
    ignorable = benchmark.spec.missing == "ignorable" and benchmark.spec.order.policy != "trusted"
    if not ignorable or not benchmark.can_decide or len(benchmark.ended) < 2:
        return
    found = loop_of(benchmark).judge(benchmark.ended_flags(), ignored=True)
    announce_closed(benchmark, batch, found, delta, ignored=True)


def _parts(size: int) -> list[slice]:
    return [slice(start, start + CHUNK_CELLS) for start in range(0, size, CHUNK_CELLS)]


def _at_once(benchmark: Benchmark, place: tuple[int, int], size: int) -> EventBatch:
    """Return a batch of steps that one event of the log takes."""
    return EventBatch.at(benchmark.name, *place, size)


def record_cells(benchmark: Benchmark, delta: BenchmarkDelta, parts: list[Cells], *, widened: bool) -> None:
    """Add new cells to the delta, in the order of the store; or the whole matrix if its codes became wider."""
    delta.width = benchmark.width
    if widened:
        delta.columns = np.ascontiguousarray(benchmark.matrix().T, dtype=np.uint32)
    elif parts:
        row, contestant, code, fills = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.lexsort((row, contestant))
        # A score may have filled a skip of the same chunk: the last one of a key is stored, and the first one met what was stored.
        last = np.ones(order.size, bool)
        last[:-1] = (np.diff(row[order]) != 0) | (np.diff(contestant[order]) != 0)
        filled = order[np.concatenate([[True], last[:-1]]) & fills[order]]
        if filled.size:
            delta.filled = row[filled], contestant[filled]
        order = order[last]
        delta.cells = (row[order].astype(np.int32), contestant[order].astype(np.int32), code[order].astype(np.uint32))

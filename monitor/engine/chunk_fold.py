"""The fold of a partition: (state, chunk of records) -> (state, changes). No I/O, no clock."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import zip_longest
from math import inf
from typing import Any, Final

import msgspec

from monitor.engine.budget import in_log_order, may_exceed, usage_of
from monitor.engine.declarations import redeclare, refusal, under_version, with_late_parts
from monitor.engine.decoder import (
    BoardChanged,
    Declared,
    Decoder,
    FileLine,
    Released,
    Republished,
    RunEnded,
    SpanRead,
    SpanSkipped,
    Step,
    Unreadable,
    contained,
    dead_letter,
)
from monitor.engine.fold.battles import end_battles, fold_battles
from monitor.engine.fold.locate import locate
from monitor.engine.fold.runs import fold_runs, mark_runs, no_sentinel
from monitor.engine.fold.scores import Cells, end_runs, fold_located, judge_ended, no_runs, no_scores, record_cells
from monitor.engine.latch.changes import invalidate, withdraw
from monitor.engine.limits import NOTHING, Limits, Usage, benchmark_fault
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.boards import Boards
from monitor.engine.state.changes import BenchmarkDelta, DeletedBoard, Delta, record_digest
from monitor.engine.state.pairs.counts import CHUNK_CELLS
from monitor.engine.state.quarantine import Quarantine, crash_reason
from monitor.engine.state.restore import restore_benchmark
from monitor.engine.state.stored import StoredState
from monitor.words.order import DELETED, UNDONE
from schemas.records.chunks import Chunk, DeadLetter, Gap, Misrouted, Source
from schemas.records.columns import EventBatch, EventList, JoinedEvents
from schemas.records.declaration import Declaration, Provenance, Spec
from schemas.records.decode import check_object, decode_records
from schemas.records.events import Ended, EventFields
from schemas.records.names import name_fault
from schemas.records.operations import BoardChange
from schemas.records.packed import WIDE
from schemas.records.reading import Readings
from schemas.records.run_columns import ItemColumns
from schemas.records.text import Fault, Refusal, shorten
from schemas.results.assumptions import Seed

PIECE_RECORDS: Final = 6_000
_PIECE_BYTES: Final = 1_500_000
"""Records, and bytes of them, that are decoded and folded at a time. Many small pieces cost more than events that leave the cache."""
_BOARDS: Final = 8
"""A piece of 16 benchmarks is twice as large as others, of 24 three times: each has a cost of its own in it, however few its events."""
_MOST_PIECES: Final = 4
"""A piece of many benchmarks may have four times as many records as others: as many as a chunk from Kafka."""
_PIECE_CHANGES: Final = 150_000_000
"""Bytes of a piece times its contestants: more could bring many verdict changes at once."""
_WIDE_PIECE_BYTES: Final = 25_000_000  # bytes of a piece of a wide benchmark, times its contestants
_WAITING_PIECE_BYTES: Final = 6_000_000  # the same where one event can decide what many others before it have brought
_FEW_NEW: Final = 50_000  # so few pairs without a shared item take no longer than others
_MOST_LOST: Final = 10_000
"""Items of rejected lines that are kept by name, for each file and benchmark: their names are stored with each chunk that has more."""
LOSE_ITEMS: Final = frozenset({"unit", "score"})
"""The fields for which an event is refused that is of an item of the benchmark: other ids and other clusters are none of it."""
_COUNTERS: Final = ("records", "rejected", "skipped_spans", "misrouted", "republished")
_LATER_FIELDS: Final[dict[str, Any]] = {  # declared fields that are stored only where they are not the default
    "goal": None,
    "anchor": None,
    "aliases": {},
    "drift": None,
    "missing": "worst",
    "nulls": "filled",
    "known": False,
    "declared_late": (),
    "provenance": Provenance.model_construct(),
    "version": 1,
}


class Partition:
    """All benchmarks of one partition, and the offset up to which its log is folded."""

    def __init__(
        self, number: int = 0, limits: Limits | None = None, owner: Callable[[str], int] | None = None
    ) -> None:
        self.number = number
        self.off = 0
        self.owner = owner  # maps a benchmark's name to its partition; None: this partition owns all
        self.limits = limits or Limits()
        self.benchmarks: dict[str, Benchmark] = {}
        self.usage = NOTHING  # what the benchmarks take of the budgets together
        self.sources: dict[str, Source] = {}
        self.origins: dict[int, tuple[int, int]] = {}
        self.gaps: list[Gap] = []  # records that the log no longer held when they were to be folded
        self.counters = dict.fromkeys(_COUNTERS, 0)
        self.quarantine = Quarantine()  # the benchmarks that are set aside, and those with unreadable records
        self.columns = ItemColumns()  # the item lists of the last run messages
        self.boards = Boards()  # the boards that are archived, deleted, begun again or renamed
        self.folded_together: set[str] = set()  # the benchmarks of the last piece
        self.readings = Readings(most=_MOST_LOST)
        """What reading watched files has shown besides scores, and the declarations that were refused."""

    @classmethod
    def restore(
        cls, stored: StoredState, limits: Limits | None = None, owner: Callable[[str], int] | None = None
    ) -> "Partition":
        """Return the state that the store holds."""
        self = cls(stored.partition, limits, owner)
        self.off = stored.off
        self.sources = dict(stored.sources)
        self.origins = dict(stored.origins)
        self.gaps = list(stored.gaps)
        self.counters |= stored.counters
        self.benchmarks = {benchmark.name: restore_benchmark(benchmark) for benchmark in stored.benchmarks}
        self.usage = reduce(Usage.plus, map(usage_of, self.benchmarks.values()), NOTHING)
        self.quarantine = Quarantine(stored.suspects)
        for suspect in self.quarantine:
            self._note_quarantine(suspect.benchmark)
        self.boards = Boards(stored.boards)
        for entry in self.boards:
            self._note_board(entry.benchmark)
        self.readings = Readings(stored.readings, _MOST_LOST)
        self.note_readings()
        return self

    def fold(self, chunk: Chunk) -> Delta:
        """Fold a chunk that starts at the offset of the state, and return the changes to store; see `ChunkFold`."""
        folding = ChunkFold(self, chunk)
        while not folding.is_whole:
            folding.step()
        return folding.finish()

    def piece_size(self) -> tuple[int, float]:
        """Return how many records, and bytes of them, to decode and fold next, given the benchmarks of the piece before."""
        # Only of many benchmarks may these be more than `PIECE_RECORDS`.
        boards = [each for name in self.folded_together if (each := self.benchmarks.get(name)) is not None]
        times = max(1, min(len(boards) // _BOARDS, _MOST_PIECES))
        return times * PIECE_RECORDS, min([times * _PIECE_BYTES, *map(_most_bytes, boards)])

    def may_be_wide(self, piece: Chunk) -> bool:
        """Return whether many records of a piece are of one benchmark of which so many could bring too many changes at once."""
        # They are decoded for it, which takes a hundredth of their fold where they are of many benchmarks.
        events = contained(decode_records, piece.records)
        if not isinstance(events, list):
            return True
        (name, count), *_ = Counter(event.benchmark for event in events).most_common(1)
        if count <= PIECE_RECORDS:
            return False
        known = self.benchmarks.get(name)
        models = {event.model for event in events if event.benchmark == name}
        return len(models) + (0 if known is None else len(known.contestants)) > WIDE

    def skip(self, end: int) -> Delta:
        """Continue at `end`, because the log no longer holds what comes before; return the changes to store."""
        # Every benchmark, also one that begins later, has the gap from then on: it may have lost scores or declarations. Of watched files
        # nothing is noted that matches, so that they are read again from their start: what is there already counts as duplicates.
        folding = _Folding(self, end)
        gap = Gap(self.number, self.off, end)
        self.gaps = folding.delta.gaps = [*self.gaps, gap]
        self.sources |= {path: source._replace(prefix="") for path, source in self.sources.items()}
        folding.delta.sources |= self.sources
        for benchmark in self.benchmarks.values():
            benchmark.gaps = [*benchmark.gaps, gap]
            folding.touch(benchmark)
        return folding.finish()

    def set_aside(self, chunk: Chunk, error: BaseException) -> bool:
        """Set the benchmarks of a chunk's only record aside, which crashes the fold; return False if it names none that is not yet."""
        # Such a crash may depend on more than the log: on the program, or on the machine. So the decision is stored with the next chunk
        # that is folded, and holds from this record on.
        decoder = Decoder(None if self.owner is None else self.is_ours, self.sources, self.origins)
        names = set()
        for step in decoder.steps(chunk):
            match step:
                case EventBatch():
                    names.add(step.benchmark)
                case Declared():
                    names.add(step.declaration.declare)
                case RunEnded():
                    names.add(step.ended.ended)
        fresh = [name for name in sorted(names) if self.quarantine.of(name) is None]
        for name in fresh:
            self.quarantine.impose(name, chunk.offsets[0], crash_reason(error, chunk.offsets[0]))
        return bool(fresh)

    def pass_over(self, chunk: Chunk, error: BaseException) -> Delta:
        """Reject a chunk's only record, which crashes the fold even without its benchmarks; return the changes to store."""
        folding = _Folding(self, chunk.end)
        reason = f"{crash_reason(error, chunk.offsets[0])}; report it with the record"
        fault = Fault("record", type(error).__name__, reason)
        folding.take_letter(dead_letter(fault, chunk.offsets[0], 0, chunk.records[0]))
        self.counters["records"] += 1
        delta = folding.finish()
        delta.last = (chunk.offsets[0], record_digest(chunk.records[0]))
        return delta

    def _note_quarantine(self, name: str) -> None:
        """Let a benchmark show that it is set aside, or that it no longer is."""
        benchmark = self.benchmarks.get(name)
        suspect = self.quarantine.of(name)
        if benchmark is not None and benchmark.quarantine != suspect:
            benchmark.quarantine = suspect
            benchmark.revision += 1

    def _note_board(self, name: str) -> None:
        """Let a benchmark show what was done with its board."""
        benchmark, entry = self.benchmarks.get(name), self.boards.of(name)
        if benchmark is not None and benchmark.board != entry:
            benchmark.board, benchmark.generation = entry, 1 if entry is None else entry.generation
            benchmark.revision += 1

    def note_readings(self) -> None:
        """Let every benchmark show what reading files has found."""
        with_results = {name for name, benchmark in self.benchmarks.items() if benchmark.contestants}
        for name, reading in self.readings.of_benchmarks(self.benchmarks, with_results):
            benchmark = self.benchmarks[name]
            if reading != benchmark.reading:
                benchmark.reading = reading
                benchmark.revision += 1

    def fold_events(
        self,
        declarations: Sequence[Declaration],
        events: Sequence[EventFields],
        rejected: Sequence[str | None],
        end: int,
        places: Sequence[FileLine] = (),
        ended: Sequence[Ended] = (),
    ) -> Delta:
        """Fold declarations, events and ends of runs, read straight from files; offsets are counted from the current one up to `end`."""
        # `rejected` has the benchmark of each rejected record, `places` the file and line of each declaration.
        folding = _Folding(self, end, in_log=False)
        for declaration, place in zip_longest(declarations, places):
            folding.take(folding.decoder.declared(declaration, self.off, 0, place))
        offset = self.off
        for part in events.parts if isinstance(events, JoinedEvents) else [events]:
            for step in folding.decoder.batches(part, range(offset, offset + len(part))):
                folding.take(step)
            offset += len(part)
        folding.flush()
        for each in ended:
            folding.take(folding.decoder.run_ended(each, end - 1, len(events)))
        for benchmark in rejected:
            folding.count_reject(benchmark)
        return folding.finish()

    def end_all_runs(self, incomplete: Mapping[str, str] | None = None) -> Delta:
        """End every run, since nothing more will come; those of `incomplete` benchmarks go on, for the reason given there."""
        for name, reason in (incomplete or {}).items():
            if name in self.benchmarks:
                self.benchmarks[name].incomplete = reason
        ended = [
            Ended.model_construct(ended=name)
            for name, benchmark in self.benchmarks.items()
            if benchmark.contestants and not benchmark.incomplete and not benchmark.reading.refused
        ]
        return self.fold_events([], [], [], self.off + 1, ended=ended)

    def assume_ends(self, incomplete: Mapping[str, str] | None = None) -> None:
        """End every run for a report, although the log may still bring scores of it."""
        before = {name: set(benchmark.ended) for name, benchmark in self.benchmarks.items()}
        self.end_all_runs(incomplete)
        for name, benchmark in self.benchmarks.items():
            benchmark.assumed_ended = benchmark.ended - before[name]

    def board_fault(self, change: BoardChange) -> Fault | None:
        """Return why a change of a board is refused, or None."""
        benchmark = self.benchmarks.get(change.benchmark)
        if change.board == "undo" and self.quarantine.of(change.benchmark) is not None:
            reason = f"{shorten(change.benchmark)} is set aside; release it first, with `rankwatch quarantine release`"
            return Refusal("board", change.board, reason, change.benchmark)
        return self.boards.fault(change, None if benchmark is None else benchmark.model_names())

    def limits_beside(self, benchmark: Benchmark) -> Limits:
        """Return the limits of one benchmark, given what the others take of the budgets."""
        return replace(self.limits, others=self.usage.plus(usage_of(benchmark), -1))

    def is_ours(self, benchmark: str) -> bool:
        """Return whether this partition owns a benchmark."""
        return self.owner is None or self.owner(benchmark) == self.number


class ChunkFold:
    """The fold of a chunk, a piece of it after the other: after each the state can be read, and `finish` returns the changes.

    It may end after any piece. If a piece raises, if it never ends, or if the store refuses the changes, drop the state and load it again.
    """

    def __init__(self, partition: Partition, chunk: Chunk) -> None:
        assert chunk.start == partition.off, "a chunk is folded exactly where the state ends"
        self._partition, self._chunk, self._begins, self._count = partition, chunk, chunk.begins(), 0
        self._folding = _Folding(partition, chunk.end)

    @property
    def is_whole(self) -> bool:
        """Whether all of the chunk is folded."""
        return self._count == len(self._chunk.records)

    def step(self) -> int:
        """Fold the next piece; return how many verdict changes there are so far."""
        partition, folding = self._partition, self._folding
        piece = self._chunk.piece(self._begins, self._count, *partition.piece_size())
        if len(piece.records) > PIECE_RECORDS and partition.may_be_wide(piece):
            piece = self._chunk.piece(self._begins, self._count, PIECE_RECORDS, inf)
        folding.folded = set()
        for step in folding.decoder.steps(piece):
            folding.take(step)
        folding.flush()
        partition.folded_together = folding.folded
        self._count += len(piece.records)
        return folding.change_count()

    def finish(self) -> Delta:
        """Move the state to the end of the last piece, and return the changes to store: those of `Delta.records` records."""
        if self._chunk.lost:
            return self._partition.skip(self._chunk.end)
        folded, _ = self._chunk.cut(self._count)
        self._partition.counters["records"] += self._count
        self._folding.delta.off, self._folding.delta.records = folded.end, self._count
        delta = self._folding.finish()
        if self._count:
            delta.last = (folded.offsets[-1], record_digest(folded.records[-1]))
        return delta


def _most_bytes(benchmark: Benchmark) -> float:
    """Return how large a piece with a benchmark may be, so that few verdict changes, and few new pairs, come at once."""
    policy, contestants = benchmark.spec.order.policy, max(1, len(benchmark.contestants))
    if policy == "none" and benchmark.pairs - benchmark.met <= _FEW_NEW:
        return inf
    if contestants <= WIDE:
        return _PIECE_CHANGES // contestants
    return (_WAITING_PIECE_BYTES if policy in {"committed", "completion"} else _WIDE_PIECE_BYTES) // contestants


class _Folding:
    """The fold of one chunk: takes its steps, and collects the delta."""

    def __init__(self, partition: Partition, end: int, *, in_log: bool = True) -> None:
        self.partition, self.in_log = partition, in_log
        self.decoder = Decoder(
            None if partition.owner is None else partition.is_ours,
            partition.sources,
            partition.origins,
            partition.columns,
            gapped=bool(partition.gaps),
        )
        self.delta = Delta(partition=partition.number, expected=partition.off, off=end)
        self.pending: dict[str, list[EventBatch]] = {}
        self.folded: set[str] = set()  # the benchmarks of the piece
        self.pending_rejects: list[str] = []
        """Benchmarks with pending events: their rejects count after these, however the log is chunked."""
        self.deltas: dict[str, BenchmarkDelta] = {}
        self.cells: dict[str, list[Cells]] = {}
        self.widths: dict[str, int] = {}
        self.paths: dict[int, str] = {}  # the file of each span, by its place in the log

    def take(self, step: Step) -> None:
        """Apply a step; events wait for `flush`."""
        if self.partition.quarantine and self._is_set_aside(step):
            return
        match step:
            case EventBatch():
                self.pending.setdefault(step.benchmark, []).append(step)
            case Declared():
                self._declare(step)
            case RunEnded():
                self._end_runs(step)
            case Unreadable(letter, benchmark):
                if benchmark is not None and self.partition.boards.refusal(benchmark) is None:
                    self.partition.quarantine.unreadable(benchmark, letter.offset)
                self.take_letter(letter)
            case DeadLetter():
                self.take_letter(step)
            case BoardChanged():
                self._change_board(step)
            case SpanRead():
                self._read(step)
            case _:
                self._note(step)

    def _note(self, step: Step) -> None:
        """Take over what the log shows besides events."""
        partition, delta = self.partition, self.delta
        match step:
            case Misrouted():
                delta.misrouted.append(step)
                partition.counters["misrouted"] += 1
            case Released(benchmark):
                partition.quarantine.release(benchmark)
            case SpanSkipped():
                partition.counters["skipped_spans"] += 1
            case Republished(origin):
                partition.origins[origin.partition] = delta.origins[origin.partition] = (origin.offset, origin.place)
                partition.counters["republished"] += 1

    def _read(self, step: SpanRead) -> None:
        """Move the position of a watched file on. Verdicts end here if the file shows that none can rest on the scores."""
        partition, found = self.partition, step.found
        self.paths[step.offset] = step.path
        partition.sources[step.path] = self.delta.sources[step.path] = step.source
        held = {name for each in step.rejected if "above" in each and (name := each.get("benchmark")) is not None}
        held |= set() if found is None else found.differing.keys()
        if held:
            self.flush()
        partition.readings.read(
            step.path,
            step.source.generation,
            continued=step.continued,
            results=step.results,
            rejects=step.rejected,
            found=found,
            damaged=step.damaged,
        )
        for name in sorted(held & partition.benchmarks.keys()):
            benchmark = partition.benchmarks[name]
            held_before = not benchmark.assumption_holds
            self._note_reading(benchmark)
            if not held_before:
                delta, batch = self.touch(benchmark), EventBatch.at(name, step.offset, 0)
                invalidate(benchmark, batch, 0, benchmark.reading.hold, delta)

    def _is_set_aside(self, step: Step) -> bool:
        """Return whether a step is of a benchmark in quarantine: it is counted, and stays in the log."""
        takes = self.partition.quarantine.takes
        match step:
            case EventBatch():
                return takes(step.benchmark, len(step.events), step.offsets[-1])
            case Declared():
                return takes(step.declaration.declare, 1, step.offset)
            case RunEnded():
                return takes(step.ended.ended, 1, step.offset)
            case Unreadable(letter, str(benchmark)) if self.partition.quarantine.of(benchmark) is not None:
                return takes(benchmark, 1, letter.offset)  # no flood of letters is kept
        return False

    def flush(self) -> None:
        """Fold pending events, then count pending rejects."""
        pending, self.pending = self.pending, {}
        self.folded |= pending.keys()
        joined = [EventBatch.joined(batches) for batches in pending.values()]
        partition = self.partition
        tight = may_exceed(partition.benchmarks, partition.usage, joined, partition.limits)
        for batch in in_log_order(joined) if tight else joined:
            self._fold(batch)
        rejects, self.pending_rejects = self.pending_rejects, []
        for name in rejects:
            self.count_reject(name)

    def _fold(self, batch: EventBatch) -> None:
        for part in batch.by_kind():
            self._fold_kind(part)

    def _fold_kind(self, batch: EventBatch) -> None:
        benchmark = self._benchmark(batch.benchmark)
        if isinstance(benchmark, Fault):
            refused = [(position, benchmark) for position in range(len(batch.events))]
        else:
            delta = self.touch(benchmark)
            limits = self.partition.limits_beside(benchmark)
            if benchmark.sentinel is not None:
                refused = fold_runs(benchmark, benchmark.sentinel, batch, delta, limits, self.paths)
            elif batch.events.has_battles():
                refused = fold_battles(benchmark, batch, delta, limits)
            else:
                refused = self._fold_scores(benchmark, batch, delta, limits)
            self.partition.usage = limits.others.plus(usage_of(benchmark))
        for k, fault in refused:
            raw = msgspec.json.encode(batch.events[k])
            self.take_letter(dead_letter(fault, batch.offsets[k], batch.indices[k], raw, self._file(batch.offsets[k])))
            path = self.paths.get(batch.offsets[k])
            if path is not None:
                item = batch.events[k].item_id if fault.field in LOSE_ITEMS else None
                self.partition.readings.reject(path, batch.benchmark, item)

    def _fold_scores(
        self, benchmark: Benchmark, batch: EventBatch, delta: BenchmarkDelta, limits: Limits
    ) -> list[tuple[int, Fault]]:
        """Fold scores of items, in pieces; return the position and fault of each refused event."""
        if benchmark.holds_battles:
            return [(position, no_scores(benchmark)) for position in range(len(batch.events))]
        refused: list[tuple[int, Fault]] = []
        for start in range(0, len(batch.events), CHUNK_CELLS):
            located, faults = locate(benchmark, batch.part(start, start + CHUNK_CELLS), delta, limits)
            refused += [(start + position, fault) for position, fault in faults]
            fold_located(benchmark, located, delta, self.cells[benchmark.name])
        benchmark.counters["events"] += len(batch.events) - len(refused)
        return refused

    def _benchmark(self, name: str) -> Benchmark | Fault:
        """Return a benchmark, new if need be, or why there can be none of that name."""
        partition = self.partition
        refusal = partition.boards.refusal(name)
        if refusal is not None:
            return refusal
        benchmark = partition.benchmarks.get(name)
        if benchmark is not None:
            return benchmark
        if name_fault(name):
            checked = check_object({"benchmark": name, "item_id": "1", "model": "1", "score": 0})
            if isinstance(checked, Fault):
                return checked
        fault = benchmark_fault(name, len(partition.benchmarks), partition.limits)
        if fault is not None:
            return fault
        benchmark = partition.benchmarks[name] = Benchmark(name)
        benchmark.gaps = partition.gaps
        partition._note_board(name)  # noqa: SLF001 - one with its partition
        if partition.readings and self.in_log:
            self._note_reading(benchmark)
        return benchmark

    def _note_reading(self, benchmark: Benchmark) -> None:
        """Let a benchmark show what reading files has found until now; at the end of the chunk all do."""
        readings = self.partition.readings.of_benchmarks([benchmark.name], self.partition.benchmarks)
        ((_, benchmark.reading),) = readings
        benchmark.revision += 1

    def touch(self, benchmark: Benchmark) -> BenchmarkDelta:
        """Return the changes of a benchmark, empty ones the first time."""
        delta = self.deltas.get(benchmark.name)
        if delta is None:
            delta = self.deltas[benchmark.name] = benchmark.delta()
            self.cells[benchmark.name] = []
            self.widths[benchmark.name] = benchmark.width
        return delta

    def _declare(self, step: Declared) -> None:
        """Apply a declaration, or reject it if it would change what a verdict depends on."""
        self.flush()
        benchmark, spec = self._benchmark(step.declaration.declare), step.declaration.spec()
        fault = benchmark if isinstance(benchmark, Fault) else refusal(benchmark, spec)
        if isinstance(benchmark, Benchmark) and fault is None:
            delta = self.touch(benchmark)
            spec = with_late_parts(benchmark, spec)
            if benchmark.counters["events"]:
                # The second log of a harness declares the item count again, and an alias is permanent.
                former = benchmark.spec
                update = {"aliases": {**former.aliases, **spec.aliases}, "version": max(former.version, spec.version)}
                spec = spec.model_copy(update=update)
            if benchmark.counters["events"] and spec.version > benchmark.spec.version:
                batch = EventBatch.at(benchmark.name, step.offset, step.place)
                old, benchmark = benchmark, restore_benchmark(under_version(benchmark, spec))
                redeclare(old, benchmark, batch, delta)
                judge_ended(benchmark, batch, delta)
                self.partition.benchmarks[benchmark.name] = benchmark
            else:
                benchmark.declare(spec)
            if spec.order.policy == "committed" and benchmark.seed is None:
                benchmark.seed = delta.seed = self._seed(step)
            self._keep_spec(spec, delta)
        if fault is not None:
            if isinstance(benchmark, Benchmark) and spec.provenance != Provenance.model_construct():
                # The scores come all the same, and what is known of them is no choice.
                benchmark.spec = benchmark.spec.model_copy(
                    update={"provenance": benchmark.spec.provenance | spec.provenance}
                )
                self._keep_spec(benchmark.spec, self.touch(benchmark))
            raw = step.declaration.model_dump_json().encode()
            if isinstance(benchmark, Benchmark):
                path, line = step.source or (None, None)
                self.partition.readings.refuse(benchmark.name, step.offset if line is None else line, path, fault)
            self.take_letter(dead_letter(fault, step.offset, step.place, raw, step.source))

    @staticmethod
    def _keep_spec(spec: Spec, delta: BenchmarkDelta) -> None:
        """Store a declaration."""
        unused = {name for name, default in _LATER_FIELDS.items() if getattr(spec, name) == default}
        delta.spec = spec.model_dump_json(exclude=unused)

    def _seed(self, step: Declared) -> Seed | None:
        """Return the place of a declaration: in the log, or in the file that is read without one; None for one of neither."""
        if self.in_log:
            return Seed(step.offset)
        path, line = step.source or ("", None)
        return None if line is None else Seed(line, path)

    def _end_runs(self, step: RunEnded) -> None:
        """End runs, or reject the record if there are none."""
        self.flush()
        benchmark = self.partition.benchmarks.get(step.ended.ended)
        fault: Fault | None = self.partition.boards.refusal(step.ended.ended)
        if benchmark is None:
            fault = fault or (no_runs if step.ended.state is None else no_sentinel)(step.ended.ended)
        elif fault is None and benchmark.sentinel is not None:
            limits = self.partition.limits_beside(benchmark)
            fault = mark_runs(benchmark, benchmark.sentinel, step, self.touch(benchmark), limits)
            self.partition.usage = limits.others.plus(usage_of(benchmark))
        elif fault is None and step.ended.state is not None:
            fault = no_sentinel(step.ended.ended)
        elif fault is None:
            delta = self.touch(benchmark)
            place = step.offset, step.place
            before = set(benchmark.ended)
            fault = end_runs(benchmark, step.ended, place, delta, self.cells[benchmark.name])
            if not benchmark.undeclared:
                end_battles(benchmark, benchmark.ended - before, place, delta)
        if fault is not None:
            raw = step.ended.model_dump_json(exclude_none=True).encode()
            self.take_letter(dead_letter(fault, step.offset, step.place, raw, self._file(step.offset)))

    def _change_board(self, step: BoardChanged) -> None:
        """Change a board, or reject the record if the state of the board does not allow that."""
        self.flush()
        change, partition = step.change, self.partition
        benchmark = partition.benchmarks.get(change.benchmark)
        fault = partition.board_fault(change)
        if fault is not None:
            self.take_letter(dead_letter(fault, step.offset, 0, step.record))
            return
        decided, scored = 0, False
        late: tuple[str, ...] = ()
        if change.board in {"delete", "undo"} and benchmark is not None:
            scored, late = benchmark.counters["events"] > 0, benchmark.spec.declared_late
            reason = DELETED if change.board == "delete" else UNDONE
            decided = self._delete(benchmark, step.offset, reason)
            if change.board == "delete":
                partition.readings.forget(benchmark.name)
        partition.boards.apply(change, step.offset, decided, scored=scored, late=late)
        partition._note_board(change.benchmark)  # noqa: SLF001 - one with its partition

    def _delete(self, benchmark: Benchmark, offset: int, reason: str) -> int:
        """Withdraw the verdicts of a benchmark and drop it; return the number of family-wise decisions that held."""
        delta = self.touch(benchmark)
        decided = withdraw(benchmark, EventBatch(benchmark.name, EventList([]), [offset], [0]), delta, reason)
        name, partition = benchmark.name, self.partition
        del partition.benchmarks[name], self.deltas[name], self.cells[name], self.widths[name]
        partition.usage = partition.usage.plus(usage_of(benchmark), -1)
        partition.quarantine.release(name)
        self.delta.deleted.append(DeletedBoard(benchmark.key, name, len(benchmark.contestants), delta.changes))
        return decided

    def _file(self, offset: int) -> FileLine | None:
        """Return the file that a record of the log was read from; a span holds no line of its events."""
        path = self.paths.get(offset)
        return None if path is None else (path, None)

    def take_letter(self, letter: DeadLetter) -> None:
        """Keep a dead letter, and count it."""
        self.delta.dead_letters.append(letter)
        self.count_reject(letter.benchmark)

    def count_reject(self, name: str | None) -> None:
        """Count a rejected record in its benchmark, or in the partition where that is unknown."""
        if name in self.pending:
            assert name is not None
            self.pending_rejects.append(name)
            return
        benchmark = self.partition.benchmarks.get(name) if name is not None else None
        if benchmark is None:
            self.partition.counters["rejected"] += 1
        else:
            self.touch(benchmark)
            benchmark.counters["rejected"] += 1

    def change_count(self) -> int:
        """Return how many verdict changes there are so far."""
        return sum(len(delta.changes) for delta in self.deltas.values())

    def finish(self) -> Delta:
        """Move the state to the end of the chunk, and return the changes."""
        for name, delta in self.deltas.items():
            benchmark = self.partition.benchmarks[name]
            record_cells(benchmark, delta, self.cells[name], widened=benchmark.width != self.widths[name])
            delta.counters = dict(benchmark.counters)
            if benchmark.sentinel is not None:
                delta.run_lines, delta.run_scores = benchmark.sentinel.taken()
                delta.run_state = benchmark.sentinel.dump()
            delta.arrival = benchmark.arrival.changed()
            delta.conflicts = benchmark.conflicts.changed()
            delta.gaps = benchmark.gaps or None
            delta.peaks = benchmark.claims["anytime_family"].changed_peaks()
            delta.off = benchmark.off = self.delta.off
            self.delta.benchmarks.append(delta)
        self.delta.counters = dict(self.partition.counters)
        self.delta.suspects = self.partition.quarantine.changed()
        for name in self.delta.suspects:
            self.partition._note_quarantine(name)  # noqa: SLF001 - one with its partition
        self.delta.boards = self.partition.boards.changed()
        if self.in_log:  # of files read at once, after the last one
            self.delta.readings = self.partition.readings.changed()
            if self.delta.readings or (
                self.partition.readings and any(each.contestants for each in self.deltas.values())
            ):
                self.partition.note_readings()
        self.delta.dead_letters.sort(key=lambda letter: (letter.offset, letter.index))
        self.partition.off = self.delta.off
        return self.delta

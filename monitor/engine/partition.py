"""The fold of a partition: (state, chunk of records) -> (state, changes). No I/O, no clock."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Final

import msgspec

from monitor.engine.chunk import Chunk, Origin
from monitor.engine.fold import Batch, Cells, fold_batch, record_cells
from monitor.engine.limits import Limits
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.delta import BenchmarkDelta, DeadLetter, Delta, Misrouted, Source, StoredState
from monitor.engine.state.keys import record_digest
from schemas.decode import Fault, check_object, decode_message, decode_records, read_object
from schemas.events import Declaration, EventFields, Spec
from schemas.packed import decode_packed, decode_packed_loosely
from schemas.text import shorten

_RAW_LENGTH: Final = 2_000
_AT_ONCE: Final = 2_000
"""Records that are decoded and folded at a time: then their events are still in the processor's cache."""

Place = tuple[str, int]
"""A file and a line of it."""

COUNTERS: Final = ("records", "rejected", "skipped_spans", "misrouted", "republished")
FREE_TO_CHANGE: Final = ("power", "margin")
"""What no latch rests on."""


class Partition:
    """All benchmarks of one partition, and how far its log has been folded."""

    def __init__(
        self, number: int = 0, limits: Limits | None = None, owner: Callable[[str], int] | None = None
    ) -> None:
        self.number = number
        self.off = 0
        self.owner = owner
        """From the name of a benchmark to the number of its partition; None: they are all ours."""
        self.limits = limits or Limits()
        self.benchmarks: dict[str, Benchmark] = {}
        self.sources: dict[str, Source] = {}
        self.origins: dict[int, tuple[int, int]] = {}
        self.counters = dict.fromkeys(COUNTERS, 0)

    @classmethod
    def restore(
        cls, stored: StoredState, limits: Limits | None = None, owner: Callable[[str], int] | None = None
    ) -> "Partition":
        """Build the state from what the store holds."""
        self = cls(stored.partition, limits, owner)
        self.off = stored.off
        self.sources = dict(stored.sources)
        self.origins = dict(stored.origins)
        self.counters |= stored.counters
        for benchmark in stored.benchmarks:
            self.benchmarks[benchmark.name] = Benchmark.restore(benchmark)
        return self

    def fold(self, chunk: Chunk) -> Delta:
        """Fold a chunk of records; the chunk has to start where the state ends.

        Returns
        -------
        Delta
            What the store has to write. The state is already changed: if the store refuses, drop the state and load it again.
        """
        assert chunk.start == self.off, "a chunk is folded exactly where the state ends"
        delta = _Folding(self, chunk.end).records(chunk)
        if chunk.records:
            delta.last = (chunk.offsets[-1], record_digest(chunk.records[-1]))
        return delta

    def fold_events(
        self,
        declarations: Sequence[Declaration],
        events: list[EventFields],
        rejected: Sequence[str | None],
        end: int,
        places: Sequence[Place] = (),
    ) -> Delta:
        """Fold events that were read straight from files; their places are counted from the current offset.

        Parameters
        ----------
        declarations : sequence of Declaration
            They hold before the events.
        events : list of EventFields
        rejected : sequence of (str or None)
            The benchmark of each record that could not be read.
        end : int
            The offset behind them.
        places : sequence of (str, int), optional
            File and line of each declaration.
        """
        folding = _Folding(self, end)
        for declaration, place in zip_longest(declarations, places):
            folding.declare(declaration, self.off, 0, place)
        folding.events(events, range(self.off, self.off + len(events)), [0] * len(events))
        folding.flush()
        for benchmark in rejected:
            folding.count_reject(benchmark)
        return folding.finish()


def refusal(benchmark: Benchmark, spec: Spec) -> Fault | None:
    """Say why a benchmark cannot be declared like this any more, or return None."""
    if not benchmark.counters["events"]:
        return None
    changed = [
        name
        for name in Spec.model_fields
        if name not in FREE_TO_CHANGE and getattr(spec, name) != getattr(benchmark.spec, name)
    ]
    if not changed:
        return None
    reason = (
        f"scores of {benchmark.name!r} have already come, so {', '.join(changed)} can no longer be declared: verdicts would "
        "rest on a choice made after seeing data; declare before the first score, under a new name or in a new data directory"
    )
    if "items" in changed:
        reason += (
            "; for runs of different sizes say beforehand what holds: --items, or a rankwatch.toml beside the results"
        )
    found = spec.model_dump_json(include=set(changed), exclude_none=True)
    return Fault(changed[0], shorten(found), reason, benchmark.name)


class _Folding:
    """One chunk on its way into a partition."""

    def __init__(self, partition: Partition, end: int) -> None:
        self.partition = partition
        self.delta = Delta(partition=partition.number, expected=partition.off, off=end)
        self.pending: dict[str, list[Batch]] = {}
        self.waiting: list[str] = []
        """Benchmarks of rejected records whose first events are pending: where a reject counts must not depend on the chunking."""
        self.deltas: dict[str, BenchmarkDelta] = {}
        self.cells: dict[str, list[Cells]] = {}
        self.widths: dict[str, int] = {}

    # --- records ----------------------------------------------------------------------------------------------------------------------

    def records(self, chunk: Chunk) -> Delta:
        """Fold every record in the order of the log."""
        for start in range(0, len(chunk.records), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            offsets, records = chunk.offsets[part], chunk.records[part]
            origins = None if chunk.origins is None else chunk.origins[part]
            events = decode_records(records) if origins is None else None
            if events is not None:
                self.events(events, offsets, [0] * len(events))
            else:
                self._mixed(offsets, records, origins or [None] * len(records))
            self.flush()
        self.partition.counters["records"] += len(chunk.records)
        return self.finish()

    def _mixed(self, offsets: Sequence[int], records: Sequence[bytes], origins: Sequence[Origin | None]) -> None:
        """Read records of which some hold no event, or several, or are copies."""
        plain: list[int] = []
        for k, record in enumerate(records):
            if not self._first_copy(origins[k]):
                continue
            if b'"events"' in record:
                self._plain([offsets[at] for at in plain], [records[at] for at in plain])
                plain = []
                self._packed(offsets[k], record)
            else:
                plain.append(k)
        self._plain([offsets[at] for at in plain], [records[at] for at in plain])

    def _first_copy(self, origin: Origin | None) -> bool:
        """Say whether a record is to be folded: a copy that came before is not. Copies from one partition come in its order."""
        if origin is None:
            return True
        partition = self.partition
        at = (origin.offset, origin.place)
        if at <= partition.origins.get(origin.partition, (-1, -1)):
            return False
        partition.origins[origin.partition] = self.delta.origins[origin.partition] = at
        partition.counters["republished"] += 1
        return True

    def _plain(self, offsets: Sequence[int], records: Sequence[bytes]) -> None:
        """Read records of one event or declaration each: all at once, or one by one when any of them is something else."""
        events = decode_records(records)
        if events is not None:
            self.events(events, offsets, [0] * len(events))
            return
        for offset, record in zip(offsets, records, strict=True):
            self._one(decode_message(record), offset, 0, record)

    def _one(
        self, found: EventFields | Declaration | Fault, offset: int, index: int, raw: bytes, place: Place | None = None
    ) -> None:
        if isinstance(found, Declaration):
            self.declare(found, offset, index, place)
        elif isinstance(found, Fault):
            self.reject(found, offset, index, raw)
        else:
            self.events([found], [offset], [index])

    def _packed(self, offset: int, record: bytes) -> None:
        packed = decode_packed(record)
        if packed is None:
            self._packed_one_by_one(offset, record)
            return
        if packed.item_id is not msgspec.UNSET:  # an event, whatever else it holds
            self._one(decode_message(record), offset, 0, record)
            return
        source = packed.source
        if source is not None:
            reached = Source(source.generation, packed.end or 0, source.prefix, source.line)
            if not self._advance(reached, source.path, packed.start):
                return
        for declared, line in zip_longest(packed.declare, packed.declared_at[: len(packed.declare)], fillvalue=0):
            place = (source.path, line) if source is not None and line else None
            self._one(check_object(declared), offset, 0, record, place)
        events = packed.events
        self.events(events, [offset] * len(events), range(len(events)))
        for index, reject in enumerate(packed.rejected):
            letter = DeadLetter(
                offset,
                len(events) + index,
                reject["source"],
                reject["line"],
                reject["field"],
                reject["found"],
                reject["reason"],
                reject.get("benchmark"),
                reject.get("raw", "")[:_RAW_LENGTH],
            )
            self._dead(letter)

    def _packed_one_by_one(self, offset: int, record: bytes) -> None:
        """Read what is good of a packed record with a bad event in it."""
        data = decode_packed_loosely(record)
        if data is None:
            self._one(decode_message(record), offset, 0, record)
            return
        declared = data.get("declare")
        for item in declared if isinstance(declared, list) else ():
            self._one(check_object(item), offset, 0, repr(item).encode())
        for index, item in enumerate(data["events"]):
            self._one(read_object(item), offset, index, repr(item).encode())

    def _advance(self, source: Source, path: str, start: int | None) -> bool:
        """Take a span of a watched file if it begins where the last one ended; otherwise it was read before and is skipped whole."""
        partition = self.partition
        known = partition.sources.get(path)
        continues = known is not None and (source.generation, start) == (known.generation, known.position)
        begins = start == 0 and (known is None or source.generation > known.generation)
        if not continues and not begins:
            partition.counters["skipped_spans"] += 1
            return False
        partition.sources[path] = self.delta.sources[path] = source
        return True

    # --- benchmarks -------------------------------------------------------------------------------------------------------------------

    def events(self, events: list[EventFields], offsets: Sequence[int], indices: Sequence[int]) -> None:
        """Sort events by benchmark, keeping their order."""
        names = {event.benchmark for event in events}
        if self.partition.owner is not None:
            foreign = {name for name in names if not self._ours(name)}
            if foreign:
                events, offsets, indices = self._turn_away(foreign, events, offsets, indices)
                names -= foreign
        if len(names) == 1:
            self.pending.setdefault(names.pop(), []).append(Batch(events, offsets, indices))
            return
        places: dict[str, list[int]] = {}
        for place, event in enumerate(events):
            places.setdefault(event.benchmark, []).append(place)
        for name, of in places.items():
            run = Batch(
                [events[place] for place in of], [offsets[place] for place in of], [indices[place] for place in of]
            )
            self.pending.setdefault(name, []).append(run)

    def _ours(self, benchmark: str) -> bool:
        partition = self.partition
        return partition.owner is None or partition.owner(benchmark) == partition.number

    def _turn_away(
        self, foreign: set[str], events: list[EventFields], offsets: Sequence[int], indices: Sequence[int]
    ) -> tuple[list[EventFields], list[int], list[int]]:
        """Put the events of other partitions' benchmarks aside, and return the rest."""
        kept: tuple[list[EventFields], list[int], list[int]] = ([], [], [])
        for event, offset, index in zip(events, offsets, indices, strict=True):
            if event.benchmark in foreign:
                self.misrouted(offset, event.benchmark, msgspec.json.encode(event))
            else:
                for column, value in zip(kept, (event, offset, index), strict=True):
                    column.append(value)  # type: ignore[attr-defined]
        return kept

    def misrouted(self, offset: int, benchmark: str, payload: bytes) -> None:
        """Have a record published again to the partition that owns its benchmark."""
        put_aside = self.delta.misrouted
        place = put_aside[-1].place + 1 if put_aside and put_aside[-1].offset == offset else 0
        put_aside.append(Misrouted(offset, place, benchmark, payload))
        self.partition.counters["misrouted"] += 1

    def flush(self) -> None:
        """Fold what is pending."""
        pending, self.pending = self.pending, {}
        for name, runs in pending.items():
            self._fold(name, Batch.joined(runs))
        waiting, self.waiting = self.waiting, []
        for name in waiting:
            self.count_reject(name)

    def _fold(self, name: str, batch: Batch) -> None:
        benchmark, fault = self._benchmark(name)
        if benchmark is None:
            for event, offset, index in zip(batch.events, batch.offsets, batch.indices, strict=True):
                self.reject(fault, offset, index, msgspec.json.encode(event))
            return
        delta = self._delta(benchmark)
        refused = fold_batch(benchmark, batch, delta, self.partition.limits, self.cells[name])
        for position, reason in refused:
            self.reject(
                reason, batch.offsets[position], batch.indices[position], msgspec.json.encode(batch.events[position])
            )

    def _benchmark(self, name: str) -> tuple[Benchmark, None] | tuple[None, Fault]:
        partition = self.partition
        benchmark = partition.benchmarks.get(name)
        if benchmark is not None:
            return benchmark, None
        checked = check_object({"benchmark": name, "item_id": "1", "model": "1", "score": 0})
        if isinstance(checked, Fault):
            return None, checked
        if len(partition.benchmarks) >= partition.limits.benchmarks:
            return None, Fault(
                "benchmark", shorten(name), f"there are {partition.limits.benchmarks:,} benchmarks already, the limit"
            )
        benchmark = partition.benchmarks[name] = Benchmark(name)
        return benchmark, None

    def _delta(self, benchmark: Benchmark) -> BenchmarkDelta:
        delta = self.deltas.get(benchmark.name)
        if delta is None:
            delta = self.deltas[benchmark.name] = benchmark.delta()
            self.cells[benchmark.name] = []
            self.widths[benchmark.name] = benchmark.width
        return delta

    def declare(self, declaration: Declaration, offset: int, index: int, place: Place | None = None) -> None:
        """Take a declaration, or refuse it when something that a verdict may rest on would change under it."""
        raw = declaration.model_dump_json().encode()
        if not self._ours(declaration.declare):
            self.misrouted(offset, declaration.declare, raw)
            return
        self.flush()
        benchmark, fault = self._benchmark(declaration.declare)
        spec = declaration.spec()
        fault = fault if benchmark is None else refusal(benchmark, spec)
        if benchmark is None or fault is not None:
            self.reject(fault, offset, index, raw, place)
            return
        benchmark.declare(spec)
        self._delta(benchmark).spec = spec.model_dump_json()

    # --- rejects ----------------------------------------------------------------------------------------------------------------------

    def reject(self, fault: Fault | None, offset: int, index: int, raw: bytes, place: Place | None = None) -> None:
        """Keep a record of the log that could not be read; `place` is the file and line it came from, where that is known."""
        assert fault is not None
        source, line = place or ("log", None)
        text = raw[:_RAW_LENGTH].decode("utf-8", "replace")
        self._dead(
            DeadLetter(offset, index, source, line, fault.field, fault.found, fault.reason, fault.benchmark, text)
        )

    def _dead(self, letter: DeadLetter) -> None:
        self.delta.dead_letters.append(letter)
        self.count_reject(letter.benchmark)

    def count_reject(self, name: str | None) -> None:
        """Count a record that could not be read, in its benchmark where that is known."""
        if name in self.pending:
            assert name is not None
            self.waiting.append(name)
            return
        benchmark = self.partition.benchmarks.get(name) if name is not None else None
        if benchmark is None:
            self.partition.counters["rejected"] += 1
        else:
            self._delta(benchmark)
            benchmark.counters["rejected"] += 1

    def finish(self) -> Delta:
        """Close the chunk."""
        for name, delta in self.deltas.items():
            benchmark = self.partition.benchmarks[name]
            record_cells(benchmark, delta, self.cells[name], widened=benchmark.width != self.widths[name])
            delta.counters = dict(benchmark.counters)
            delta.arrival = benchmark.arrival.changed()
            delta.off = benchmark.off = self.delta.off
            self.delta.benchmarks.append(delta)
        self.delta.counters = dict(self.partition.counters)
        self.delta.dead_letters.sort(key=lambda letter: (letter.offset, letter.index))
        self.partition.off = self.delta.off
        return self.delta

"""Decode blocks of lines to events, declarations and rejects, in the order of the file."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from monitor.files.streams.blocks import Block
from monitor.files.streams.event_lines import REJECT_START, EventLines, read_reject
from monitor.files.streams.paths import origin
from schemas.records.declaration import Declaration
from schemas.records.decode import BOM, Checker, decode_block, decode_converted, decode_record, plain_text
from schemas.records.events import Ended, EventFields
from schemas.records.packed import Segment
from schemas.records.text import Fault, Reject, shorten

RAW_LENGTH: Final = 2_000  # how much of a rejected line is kept, in characters

_TEXT_LENGTH: Final = 400
_GROUP: Final = 32


class DecodedBlock(NamedTuple):
    """The segments of a block, without a gap between them, and the benchmark of the last line that names one."""

    # `converted` has a clause for each kind of value that was converted (`schemas.records.lenient`).
    segments: list[Segment]
    benchmark: str | None
    converted: frozenset[str] = frozenset()


def decode(block: Block, path: Path, checker: Checker, benchmark: str | None = None) -> DecodedBlock:
    r"""Decode a block, in one call where every line of it is a good event.

    >>> line = b'{"benchmark":"x","item_id":"1","model":"m","score":1}\n'
    >>> decoded = decode(Block(0, len(line), 1, line), Path("a.jsonl"), Checker())
    >>> decoded.segments[0].events
    [EventFields(benchmark='x', item_id='1', model='m', score=1.0, cluster=None, repeat=0, epoch=0, unit=None, run=None, role=None)]
    """
    if block.fault is not None:
        reject = _reject(block.fault, path, block.first_line, block.data, benchmark)
        return DecodedBlock([Segment([], [], [reject], block.end, block.first_line, origin(path))], benchmark)
    if block.events is not None:
        line = block.first_line + len(block.events) - 1
        run = Segment([], block.events, [], block.end, line, origin(path))
        return DecodedBlock([run], block.events[0].benchmark if block.events else benchmark)
    data = block.data
    converted: set[str] = set()
    events = data.events if isinstance(data, EventLines) else _decode_good(data, checker)
    if events is None and (cleaned := _clean(block)) != data:
        data = cleaned
        events = _decode_good(data, checker)
    raw = None if events is None else data
    if events is None:
        events = decode_converted(data.split(b"\n")[:-1], converted)
    if not events:
        return _LineDecoder(block, path, checker, benchmark).decode()
    lines = len(events) if data is block.data else block.data.count(b"\n")
    line = block.first_line + lines - 1
    segment = Segment([], events, [], block.end, line, origin(path), raw=raw)
    return DecodedBlock([segment], events[-1].benchmark, frozenset(converted))


def _decode_good(data: bytes, checker: Checker) -> list[EventFields] | None:
    """Return the events of lines if all of them are good, else None."""
    events = decode_block(data)
    return None if not events or (not plain_text(data) and checker.bad(events)) else events


def _clean(block: Block) -> bytes:
    """Remove the byte order mark, carriage returns and blank lines."""
    data = block.data.removeprefix(BOM) if block.start == 0 else block.data
    if b"\r" not in data and b"\n\n" not in data:
        return data.lstrip(b"\n")
    return re.sub(rb"\r?\n[\r\n]*", b"\n", data).lstrip(b"\n")


def _reject(fault: Fault, path: Path, line: int, data: bytes, benchmark: str | None) -> Reject:
    reject: Reject = {
        "source": origin(path),
        "line": line,
        "field": shorten(fault.field, _TEXT_LENGTH),  # the name of an unknown field has any length and any characters
        "found": fault.found,
        "reason": shorten(fault.reason, _TEXT_LENGTH),
        "benchmark": fault.benchmark or benchmark,
        "raw": data[: 4 * RAW_LENGTH].decode("utf-8", "replace")[:RAW_LENGTH],
    }
    if fault.item is not None:
        reject["item_id"] = fault.item
    if fault.above is not None:
        reject["above"] = fault.above
    if fault.refuses:
        reject["refuses"] = True
    return reject


class _LineDecoder:
    """Decodes a block in which some line needs a closer look."""

    def __init__(self, block: Block, path: Path, checker: Checker, benchmark: str | None) -> None:
        self.block, self.path, self.checker, self.benchmark = block, path, checker, benchmark
        self.segments: list[Segment] = []
        self.without_benchmark: list[Reject] = []
        self.segment = self._new_segment()
        self.declared_at: list[int] = []
        self.ended: list[Ended] = []
        self.converted: set[str] = set()

    def decode(self) -> DecodedBlock:
        """Decode group by group, and line by line in a group that holds anything but good events."""
        block = self.block
        lines = block.data[:-1].split(b"\n")
        position = block.start
        for start in range(0, len(lines), _GROUP):
            group = lines[start : start + _GROUP]
            events = _decode_good(b"\n".join(group) + b"\n", self.checker) or decode_converted(group, self.converted)
            if events is not None:
                if self.ended:
                    self._close_segment(position, block.first_line + start - 1)
                self._name_benchmark(events[0].benchmark)
                self.events.extend(events)
                self.benchmark = events[-1].benchmark
                position += sum(map(len, group)) + len(group)
                continue
            for number, line in enumerate(group, block.first_line + start):
                self._decode_line(line, number, position)
                position += len(line) + 1
        self._close_segment(block.end, block.first_line + len(lines) - 1)
        return DecodedBlock(self.segments, self.benchmark, frozenset(self.converted))

    def _decode_line(self, line: bytes, number: int, position: int) -> None:
        line = line.removeprefix(BOM).strip()
        if not line:
            return
        if self.block.translated and line.startswith(REJECT_START):
            fault, number, line = read_reject(line)
            self._add_reject(fault, line, number)
            return
        # The meaning of a line must not depend on the lines around it: first as in a block, then by the whole rule.
        good = _decode_good(line + b"\n", self.checker)
        record = good[0] if good is not None else decode_record(line, self.converted)
        if isinstance(record, Fault):
            self._add_reject(record, line, number)
        elif isinstance(record, Ended):
            self.ended.append(record)
            self._name_benchmark(record.ended)
        elif isinstance(record, Declaration):
            if self.events or self.ended:
                self._close_segment(position, number - 1)
            self.segment.declarations.append(record)
            self.declared_at.append(number)
            self._name_benchmark(record.declare)
        else:
            if self.ended:
                self._close_segment(position, number - 1)
            self.events.append(record)
            self._name_benchmark(record.benchmark)

    def _add_reject(self, fault: Fault, line: bytes, number: int) -> None:
        reject = _reject(fault, self.path, number, line, self.benchmark)
        self.segment.rejects.append(reject)
        if fault.benchmark is not None:
            self._name_benchmark(fault.benchmark)
        elif self.benchmark is None:
            self.without_benchmark.append(reject)

    def _name_benchmark(self, benchmark: str) -> None:
        self.benchmark = benchmark
        for reject in self.without_benchmark:
            reject["benchmark"] = benchmark
        self.without_benchmark = []

    def _new_segment(self) -> Segment:
        self.events: list[EventFields] = []
        return Segment([], self.events, [], 0, 0, origin(self.path))

    def _close_segment(self, end: int, line: int) -> None:
        self.segments.append(
            self.segment._replace(end=end, line=line, declared_at=tuple(self.declared_at), ended=tuple(self.ended))
        )
        self.segment, self.declared_at, self.ended = self._new_segment(), [], []

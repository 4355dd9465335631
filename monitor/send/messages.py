"""The messages that events are sent as: one event each, or packed."""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from monitor.ingest.files.segments import Decoded
from monitor.ingest.packing import Declare
from schemas.events import EventFields

PACK_EVENTS: Final = 1_000
PACK_BYTES: Final = 900_000
"""A topic takes messages of a little over a million bytes unless told otherwise."""


class Outgoing(NamedTuple):
    """A message, and the benchmark it is about: its key."""

    benchmark: str
    value: bytes


class Messages:
    """Makes messages of what was read; those of a benchmark stay in its order.

    An event that is sent by itself is sent as its line stands in the file, with fields that this program does not read; only between lines
    that needed a closer look, and within a packed message, are the fields that count written anew.

    Parameters
    ----------
    declare : callable, optional
        Gives the declaration to place before the first event of a benchmark that is not known, and that no file has declared before it.
    known : mapping of str to (str or None)
        The benchmarks that have begun, as `begun` has them.
    packed : bool
        Up to `PACK_EVENTS` events of one benchmark a message.

    Attributes
    ----------
    begun : dict of str to (str or None)
        The benchmarks that have begun, each with what `declare` gave for it, as JSON.
    """

    def __init__(
        self, declare: Declare | None = None, known: Mapping[str, str | None] | None = None, *, packed: bool = False
    ) -> None:
        self.begun: dict[str, str | None] = dict(known or {})
        self._declare, self._packed = declare, packed
        self._ready: list[Outgoing] = []
        self._open: dict[str, list[EventFields]] = {}

    def add(self, decoded: Decoded) -> None:
        """Add a block that was decoded."""
        for segment in decoded.segments:
            for declaration in segment.declarations:
                self._close(declaration.declare)
                self.begun.setdefault(declaration.declare, None)
                self._ready.append(Outgoing(declaration.declare, declaration.model_dump_json().encode()))
            if segment.events:
                self._begin({event.benchmark for event in segment.events})
                self._events(segment.events, decoded.lines)

    def take(self) -> list[Outgoing]:
        """Return the messages of everything added since the last time."""
        for benchmark in list(self._open):
            self._close(benchmark)
        ready, self._ready = self._ready, []
        return ready

    def _begin(self, benchmarks: set[str]) -> None:
        for benchmark in sorted(benchmarks - self.begun.keys()):
            declaration = self._declare(benchmark) if self._declare is not None else None
            self.begun[benchmark] = None
            if declaration is not None:
                value = msgspec.json.encode(declaration)
                self.begun[benchmark] = value.decode()
                self._ready.append(Outgoing(benchmark, value))

    def _events(self, events: list[EventFields], lines: bytes | None) -> None:
        if self._packed:
            for event in events:
                self._open.setdefault(event.benchmark, []).append(event)
            return
        # A line with a field of this name would be taken for a packed message.
        raw = map(msgspec.json.encode, events) if lines is None or b'"events"' in lines else lines.split(b"\n")
        self._ready += [Outgoing(event.benchmark, value) for event, value in zip(events, raw, strict=False)]

    def _close(self, benchmark: str) -> None:
        events = self._open.pop(benchmark, [])
        for start in range(0, len(events), PACK_EVENTS):
            self._pack(benchmark, events[start : start + PACK_EVENTS])

    def _pack(self, benchmark: str, events: list[EventFields]) -> None:
        value = b'{"events":' + msgspec.json.encode(events) + b"}"
        if len(value) <= PACK_BYTES or len(events) == 1:
            self._ready.append(Outgoing(benchmark, value))
            return
        middle = len(events) // 2
        self._pack(benchmark, events[:middle])
        self._pack(benchmark, events[middle:])

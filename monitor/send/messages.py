"""Write events as messages: one event each, or packed, as columns where they are of one run."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final, Literal, NamedTuple

import msgspec

from schemas.records.events import EventFields
from schemas.records.packed import Segment, encode_events, mark_imported
from schemas.records.run_columns import encode_run

PACK_EVENTS: Final = 1_000
LEAST_RUN: Final = 20  # a message of a run has at least so many events

PACK_BYTES: Final = 900_000  # a topic takes messages of a little over a million bytes unless it is configured otherwise


class Outgoing(NamedTuple):
    """A message, and the benchmark it is about: its key."""

    # `imported`: it is about results that existed already, so nobody is notified of what they decide.
    benchmark: str
    value: bytes
    holds: Literal["events", "declaration", "end"] = "events"
    imported: bool = False

    @property
    def marked(self) -> bytes:
        """The message as a topic gets it, with its mark."""
        if not self.imported or self.holds == "declaration":
            return self.value
        return mark_imported(self.value if self.holds == "events" else b'{"events":[],"ended":[' + self.value + b"]}")


def write_messages(segments: Iterable[Segment], *, packed: bool = False) -> list[Outgoing]:
    """Write segments as messages; a benchmark's stay in order."""
    # An event with a message of its own is sent as its line is in the file, with fields that rankwatch does not read. Between lines that
    # needed a closer look, and in packed messages, only the fields that count are written.
    ready: list[Outgoing] = []
    open_packs: dict[str, list[EventFields]] = {}
    for segment in segments:
        for declaration in segment.declarations:
            name = declaration.declare
            ready += _pack(name, open_packs.pop(name, []))
            ready.append(Outgoing(name, declaration.model_dump_json().encode(), "declaration"))
        for name, given in segment.begun.items():
            if given is not None:
                ready.append(Outgoing(name, msgspec.json.encode(given), "declaration"))
        if packed:
            for event in segment.events:
                open_packs.setdefault(event.benchmark, []).append(event)
        else:
            ready += map(Outgoing, (event.benchmark for event in segment.events), _lines(segment))
        for ended in segment.ended:
            ready += _pack(ended.ended, open_packs.pop(ended.ended, []))
            ready.append(Outgoing(ended.ended, ended.model_dump_json(exclude_none=True).encode(), "end"))
    for name, events in open_packs.items():
        ready += _pack(name, events)
    return ready


def _lines(segment: Segment) -> Iterable[bytes]:
    # A line with a field of this name would be taken for a packed message.
    if segment.raw is None or b'"events"' in segment.raw:
        return map(msgspec.json.encode, segment.events)
    return segment.raw.split(b"\n")


def _pack(benchmark: str, events: list[EventFields]) -> Iterator[Outgoing]:
    """Write events in their order: those of a run that come together as columns, the others as events."""
    mixed: list[EventFields] = []
    for (*_, repeat), together in groupby(events, _shared):
        run = list(together)
        if repeat or len(run) < LEAST_RUN:
            mixed += run
            continue
        yield from _messages(benchmark, mixed, encode_events)
        mixed = []
        yield from _messages(benchmark, run, encode_run)
    yield from _messages(benchmark, mixed, encode_events)


def _shared(event: EventFields) -> tuple[object, ...]:
    """Return what the events of one message of columns have in common; columns have no repeats."""
    return event.model, event.epoch, event.run, event.role, event.repeat


def _messages(
    benchmark: str, events: list[EventFields], encode: Callable[[list[EventFields]], bytes]
) -> Iterator[Outgoing]:
    for start in range(0, len(events), PACK_EVENTS):
        yield from _halve(benchmark, events[start : start + PACK_EVENTS], encode)


def _halve(
    benchmark: str, events: list[EventFields], encode: Callable[[list[EventFields]], bytes]
) -> Iterator[Outgoing]:
    """Halve events until each message is small enough."""
    value = encode(events)
    if len(value) <= PACK_BYTES or len(events) == 1:
        yield Outgoing(benchmark, value)
        return
    middle = len(events) // 2
    yield from _halve(benchmark, events[:middle], encode)
    yield from _halve(benchmark, events[middle:], encode)

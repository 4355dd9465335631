"""Send events to another rankwatch: each at least once, and on a second run only what is new.

After each acknowledged delivery the position of its file is saved (`monitor.send.send_record`). A crash between the two sends the last
delivery again, which changes nothing: the first score of a key wins.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from monitor.send.messages import Outgoing, write_messages
from monitor.send.send_record import SendRecord
from schemas.records.chunks import Source
from schemas.records.events import Ended
from schemas.records.packed import Segment

Deliver = Callable[[Sequence[Outgoing]], Awaitable[None]]
"""Delivers messages, those of one benchmark in the order given, and returns once they are durable."""

T = TypeVar("T")


class Delivery(NamedTuple):
    """Consecutive segments of one file, the state of the file at their end, and the name under which its place is recorded."""

    path: Path
    source: Source
    segments: Sequence[Segment]
    place: str


class Sender:
    """Delivers what is read of files, and records what was delivered."""

    def __init__(
        self,
        deliver: Deliver,
        record: SendRecord,
        *,
        packed: bool = False,
        imported: Callable[[str], bool] = lambda _: False,
        on_delivered: Callable[[Delivery], None] | None = None,
        chosen: Mapping[str, dict[str, str]] | None = None,
    ) -> None:
        self._deliver, self._record, self._packed, self._on_delivered = deliver, record, packed, on_delivered
        self._imported, self._chosen = imported, {} if chosen is None else chosen
        self.events = 0
        self.benchmarks: set[str] = set()
        self.changed: list[Path] = []
        self.late: set[tuple[str, str, int]] = set()

    async def run(self, deliveries: AsyncGenerator[Delivery, None]) -> None:
        """Deliver everything; the next delivery is read while one is under way."""
        async with aclosing(_read_ahead(deliveries)) as ahead:
            async for delivery in ahead:
                messages = await asyncio.to_thread(write_messages, delivery.segments, packed=self._packed)
                await self._deliver([self._marked(message) for message in messages])
                self._acknowledge(delivery, {message.benchmark for message in messages})

    def _marked(self, message: Outgoing) -> Outgoing:
        return message._replace(imported=True) if self._imported(message.benchmark) else message

    async def end(self, ends: Sequence[Ended]) -> list[Ended]:
        """Deliver the ends of runs, each named by its model, that were not delivered before, older epochs first; return these."""
        runs = {(end.ended, end.model or "", end.epoch or 0): end for end in sorted(ends, key=lambda x: x.epoch or 0)}
        fresh = {run: end for run, end in runs.items() if run not in self._record.ended}
        if fresh:
            await self._deliver(
                [
                    self._marked(Outgoing(end.ended, end.model_dump_json(exclude_none=True).encode(), "end"))
                    for end in fresh.values()
                ]
            )
            self._record.ended.update(fresh)
            self._record.save()
        return list(fresh.values())

    def _acknowledge(self, delivery: Delivery, benchmarks: set[str]) -> None:
        sources, path = self._record.sources, delivery.place
        if path in sources and sources[path].generation != delivery.source.generation:
            self.changed.append(delivery.path)
        sources[path] = delivery.source
        for segment in delivery.segments:
            self.events += len(segment.events)
            if self._record.ended:
                runs = {(event.benchmark, event.model, event.epoch) for event in segment.events}
                self.late |= runs & self._record.ended
            for declaration in segment.declarations:
                declared = declaration.model_dump_json(exclude_defaults=True)
                self._record.benchmarks[declaration.declare] = declared
            for name, given in segment.begun.items():
                self._record.benchmarks[name] = None if given is None else msgspec.json.encode(given).decode()
        self.benchmarks |= benchmarks
        for name in benchmarks:
            self._record.benchmarks.setdefault(name, None)
        self._record.chosen |= {name: self._chosen[name] for name in benchmarks & self._chosen.keys()}
        self._record.save()
        if self._on_delivered is not None:
            self._on_delivered(delivery)


async def _read_ahead(items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield items, and get the next one while one is handled."""

    async def advance() -> T | None:
        return await anext(items, None)

    task = asyncio.create_task(advance())
    try:
        while (item := await task) is not None:
            task = asyncio.create_task(advance())
            yield item
    finally:
        await asyncio.wait((task,))  # its thread still uses the file
        if not task.cancelled():
            task.exception()  # retrieved: the first error is the one that is raised
        await items.aclose()

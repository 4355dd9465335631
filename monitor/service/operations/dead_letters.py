"""Read dead letters from their topic or file, choose some, and send their records again."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from monitor.log.kafka.records import records_with_headers
from monitor.log.kafka.settings import KafkaSettings
from monitor.publish.dead_letter_topic import SUFFIX, read_letter
from monitor.publish.kafka_producer import KafkaProducer, Message
from monitor.service.operations.quarantine import readable
from schemas.records.chunks import DeadLetter
from schemas.records.ownership import owner
from schemas.records.text import Sentence

_AT_ONCE = 1_000


class KeptLetter(NamedTuple):
    """A dead letter, the partition of its record, and when it was kept (seconds since 1970; None in a file)."""

    letter: DeadLetter
    partition: int = 0
    at: float | None = None

    @property
    def row(self) -> dict[str, Any]:
        """Its fields, for programs."""
        at = None if self.at is None else datetime.fromtimestamp(self.at).astimezone().isoformat(timespec="seconds")
        return {"partition": self.partition, "at": at, **self.letter._asdict()}


class Choice(NamedTuple):
    """Which letters are meant: all conditions hold."""

    # benchmark, producer: a name, or a pattern with ``*``, ``?`` and ``[...]``
    benchmark: str | None = None
    producer: str | None = None
    reason: Sentence | None = None  # a part of the field, the value or the reason, in any case
    since: float | None = None  # seconds since 1970; a letter without a time is not meant

    def has(self, kept: KeptLetter) -> bool:
        """Return whether a letter is meant."""
        letter = kept.letter
        named = ((self.benchmark, letter.benchmark), (self.producer, letter.producer))
        if any(pattern is not None and not fnmatchcase(name or "", pattern) for pattern, name in named):
            return False
        if self.since is not None and (kept.at is None or kept.at < self.since):
            return False
        text = f"{letter.field}\n{letter.found}\n{letter.reason}".casefold()
        return self.reason is None or self.reason.casefold() in text


class Kind(NamedTuple):
    """Letters of one benchmark, producer, field and reason."""

    benchmark: str | None
    producer: str | None
    field: str
    reason: Sentence


def kinds(letters: Iterable[KeptLetter]) -> list[tuple[Kind, int, KeptLetter]]:
    """Return the kinds of letters, the most frequent first, with how many there are and the last one."""
    count: Counter[Kind] = Counter()
    last: dict[Kind, KeptLetter] = {}
    for kept in letters:
        letter = kept.letter
        kind = Kind(letter.benchmark, letter.producer, letter.field, letter.reason)
        count[kind] += 1
        last[kind] = kept
    return [(kind, number, last[kind]) for kind, number in count.most_common()]


def in_file(path: Path) -> Iterator[KeptLetter]:
    """Yield the letters of a file of `watch`; a last line that is not complete is being written."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield KeptLetter(DeadLetter(**json.loads(line)))
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f"{path}:{number}: this line is not a dead letter; restore the file, or move it away"
                ) from error


async def in_topic(kafka: KafkaSettings, topic: str, seconds: float) -> AsyncIterator[KeptLetter]:
    """Yield the letters that the dead-letter topic of a topic of events holds; one that was written twice is yielded once."""
    async with KafkaProducer(kafka.client_options(), timeout=seconds) as producer:
        partitions = await producer.partitions(topic + SUFFIX)
    seen: set[tuple[int, int, int, str]] = set()
    for number in range(partitions):
        async for record in records_with_headers(kafka, topic + SUFFIX, number):
            partition, letter = read_letter(record.key, record.value or b"", record.headers)
            place = partition, letter.offset, letter.index, letter.field
            if place not in seen:
                seen.add(place)
                yield KeptLetter(letter, partition, record.timestamp / 1000)


class Replay(NamedTuple):
    """What of some letters can be sent again: messages by benchmark, the letters they come from, and how many cannot be read."""

    messages: list[tuple[str, bytes]]
    letters: int
    unreadable: int


async def replay_of(letters: Iterable[KeptLetter]) -> Replay:
    """Return what can be sent again: events, declarations and ends of runs, each once; never what operators did with a board."""
    messages: dict[tuple[str, bytes], None] = {}
    sent = unreadable = 0
    for kept in letters:
        name, raw = kept.letter.benchmark, kept.letter.raw.encode()
        readings = [] if name is None else [(name, each) async for each in readable(_alone(raw), name)]
        messages |= dict.fromkeys(readings)
        sent += bool(readings)
        unreadable += not readings
    return Replay(list(messages), sent, unreadable)


async def _alone(record: bytes) -> AsyncIterator[tuple[int, bytes]]:
    yield 0, record


async def send_again(kafka: KafkaSettings, topic: str, messages: list[tuple[str, bytes]], seconds: float) -> None:
    """Append messages to the partitions of their benchmarks."""
    async with KafkaProducer(kafka.client_options(), timeout=seconds) as producer:
        count = await producer.partitions(topic)
        for start in range(0, len(messages), _AT_ONCE):
            part = messages[start : start + _AT_ONCE]
            await producer.deliver(topic, [Message(owner(name, count), name.encode(), raw) for name, raw in part])

"""Publish rejected records to a dead-letter topic, where a person can inspect, fix and resend them."""

from collections.abc import Iterable, Sequence
from typing import Final

from monitor.publish.kafka_producer import KafkaProducer, Message
from schemas.records.chunks import DeadLetter

SUFFIX: Final = ".dlq"


class DeadLetterTopic:
    """Keeps dead letters in the topic ``<events>.dlq``."""

    # The value is the record, cut to the length that the fold keeps. UTF-8 headers hold the reason (``reason``, ``field``, ``found``), the
    # position (``topic``, ``partition``, ``offset``, and ``index`` within a packed record), for records imported from a file ``source`` and
    # ``line``, and the token that sent it (``producer``) if it is known. The key is the benchmark if known. Letters are written at least
    # once: after a crash some are repeated with the same position.

    def __init__(self, producer: KafkaProducer, topic: str) -> None:
        self._producer, self._log, self._topic = producer, topic, topic + SUFFIX
        self._kept: dict[int, int] = {}

    async def keep(self, partition: int, letters: Sequence[DeadLetter]) -> int:
        """Publish letters of a partition in the order of the log, all of a record together; return how many are new to this worker."""
        kept = self._kept.get(partition, -1)
        new = [letter for letter in letters if letter.offset > kept]
        if not new:
            return 0
        count = await self._producer.partitions(self._topic)
        await self._producer.deliver(self._topic, [self._message(partition, letter, count) for letter in new])
        self._kept[partition] = new[-1].offset
        return len(new)

    def _message(self, partition: int, letter: DeadLetter, count: int) -> Message:
        headers = {
            "reason": letter.reason,
            "field": letter.field,
            "found": letter.found,
            "topic": self._log,
            "partition": str(partition),
            "offset": str(letter.offset),
            "index": str(letter.index),
        }
        if letter.line is not None:
            headers |= {"source": letter.source, "line": str(letter.line)}
        if letter.producer is not None:
            headers["producer"] = letter.producer
        key = _bytes(letter.benchmark) if letter.benchmark is not None else None
        return Message(partition % count, key, _bytes(letter.raw), [(k, _bytes(v)) for k, v in headers.items()])


def read_letter(key: bytes | None, value: bytes, headers: Iterable[tuple[str, bytes | None]]) -> tuple[int, DeadLetter]:
    """Return a dead letter and the partition of its record, from a record of the topic; what a foreign record lacks is empty or 0.

    >>> read_letter(b"b", b"{", [("reason", b"is not JSON"), ("offset", b"7")])[1].reason
    'is not JSON'
    """
    text = {name: (data or b"").decode("utf-8", "replace") for name, data in headers}
    place = {
        name: int(text[name]) for name in ("partition", "offset", "index", "line") if text.get(name, "").isdecimal()
    }
    letter = DeadLetter(
        place.get("offset", 0),
        place.get("index", 0),
        text.get("source", "log"),
        place.get("line"),
        text.get("field", ""),
        text.get("found", ""),
        text.get("reason", ""),
        None if key is None else key.decode("utf-8", "replace"),
        value.decode("utf-8", "replace"),
        text.get("producer"),
    )
    return place.get("partition", 0), letter


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")  # lone surrogates must not make it a poison record again

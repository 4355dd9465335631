"""Sign the origins of republished records, so that only the workers of a service can write one that is believed."""

from hashlib import blake2b
from hmac import compare_digest
from typing import Final

from schemas.records.chunks import Origin
from schemas.records.names import PRODUCER
from schemas.records.producers import CLAIMED, PRODUCER_HEADER

_TAG_BYTES: Final = 16
_PRODUCER: Final = b"producer:"
"""Begins what is signed of a producer, so that it is no origin: an origin begins with a digit."""


class OriginKey:
    """The key that the workers of a service share; the state holds it, which writers of the topic cannot read.

    The signature covers the log, the origin, the partition that the copy is published to, and the copy. A header that was made up, or moved
    to another record, another partition or another topic, is not believed: its record counts like any other.

    >>> key = OriginKey(b"secret", "log")
    >>> header = key.sign(Origin(3, 120, 7), 1, b"copy")
    >>> key.verify(header, 1, b"copy")
    Origin(partition=3, offset=120, place=7)
    >>> key.verify(header, 2, b"copy") or key.verify(header, 1, b"other") or key.verify(b"3:120:7", 1, b"copy")
    """

    def __init__(self, secret: bytes, log: str) -> None:
        self._log = log
        self.take(secret)

    def take(self, secret: bytes) -> None:
        """Sign and verify with another secret from now on: everybody who shares this object does."""
        self.secret = secret
        self._keyed = blake2b(self._log.encode() + b"\n", key=secret, digest_size=_TAG_BYTES)

    def sign(self, origin: Origin, target: int, record: bytes) -> bytes:
        """Return the value of `ORIGIN_HEADER` for a copy that is published to the partition `target`."""
        text = origin.encode()
        return text + b":" + self._tag(text, target, record)

    def verify(self, value: bytes, target: int, record: bytes) -> Origin | None:
        """Return the origin in a header of a record of the partition `target`; None unless a worker of this service signed it."""
        text, _, tag = value.rpartition(b":")
        if not compare_digest(tag, self._tag(text, target, record)):
            return None
        return Origin.parse(text)

    def producer_headers(self, name: str | None, target: int, record: bytes) -> list[tuple[str, bytes]]:
        """Return the headers that name the producer of a record that is published to the partition `target`; claimed names stay claimed."""
        if name is None:
            return []
        if name.startswith(CLAIMED):
            return [(PRODUCER_HEADER, name.removeprefix(CLAIMED).encode())]
        text = _PRODUCER + name.encode()
        return [(PRODUCER_HEADER, name.encode() + b":" + self._tag(text, target, record))]

    def verify_producer(self, value: bytes, target: int, record: bytes) -> str | None:
        """Return the producer in a header of a record of the partition `target`; one that no server signed is marked as claimed."""
        # A copy of a record with its header is believed too: it has the same events.
        name, colon, tag = value.rpartition(b":")
        signed = bool(colon) and compare_digest(tag, self._tag(_PRODUCER + name, target, record))
        text = (name if colon else value).decode("utf-8", "replace")
        if not PRODUCER.fullmatch(text):
            return None
        return text if signed else CLAIMED + text

    def _tag(self, text: bytes, target: int, record: bytes) -> bytes:
        tag = self._keyed.copy()
        tag.update(b"%s %d\n" % (text, target))
        tag.update(record)
        return tag.hexdigest().encode()

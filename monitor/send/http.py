"""Events to another rankwatch over HTTP: in order, acknowledged when they are durable there, tried again while it is away."""

import asyncio
import gzip
import http.client
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final
from urllib.parse import urlsplit

from monitor.retries import RetryPolicy
from monitor.send.messages import Outgoing
from schemas.text import shorten

PATH: Final = "/api/v1/events"
BATCH_BYTES: Final = 2_000_000
"""Bytes of one request: far below what a server takes, and enough to make the way there and back cheap."""

_TIMEOUT_SECONDS: Final = 60.0
_RETRIES: Final = RetryPolicy()
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
_TOLD_LENGTH: Final = 600
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class DeliveryError(OSError):
    """The server cannot be reached, or does not take what it is given; the message says what to do about it."""


class _Passing(Exception):  # noqa: N818 - no error yet
    """Something that may be over when it is tried again."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class HttpDelivery:
    """Posts messages of one event or declaration each.

    Parameters
    ----------
    url : str
        ``http[s]://host[:port][/prefix]`` of a server.
    token : str or None
        Bearer token to carry.
    retries : RetryPolicy, optional

    Raises
    ------
    ValueError
        If the URL is none.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        retries: RetryPolicy = _RETRIES,
    ) -> None:
        self.url = checked_url(url)
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=_TIMEOUT_SECONDS)
        self._path = f"{parts.path}{PATH}"
        self._packed = parts.hostname not in _LOOPBACK
        self._retries = retries
        self._headers = {"Content-Type": "application/x-ndjson"}
        if token is not None:
            self._headers["Authorization"] = b"Bearer " + token.encode()  # type: ignore[assignment]  # bytes are sent as they are
        if self._packed:
            self._headers["Content-Encoding"] = "gzip"

    async def __call__(self, messages: Sequence[Outgoing]) -> None:
        """Deliver messages in order; when this returns, the server has them on its disk.

        Raises
        ------
        DeliveryError
            If that cannot be done; some first ones may have arrived.
        """
        for body in _bodies(messages):
            await self._deliver(gzip.compress(body, 1) if self._packed else body)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    async def _deliver(self, body: bytes) -> None:
        try:
            await self._retries.run(lambda: asyncio.to_thread(self._post, body), _retry_on)
        except _Passing as passing:
            raise DeliveryError(f"{self.url}: {passing}") from passing

    def _post(self, body: bytes) -> None:
        try:
            self._connection.request("POST", self._path, body, self._headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise _Passing(f"no answer ({reason}): is it running, and is this its address?") from error
        if response.status == 200:
            return
        told = _told(answer)
        if response.status in _PASSING:
            after = response.headers.get("Retry-After", "")
            raise _Passing(f"answered {response.status}: {told}", float(after) if after.isdecimal() else None)
        raise DeliveryError(f"{self.url} answered {response.status}: {told}{_REMEDIES.get(response.status, '')}")


_REMEDIES: Final = {
    401: "; give --token-file, or set RANKWATCH_TOKEN",
    404: "; is this the address of a rankwatch?",
    413: "; raise max_body_bytes there",
}


def _retry_on(error: Exception) -> bool | float:
    return isinstance(error, _Passing) and (error.wait or True)


def checked_url(url: str) -> str:
    """Return a URL without what does not belong to it, or raise ValueError with what to give instead."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{url}: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{shorten(url)}: give http[s]://host[:port]")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL may hold no user or password: give the token by --token-file, or RANKWATCH_TOKEN")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"


def _bodies(messages: Sequence[Outgoing]) -> Iterator[bytes]:
    """Join messages into bodies of bounded size."""
    lines: list[bytes] = []
    size = 0
    for line in chain((message.value for message in messages), (None,)):
        if lines and (line is None or size + len(line) > BATCH_BYTES):
            yield b"\n".join(lines)
            lines, size = [], 0
        if line is not None:
            lines.append(line)
            size += len(line) + 1


def _told(answer: bytes) -> str:
    """Return what a problem says."""
    try:
        text = str(json.loads(answer)["detail"])
    except (ValueError, KeyError, TypeError):
        text = answer.decode("utf-8", "replace")
    return shorten(text, _TOLD_LENGTH)

"""Answer a request that is sent again with the same idempotency key as before, without appending it again."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b
from time import monotonic
from typing import Final

from fastapi import Request, Response

from monitor.serve.api.problems import ProblemError

WINDOW_SECONDS: Final = 600.0  # for how long an answer is kept

REPEATED: Final = "Idempotent-Replayed"  # header of an answer that was given before

_MAX_ANSWERS: Final = 10_000
_MAX_BYTES: Final = 16_000_000
_KEY: Final = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(slots=True)
class _Repeatable:
    digest: bytes
    response: asyncio.Future[Response]
    at: float
    size: int = 0


class Answers:
    """The answers of the last requests that carried an `Idempotency-Key`, by client and key."""

    # They are in the memory of this process: after a restart, or at another server, the request is appended again. That harms nothing,
    # since the first score of a key counts.

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, str], _Repeatable] = {}
        self._bytes = 0

    async def once(
        self, request: Request, client: str, body: bytes, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return the answer that this request got before, or do the work; only answers of success are kept."""
        keys = request.headers.getlist("idempotency-key")
        if not keys:
            return await work()
        if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
            raise ProblemError(400, "Idempotency-Key: send one of 1 to 200 visible ASCII characters.")
        digest = _digest(request, body)
        self._expire()
        kept = self._kept.get((client, keys[0]))
        if kept is not None:
            if kept.digest != digest:
                raise ProblemError(
                    422,
                    "Idempotency-Key: this key came with another request. Use a new key for each request, and its own to repeat one.",
                )
            response = await _result(kept.response)
            if response is not None:
                return Response(
                    response.body, response.status_code, {REPEATED: "true"}, response.headers.get("content-type")
                )
        return await self._do((client, keys[0]), digest, work)

    async def _do(self, key: tuple[str, str], digest: bytes, work: Callable[[], Awaitable[Response]]) -> Response:
        kept = self._kept[key] = _Repeatable(digest, asyncio.get_running_loop().create_future(), self._clock())
        try:
            response = await work()
        except BaseException:
            kept.response.cancel()
            if self._kept.get(key) is kept:
                del self._kept[key]
            raise
        kept.response.set_result(response)
        kept.size = len(response.body)
        self._bytes += kept.size
        self._expire()
        return response

    def _expire(self) -> None:
        """Forget the oldest answers: those beyond the window, the number or the memory."""
        earliest = self._clock() - WINDOW_SECONDS
        while self._kept:
            key, oldest = next(iter(self._kept.items()))
            if oldest.at > earliest and len(self._kept) <= _MAX_ANSWERS and self._bytes <= _MAX_BYTES:
                return
            if not oldest.response.done():
                return  # it is under way; the limits on bodies bound how many are
            del self._kept[key]
            self._bytes -= oldest.size


async def _result(response: asyncio.Future[Response]) -> Response | None:
    """Wait for the answer to a request under way; None if it failed."""
    try:
        return await asyncio.shield(response)
    except asyncio.CancelledError:
        if response.cancelled():
            return None
        raise


def _digest(request: Request, body: bytes) -> bytes:
    digest = blake2b(digest_size=32)
    for part in (request.method, request.url.path, request.url.query, request.headers.get("content-type", "")):
        digest.update(part.encode() + b"\0")
    digest.update(body)
    return digest.digest()

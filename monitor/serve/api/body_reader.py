"""Bodies of requests: read with a bound on their size (inflated as it is), on the time they take, and on what all of them hold together."""

import asyncio
import zlib
from typing import Final

from starlette.requests import ClientDisconnect, Request

from monitor.serve.api.problems import ProblemError

READ_SECONDS: Final = 30.0
"""How long a body may take to come."""

_TOGETHER: Final = 4
"""How many of the largest bodies may be in memory at a time."""

_GZIP: Final = 16 + zlib.MAX_WBITS


class Bodies:
    """Reads bodies.

    Parameters
    ----------
    limit : int
        Bytes a body may have when it is inflated.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held = 0

    async def read(self, request: Request) -> bytes:
        """Read a body whole, inflated where it is gzipped.

        Raises
        ------
        ProblemError
            400 for a body that is cut short or no gzip, 408 when it takes too long, 413 when it is too long, 415 for another
            encoding, 503 while others fill the memory there is for bodies.
        """
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in {"identity", "gzip"}:
            raise ProblemError(415, f"Content-Encoding: found {encoding[:40]!r}: send the body plain, or as gzip")
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > self.limit:
            raise self._too_long()
        body = _Inflated(self.limit) if encoding == "gzip" else _Plain()
        held = 0
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for piece in request.stream():
                    body.add(piece)
                    held, before = len(body.data), held
                    self._held += held - before
                    self._check(held)
            body.finish()
        except TimeoutError:
            raise ProblemError(
                408, f"the body did not come within {READ_SECONDS:.0f} s: send smaller requests"
            ) from None
        except ClientDisconnect:
            raise ProblemError(400, "the body was cut short") from None
        except (zlib.error, EOFError):
            raise ProblemError(400, "Content-Encoding says gzip, and the body is none, or cut short") from None
        finally:
            self._held -= held
        return bytes(body.data)

    def _check(self, held: int) -> None:
        if held > self.limit:
            raise self._too_long()
        if self._held > _TOGETHER * self.limit:
            raise ProblemError(503, "too many large requests at once: try again", headers={"Retry-After": "1"})

    def _too_long(self) -> ProblemError:
        return ProblemError(
            413, f"a body has at most {self.limit:,} bytes when it is inflated: send the events in several requests"
        )


class _Plain:
    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, piece: bytes) -> None:
        self.data += piece

    def finish(self) -> None:
        pass


class _Inflated:
    """Inflates gzip, member after member, up to one byte more than the limit: that tells a bomb, however much more it would hold."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self._limit = limit
        self._member = zlib.decompressobj(_GZIP)

    def add(self, piece: bytes) -> None:
        while piece and len(self.data) <= self._limit:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            self.data += self._member.decompress(piece, self._limit + 1 - len(self.data))
            piece = self._member.unused_data

    def finish(self) -> None:
        if not self._member.eof:
            raise EOFError

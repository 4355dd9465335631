"""Read the bodies of requests within limits on size, time and memory."""

import asyncio
import zlib
from collections import Counter
from typing import Final

from starlette.requests import ClientDisconnect, Request

from monitor.serve.api.problems import ProblemError
from monitor.serve.connections import client_of

READ_SECONDS: Final = 30.0  # how long a body may take to arrive

_MAX_LARGEST_BODIES: Final = 4  # bodies of the largest size that fit in memory at a time

_MAX_OF_CLIENT: Final = 2  # how many of them one client may send at a time

MAX_MEMBERS: Final = 1_000
"""Most gzip members of a body: an empty one inflates to nothing, so the size does not bound their number."""

_GZIP_OVERHEAD: Final = 100_000  # by how much a body may be longer as gzip than without

_GZIP: Final = 16 + zlib.MAX_WBITS


class BodyReader:
    """Reads and inflates bodies."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._bytes_in_memory = 0
        self._bytes_of: Counter[str] = Counter()

    async def read(self, request: Request) -> bytes:
        """Read a whole body; inflate it if it is gzip."""
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in {"identity", "gzip"}:
            raise ProblemError(
                415, f"Content-Encoding {encoding[:40]!r} is not supported. Send the body uncompressed or as gzip."
            )
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > self.limit:
            raise self._too_large()
        body = _GzipBody(self.limit) if encoding == "gzip" else _PlainBody()
        client = client_of(request.client.host if request.client else "")
        size = received = 0
        try:
            async with asyncio.timeout(READ_SECONDS):
                async for piece in request.stream():
                    received += len(piece)
                    if received > self.limit + _GZIP_OVERHEAD:
                        raise self._too_large()
                    body.add(piece)
                    self._count(client, len(body.data) - size)
                    size = len(body.data)
                    self._check_size(client, size)
            body.finish()
        except TimeoutError:
            raise ProblemError(
                408, f"The body did not arrive within {READ_SECONDS:.0f} s. Send smaller requests."
            ) from None
        except ClientDisconnect:
            raise ProblemError(400, "The body is truncated: the connection closed early.") from None
        except (zlib.error, EOFError):
            raise ProblemError(
                400, "Content-Encoding is gzip, but the body is truncated or not gzip. Compress it again and resend."
            ) from None
        finally:
            self._count(client, -size)
        return bytes(body.data)

    def _count(self, client: str, size: int) -> None:
        self._bytes_in_memory += size
        self._bytes_of[client] += size
        if not self._bytes_of[client]:
            del self._bytes_of[client]

    def _check_size(self, client: str, size: int) -> None:
        if size > self.limit:
            raise self._too_large()
        if self._bytes_of[client] > _MAX_OF_CLIENT * self.limit:
            raise ProblemError(
                429,
                "Too many large requests of this client at once. Send them one after the other, or retry in a second.",
                headers={"Retry-After": "1"},
            )
        if self._bytes_in_memory > _MAX_LARGEST_BODIES * self.limit:
            raise ProblemError(503, "Too many large requests at once. Retry in a second.", headers={"Retry-After": "1"})

    def _too_large(self) -> ProblemError:
        return ProblemError(
            413,
            f"The body is too large: the limit is {self.limit:,} bytes after inflation. Send several smaller requests.",
        )


class _PlainBody:
    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, piece: bytes) -> None:
        self.data += piece

    def finish(self) -> None:
        pass


class _GzipBody:
    """Inflates gzip members up to one byte over the limit, which exposes a bomb without inflating all of it."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self._limit = limit
        self._member = zlib.decompressobj(_GZIP)
        self._members = 1

    def add(self, piece: bytes) -> None:
        while piece and len(self.data) <= self._limit:
            if self._member.eof:
                self._members += 1
                if self._members > MAX_MEMBERS:
                    raise ProblemError(
                        413,
                        f"The body has more than {MAX_MEMBERS:,} gzip members. Compress it as one, or send several requests.",
                    )
                self._member = zlib.decompressobj(_GZIP)
            self.data += self._member.decompress(piece, self._limit + 1 - len(self.data))
            piece = self._member.unused_data

    def finish(self) -> None:
        if not self._member.eof:
            raise EOFError

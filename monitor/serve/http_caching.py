"""Let clients and caches reuse answers: a validator for each, 304 for one that the client has, gzip, and what a shared cache may keep."""

import re
from collections import OrderedDict
from gzip import compress
from hashlib import blake2b
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.background import in_background
from monitor.serve.access.caller import ANONYMOUS_NAME, current_caller
from monitor.serve.api.problems import MEDIA_TYPE, ProblemError

MIN_GZIP_BYTES: Final = 1_000
"""Smaller answers are not compressed."""

_BACKGROUND_BYTES: Final = 100_000
"""Answers from this size on are compressed in a thread."""

_KEPT_BYTES: Final = 32_000_000
"""Compressed answers in memory, those last requested: many readers request the same ones."""

_LEVEL: Final = 1
_REFUSED: Final = re.compile(r"q\s*=\s*0(\.0*)?")
"""A weight of a coding that a client does not take."""

_DATA: Final = "/api/v1/"

DIGEST: Final = "digest"
"""Parameter of an address that names one answer by its digest."""

_FOREVER: Final = "public, max-age=31536000, immutable"


class HttpCaching:
    """Middleware for whole answers to GET; streams and other methods pass unchanged.

    The validator is a digest of the answer, so every reader of a log gives the same one, and an answer that new events leave unchanged is
    not sent again.
    """

    def __init__(self, app: ASGIApp, shared_seconds: int = 0) -> None:
        self.app = app
        self._shared = f"public, max-age={shared_seconds}" if shared_seconds else "no-cache"
        self._packed: OrderedDict[str, bytes] = OrderedDict()
        self._packed_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and send the answer in the form that the client can use."""
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(_DATA):
            await self.app(scope, receive, send)
            return
        start: Message | None = None

        async def send_cached(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and message["status"] == 200:
                start = message
                return
            if start is None or message["type"] != "http.response.body":
                await send(message)
                return
            begun, start = start, None
            if message.get("more_body"):
                await send(begun)
                await send(message)
                return
            body = await self._finish(scope, begun, message.get("body", b""))
            await send(begun)
            await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, send_cached)

    async def _finish(self, scope: Scope, start: Message, body: bytes) -> bytes:
        """Complete the head of an answer; return the bytes to send."""
        requested, headers = Headers(scope=scope), MutableHeaders(scope=start)
        if "cache-control" not in headers and current_caller().name == ANONYMOUS_NAME:  # others keep `no-store`
            waits = b"at_least=" in scope["query_string"]
            headers["Cache-Control"] = "no-cache" if waits else self._shared
        headers["Vary"] = "Accept-Encoding, Authorization"
        digest = blake2b(body, digest_size=16).hexdigest()
        named = [value for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if name == DIGEST]
        if named and named != [digest]:
            return _replace(
                start, f"digest: the answer has the digest {digest} now. Ask without `{DIGEST}`, or with this one."
            )
        if named and headers.get("Cache-Control", "").startswith("public"):
            headers["Cache-Control"] = _FOREVER
        tag = headers.setdefault("ETag", f'W/"{digest}"')
        if _has(requested.get("if-none-match", ""), tag):
            start["status"] = 304
            for name in ("content-length", "content-type"):
                del headers[name]
            return b""
        if len(body) >= MIN_GZIP_BYTES and accepts_gzip(requested.get("accept-encoding", "")):
            body = await self._pack(digest, body)
            headers["Content-Encoding"] = "gzip"
            headers["Content-Length"] = str(len(body))
        return body

    async def _pack(self, digest: str, body: bytes) -> bytes:
        packed = self._packed.get(digest)
        if packed is not None:
            self._packed.move_to_end(digest)
            return packed
        if len(body) < _BACKGROUND_BYTES:
            packed = compress(body, _LEVEL)
        else:
            packed = await in_background(lambda: compress(body, _LEVEL))
        if digest not in self._packed:
            self._packed[digest] = packed
            self._packed_bytes += len(packed)
        while self._packed_bytes > _KEPT_BYTES:
            self._packed_bytes -= len(self._packed.popitem(last=False)[1])
        return packed


def _replace(start: Message, detail: str) -> bytes:
    """Make an answer a 404; return its body."""
    problem = ProblemError(404, detail).response()
    body = bytes(problem.body)
    start["status"] = problem.status_code
    headers = MutableHeaders(scope=start)
    headers.update({"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), "Cache-Control": "no-store"})
    return body


def _has(if_none_match: str, tag: str) -> bool:
    """Return whether a client has the answer with this validator.

    >>> _has('"a", W/"b"', 'W/"b"'), _has("*", 'W/"b"'), _has("", 'W/"b"')
    (True, True, False)
    """
    tags = {each.strip() for each in if_none_match.split(",")}
    return "*" in tags or tag in tags or tag.removeprefix("W/") in tags


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether a client can read gzip.

    >>> [accepts_gzip(each) for each in ("br, gzip", "gzip;q=0.5", "gzip;q=0", "gzip; q=0.000", "identity", "")]
    [True, True, False, False, False, False]
    """
    for part in accept_encoding.lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() == "gzip":
            return _REFUSED.fullmatch(weight.strip()) is None
    return False

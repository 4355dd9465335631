"""Let clients and caches reuse answers: a validator for each, 304 for one that the client has, and what a shared cache may keep."""

import re
from hashlib import blake2b
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.serve.access.caller import ANONYMOUS_NAME, current_caller
from monitor.serve.api.problems import MEDIA_TYPE, ProblemError

MIN_GZIP_BYTES: Final = 1_000  # smaller answers are not compressed

_LEVEL: Final = 1  # answers and metrics repeat themselves: a higher level takes more time and saves little

_REFUSED: Final = re.compile(r"gzip\s*;\s*q\s*=\s*0(\.0*)?\s*(,|$)", re.IGNORECASE)
"""In Accept-Encoding: a client that does not take gzip, and names it."""

_DATA: Final = "/api/v1/"

DIGEST: Final = "digest"  # parameter of an address that names one answer by its digest

_FOREVER: Final = "public, max-age=31536000, immutable"


class Gzip(GZipMiddleware):
    """The middleware of the framework, for clients that name gzip without refusing it."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, MIN_GZIP_BYTES, _LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and compress the answer."""
        if scope["type"] == "http" and _REFUSED.search(Headers(scope=scope).get("accept-encoding", "")):
            scope = {**scope, "headers": [header for header in scope["headers"] if header[0] != b"accept-encoding"]}
        await super().__call__(scope, receive, send)


class HttpCaching:
    """Middleware for whole answers to GET; streams and other methods pass unchanged."""

    # The validator is a digest of the answer, so every reader of a log gives the same one, and an answer that new events leave unchanged is
    # not sent again.

    def __init__(self, app: ASGIApp, shared_seconds: int = 0) -> None:
        self.app = app
        self._shared = f"public, max-age={shared_seconds}" if shared_seconds else "no-cache"

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
            body = self._finish(scope, begun, message.get("body", b""))
            await send(begun)
            await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, send_cached)

    def _finish(self, scope: Scope, start: Message, body: bytes) -> bytes:
        """Complete the head of an answer; return the bytes to send."""
        requested, headers = Headers(scope=scope), MutableHeaders(scope=start)
        if "cache-control" not in headers and current_caller().name == ANONYMOUS_NAME:  # others keep `no-store`
            waits = b"at_least=" in scope["query_string"]
            headers["Cache-Control"] = "no-cache" if waits else self._shared
        headers["Vary"] = "Authorization"
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
        return body


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

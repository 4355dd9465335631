"""Check who may send a request, and add security headers to every response. Plain ASGI, so streams pass through unbuffered."""

import re
from hmac import compare_digest
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.serve.api.problems import ProblemError
from monitor.serve.page_files import page_paths

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
PROBES: Final = frozenset({"/healthz", "/readyz"})
_HOST: Final = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Defaults; a response may set its own."""


class AccessControl:
    """Middleware that refuses requests by host, token and origin.

    Parameters
    ----------
    app : ASGI application
    token : str or None
        Bearer token of every request. The probes and the files of the page hold no data and need none.
    loopback : bool
        Whether the server is reachable from this machine only. It then accepts loopback names only as Host, against DNS rebinding, and
        refuses writes from pages of another origin.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, loopback: bool) -> None:
        self.app = app
        self._token = None if token is None else token.encode()
        self._loopback = loopback
        self._public = PROBES | page_paths().keys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal.response() if refusal else self.app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> ProblemError | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._loopback and not _is_loopback(host):
            return ProblemError(400, f"Host {host[:80]!r} is not this server. Use 127.0.0.1 or localhost.")
        if self._token is not None and scope["path"] not in self._public and not _has_token(headers, self._token):
            return ProblemError(
                401,
                "A bearer token is required. Send the header Authorization: Bearer <token>.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        writes = scope["method"] not in _SAFE_METHODS
        if self._loopback and writes and origin is not None and _netloc(origin) != host:
            return ProblemError(
                403, f"Origin {origin[:80]!r} may not write. Send the request from this server's own page."
            )
        return None


def _has_token(headers: Headers, expected: bytes) -> bool:
    authorization = next((value for name, value in headers.raw if name == b"authorization"), b"")
    scheme, _, token = authorization.partition(b" ")
    return compare_digest(token.strip(), expected) and scheme.lower() == b"bearer"


def _is_loopback(host: str) -> bool:
    """Return whether a Host header is exactly a loopback name, with or without a port."""
    match = _HOST.fullmatch(host)
    return match is not None and match[1].strip("[]").lower() in LOOPBACK_NAMES


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None

"""Who may ask, and what every answer says to a browser: plain ASGI, so that streams pass through as they are."""

from hmac import compare_digest
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.serve.api.problems import plain_problem
from monitor.serve.page_files import page_paths

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
PROBES: Final = frozenset({"/healthz", "/readyz"})
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer that does not say otherwise itself."""


class Guard:
    """Lets through who may ask.

    Parameters
    ----------
    app : ASGI application
    token : str or None
        Bearer token that every request has to carry, but for the probes and the files of the page, which hold no data.
    loopback : bool
        Whether it serves this machine only: then only loopback names are taken as Host, so that no page from elsewhere can reach it by
        pointing its own name at 127.0.0.1; and what changes something is not taken from a page of another origin.
    """

    def __init__(self, app: ASGIApp, token: str | None, *, loopback: bool) -> None:
        self.app = app
        self._token = None if token is None else token.encode()
        self._loopback = loopback
        self._public = PROBES | page_paths().keys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refused(scope)
        await (refused or self.app)(scope, receive, send_safely)

    def _refused(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        if self._loopback and not _ours(headers.get("host", "")):
            return plain_problem(
                400,
                f"Host: found {headers.get('host', '')[:80]!r}: this server answers to 127.0.0.1 and localhost only",
            )
        if self._token is not None and scope["path"] not in self._public and not self._known(headers):
            return plain_problem(
                401,
                "a bearer token is required: send the header Authorization: Bearer <token>",
                {"WWW-Authenticate": "Bearer"},
            )
        origin = headers.get("origin")
        changes = scope["method"] not in _SAFE_METHODS
        if self._loopback and changes and origin is not None and _host_of(origin) != headers.get("host"):
            return plain_problem(403, f"Origin: found {origin[:80]!r}: pages of other origins may not change anything")
        return None

    def _known(self, headers: Headers) -> bool:
        assert self._token is not None
        given = next((value for name, value in headers.raw if name == b"authorization"), b"")
        scheme, _, token = given.partition(b" ")
        return compare_digest(token.strip(), self._token) and scheme.lower() == b"bearer"


def _ours(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in LOOPBACK_NAMES and "@" not in host and "/" not in host
    except ValueError:
        return False


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None

"""Find out who sends a request, refuse it where it may do nothing, and add security headers to every response.

Plain ASGI, so streams pass through unbuffered.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from fastapi import APIRouter
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.serve.access.audit import Audit
from monitor.serve.access.caller import Caller, current_caller, set_caller
from monitor.serve.access.rules import AccessRules
from monitor.serve.api.problems import ProblemError
from monitor.serve.page_files import page_paths
from schemas.results.api import CallerReport


def caller_routes(rules: AccessRules, watched: Sequence[str], topic: str | None) -> APIRouter:
    """Make the route. Where scores come from is shown to callers who may do everything: a path shows what the machine has."""
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/caller")
    async def caller() -> CallerReport:
        """Report whose token the request carries, what it may do, and until when."""
        caller = current_caller()
        return CallerReport(
            name=caller.name,
            scopes=list(caller.grants.scopes),
            expires=caller.expires,
            signed_in=caller.signed_in,
            tokens=rules.restricted,
            watched=list(watched) if caller.grants.admin else [],
            topic=topic if caller.grants.admin else None,
        )

    return routes


LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
PROBES: Final = frozenset({"/healthz", "/readyz"})
_HOST: Final = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

SECURITY_HEADERS: Final = {  # Defaults; a response may set its own
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Withdrawn(Exception):  # noqa: N818 - it ends a response, and nothing is wrong
    """The caller lost its rights while a response was under way; `refusal` is sent instead of one that has not begun."""

    def __init__(self, refusal: ProblemError | None) -> None:
        self.refusal = refusal


class AccessControl:
    """Middleware that refuses requests by host, token and origin, and sets the caller of those that it passes on."""

    # An answer that is read gets no further part once the caller's rights have changed: its token was revoked, expired or got other scopes.

    def __init__(self, app: ASGIApp, rules: AccessRules, audit: Audit, *, loopback: bool) -> None:
        self.app = app
        self._rules, self._audit = rules, audit
        self._loopback = loopback
        self._public = PROBES | page_paths().keys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        caller: Caller | None = None

        async def send_checked(message: Message) -> None:
            if caller is not None:
                await self._check_rights(caller, scope, message, send)
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            caller = self._admit(scope)
        except ProblemError as refusal:
            if refusal.problem.status in {400, 401}:
                self._audit.refused(_address(scope), scope["path"], refusal.problem.status)
            await refusal.response()(scope, receive, send_checked)
            return
        try:
            await self.app(scope, receive, send_checked)
        except _Withdrawn as withdrawn:
            if withdrawn.refusal is not None:
                caller = None
                await withdrawn.refusal.response()(scope, receive, send_checked)

    async def _check_rights(self, caller: Caller, scope: Scope, message: Message, send: Send) -> None:
        """End an answer, or raise what is sent in its place, if its caller has other rights than when it was admitted."""
        begins = message["type"] == "http.response.start"
        # An answer may have waited for half a minute. That of a write is the receipt, in one part.
        checked = scope["method"] in _SAFE_METHODS if begins else message.get("more_body")
        if not checked or (refusal := self._refusal(caller, scope)) is None:
            return
        if not begins:
            await send({"type": "http.response.body"})
        raise _Withdrawn(refusal if begins else None)

    def _refusal(self, caller: Caller, scope: Scope) -> ProblemError | None:
        """Return why a request that was admitted is not answered; None if its caller has the same rights now."""
        try:
            if self._rules.identify(Headers(scope=scope), _address(scope)) == caller:
                return None
        except ProblemError as refusal:
            return refusal
        return ProblemError(503, "The scopes of the token have changed meanwhile. Retry.", headers={"Retry-After": "1"})

    def _admit(self, scope: Scope) -> Caller | None:
        """Return the caller of a request, None for a public file, or raise what refuses it."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._loopback and not _is_loopback(host):
            raise ProblemError(400, f"Host {host[:80]!r} is not this server. Use 127.0.0.1 or localhost.")
        caller = None
        if scope["path"] not in self._public:
            caller = self._rules.identify(headers, _address(scope))
            set_caller(caller)
        writes = scope["method"] not in _SAFE_METHODS
        if self._loopback and writes and origin is not None and _netloc(origin) != host:
            raise ProblemError(
                403, f"Origin {origin[:80]!r} may not write. Send the request from this server's own page."
            )
        site = headers.get("sec-fetch-site", "same-origin")
        if writes and caller is not None and caller.by_proxy and site not in {"same-origin", "none"}:
            # A browser adds the cookies of the proxy to the requests of any page.
            raise ProblemError(
                403, "A page of another site may not write. Send the request from this server's own page."
            )
        return caller


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _is_loopback(host: str) -> bool:
    """Return whether a Host header is exactly a loopback name, with or without a port."""
    match = _HOST.fullmatch(host)
    return match is not None and match[1].strip("[]").lower() in LOOPBACK_NAMES


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None

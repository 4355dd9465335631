"""Find out who sends a request, and check what they may do."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hmac import compare_digest
from pathlib import Path

import structlog
from starlette.datastructures import Headers

from monitor.serve.access.access_file import AccessFile, AccessFileError
from monitor.serve.access.caller import ANONYMOUS_NAME, LOCAL, OPERATOR, Caller, current_caller
from monitor.serve.access.proxy import TrustedProxy
from monitor.serve.access.scopes import NOTHING, Grants
from monitor.serve.api.problems import ProblemError
from schemas.records.text import shorten

_log = structlog.get_logger()

USER_HEADER, GROUPS_HEADER = "X-Forwarded-User", "X-Forwarded-Groups"  # as oauth2-proxy names them

_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class AccessRules:
    """Who may do what."""

    def __init__(
        self,
        token: str | None = None,
        access_file: Path | None = None,
        anonymous_read: str | None = None,
        trusted_proxies: str | None = None,
        proxy_user_header: str = USER_HEADER,
        proxy_groups_header: str = GROUPS_HEADER,
    ) -> None:
        self._token = None if token is None else token.encode()
        self._file = None if access_file is None else AccessFile(access_file.absolute())
        self._anonymous = Caller(ANONYMOUS_NAME, NOTHING, signed_in=False)
        self._reported: str | None = None
        if anonymous_read is not None:
            globs = [glob.strip() for glob in anonymous_read.split(",")]
            try:
                grants = Grants.of(f"read:{glob}" for glob in globs if glob)
            except ValueError as error:
                raise ValueError(
                    f"anonymous_read: {error}; give names of benchmarks, with * for any characters"
                ) from error
            self._anonymous = Caller(ANONYMOUS_NAME, grants, signed_in=False)
        elif token is None and access_file is None and trusted_proxies is None:
            self._anonymous = LOCAL
        self._proxy = None
        if trusted_proxies is not None:
            self._proxy = TrustedProxy(trusted_proxies, proxy_user_header, proxy_groups_header, self._groups)
        if self._file is not None:
            self._file.tokens()

    @property
    def restricted(self) -> bool:
        """Whether a token gives rights that callers without one lack."""
        return self._anonymous is not LOCAL

    def identify(self, headers: Headers, address: str = "") -> Caller:
        """Return the caller of a request from an address."""
        given = [value for name, value in headers.raw if name == b"authorization"]
        if len(given) > 1:
            raise ProblemError(400, "The request has several Authorization headers. Send one.")
        if not self.restricted:
            return LOCAL
        if not given:
            user = None if self._proxy is None else self._proxy.user(headers, address)
            if user is not None:
                return user
            if self._anonymous.grants.scopes:
                return self._anonymous
            raise ProblemError(
                401, "A bearer token is required. Send the header Authorization: Bearer <token>.", headers=_CHALLENGE
            )
        scheme, _, secret = given[0].partition(b" ")
        caller = self._holder(secret.strip())
        if caller is None or scheme.lower() != b"bearer":
            raise ProblemError(
                401,
                "The token is unknown, has expired or was revoked. Send a valid one in the header Authorization: Bearer <token>.",
                headers=_CHALLENGE,
            )
        return caller

    def _holder(self, secret: bytes) -> Caller | None:
        if self._token is not None and compare_digest(secret, self._token):
            return OPERATOR
        if self._file is None:
            return None
        with self._readable():
            token = self._file.find(secret)
        return None if token is None else Caller(token.name, token.grants, token.expires)

    def _groups(self) -> Mapping[str, Grants]:
        """Return what groups may do; without a file, none may do anything."""
        if self._file is None:
            return {}
        with self._readable():
            return self._file.groups()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Raise the 503, and log the reason once, if the file cannot be used."""
        try:
            yield
        except AccessFileError as error:
            if str(error) != self._reported:
                _log.error("the access file cannot be used, so nothing in it is accepted", reason=str(error))
                self._reported = str(error)
            raise ProblemError(
                503,
                "The server cannot read its tokens. Its log on standard error has the cause. Retry when that is fixed.",
                headers={"Retry-After": "5"},
            ) from error
        self._reported = None


def require(verb: str, benchmarks: Iterable[str]) -> None:
    """Raise the 403 unless the caller may write, declare or manage the benchmarks; the answer does not depend on whether they exist."""
    grants = current_caller().grants
    for benchmark in benchmarks:
        if not grants.may(verb, benchmark):
            raise _denied(f"{verb} benchmark {shorten(benchmark)}", f"{verb}:{shorten(benchmark)}")


def require_any(verb: str) -> None:
    """Raise the 403 unless the caller may write or declare some benchmark, before its request is read."""
    if not current_caller().grants.may_any(verb):
        raise _denied(f"{verb} any benchmark", verb)


def require_all(verb: str, what: str) -> None:
    """Raise the 403 unless the caller may read every benchmark."""
    if not current_caller().grants.reads_all:
        raise _denied(f"{verb} {what}", verb)


def _denied(action: str, scope: str) -> ProblemError:
    caller = current_caller()
    if caller.signed_in:
        return ProblemError(403, f"{caller.name} may not {action}. Send a token that has the scope {scope}.")
    detail = f"A token is required to {action}. Send one that has the scope {scope} in the header Authorization: Bearer <token>."
    return ProblemError(401, detail, headers=_CHALLENGE)

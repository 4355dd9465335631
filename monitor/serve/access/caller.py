"""The caller of a request: its name, and what it may do."""

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from monitor.serve.access.scopes import EVERYTHING, Grants
from schemas.records.names import PRODUCER


@dataclass(frozen=True)
class Caller:
    """Who sent a request."""

    name: str
    grants: Grants
    expires: datetime | None = None
    signed_in: bool = True
    by_proxy: bool = False


LOCAL: Final = Caller("local", EVERYTHING, signed_in=False)
"""Every caller of a server without access rules: it listens on loopback only."""

OPERATOR: Final = Caller("operator", EVERYTHING)  # the holder of the token in the setting `token`

ANONYMOUS_NAME: Final = "anonymous"

RESERVED_NAMES: Final = frozenset({LOCAL.name, OPERATOR.name, ANONYMOUS_NAME})

_caller: ContextVar[Caller] = ContextVar("caller")


def caller_name_fault(name: str) -> str | None:
    """Return what is wrong with the name of a caller, or None.

    >>> caller_name_fault("ci@example.org"), caller_name_fault("a b")
    (None, "'a b' is not a name; use 1 to 100 characters of A-Z a-z 0-9 . _ @ + -, a letter or digit first")
    """
    if PRODUCER.fullmatch(name) and ":" not in name:
        return None
    return f"{name[:100]!r} is not a name; use 1 to 100 characters of A-Z a-z 0-9 . _ @ + -, a letter or digit first"


def current_caller() -> Caller:
    """Return the caller of the request under way; there is always one inside `AccessControl`."""
    return _caller.get()


def set_caller(caller: Caller) -> None:
    """Set the caller for the rest of this request and for the threads that it starts."""
    _caller.set(caller)


def may_read(benchmark: str) -> bool:
    """Return whether the caller may read a benchmark."""
    return _caller.get().grants.may("read", benchmark)

"""One line of `rankwatch doctor`."""

from typing import Literal, NamedTuple

Level = Literal["ok", "warning", "fault"]


class Finding(NamedTuple):
    """What was checked, its state, and the fix (empty if all is well)."""

    level: Level
    subject: str
    fact: str
    advice: str = ""


def ok(subject: str, fact: str) -> Finding:
    """Return a finding without a problem."""
    return Finding("ok", subject, fact)


def warning(subject: str, fact: str, advice: str) -> Finding:
    """Return a problem that the service can work with."""
    return Finding("warning", subject, fact, advice)


def fault(subject: str, fact: str, advice: str) -> Finding:
    """Return a problem that the service cannot work with."""
    return Finding("fault", subject, fact, advice)

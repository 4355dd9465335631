"""Log what may happen very often at most once a minute a kind."""

from collections.abc import Callable
from time import monotonic
from typing import Any, Final, Literal

import structlog

_log = structlog.get_logger()

NOTICE_SECONDS: Final = 60.0


class Notices:
    """Writes an event of each kind at most once a minute; the next line of the kind counts the events in between.

    >>> now = [0.0]
    >>> notices = Notices(60, clock=lambda: now[0])
    >>> [notices.due("lag"), notices.due("lag"), notices.due("rejects")]
    [0, None, 0]
    >>> now[0] = 60.0
    >>> notices.due("lag")
    1
    """

    def __init__(self, seconds: float = NOTICE_SECONDS, clock: Callable[[], float] = monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._last: dict[str, float] = {}
        self._omitted: dict[str, int] = {}

    def due(self, kind: str) -> int | None:
        """Return how many events of a kind were omitted since its last line, or None if this one is to be omitted too."""
        now = self._clock()
        if now - self._last.get(kind, -self._seconds) < self._seconds:
            self._omitted[kind] = self._omitted.get(kind, 0) + 1
            return None
        self._last[kind] = now
        return self._omitted.pop(kind, 0)

    def log(self, level: Literal["info", "warning", "error"], kind: str, **fields: Any) -> None:  # noqa: ANN401 - the fields of a line
        """Log a line, unless one of its kind was logged less than a minute ago."""
        if (omitted := self.due(kind)) is not None:
            getattr(_log, level)(kind, **fields, omitted=omitted)

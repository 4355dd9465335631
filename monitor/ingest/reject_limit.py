"""Stop a run in which too many lines cannot be read."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from monitor.ingest.files.paths import show
from schemas.records.packed import Reject

_NAMED: Final = 3
_HALF: Final = 0.5


class RejectedLine(NamedTuple):
    """A rejected line, shown as ``FILE:LINE: FIELD: what is wrong; what to do``."""

    source: str
    line: int | None
    field: str
    reason: str

    @classmethod
    def of(cls, reject: Reject) -> Self:
        """Return the line of a reject."""
        return cls(reject["source"], reject["line"], reject["field"], reject["reason"])

    def __str__(self) -> str:
        where = show(self.source) if self.line is None else f"{show(self.source)}:{self.line}"
        return f"{where}: {self.field}: {self.reason}"


class TooManyRejected(ValueError):  # noqa: N818 - named after the state of the input
    """Too many lines cannot be read for the rest to mean much.

    Attributes
    ----------
    problem : str
        The message without the first rejects, for a caller that has printed them.
    """

    def __init__(self, problem: str, first: Sequence[Reject]) -> None:
        super().__init__(problem + "; the first rejects:" + "".join(f"\n  {RejectedLine.of(each)}" for each in first))
        self.problem = problem


class RejectLimit:
    """Counts lines and rejects, and raises `TooManyRejected` beyond a limit.

    Parameters
    ----------
    share : float
        The largest share of rejected lines, in [0, 1].
    at_least : int
        So many rejects are always allowed: a share of a few lines means nothing.

    Attributes
    ----------
    lines, rejected : int
        The counts so far.

    Examples
    --------
    >>> limit = RejectLimit()
    >>> limit.add(1_000, [])
    >>> limit.lines, limit.rejected
    (1000, 0)
    """

    def __init__(self, share: float = 0.1, at_least: int = 20) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share}; use a share of the lines from 0 to 1")
        if at_least < 0:
            raise ValueError(f"at_least is {at_least}; use a number of lines from 0")
        self.share, self.at_least = share, at_least
        self.lines = self.rejected = 0
        self._first: dict[tuple[str, str, str], Reject] = {}
        """The first rejects, one of each reason."""

    def add(self, lines: int, rejects: Sequence[Reject]) -> None:
        """Count lines, with their rejects; raise `TooManyRejected` beyond the limit."""
        self.lines += lines
        self.rejected += len(rejects)
        for each in rejects if len(self._first) < _NAMED else ():
            alike = (each["source"], each["field"], each["reason"])
            if alike not in self._first and len(self._first) < _NAMED:
                self._first[alike] = each
        if self.rejected > max(self.at_least, self.share * self.lines):
            allowed = f"more than {self.share:.0%} of the lines and more than {self.at_least}"
            problem = f"stopped at {self.rejected:,} rejected of {self.lines:,} lines, {allowed}"
            raise TooManyRejected(
                f"{problem}; fix the files, or raise the limit with --max-rejected", [*self._first.values()]
            )

    def finish(self) -> None:
        """Raise `TooManyRejected` if more than half of the lines, however few, cannot be read, unless `share` allows more; never all."""
        if self.lines and self.rejected == self.lines:
            raise TooManyRejected(
                f"no line can be read (rejected: {self.rejected:,}); fix the files", [*self._first.values()]
            )
        if self.rejected > max(_HALF, self.share) * self.lines:
            problem = f"{self.rejected:,} of {self.lines:,} lines cannot be read, more than half"
            raise TooManyRejected(
                f"{problem}; fix the files, or raise the limit with --max-rejected", [*self._first.values()]
            )

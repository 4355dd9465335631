"""How many lines may be unreadable before the run is stopped."""

from collections.abc import Sequence
from typing import Final

from monitor.ingest.files.paths import show
from schemas.packed import Reject

_SHOWN: Final = 3


class TooManyRejected(ValueError):  # noqa: N818 - the state of the input is its name
    """So much could not be read that what could be read says little."""


class RejectLimit:
    """Counts lines and rejects, and stops when the rejects are too many.

    Parameters
    ----------
    share : float
        The largest share of rejected lines, in [0, 1].
    at_least : int
        So many rejects are always allowed: a share of a few lines says nothing.

    Attributes
    ----------
    lines, rejected : int
        What has been counted.

    Examples
    --------
    >>> limit = RejectLimit()
    >>> limit.add(1_000, [])
    >>> limit.lines, limit.rejected
    (1000, 0)
    """

    def __init__(self, share: float = 0.1, at_least: int = 20) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share}: give a share of the lines, from 0 to 1")
        if at_least < 0:
            raise ValueError(f"at_least is {at_least}: give a number of lines, from 0")
        self.share, self.at_least = share, at_least
        self.lines = self.rejected = 0
        self._first: list[Reject] = []

    def add(self, lines: int, rejects: Sequence[Reject]) -> None:
        """Count lines, the rejected ones among them; raise `TooManyRejected` beyond the limit."""
        self.lines += lines
        self.rejected += len(rejects)
        self._first += rejects[: _SHOWN - len(self._first)]
        if self.rejected > max(self.at_least, self.share * self.lines):
            allowed = f"more than {self.share:.0%} of the lines and more than {self.at_least}"
            raise TooManyRejected(
                self._message(f"stopped at {self.rejected:,} rejected of {self.lines:,} lines, {allowed}")
            )

    def finish(self) -> None:
        """Raise `TooManyRejected` if there were lines and not one of them could be read."""
        if self.lines and self.rejected == self.lines:
            raise TooManyRejected(self._message(f"none of the {self.lines:,} lines could be read"))

    def _message(self, what: str) -> str:
        rejects = "".join(
            f"\n  {show(r['source'])}:{r['line']}: {r['field']}: found {r['found']}: {r['reason']}" for r in self._first
        )
        return f"{what}; mend the files, or raise the limit with --max-rejected; the first:{rejects}"

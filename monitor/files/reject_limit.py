"""Stop a run in which too many lines cannot be read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from monitor.files.streams.paths import show
from schemas.records.text import Reject, Sentence, shorten

_NAMED: Final = 3
_HALF: Final = 0.5
_ENOUGH: Final = 1_000  # scores on another scale from which the scale shows

_SCALES: Final = (5, 10, 100)


class RejectedLine(NamedTuple):
    """A rejected line, shown as ``FILE:LINE: FIELD: what is wrong; what to do``."""

    source: str
    line: int | None
    field: str
    reason: Sentence

    @classmethod
    def of(cls, reject: Reject) -> Self:
        """Return the line of a reject."""
        return cls(reject["source"], reject["line"], reject["field"], reject["reason"])

    def __str__(self) -> str:
        return f"{_place(self.source, self.line)}: {self.field}: {self.reason}"


def _place(source: str, line: int | None) -> str:
    return show(source) if line is None else f"{show(source)}:{line}"


class TooManyRejected(ValueError):  # noqa: N818 - named after the state of the input
    """Too many lines cannot be read for the rest to mean much."""

    def __init__(self, problem: str, first: Sequence[Reject]) -> None:
        shown = "".join(f"\n  {RejectedLine.of(each)}" for each in first)
        super().__init__(f"{problem}; the first rejects:{shown}" if shown else problem)
        self.problem = problem


class ScaleError(TooManyRejected):
    """Scores are on another scale: those that are above 1 would be rejected, and the others count for what they are not."""

    def __init__(self, found: Mapping[str | None, "_Above"]) -> None:
        parts = [each.describe(name, named=len(found) > 1) for name, each in list(found.items())[:_NAMED]]
        super().__init__("; ".join(parts), [])


@dataclass
class _Above:
    """Scores of a benchmark that are most likely on another scale."""

    from_one: bool  # whether no score that was read is below 1
    first: str  # where the first of them is
    count: int = 0
    largest: float = 0.0

    def describe(self, name: str | None, *, named: bool) -> str:
        """Return what was found, and which scale to give."""
        flag = f"--scale {f'{shorten(name)}=' if named and name else ''}"
        where = "scores" if name is None else f"{shorten(name)}: scores"
        usual = next((each for each in _SCALES if self.largest <= each), _SCALES[-1])
        grades = self.from_one and usual != _SCALES[-1]
        scale, words = (f"1:{usual}", f"from 1 to {usual}") if grades else (f"{usual}", f"up to {usual}")
        return (
            f"{where} are not from 0 to 1 ({self.count:,} above it, the largest {self.largest:g}, the first in {self.first}); "
            f"add {flag}{scale} if they go {words}, or the scale that they have; correct a score that is wrong"
        )


class RejectLimit:
    """Counts lines and rejects, and raises `TooManyRejected` beyond a limit.

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
        self._above: dict[str | None, _Above] = {}
        self._noticed: set[str | None] = set()
        self._first: dict[tuple[str, str, str], Reject] = {}  # the first rejects, one of each reason

    @property
    def scaled(self) -> int:
        """How many of the rejects are scores that are most likely on another scale."""
        return sum(each.count for each in self._above.values())

    def add(
        self, lines: int, rejects: Sequence[Reject], from_one: Callable[[str | None], bool] = lambda _: False
    ) -> None:
        """Count lines, with their rejects; raise `TooManyRejected` beyond the limit."""
        # `from_one` returns whether no score of a benchmark that was read so far is below 1.
        self.lines += lines
        self.rejected += len(rejects)
        for each in rejects:
            if "above" in each:
                place = _place(each["source"], each["line"])
                found = self._above.setdefault(each.get("benchmark"), _Above(from_one=True, first=place))
                found.count, found.largest = found.count + 1, max(found.largest, each["above"])
        for name, above in self._above.items():
            above.from_one = above.from_one and from_one(name)
        if self.scaled > max(_ENOUGH, self.share * self.lines):
            raise ScaleError(self._above)
        for each in rejects if len(self._first) < _NAMED else ():
            alike = (each["source"], each["field"], each["reason"])
            if alike not in self._first and len(self._first) < _NAMED:
                self._first[alike] = each
        if self.rejected - self.scaled > max(self.at_least, self.share * self.lines):
            if self._above:
                raise ScaleError(self._above)
            allowed = f"more than {self.share:.0%} of the lines and more than {self.at_least}"
            problem = f"stopped at {self.rejected:,} rejected of {self.lines:,} lines, {allowed}"
            raise TooManyRejected(
                f"{problem}; fix the files, or raise the limit with --max-rejected", [*self._first.values()]
            )

    def new_scale_fault(self) -> ScaleError | None:
        """Return an error about the benchmarks on another scale that it was not called for before; None without any."""
        new = {name: above for name, above in self._above.items() if name not in self._noticed}
        self._noticed |= new.keys()
        return ScaleError(new) if new else None

    def finish(self) -> None:
        """Raise `TooManyRejected` if more than half of the lines, however few, cannot be read, unless `share` allows more; never all."""
        # One score on another scale is enough: of the others it is not known what they mean.
        if self._above:
            raise ScaleError(self._above)
        if self.lines and self.rejected == self.lines:
            raise TooManyRejected(
                f"no line can be read (rejected: {self.rejected:,}); fix the files", [*self._first.values()]
            )
        if self.rejected > max(_HALF, self.share) * self.lines:
            problem = f"{self.rejected:,} of {self.lines:,} lines cannot be read, more than half"
            raise TooManyRejected(
                f"{problem}; fix the files, or raise the limit with --max-rejected", [*self._first.values()]
            )

"""Set a benchmark aside that the fold cannot go on with, so that the other benchmarks of its partition go on.

Which records are set aside is a function of the log, or of a decision that is stored with the offset at which it was made: see
docs/decisions/0022-quarantine.md.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from schemas.records.boards import Suspect
from schemas.records.text import shorten

WEIGHT: Final = 9
"""What an unreadable record adds; a readable event takes 1 off. So a share of 10 % is where the sum neither grows nor falls, as with the
share of lines that `report` and `watch` allow."""

MOST: Final = 500 * WEIGHT
"""Sum beyond which a benchmark is set aside. One task that writes NaN for its few hundred items does not reach it; 500 unreadable records
without a readable one are another format, or another program. Beyond it the readable scores may be a biased selection."""

NAMES: Final = 10_000  # most benchmarks that are watched at a time; the keys of unreadable records come from outside


class Quarantine:
    """The benchmarks of a partition that are set aside, and those with unreadable records.

    >>> quarantine = Quarantine()
    >>> for offset in range(501):
    ...     quarantine.unreadable("m", offset)
    >>> quarantine.takes("m", 1, 501), quarantine.takes("n", 1, 502)
    (True, False)
    >>> quarantine.release("m")
    >>> quarantine.takes("m", 1, 503)
    False
    """

    def __init__(self, suspects: Iterable[Suspect] = ()) -> None:
        self._suspects = {each.benchmark: each for each in suspects}
        self._changed: set[str] = set()

    def __bool__(self) -> bool:
        """Return whether any benchmark is watched or set aside."""
        return bool(self._suspects)

    def __iter__(self) -> Iterator[Suspect]:
        """Iterate over the benchmarks that are set aside."""
        return (each for each in self._suspects.values() if each.since is not None)

    def of(self, benchmark: str) -> Suspect | None:
        """Return the entry of a benchmark that is set aside, or None."""
        entry = self._suspects.get(benchmark)
        return entry if entry is not None and entry.since is not None else None

    def takes(self, benchmark: str, events: int, last: int) -> bool:
        """Count readable events of a benchmark, the last of them at an offset; return whether they are set aside."""
        entry = self._suspects.get(benchmark)
        if entry is None:
            return False
        if entry.since is None:
            self._put(entry._replace(weight=max(0, entry.weight - events)))
            return False
        self._put(entry._replace(records=entry.records + events, last=last))
        return True

    def unreadable(self, benchmark: str, offset: int) -> None:
        """Count an unreadable record of a benchmark; set the benchmark aside if there are too many."""
        entry = self._suspects.get(benchmark) or Suspect(benchmark)
        if len(self._suspects) >= NAMES and benchmark not in self._suspects:
            return
        entry = entry._replace(weight=entry.weight + WEIGHT)
        if entry.since is None and entry.weight > MOST:
            reason = f"too many of its records cannot be read, the last at offset {offset:,}"
            entry = entry._replace(since=offset + 1, last=offset, reason=reason)
        self._put(entry)

    def impose(self, benchmark: str, offset: int, reason: str) -> None:
        """Set a benchmark aside from the record at an offset on, because of something that the log does not show."""
        entry = self._suspects.get(benchmark) or Suspect(benchmark)
        self._put(entry._replace(since=offset, last=offset, reason=reason))

    def release(self, benchmark: str) -> None:
        """End the quarantine of a benchmark, and forget its unreadable records."""
        if benchmark in self._suspects:
            self._put(Suspect(benchmark))

    def changed(self) -> dict[str, Suspect]:
        """Return the entries that have changed since the last call; one with nothing to remember is `clear`."""
        changed, self._changed = self._changed, set()
        return {name: self._suspects.get(name, Suspect(name)) for name in changed}

    def _put(self, entry: Suspect) -> None:
        self._changed.add(entry.benchmark)
        if entry.clear:
            del self._suspects[entry.benchmark]
        else:
            self._suspects[entry.benchmark] = entry


def crash_reason(error: BaseException, offset: int) -> str:
    """Return why a benchmark is set aside whose record crashes the fold."""
    return f"the record at offset {offset:,} causes an error of rankwatch itself ({shorten(type(error).__name__)})"

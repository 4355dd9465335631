"""Keep what was computed from benchmarks until they change."""

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from time import monotonic
from typing import Final, Generic, NamedTuple, TypeVar

from monitor.serve.log_position import accepts, note_older
from monitor.view.board import BoardView

_Result = TypeVar("_Result")

QUICK_SECONDS: Final = 0.2
"""Results that take at most this long, those of a few hundred models, are computed for every state."""


class _Kept(NamedTuple, Generic[_Result]):
    """A result, the state it was computed from, and until when it is reused although the state has changed."""

    sources: tuple[BoardView, ...]
    version: tuple[object, ...]
    offsets: Mapping[int, int]
    """The offset up to which each partition was folded."""
    result: _Result
    until: float

    def is_of(self, sources: tuple[BoardView, ...]) -> bool:
        """Return whether it was computed from the same benchmarks, as objects: one that was loaded again is another one."""
        pairs = zip(self.sources, sources, strict=False)
        return len(self.sources) == len(sources) and all(one.origin is other.origin for one, other in pairs)

    def is_accepted(self) -> bool:
        """Return whether the current request may get it."""
        return all(accepts(partition, offset) for partition, offset in self.offsets.items())


class KeptResults(Generic[_Result]):
    """Results by key, those last requested; a thread and the event loop may use it at once."""

    def __init__(
        self, most: int, offsets: Callable[[Iterable[BoardView]], Mapping[int, int]], cooldown: float = 0
    ) -> None:
        self._most, self._offsets, self._cooldown = most, offsets, cooldown
        self._kept: dict[object, _Kept[_Result]] = {}
        self._lock = Lock()
        """Held while results are looked up or dropped."""

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._kept.clear()

    def drop(self, key: object, without: Callable[[_Result], bool]) -> None:
        """Drop the results of other keys for which `without` is true."""
        with self._lock:
            self._kept = {other: kept for other, kept in self._kept.items() if other == key or not without(kept.result)}

    def current(self, key: object, sources: tuple[BoardView, ...]) -> _Result | None:
        """Return the kept result of the state as it is now, or None."""
        with self._lock:
            kept = self._kept.get(key)
        if kept is None or not kept.is_of(sources) or kept.version != tuple(source.version for source in sources):
            return None
        return kept.result

    def get(self, key: object, sources: tuple[BoardView, ...], compute: Callable[[], _Result]) -> _Result:
        """Return a kept result, computed again if the state has changed; note for the current request how old it is."""
        version, start = tuple(source.version for source in sources), monotonic()
        with self._lock:
            entry = self._kept.pop(key, None)
        if (
            entry is None
            or not entry.is_of(sources)
            or (entry.version != version and not (self._cooldown and start < entry.until and entry.is_accepted()))
        ):
            entry = None  # two tables of a large benchmark do not fit
            result = compute()
            end = monotonic()
            until = end + self._cooldown * max(0.0, end - start - QUICK_SECONDS)
            entry = _Kept(sources, version, self._offsets(sources), result, until)
        elif entry.version != version:
            for partition, offset in entry.offsets.items():
                note_older(partition, offset)
        with self._lock:
            self._kept[key] = entry
            if len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
        return entry.result

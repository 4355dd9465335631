"""Keep what was computed from benchmarks, by what was asked for: the one rule for what is given again, and as of which state."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from math import exp, inf
from threading import Lock
from time import monotonic
from typing import Any, Final, Generic, NamedTuple, TypeVar
from weakref import ref

from monitor.serve.log_position import accepts, note_lag, note_older, without_position

_Result = TypeVar("_Result")
_Read = Callable[[Callable[[], Any]], Awaitable[Any]]

SLOW_SECONDS: Final = 0.2  # what took longer is given again although the state has changed

REST: Final = 3  # it is computed again after this many times its time: the fold keeps the rest

MOST_SECONDS: Final = 60.0  # an answer that is older, and no longer that of the state, is not given again

_AT_ONCE: Final = 4  # when so many answers are being computed, earlier ones are given again, and no other is begun

_SHARE: Final = 0.3
"""The same holds when computing answers took more than this share of the last seconds: the fold keeps the rest."""

_FRESH_SECONDS: Final = 0.5
"""The share falls with the age of the state from this age on: the fold catches up first, for all boards and streams wait for it."""

_SHARE_SECONDS: Final = 2.0

_PATIENCE_SECONDS: Final = 0.1  # how long a request waits for a new answer where there is an earlier one

_ENTRY_BYTES: Final = 2_000  # what an entry takes besides its content


class Origin(NamedTuple):
    """The state from which something is computed."""

    sources: tuple[object, ...]
    """By identity: the benchmark, or the members of a suite that exist; of a list, the partitions."""
    version: tuple[object, ...]  # differs whenever one of them has changed since it was loaded
    offsets: Mapping[int, int]  # the offset up to which each of their partitions was folded


class Kept(NamedTuple, Generic[_Result]):
    """A result, and the state that it was computed from."""

    sources: tuple[ref[Any], ...]
    version: tuple[object, ...]
    offsets: Mapping[int, int]
    result: _Result
    size: int
    at: float  # when it was computed
    seconds: float  # how long that took

    def is_of(self, origin: Origin) -> bool:
        """Return whether it was computed from the same sources, as objects: one that was loaded again is another one."""
        pairs = zip(self.sources, origin.sources, strict=False)
        return len(self.sources) == len(origin.sources) and all(known() is source for known, source in pairs)

    def is_current(self, origin: Origin) -> bool:
        """Return whether it is of the state as it is now."""
        return self.version == origin.version and self.is_of(origin)

    def is_accepted(self) -> bool:
        """Return whether the current request may get it."""
        return all(accepts(partition, offset) for partition, offset in self.offsets.items())

    def is_slow(self) -> bool:
        """Return whether computing it took long."""
        return self.seconds > SLOW_SECONDS

    def rests(self) -> bool:
        """Return whether computing it took long, and it is not yet time to do so again."""
        return self.is_slow() and monotonic() < self.at + REST * self.seconds


class Cache:
    """Results by key, those last requested; a thread and the event loop may use it at once."""

    # A result is given while the state is the one that it was computed from. One of an earlier state is given in place of a new one if the
    # request accepts its offset, it is not too old, and either it rests or no time is left for computing.

    def __init__(self, most: int) -> None:
        self.state_age: Callable[[], float] = lambda: 0.0
        """Returns how long ago the end of the log was seen that is folded, in seconds."""
        self._most, self._size = most, 0
        """The size of what stays in memory, and what there is; the last result stays, however large it is."""
        self._kept: dict[object, Kept[Any]] = {}
        self._computing: dict[object, asyncio.Task[Kept[Any]]] = {}
        self._spent = self._spent_at = 0.0
        """Seconds that computing answers took of late, decaying, and when they were counted."""
        self._lock = Lock()  # held while results are looked up or dropped

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._kept, self._size = {}, 0

    def at(self, key: object) -> float:
        """Return when a result was computed; without one, earlier than any."""
        kept = self._kept.get(key)
        return -inf if kept is None else kept.at

    def current(self, key: object, origin: Origin) -> Kept[Any] | None:
        """Return the result of the state as it is now, or None."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or not kept.is_current(origin):
                return None
            self._kept[key] = self._kept.pop(key)
            return kept

    def get(
        self,
        key: object,
        origin: Origin,
        compute: Callable[[], _Result],
        *,
        size: int = 0,
        most_seconds: float = MOST_SECONDS,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> _Result:
        """Return a result, computed if needed; note for the current request how old it is."""
        # `size` is that of what is no bytes. `most_seconds` is the greatest age of a result of an earlier state; 0 accepts none.
        kept = self.current(key, origin)
        if kept is None:
            kept = self._earlier(key, origin, most_seconds)
            if kept is not None and (kept.rests() or is_busy()):
                for partition, offset in kept.offsets.items():
                    note_older(partition, offset)
            else:
                kept = None  # two tables of a large benchmark do not fit
                self._make_room(key, size)
                kept = self._keep(key, _computed(key, origin, compute, size))
        result: _Result = kept.result
        return result

    async def answer(
        self, key: str, find: Callable[[], Origin], render: Callable[[], bytes], read: _Read
    ) -> Kept[bytes]:
        """Return an answer, as of an earlier offset if the next takes long; requests for one that is being computed share it."""
        # Only the event loop may call it. `find` returns the state, or raises the 404; `read` runs work while the state does not change.
        origin = find()
        kept = self.current(key, origin)
        if kept is not None:
            return kept._replace(offsets=origin.offsets)
        kept = await self._next(
            key, lambda: _computed(key, find(), render), read, self._earlier(key, origin, MOST_SECONDS)
        )
        for partition, offset in origin.offsets.items():
            if offset > kept.offsets.get(partition, offset):
                note_lag(partition, offset - kept.offsets[partition])
        return kept

    async def _next(
        self, key: str, work: Callable[[], Kept[bytes]], read: _Read, earlier: Kept[bytes] | None
    ) -> Kept[bytes]:
        """Return a new answer, or the earlier one where the new one takes long, and is computed meanwhile."""
        task = self._computing.get(key)
        if earlier is None:
            kept = await asyncio.shield(task or self._begin(key, work, read))
            if not kept.is_accepted():  # it was begun before the request
                kept = await asyncio.shield(self._computing.get(key) or self._begin(key, work, read))
            return kept
        if task is None and not earlier.rests() and not self._is_busy():
            task = self._begin(key, work, read)
        if task is None or earlier.is_slow():
            return earlier
        await asyncio.wait([task], timeout=_PATIENCE_SECONDS)
        kept = task.result() if task.done() else earlier
        return kept if kept.is_accepted() else earlier

    def _begin(self, key: str, work: Callable[[], Kept[bytes]], read: _Read) -> asyncio.Task[Kept[bytes]]:
        task = self._computing[key] = asyncio.create_task(self._compute(key, work, read), context=without_position())
        task.add_done_callback(_retrieve)
        return task

    async def _compute(self, key: str, work: Callable[[], Kept[bytes]], read: _Read) -> Kept[bytes]:
        try:
            kept: Kept[bytes] = await read(work)
        except BaseException:
            self._drop([key])
            raise
        finally:
            del self._computing[key]
        self._spent, self._spent_at = self._recent(kept.at) + kept.seconds, kept.at
        return self._keep(key, kept)

    def _is_busy(self) -> bool:
        share = _SHARE * _FRESH_SECONDS / max(self.state_age(), _FRESH_SECONDS)
        return len(self._computing) >= _AT_ONCE or self._recent(monotonic()) > share * _SHARE_SECONDS

    def _recent(self, now: float) -> float:
        """Return how many of the last seconds computing took; earlier ones count less."""
        return self._spent * exp((self._spent_at - now) / _SHARE_SECONDS)

    def _earlier(self, key: object, origin: Origin, most_seconds: float) -> Kept[Any] | None:
        """Return a result of an earlier state that the current request may get, or None."""
        kept = self._kept.get(key)
        if kept is None or monotonic() - kept.at >= most_seconds or not kept.is_of(origin) or not kept.is_accepted():
            return None
        return kept

    def _keep(self, key: object, kept: Kept[_Result]) -> Kept[_Result]:
        self._make_room(key, kept.size)
        with self._lock:
            self._kept[key] = kept
            self._size += kept.size
        return kept

    def _make_room(self, key: object, size: int) -> None:
        """Drop the result of a key, and those requested longest ago that do not fit next to one of a size."""
        self._drop([key])
        with self._lock:
            excess, drop = self._size + size - self._most, []
            for other, kept in self._kept.items():
                if excess <= 0:
                    break
                drop.append(other)
                excess -= kept.size
        self._drop(drop)

    def _drop(self, keys: Iterable[object]) -> None:
        with self._lock:
            for key in keys:
                dropped = self._kept.pop(key, None)
                self._size -= 0 if dropped is None else dropped.size


def _computed(key: object, origin: Origin, compute: Callable[[], _Result], size: int = 0) -> Kept[_Result]:
    start = monotonic()
    result, end = compute(), monotonic()
    if isinstance(result, bytes):
        size = _ENTRY_BYTES + len(result) + (4 * len(key) if isinstance(key, str) else 0)
    return Kept(tuple(map(ref, origin.sources)), origin.version, origin.offsets, result, size, end, end - start)


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve the error of an answer that nothing waits for: the next request gets its own."""
    with suppress(asyncio.CancelledError):
        task.exception()

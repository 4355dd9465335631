"""Keep answers until the state changes that they show; one is given again, as of its offset, while the next takes long."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from math import exp
from time import monotonic
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode
from weakref import ref

from fastapi import Request, Response

from monitor.serve.api.problems import unknown_benchmark
from monitor.serve.http_caching import DIGEST
from monitor.serve.log_position import AT_LEAST, FoldedLog, accepts, note_lag, without_position
from monitor.serve.report_cache import Origin, ReportCache
from monitor.view.build import Which

SLOW_SECONDS: Final = 0.2
"""Answers that took longer are given again at once while the next is computed."""

_AT_ONCE: Final = 4
"""When so many answers are being computed, earlier ones are given again, and no other is begun."""

_SHARE: Final = 0.3
"""The same holds when computing took more than this share of the last seconds: the fold keeps the rest."""

_FRESH_SECONDS: Final = 0.5
"""The share falls with the age of the state from this age on: the fold catches up first, for all boards and streams wait for it."""

_SHARE_SECONDS: Final = 2.0

_PATIENCE_SECONDS: Final = 0.1
"""How long a request waits for a new answer where there is an earlier one."""

_REST: Final = 3
"""A slow answer is computed again after this many times its time: the fold keeps the rest."""

MOST_SECONDS: Final = 60.0
"""An answer that is older, and no longer that of the state, is not given again."""

_OF_THE_ANSWER: Final = {AT_LEAST, DIGEST}
"""Parameters that choose an answer, and change nothing in it."""

_KEPT_BYTES: Final = 64_000_000

_ENTRY_BYTES: Final = 2_000
"""What an answer takes besides its content and its address."""


class _Kept(NamedTuple):
    """An answer, and the state that it was computed from."""

    sources: tuple[ref[Any], ...]
    version: tuple[object, ...]
    offsets: Mapping[int, int]
    """Offset up to which each partition was folded."""
    body: bytes
    at: float
    """When it was computed."""
    seconds: float
    """How long that took."""

    def is_of(self, sources: Sequence[object]) -> bool:
        """Return whether it was computed from the same sources, as objects: one that was loaded again is another one."""
        return len(self.sources) == len(sources) and all(
            known() is source for known, source in zip(self.sources, sources, strict=True)
        )

    def is_accepted(self) -> bool:
        """Return whether the current request may get it."""
        return all(accepts(partition, offset) for partition, offset in self.offsets.items())


class _Wanted(NamedTuple):
    """What a request asks for."""

    origin: Callable[[], Origin]
    render: Callable[[], bytes]
    names: list[str]
    pairs: Which


class KeptAnswers:
    """Answers to requests about a benchmark, a suite or a list of them, by address; those last requested.

    Only the event loop uses it. Requests for an answer that is being computed wait for that one.
    """

    def __init__(self, reports: ReportCache, log: FoldedLog) -> None:
        self._reports, self._log = reports, log
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0
        self._computing: dict[str, asyncio.Task[_Kept]] = {}
        self._spent = self._spent_at = 0.0
        """Seconds that computing took of late, decaying, and when they were counted."""

    async def json(self, request: Request, name: str, render: Callable[[], str], pairs: Which = "all") -> Response:
        """Answer a request with JSON about a benchmark, or raise the 404; `render` makes it from the state, and reports `pairs`."""

        def origin() -> Origin:
            origin = self._reports.origin(name)
            if origin is None:
                raise unknown_benchmark(name)
            return origin

        return await self._answer(request, "", _Wanted(origin, lambda: render().encode(), [name], pairs))

    async def list_json(self, request: Request, names: list[str], render: Callable[[], bytes]) -> Response:
        """Answer a request with JSON about a list of benchmarks, those that its caller may read; `render` makes it from the state."""
        listed = blake2b("\0".join(names).encode("utf-8", "replace"), digest_size=16).hexdigest()
        return await self._answer(request, listed, _Wanted(self._reports.list_origin, render, names, "all"))

    async def _answer(self, request: Request, listed: str, wanted: _Wanted) -> Response:
        origin = wanted.origin()
        # In the order of the request: of a parameter that comes twice, the last one counts.
        query = [each for each in parse_qsl(request.url.query, keep_blank_values=True) if each[0] not in _OF_THE_ANSWER]
        key = f"{request.url.path}?{urlencode(query)} {self._reports.revision} {listed}"
        kept = self._kept.get(key)
        if kept is not None and kept.is_of(origin.sources) and kept.version == origin.version:
            self._kept.move_to_end(key)
            kept = kept._replace(offsets=origin.offsets)
        else:
            if kept is not None and not (kept.is_of(origin.sources) and self._may_serve(kept)):
                kept = None
            kept = await self._next(key, wanted, kept)
            for partition, offset in origin.offsets.items():
                if offset > kept.offsets.get(partition, offset):
                    note_lag(partition, offset - kept.offsets[partition])
        self._reports.note_offsets(kept.offsets)
        return Response(kept.body, media_type="application/json")  # FastAPI would encode it on the event loop

    async def _next(self, key: str, wanted: _Wanted, earlier: _Kept | None) -> _Kept:
        """Return a new answer, or the earlier one where the new one takes long, and is computed meanwhile."""
        task = self._computing.get(key)
        if earlier is None:
            kept = await asyncio.shield(task or self._compute(key, wanted))
            if not kept.is_accepted():  # it was begun before the request
                kept = await asyncio.shield(self._computing.get(key) or self._compute(key, wanted))
            return kept
        slow = earlier.seconds > SLOW_SECONDS
        rests = slow and monotonic() < earlier.at + _REST * earlier.seconds
        if task is None and not rests and not self._is_busy():
            task = self._compute(key, wanted)
        if task is None or slow:
            return earlier
        await asyncio.wait([task], timeout=_PATIENCE_SECONDS)
        kept = task.result() if task.done() else earlier
        return kept if kept.is_accepted() else earlier

    def _may_serve(self, kept: _Kept) -> bool:
        """Return whether an answer of an earlier state may be given while the next is computed."""
        return monotonic() - kept.at < MOST_SECONDS and kept.is_accepted()

    def _is_busy(self) -> bool:
        share = _SHARE * _FRESH_SECONDS / max(self._log.age(), _FRESH_SECONDS)
        return len(self._computing) >= _AT_ONCE or self._recent(monotonic()) > share * _SHARE_SECONDS

    def _recent(self, now: float) -> float:
        """Return how many of the last seconds computing took; earlier ones count less."""
        return self._spent * exp((self._spent_at - now) / _SHARE_SECONDS)

    def _compute(self, key: str, wanted: _Wanted) -> asyncio.Task[_Kept]:
        task = self._computing[key] = asyncio.create_task(self._computed(key, wanted), context=without_position())
        task.add_done_callback(_retrieve)
        return task

    async def _computed(self, key: str, wanted: _Wanted) -> _Kept:
        def work() -> _Kept:
            origin, start = wanted.origin(), monotonic()
            body, end = wanted.render(), monotonic()
            return _Kept(tuple(map(ref, origin.sources)), origin.version, origin.offsets, body, end, end - start)

        try:
            kept = await self._reports.read(work, wanted.names, wanted.pairs)
        except BaseException:
            self._drop(key)
            raise
        finally:
            del self._computing[key]
        self._spent, self._spent_at = self._recent(kept.at) + kept.seconds, kept.at
        self._drop(key)
        self._kept[key] = kept
        self._bytes += _size(key, kept)
        while self._bytes > _KEPT_BYTES and self._kept:
            self._drop(next(iter(self._kept)))
        return kept

    def _drop(self, key: str) -> None:
        dropped = self._kept.pop(key, None)
        self._bytes -= 0 if dropped is None else _size(key, dropped)


def _size(key: str, kept: _Kept) -> int:
    """Return how much memory an answer takes, about."""
    return _ENTRY_BYTES + len(kept.body) + 4 * len(key)


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve the error of an answer that nothing waits for: the next request gets its own."""
    with suppress(asyncio.CancelledError):
        task.exception()

"""Tie each answer to the log: the offset that it shows, the offset that a request waits for, and the refusal of what is too old.

The state is a function of the log, so every reader gives the same answer at the same offset.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.serve.api.problems import ProblemError
from monitor.state_lock import StateTorn
from schemas.records.packed import LAG_HEADER, OFFSET_HEADER, parse_offsets

UNCONFIRMED_HEADER: Final = "Rankwatch-Unconfirmed"
AT_LEAST: Final = "at_least"

WAIT_SECONDS: Final = 5.0  # how long a request waits until the log is folded to the offsets that it asks for

_POLL_SECONDS: Final = 0.02
_LONGEST_POLL_SECONDS: Final = 0.25
"""A request that waits asks ever more rarely: what it waits for is folded soon, or comes late, and a thousand may wait."""

_RETRY_SECONDS: Final = 1
_DATA: Final = "/api/v1/"
_DESCRIPTION: Final = "/api/v1/openapi.json"
_READS: Final = frozenset({"GET", "HEAD"})
_OFFSETS: Final = re.compile(r"[0-9]{1,9}:[0-9]{1,19}(?:,[0-9]{1,9}:[0-9]{1,19})*", re.ASCII)


class FoldedLog(Protocol):
    """How far the log is folded."""

    def offsets(self) -> Mapping[int, int]:
        """Return the offset up to which each partition is folded."""

    def refusal(self) -> str | None:
        """Return why no data may be shown, or None."""

    def age(self) -> float:
        """Return how long ago the end of the log was seen that is folded, in seconds."""


class WholeLog:
    """A log that is folded where it is written, as in tests and in `watch`: nothing is ever too old."""

    def __init__(self, offsets: Callable[[], Mapping[int, int]]) -> None:
        self._offsets = offsets

    def offsets(self) -> Mapping[int, int]:
        """Return the offset up to which each partition is folded."""
        return self._offsets()

    def refusal(self) -> str | None:
        """Return why no data may be shown, or None."""
        try:
            self._offsets()
        except StateTorn as torn:
            return str(torn)
        return None

    def age(self) -> float:
        """Return 0: what is written is folded before the next answer."""
        return 0.0


@dataclass
class Position:
    """What the answer to one request rests on."""

    offsets: dict[int, int] = field(default_factory=dict)
    unconfirmed: dict[int, int] = field(default_factory=dict)
    lag: dict[int, int] = field(default_factory=dict)
    at_least: dict[int, int] = field(default_factory=dict)

    def headers(self) -> dict[str, str]:
        """Return the headers that show it."""
        columns = {OFFSET_HEADER: self.offsets, UNCONFIRMED_HEADER: self.unconfirmed, LAG_HEADER: self.lag}
        return {name: format_offsets(offsets) for name, offsets in columns.items() if offsets}


_position: ContextVar[Position | None] = ContextVar("position", default=None)


def note_position(offsets: Mapping[int, int], confirmed: Mapping[int, int] | None = None) -> None:
    """Record that the current request rests on these offsets; the store holds those `confirmed`."""
    position = _position.get()
    if position is None:
        return
    position.offsets |= offsets
    for partition, offset in offsets.items():
        ahead = offset - (confirmed or {}).get(partition, offset)
        if ahead > 0:
            position.unconfirmed[partition] = ahead


def note_older(partition: int, offset: int) -> None:
    """Record that a part of the answer to the current request was computed at an earlier offset."""
    position = _position.get()
    if position is not None:
        position.offsets[partition] = min(offset, position.offsets.get(partition, offset))


def note_lag(partition: int, offsets: int) -> None:
    """Record that the answer to the current request lacks the last offsets of a partition, and a new one is being computed."""
    position = _position.get()
    if position is not None:
        position.lag[partition] = offsets


def accepts(partition: int, offset: int) -> bool:
    """Return whether the current request may get an answer as of an offset: it may have asked for a later one."""
    position = _position.get()
    return position is None or position.at_least.get(partition, 0) <= offset


def without_position() -> Context:
    """Return the context of the current request for work that outlives it: what that reads is no part of the answer."""
    context = copy_context()
    context.run(_position.set, None)
    return context


def format_offsets(offsets: Mapping[int, int]) -> str:
    """Return offsets as text.

    >>> format_offsets({3: 120, 0: 7})
    '0:7,3:120'
    """
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))


def checked_offsets(text: str) -> dict[int, int]:
    """Parse what a client sends as `at_least`."""
    if not _OFFSETS.fullmatch(text):
        raise ProblemError(
            422,
            f"at_least: {text[:80]!r} is not PARTITION:OFFSET. Send the {OFFSET_HEADER} of an earlier answer, as in 0:120 or 0:7,3:120.",
        )
    return parse_offsets(text)


class LogPosition:
    """Middleware that shows the offsets of each answer, waits for those of ``at_least``, and refuses to show data that is too old."""

    def __init__(self, app: ASGIApp, log: FoldedLog) -> None:
        self.app, self._log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] != "http" or not scope["path"].startswith(_DATA) or scope["path"] == _DESCRIPTION:
            await self.app(scope, receive, send)
            return
        position = Position()
        if scope["method"] in _READS:
            try:
                position.at_least = await self._admit(scope)
            except ProblemError as refusal:
                await refusal.response()(scope, receive, send)
                return
        _position.set(position)

        async def send_with_position(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(position.headers())
            await send(message)

        await self.app(scope, receive, send_with_position)

    async def _admit(self, scope: Scope) -> dict[int, int]:
        """Wait for the offsets that a request asks for, and return them; raise the refusal."""
        refusal = self._log.refusal()
        if refusal is not None:
            raise ProblemError(503, f"{refusal}. Retry, or ask another reader.", headers={"Retry-After": "5"})
        at_least: dict[int, int] = {}
        for name, value in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True):
            if name == AT_LEAST:
                for partition, offset in checked_offsets(value).items():
                    at_least[partition] = max(offset, at_least.get(partition, 0))
        await self._wait(at_least)
        return at_least

    async def _wait(self, wanted: Mapping[int, int]) -> None:
        clock = asyncio.get_running_loop().time
        end, pause = clock() + WAIT_SECONDS, _POLL_SECONDS
        while True:
            folded = self._log.offsets()
            missing = {number: offset for number, offset in wanted.items() if folded.get(number, -1) < offset}
            if not missing:
                return
            if unknown := missing.keys() - folded.keys():
                raise ProblemError(422, f"at_least: the log has no partition {min(unknown)}.")
            if clock() >= end:
                reached = {number: folded[number] for number in missing}
                raise ProblemError(
                    503,
                    f"at_least: the log is folded up to {format_offsets(reached)}, not yet to {format_offsets(missing)}. Retry.",
                    headers={"Retry-After": str(_RETRY_SECONDS)},
                )
            await asyncio.sleep(pause)
            pause = min(1.2 * pause, _LONGEST_POLL_SECONDS)

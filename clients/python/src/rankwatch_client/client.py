"""The client: takes scores at once, and sends them from a thread of its own."""

from __future__ import annotations

import atexit
import json
import logging
import math
import os
import random
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from rankwatch_client.transport import Answer, Transport

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("rankwatch_client")

CAPACITY = 100_000
"""Scores that may wait; while the monitor is away for longer, further ones are dropped, and counted."""

BATCH = 1_000
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0
REQUEST_SECONDS = 10.0
EXIT_SECONDS = 5.0
"""How long the end of the process waits for what is left."""


class Stats(NamedTuple):
    """What has become of the scores that were given.

    Attributes
    ----------
    sent : int
        Durable in the monitor's log.
    dropped : int
        Given up: there was no room, or no time at the end.
    refused : int
        The monitor, or this client, could not read them.
    pending : int
        Waiting.
    """

    sent: int
    dropped: int
    refused: int
    pending: int


class EarlyStop(NamedTuple):
    """Whether a run may stop.

    Attributes
    ----------
    may_stop : bool
        Each pair of the model is decided family-wise, equivalent or exhausted. False as well while the monitor cannot be asked.
    reason : str
    decided : list of str
        Models against which it is decided family-wise.
    undecided : list of dict
        ``other``, ``status``, ``items_to_decision`` and ``reason`` of every other pair.
    """

    may_stop: bool
    reason: str
    decided: list[str]
    undecided: list[dict[str, Any]]


class _Declaration(NamedTuple):
    benchmark: str
    spec: dict[str, object]


class Client:
    """Sends scores to a monitor. No method but the constructor raises, and none but `flush`, `close` and `early_stop` waits.

    Parameters
    ----------
    url : str, optional
        Where the monitor serves; default: the environment variable RANKWATCH_URL.
    token : str, optional
        Bearer token; default: RANKWATCH_TOKEN.
    benchmark, model : str, optional
        What scores are of unless they say otherwise.
    capacity : int
        Scores that may wait.
    interval : float
        Seconds for which scores are collected before they are sent.

    Raises
    ------
    ValueError
        If there is no URL, or it is none.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        benchmark: str | None = None,
        model: str | None = None,
        *,
        capacity: int = CAPACITY,
        interval: float = 0.2,
    ) -> None:
        url = url or os.environ.get("RANKWATCH_URL")
        if not url:
            raise ValueError("no monitor is named: give its URL, or set RANKWATCH_URL")
        self.url, self.benchmark, self.model = url, benchmark, model
        self._token = token or os.environ.get("RANKWATCH_TOKEN")
        self._capacity, self._interval = capacity, interval
        self._begin()
        this = weakref.ref(self)
        atexit.register(_with, this, Client.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: _with(this, Client._begin))

    def _begin(self) -> None:
        """Begin with nothing; also in a forked process, where what waited is sent by its parent."""
        self._transport = Transport(self.url, self._token, REQUEST_SECONDS)
        self._changed = threading.Condition()
        self._waiting: deque[bytes | _Declaration] = deque()
        self._sending = 0
        self._sent = self._dropped = self._refused = 0
        self._hurry = 0
        self._closed = False
        self._until = math.inf
        self._thread: threading.Thread | None = None
        self._told: set[str] = set()

    # --- what an evaluation calls -----------------------------------------------------------------------------------------------------

    def score(
        self,
        item_id: str,
        score: float | bool | None,  # noqa: FBT001 - a score may be a boolean
        *,
        benchmark: str | None = None,
        model: str | None = None,
        cluster: str | None = None,
        repeat: int = 0,
        epoch: int = 0,
    ) -> None:
        """Take the score of a model on an item; it is sent soon.

        Parameters
        ----------
        item_id : str
        score : float, bool or None
            In [0, 1]; None for an item that was skipped.
        benchmark, model : str, optional
            Instead of the client's.
        cluster : str, optional
            What items belong together.
        repeat, epoch : int
            Which repetition of the item, and which evaluation of the model.
        """
        event: dict[str, Any] = {
            "benchmark": benchmark or self.benchmark,
            "item_id": str(item_id),
            "model": model or self.model,
            "score": score,
        }
        if cluster is not None:
            event["cluster"] = str(cluster)
        if repeat:
            event["repeat"] = repeat
        if epoch:
            event["epoch"] = epoch
        fault = _fault(event)
        if fault is not None:
            self._refuse(1, fault)
            return
        self._put(json.dumps(event, ensure_ascii=False, default=float).encode("utf-8", "surrogatepass"))

    def declare(self, *, benchmark: str | None = None, **spec: object) -> None:
        """Declare a benchmark before its first score, as in ``declare(items=12032)``.

        A declaration that the monitor refuses, since scores came under another one, changes nothing; the reason is logged.
        """
        name = benchmark or self.benchmark
        if name is None:
            self._refuse(0, "a declaration needs a benchmark")
            return
        self._put(_Declaration(name, spec))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything given so far has been sent or given up; False if that took too long."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with self._changed:
            self._hurry += 1
            self._changed.notify_all()
            try:
                while self._waiting or self._sending:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return False
                    self._changed.wait(min(left, 1.0))
            finally:
                self._hurry -= 1
        return True

    def close(self, timeout: float | None = None) -> None:
        """Send what is left, for at most so many seconds (default: `EXIT_SECONDS`); what comes later is dropped."""
        timeout = EXIT_SECONDS if timeout is None else timeout
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._until = time.monotonic() + timeout
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout + REQUEST_SECONDS)
        stats = self.stats
        if stats.dropped:
            self._tell(f"{stats.dropped:,} scores were not sent; send the log of the evaluation with `rankwatch send`")

    def early_stop(self, *, benchmark: str | None = None, model: str | None = None) -> EarlyStop:
        """Ask whether the run of a model may stop; while the monitor cannot be asked, it may not.

        Send what the answer should rest on first, with `flush`.
        """
        names = {"benchmark": benchmark or self.benchmark or "", "model": model or self.model or ""}
        transport = Transport(self.url, self._token, REQUEST_SECONDS)
        try:
            answer = transport.request("GET", f"early-stop?{urlencode(names)}")
        finally:
            transport.close()
        if answer.status != 200:
            return EarlyStop(False, answer.reason, [], [])
        return EarlyStop(*(answer.body[name] for name in EarlyStop._fields))

    @property
    def stats(self) -> Stats:
        """What has become of the scores so far."""
        with self._changed:
            pending = sum(isinstance(entry, bytes) for entry in self._waiting) + self._sending
            return Stats(self._sent, self._dropped, self._refused, pending)

    def __enter__(self) -> Client:  # noqa: PYI034 - Self is younger than Python 3.9
        """Use it until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Send what is left."""
        self.close()

    # --- the thread -------------------------------------------------------------------------------------------------------------------

    def _put(self, entry: bytes | _Declaration) -> None:
        with self._changed:
            if self._closed or len(self._waiting) >= self._capacity:
                self._dropped += isinstance(entry, bytes)
                return
            self._waiting.append(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rankwatch-client", daemon=True)
                self._thread.start()
            if len(self._waiting) in {1, BATCH}:
                self._changed.notify_all()

    def _run(self) -> None:
        wait = FIRST_WAIT
        while (batch := self._next()) is not None:
            answer = self._deliver(batch)
            if not answer.passing:
                wait = FIRST_WAIT
                continue
            self._tell(f"{self.url}: {answer.reason}; scores are kept until it answers")
            self._put_back(batch)
            self._rest(answer.retry_after or wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, LONGEST_WAIT)
        self._transport.close()

    def _next(self) -> list[bytes] | _Declaration | None:
        """Wait for something to send; None at the end."""
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            if len(self._waiting) < BATCH and not self._hurry and not self._closed:
                self._changed.wait(self._interval)
            if time.monotonic() > self._until:
                self._dropped += sum(isinstance(entry, bytes) for entry in self._waiting)
                self._waiting.clear()
                self._changed.notify_all()
                return None
            first = self._waiting[0]
            if isinstance(first, _Declaration):
                self._sending = 1
                return self._waiting.popleft()  # type: ignore[return-value]  # it is the first
            batch: list[bytes] = []
            while self._waiting and len(batch) < BATCH and isinstance(self._waiting[0], bytes):
                batch.append(self._waiting.popleft())  # type: ignore[arg-type]  # as just asked
            self._sending = len(batch)
            return batch

    def _deliver(self, batch: list[bytes] | _Declaration) -> Answer:
        if isinstance(batch, _Declaration):
            answer = self._transport.request(
                "PUT",
                f"declarations?{urlencode({'benchmark': batch.benchmark})}",
                json.dumps(batch.spec).encode(),
                "application/json",
            )
            if answer.status >= 400 and not answer.passing:
                self._tell(f"the declaration of {batch.benchmark!r} was refused: {answer.reason}")
            self._done(sent=0, refused=0, passing=answer.passing)
            return answer
        answer = self._transport.request("POST", "events", b"\n".join(batch), "application/x-ndjson")
        if answer.status == 422 and len(batch) > 1:
            return self._without_bad(batch, answer)
        good = 200 <= answer.status < 300
        self._done(sent=len(batch) if good else 0, refused=0 if good else len(batch), passing=answer.passing)
        if not good and not answer.passing:
            self._tell(f"{self.url} refused {len(batch):,} scores: {answer.reason}")
        return answer

    def _without_bad(self, batch: list[bytes], answer: Answer) -> Answer:
        """Send a batch again without the records that the monitor could not read."""
        errors = answer.body.get("errors") or [] if isinstance(answer.body, dict) else []
        bad = {error["line"] - 1 for error in errors if isinstance(error.get("line"), int)}
        rest = [entry for k, entry in enumerate(batch) if k not in bad] if bad else []
        self._refuse(len(batch) - len(rest), answer.reason)
        with self._changed:
            self._waiting.extendleft(reversed(rest))
            self._sending = 0
            self._changed.notify_all()
        return answer

    def _done(self, *, sent: int, refused: int, passing: bool) -> None:
        if passing:
            return
        with self._changed:
            self._sent += sent
            self._refused += refused
            self._sending = 0
            self._changed.notify_all()

    def _put_back(self, batch: list[bytes] | _Declaration) -> None:
        with self._changed:
            self._waiting.extendleft([batch] if isinstance(batch, _Declaration) else reversed(batch))
            self._sending = 0

    def _rest(self, seconds: float) -> None:
        """Wait, but not beyond the end."""
        until = time.monotonic() + seconds
        with self._changed:
            while (left := min(until, self._until) - time.monotonic()) > 0:
                self._changed.wait(left)

    def _refuse(self, count: int, reason: str) -> None:
        with self._changed:
            self._refused += count
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        """Log something once."""
        if reason not in self._told and len(self._told) < 100:
            self._told.add(reason)
            log.warning("%s", reason)


def _fault(event: dict[str, Any]) -> str | None:
    """Say what is missing from an event; the rest is for the monitor to judge."""
    for name in ("benchmark", "model"):
        if not isinstance(event[name], str):
            return f"a score needs a {name}: give it to the client, or to score()"
    score = event["score"]
    try:
        if score is not None and not 0 <= score <= 1:
            return f"a score lies in [0, 1], or is None: found {score!r}"
    except TypeError:
        return f"a score is a number, a boolean or None: found {type(score).__name__}"
    return None


def _with(this: weakref.ref[Client], method: Callable[[Client], None]) -> None:
    """Call a method of a client that is still in use."""
    client = this()
    if client is not None:
        method(client)

"""Queue scores at once, and send them from a thread."""

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
from urllib.parse import quote, urlencode

from rankwatch_client.transport import Response, Transport

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("rankwatch_client")

CAPACITY = 100_000
"""Scores in the queue; further scores are dropped and counted."""

BATCH = 1_000
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0
REQUEST_SECONDS = 10.0
EXIT_SECONDS = 5.0
"""How long the process waits at exit to send the queue."""


class Stats(NamedTuple):
    """Counts of the scores passed to a client.

    Attributes
    ----------
    sent : int
        Durable in the monitor's log.
    dropped : int
        Discarded: the queue was full, or time ran out at the end.
    refused : int
        Rejected as invalid by the monitor or the client.
    pending : int
        In the queue.
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
        True if each pair of the model is decided family-wise, equivalent or exhausted. False while the monitor is unreachable.
    reason : str
    decided : list of str
        Models with a family-wise decision against this one.
    undecided : list of dict
        ``other``, ``status``, ``items_to_decision``, ``decision_probability`` and ``reason`` of every other pair.
    """

    may_stop: bool
    reason: str
    decided: list[str]
    undecided: list[dict[str, Any]]


class _Call(NamedTuple):
    """A request of its own, between scores."""

    subject: str
    method: str
    path: str
    body: dict[str, object]


class Client:
    """Sends scores to a monitor. Only the constructor raises; only `flush`, `close` and `early_stop` block.

    Parameters
    ----------
    url : str, optional
        URL of the monitor; default: the environment variable RANKWATCH_URL.
    token : str, optional
        Bearer token; default: RANKWATCH_TOKEN.
    benchmark, model : str, optional
        Defaults for each score.
    capacity : int
        Scores in the queue.
    interval : float
        Seconds to collect scores for one request.

    Raises
    ------
    ValueError
        If the URL is missing or invalid.
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
            raise ValueError("the URL of the monitor is missing; pass url=, or set RANKWATCH_URL")
        self.url, self.benchmark, self.model = url, benchmark, model
        self._token = token or os.environ.get("RANKWATCH_TOKEN")
        self._capacity, self._interval = capacity, interval
        self._reset()
        this = weakref.ref(self)
        atexit.register(_with, this, Client.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: _with(this, Client._reset))

    def _reset(self) -> None:
        """Start with an empty queue; a forked process does so too, since its parent sends the queue."""
        self._transport = Transport(self.url, self._token, REQUEST_SECONDS)
        self._changed = threading.Condition()
        self._queue: deque[bytes | _Call] = deque()
        self._in_flight = 0
        self._sent = self._dropped = self._refused = 0
        self._written: str | None = None
        """Offset of the monitor's log after the last scores."""
        self._flushes = 0
        self._closed = False
        self._send_deadline = math.inf
        self._thread: threading.Thread | None = None
        self._logged: set[str] = set()

    def score(
        self,
        item_id: str | int,
        score: float | bool | str | None,  # noqa: FBT001 - a score may be a boolean
        *,
        benchmark: str | None = None,
        model: str | None = None,
        cluster: str | None = None,
        repeat: int = 0,
        epoch: int = 0,
        unit: str | None = None,
    ) -> None:
        """Queue the score of a model on an item.

        Parameters
        ----------
        item_id : str or int
        score : float, bool, str or None
            In [0, 1]; text counts as the number or boolean that it writes; None or NaN for a skipped item.
        benchmark, model : str, optional
            Default: those of the client.
        cluster : str, optional
            Group of related items.
        repeat, epoch : int
            Number of the repetition of the item, and of the evaluation of the model.
        unit : str, optional
            What the item is a copy or paraphrase of, as in ``declare(units={"q1-a": "q1", "q1-b": "q1"})``.
        """
        event: dict[str, Any] = {
            "benchmark": benchmark or self.benchmark,
            "item_id": _name(item_id),
            "model": _name(model or self.model),
            "score": None if isinstance(score, float) and math.isnan(score) else score,
        }
        if cluster is not None:
            event["cluster"] = _name(cluster)
        if repeat:
            event["repeat"] = repeat
        if epoch:
            event["epoch"] = epoch
        if unit is not None:
            event["unit"] = _name(unit)
        fault = _fault(event)
        if fault is not None:
            self._refuse(1, fault)
            return
        self._put(json.dumps(event, ensure_ascii=False, default=float).encode("utf-8", "surrogatepass"))

    def declare(self, *, benchmark: str | None = None, **spec: object) -> None:
        """Declare a benchmark before its first score, as in ``declare(items=12032)``.

        The monitor refuses a declaration that contradicts the one under which scores exist, unless it is the next one (``version=2``); the
        client logs the reason.
        """
        name = benchmark or self.benchmark
        if name is None:
            self._refuse(0, "the declaration has no benchmark; pass it to the client or to declare()")
            return
        path = f"declarations?{urlencode({'benchmark': name})}"
        self._put(_Call(f"the declaration of {name!r}", "PUT", path, spec))

    def end_run(
        self,
        *,
        benchmark: str | None = None,
        model: str | None = None,
        epoch: int = 0,
        base: int | None = None,
    ) -> None:
        """Report that the run of a model is complete: the monitor refuses later scores of it.

        Parameters
        ----------
        benchmark, model : str, optional
            Default: those of the client.
        epoch : int
            Number of the evaluation of the model.
        base : int, optional
            An older epoch, from which the run inherits the scores that it lacks.
        """
        name, ended = benchmark or self.benchmark, model or self.model
        if name is None or ended is None:
            self._refuse(0, "the end of a run has no benchmark or no model; pass it to the client or to end_run()")
            return
        body: dict[str, object] = {"model": _name(ended), "epoch": epoch}
        if base is not None:
            body["base"] = base
        path = f"benchmarks/{quote(name, safe='')}/ended"
        self._put(_Call(f"the end of the run of {ended!r} on {name!r}", "POST", path, body))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the queue is sent or dropped; return False on timeout."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        with self._changed:
            self._flushes += 1
            self._changed.notify_all()
            try:
                while self._queue or self._in_flight:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        return False
                    self._changed.wait(min(left, 1.0))
            finally:
                self._flushes -= 1
        return True

    def close(self, timeout: float | None = None) -> None:
        """Send the queue for at most `timeout` seconds (default: `EXIT_SECONDS`); drop the rest and all later scores."""
        timeout = EXIT_SECONDS if timeout is None else timeout
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._send_deadline = time.monotonic() + timeout
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout + REQUEST_SECONDS)
        stats = self.stats
        if stats.dropped:
            self._warn_once(
                f"{stats.dropped:,} scores were not sent: send the log of the evaluation with `rankwatch send`"
            )

    def early_stop(self, *, benchmark: str | None = None, model: str | None = None) -> EarlyStop:
        """Return whether the run of a model may stop; it may not while the monitor is unreachable.

        Call `flush` first, so that the result includes every score.
        """
        names = {"benchmark": benchmark or self.benchmark or "", "model": model or self.model or ""}
        transport = Transport(self.url, self._token, REQUEST_SECONDS)
        try:
            response = transport.request("GET", f"early-stop?{urlencode(names)}")
        finally:
            transport.close()
        if response.status != 200:
            return EarlyStop(False, response.reason, [], [])
        return EarlyStop(*(response.body[name] for name in EarlyStop._fields))

    @property
    def stats(self) -> Stats:
        """Counts of the scores so far."""
        with self._changed:
            pending = sum(isinstance(entry, bytes) for entry in self._queue) + self._in_flight
            return Stats(self._sent, self._dropped, self._refused, pending)

    def __enter__(self) -> Client:  # noqa: PYI034 - Self is younger than Python 3.9
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def _put(self, entry: bytes | _Call) -> None:
        with self._changed:
            if self._closed or len(self._queue) >= self._capacity:
                self._dropped += isinstance(entry, bytes)
                return
            self._queue.append(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rankwatch-client", daemon=True)
                self._thread.start()
            if len(self._queue) in {1, BATCH}:
                self._changed.notify_all()

    def _run(self) -> None:
        wait = FIRST_WAIT
        while (batch := self._next()) is not None:
            response = self._deliver(batch)
            if not response.transient:
                wait = FIRST_WAIT
                continue
            self._warn_once(f"{self.url}: {response.reason}; the client keeps the scores and retries")
            self._put_back(batch)
            self._rest(response.retry_after or wait * random.uniform(0.5, 1.0))
            wait = min(2 * wait, LONGEST_WAIT)
        self._transport.close()

    def _next(self) -> list[bytes] | _Call | None:
        """Wait for the next call or batch of scores; return None at the end."""
        with self._changed:
            while not self._queue:
                if self._closed:
                    return None
                self._changed.wait()
            if len(self._queue) < BATCH and not self._flushes and not self._closed:
                self._changed.wait(self._interval)
            if time.monotonic() > self._send_deadline:
                self._dropped += sum(isinstance(entry, bytes) for entry in self._queue)
                self._queue.clear()
                self._changed.notify_all()
                return None
            first = self._queue[0]
            if isinstance(first, _Call):
                self._in_flight = 1
                return self._queue.popleft()  # type: ignore[return-value]  # the type of `first`
            batch: list[bytes] = []
            while self._queue and len(batch) < BATCH and isinstance(self._queue[0], bytes):
                batch.append(self._queue.popleft())  # type: ignore[arg-type]  # checked in the loop
            self._in_flight = len(batch)
            return batch

    def _deliver(self, batch: list[bytes] | _Call) -> Response:
        if isinstance(batch, _Call):
            body = json.dumps(batch.body).encode()
            response = self._transport.request(batch.method, batch.path, body, "application/json")
            if response.status >= 400 and not response.transient:
                self._warn_once(f"{batch.subject} was refused: {response.reason}")
            self._done(sent=0, refused=0, transient=response.transient)
            return response
        response = self._transport.request("POST", "events", b"\n".join(batch), "application/x-ndjson")
        if response.status == 422 and len(batch) > 1:
            return self._without_bad(batch, response)
        good = 200 <= response.status < 300
        if good:
            self._written = response.offset
        rejected = _rejected(response) if good else []
        sent = len(batch) - len(rejected) if good else 0
        for reason in dict.fromkeys(rejected):
            self._warn_once(f"{self.url} refused scores: {reason}")
        for name in _set_aside(response) if good else ():
            self._warn_once(f"{self.url} has set {name!r} aside: its scores count once an operator has released it")
        self._done(sent=sent, refused=len(batch) - sent, transient=response.transient)
        if not good and not response.transient:
            self._warn_once(f"{self.url} refused {len(batch):,} scores: {response.reason}")
        return response

    def _without_bad(self, batch: list[bytes], response: Response) -> Response:
        """Queue a batch again without the records that the monitor rejected."""
        errors = response.body.get("errors") or [] if isinstance(response.body, dict) else []
        bad = {error["line"] - 1 for error in errors if isinstance(error.get("line"), int)}
        rest = [entry for k, entry in enumerate(batch) if k not in bad] if bad else []
        self._refuse(len(batch) - len(rest), response.reason)
        with self._changed:
            self._queue.extendleft(reversed(rest))
            self._in_flight = 0
            self._changed.notify_all()
        return response

    def _done(self, *, sent: int, refused: int, transient: bool) -> None:
        if transient:
            return
        with self._changed:
            self._sent += sent
            self._refused += refused
            self._in_flight = 0
            self._changed.notify_all()

    def _put_back(self, batch: list[bytes] | _Call) -> None:
        with self._changed:
            self._queue.extendleft([batch] if isinstance(batch, _Call) else reversed(batch))
            self._in_flight = 0

    def _rest(self, seconds: float) -> None:
        """Wait, at most until the deadline of `close`."""
        until = time.monotonic() + seconds
        with self._changed:
            while (left := min(until, self._send_deadline) - time.monotonic()) > 0:
                self._changed.wait(left)

    def _refuse(self, count: int, reason: str) -> None:
        with self._changed:
            self._refused += count
        self._warn_once(reason)

    def _warn_once(self, reason: str) -> None:
        """Log a warning once."""
        if reason not in self._logged and len(self._logged) < 100:
            self._logged.add(reason)
            log.warning("%s", reason)


def _rejected(response: Response) -> list[str]:
    """Return the reason of each score that the monitor has read and refused; it has stored the others."""
    errors = response.body.get("rejected") or [] if isinstance(response.body, dict) else []
    return [f"{error.get('field')}: {error.get('reason')}" for error in errors]


def _set_aside(response: Response) -> list[str]:
    """Return the benchmarks whose scores the monitor keeps without counting them."""
    return response.body.get("set_aside") or [] if isinstance(response.body, dict) else []


def _name(value: object) -> object:
    """Return a name as text; the monitor decides on values that are no names."""
    return value if value is None or isinstance(value, (bool, float)) else str(value)


def _fault(event: dict[str, Any]) -> str | None:
    """Return why an event cannot be sent, or None; the monitor checks the rest."""
    for name in ("benchmark", "model"):
        if event[name] is None:
            return f"the score has no {name}; pass it to the client or to score()"
    score = event["score"]
    if isinstance(score, str):
        return None  # the monitor reads text that writes a number
    try:
        if score is not None and not 0 <= score <= 1:
            return f"score {score!r} is out of range; use a number from 0 to 1, a boolean or None"
    except TypeError:
        return f"a score of type {type(score).__name__} is not a number; use a number from 0 to 1, a boolean or None"
    return None


def _with(this: weakref.ref[Client], method: Callable[[Client], None]) -> None:
    """Call a method of a client unless it was garbage-collected."""
    client = this()
    if client is not None:
        method(client)

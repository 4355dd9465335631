"""One request that writes: its client's limits, its body, the repeat of its answer, and its lines in the audit log."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, Self

from fastapi import Request, Response

from monitor.serve.access.audit import Audit
from monitor.serve.access.caller import current_caller
from monitor.serve.access.limits import ClientLimits
from monitor.serve.api.problems import ProblemError, QuotaExceeded
from monitor.serve.api.writing.answers import REPEATED, Answers
from monitor.serve.api.writing.body_reader import BodyReader
from monitor.serve.connections import client_of
from monitor.view.partition_view import PartitionView
from schemas.records.declaration import Declaration
from schemas.records.events import Ended, EventFields
from schemas.records.operations import BoardChange
from schemas.records.text import Reject


class Submission(NamedTuple):
    """The events, declarations and ends of runs of one request."""

    events: list[EventFields]
    declarations: list[Declaration]
    ended: list[Ended]
    event_lines: list[int]
    ended_lines: list[int]
    converted: set[str]
    producer: str | None = None
    board: BoardChange | None = None
    imported: bool = False
    rejects: tuple[Reject, ...] = ()

    @classmethod
    def empty(cls) -> Self:
        """Return a submission to fill."""
        return cls([], [], [], [], [], set())

    def __bool__(self) -> bool:
        """Return whether there is anything to append."""
        return bool(self.events or self.declarations or self.ended or self.board or self.rejects)


class IntakeError(Exception):
    """The log cannot be written now; the message gives the reason and what to do."""


class UndoRefused(Exception):  # noqa: N818 - what happened
    """The board or its log does not allow an undo; the message gives the reason and what to do."""


class Intake(Protocol):
    """Appends requests to the log."""

    async def undo(
        self, change: BoardChange, partition: Callable[[], Awaitable[PartitionView | None]]
    ) -> tuple[int | None, int | None]:
        """Begin a board again without the events that a change withdraws, and copy those that stay in the background."""
        # `partition` returns the current state. Return how many events are withdrawn, and stay; None for an undo that goes on after an
        # interruption.

    async def append(self, submission: Submission) -> str:
        """Append the declarations, then the events and the ends of runs; return the offsets after them once all of it is durable."""
        # The offsets are as `monitor.serve.log_position.format_offsets` writes them.

    def is_folded(self, benchmark: str) -> bool:
        """Return whether the state holds all that the log has of a benchmark."""


class ReadOnlyIntake:
    """The intake of a server that does not write."""

    async def undo(
        self,
        change: BoardChange,  # noqa: ARG002 - the protocol's
        partition: Callable[[], Awaitable[PartitionView | None]],  # noqa: ARG002 - the protocol's
    ) -> tuple[int | None, int | None]:
        """Refuse."""
        raise IntakeError("This server is read-only. Send the undo to a server that runs `rankwatch watch` or `serve`.")

    async def append(self, submission: Submission) -> str:  # noqa: ARG002 - the protocol's
        """Refuse."""
        raise IntakeError(
            "This server is read-only. Send events to a server that runs `rankwatch watch` or `rankwatch serve`."
        )

    def is_folded(self, benchmark: str) -> bool:  # noqa: ARG002 - the protocol's
        """Return that nothing is known of the log."""
        return False


_MAX_FILE_NAME = 200  # characters of the name of a file in the audit log


class Writing:
    """A request under way."""

    def __init__(self, rules: "WriteRules", request: Request) -> None:
        caller = current_caller()
        self.address = request.client.host if request.client else ""
        self.client = caller.name if caller.signed_in else client_of(self.address)
        self.counts: dict[str, Counter[str]] = {}  # records by action and benchmark, for the audit log
        self.rejected = 0
        self.outcome = "accepted"
        self.file: str | None = None  # the name of the file that the request sends
        self._rules, self._request, self._producer = rules, request, caller.name
        self.quota = caller.grants.quotas.get("events")  # events a second, in place of the limit of every client

    def count(self, action: str, benchmark: str, records: int = 1) -> None:
        """Count records for the audit log."""
        self.counts.setdefault(action, Counter())[benchmark] += records

    def count_all(self, submission: Submission) -> None:
        """Count what a request holds; its events and rejects come off the account of its client."""
        events = len(submission.events) + len(submission.rejects)
        self._rules.limits.spend(self.client, events=events, quota=self.quota)
        for event in submission.events:
            self.count("write", event.benchmark)
        for declaration in submission.declarations:
            self.count("declare", declaration.declare)
        for ended in submission.ended:
            self.count("end", ended.ended)

    async def body(self) -> bytes:
        """Read the body; it comes off the account of its client."""
        body = await self._rules.bodies.read(self._request)
        self._rules.limits.spend(self.client, bytes=len(body), quota=self.quota)
        return body

    async def once(self, body: bytes, work: Callable[[], Awaitable[Response]]) -> Response:
        """Do the work, or repeat the answer to the same request with the same idempotency key."""
        response = await self._rules.answers.once(self._request, self.client, body, work)
        if REPEATED in response.headers:
            self.outcome = "repeated"
        return response

    def audit(self, outcome: str, status: int) -> None:
        """Add the lines of the request."""
        for action, counts in (self.counts or {"write": Counter[str]()}).items():
            more: dict[str, int | str] = {"rejected": self.rejected} if self.rejected and action == "write" else {}
            if self.file is not None:
                more["file"] = self.file[:_MAX_FILE_NAME]
            self._rules.audit.add(action, self._producer, self.address, counts, outcome, status=status, **more)


class WriteRules:
    """What holds for every request that writes."""

    def __init__(
        self, bodies: BodyReader, limits: ClientLimits, audit: Audit, count_quota: Callable[[str], None]
    ) -> None:
        self.bodies, self.limits, self.audit = bodies, limits, audit
        self._count_quota = count_quota
        self.answers = Answers()

    @contextmanager
    def writing(self, request: Request) -> Iterator[Writing]:
        """Do a request; raise the 429 if its client has sent too much."""
        writing = Writing(self, request)
        try:
            self._check_limits(writing)
            yield writing
        except ProblemError as problem:
            status = problem.problem.status
            if isinstance(problem, QuotaExceeded):
                self._count_quota(problem.quota)
            writing.audit("failed" if status >= 500 else "refused", status)
            raise
        except asyncio.CancelledError:
            writing.audit("unknown", 499)  # the client went away; what it sent may be in the log
            raise
        except Exception:
            writing.audit("failed", 500)
            raise
        else:
            writing.audit(writing.outcome, 200)

    def _check_limits(self, writing: Writing) -> None:
        client, quota = writing.client, writing.quota
        seconds = self.limits.wait(client, quota)
        if seconds and quota is not None:
            raise QuotaExceeded(
                429,
                "events",
                f"{client} has sent more than its quota of {quota:,} events a second (quota:events={quota}), or than the limit of bytes. "
                f"Retry in {seconds:,} s, and send less at a time or less often.",
                headers={"Retry-After": str(seconds)},
            )
        if seconds:
            raise ProblemError(
                429,
                f"{client} has sent more than its limit. Retry in {seconds:,} s, and send less at a time or less often.",
                headers={"Retry-After": str(seconds)},
            )

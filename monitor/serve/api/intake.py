"""What the write routes need of the log: one call that appends a request."""

from typing import NamedTuple, Protocol

from schemas.events import Declaration, Ended, EventFields


class Submission(NamedTuple):
    """The events, declarations and ends of runs of one request, and a clause for each kind of value that was converted."""

    events: list[EventFields]
    declarations: list[Declaration]
    ended: list[Ended]
    converted: frozenset[str] = frozenset()


class IntakeError(Exception):
    """The log cannot be written now; the message gives the reason and what to do."""


class Intake(Protocol):
    """Appends requests to the log."""

    async def append(self, submission: Submission) -> str:
        """Append the declarations, then the events and the ends of runs; return their position once all of it is durable.

        Raises
        ------
        IntakeError
            If the log cannot be written now.
        """


class ReadOnlyIntake:
    """The intake of a server that does not write."""

    async def append(self, submission: Submission) -> str:  # noqa: ARG002 - the protocol's
        """Refuse."""
        raise IntakeError(
            "This server is read-only. Send events to a server that runs `rankwatch watch` or `rankwatch run`."
        )

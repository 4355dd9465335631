"""What the write routes need of the log: one call that appends a request."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, Self

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

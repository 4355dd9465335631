"""Append the requests of the web server to the log: the file log of `watch`, or the topic of `serve`."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from time import time
from typing import Any, Final

import msgspec
import structlog
from aiokafka.errors import KafkaError

from monitor.files.declaration_file import Declare, has_graded
from monitor.log.errors import LogError
from monitor.log.file.log import FileLog
from monitor.log.kafka.settings import KafkaSettings
from monitor.publish.kafka_errors import BrokerError
from monitor.publish.kafka_producer import KafkaProducer, Message
from monitor.serve.api.writing.request import IntakeError, Submission, UndoRefused
from monitor.serve.log_position import format_offsets
from monitor.service.operations.record_logs import FileRecords, TopicRecords
from monitor.service.operations.undo import BackgroundUndoes, BoardError, FoldedBoard, Undoing, view_of
from monitor.view.partition_view import PartitionView
from schemas.records.events import Ended, EventFields, by_kind
from schemas.records.operations import BoardChange, encode_board_change
from schemas.records.origins import OriginKey
from schemas.records.ownership import owner
from schemas.records.packed import mark_imported, record_events
from schemas.records.text import Reject

_log = structlog.get_logger()

Look = Callable[[], Awaitable[PartitionView | None]]  # returns the state of the partition that has a board

_FOLD_SECONDS: Final = 10.0  # how long an undo waits until its record is folded

_MESSAGE_EVENTS: Final = 1_000
_MESSAGE_REJECTS: Final = 50
_MESSAGE_BYTES: Final = 900_000  # by default a topic accepts messages of a little over a million bytes


class FileIntake:
    """Appends each request as one record, or, where its events are of many models, as several with one write.

    After a crash a record is complete or absent; of several the first ones may be there, whose scores count once when they are sent again.
    """

    def __init__(
        self, log: FileLog, known: Callable[[str], bool], folded: Callable[[], int], declare: Declare | None = None
    ) -> None:
        self._log, self._known, self._folded, self._declare = log, known, folded, declare
        self.undoes = BackgroundUndoes()

    def is_folded(self, benchmark: str) -> bool:  # noqa: ARG002 - one log has every benchmark
        """Return whether the log is folded to its end."""
        return self._folded() >= self._log.durable_end

    async def append(self, submission: Submission) -> str:
        """Append the request; return its end offset."""
        declarations = [*self._defaults(submission), *_declared(submission)]
        records = [encode_board_change(submission.board)] if submission.board else _records(submission, declarations)
        try:
            end = await self._log.append(records)
        except OSError as error:
            _log.error("the log accepted no events", reason=str(error))
            raise IntakeError(
                f"The log cannot be written ({error.strerror or error}), and nothing of the request was kept. Make the disk of the data "
                "directory writable, with free space, then send the request again."
            ) from error
        except LogError as error:
            _log.error("the log accepted no events", reason=str(error))
            raise IntakeError(
                "The log is closed, and nothing of the request was kept. Start the server again, after fixing its disk if that failed, "
                "then send the request again."
            ) from error
        return format_offsets({0: end})

    async def undo(self, change: BoardChange, partition: Look) -> tuple[int | None, int | None]:
        """Begin an undo, and copy in the background."""
        return await _begin(self.undoes, self._undoing(change, partition))

    def go_on(self, change: BoardChange, partition: Look) -> None:
        """Go on with an undo that has begun."""
        self.undoes.go_on(self._undoing(change, partition))

    def _undoing(self, change: BoardChange, partition: Look) -> Undoing:
        return Undoing(FileRecords(self._log), _view(change, partition), change, _FOLD_SECONDS)

    def _defaults(self, submission: Submission) -> Iterator[dict[str, Any]]:
        if self._declare is None:
            return
        declared = {declaration.declare for declaration in submission.declarations}
        for name, events in _by_benchmark(submission.events).items():
            if name not in declared and not self._known(name):
                declaration = self._declare(name, None, has_graded(events, name), None)
                if declaration is not None:
                    yield declaration


class KafkaIntake:
    """Publishes each request to the partitions that own its benchmarks, acknowledged by all in-sync replicas."""

    def __init__(
        self,
        producer: KafkaProducer,
        topic: str,
        partitions: int,
        folded: Callable[[int], bool],
        kafka: KafkaSettings,
        key: OriginKey | None = None,
    ) -> None:
        self.key, self._kafka = key, kafka
        self.undoes = BackgroundUndoes()
        self._producer, self._topic, self._partitions, self._folded = producer, topic, partitions, folded

    def is_folded(self, benchmark: str) -> bool:
        """Return whether all that has been seen of the partition of a benchmark is folded."""
        return self._folded(owner(benchmark, self._partitions))

    async def append(self, submission: Submission) -> str:
        """Publish the request; return the end of the partitions that got it."""
        messages = [self._message(name, value, submission.producer) for name, value in _messages(submission)]
        try:
            ends = await self._producer.deliver(self._topic, messages)
        except BrokerError as error:
            _log.error("the topic accepted no events", reason=str(error))
            raise IntakeError(
                f"Topic {self._topic} cannot be written. Some of the request may have arrived. Send the request again: the first "
                "score of a key counts."
            ) from error
        return format_offsets(ends)

    async def undo(self, change: BoardChange, partition: Look) -> tuple[int | None, int | None]:
        """Begin an undo, and copy in the background."""
        if self.key is None:
            raise IntakeError("Redis has no signing key of this topic, because no worker runs. Retry when one does.")
        number = owner(change.benchmark, self._partitions)
        records = TopicRecords(self._kafka, self._topic, number, change.benchmark, self._producer, self.key)
        return await _begin(self.undoes, Undoing(records, _view(change, partition), change, _FOLD_SECONDS))

    def _message(self, benchmark: str | None, value: bytes, producer: str | None) -> Message:
        partition, key = (0, None) if benchmark is None else (owner(benchmark, self._partitions), benchmark.encode())
        headers = [] if self.key is None else self.key.producer_headers(producer, partition, value)
        return Message(partition, key, value, headers)


def _view(change: BoardChange, partition: Look) -> Callable[[], Awaitable[FoldedBoard]]:
    async def view() -> FoldedBoard:
        folded = await partition()
        return view_of(None if folded is None else folded.state, change.benchmark)

    return view


async def _begin(undoes: BackgroundUndoes, undoing: Undoing) -> tuple[int | None, int | None]:
    try:
        begun = await undoes.begin(undoing)
    except BoardError as error:
        raise UndoRefused(str(error)) from error
    except (OSError, LogError, BrokerError, KafkaError) as error:
        _log.error("an undo cannot begin", benchmark=undoing.benchmark, reason=str(error))
        raise IntakeError(
            "The log cannot be read or written now. Retry; the same undo goes on where it has ended."
        ) from error
    return begun.withdrawn, begun.kept


def _by_benchmark(events: Sequence[EventFields]) -> dict[str, list[EventFields]]:
    by_name: dict[str, list[EventFields]] = {}
    for event in events:
        by_name.setdefault(event.benchmark, []).append(event)
    return by_name


def _declared(submission: Submission) -> list[dict[str, Any]]:
    return [declaration.model_dump(mode="json") for declaration in submission.declarations]


def _packed(
    events: Sequence[EventFields],
    declarations: Sequence[dict[str, Any]] = (),
    ended: Sequence[Ended] = (),
    producer: str | None = None,
    rejects: Sequence[Reject] = (),
    at: int | None = None,
) -> bytes:
    """Return a packed record: the declarations hold before the events, the ends of runs after them; `at`: milliseconds since 1970."""
    # The producer is first: there it is looked for.
    record: dict[str, Any] = {} if producer is None else {"producer": producer, "at": at}
    record |= {"declare": declarations, **by_kind(events)}
    if ended:
        record["ended"] = [each.model_dump(mode="json", exclude_none=True) for each in ended]
    if rejects:
        record["rejected"] = rejects
    return msgspec.json.encode(record)


def _records(submission: Submission, declarations: Sequence[dict[str, Any]]) -> list[bytes]:
    """Return the records of a request: the first one declares, the last one ends runs and has the rejects."""
    parts, at = _parts(submission.events, len(submission.events) or 1), round(1_000 * time())
    first = [declarations, *[()] * (len(parts) - 1)]
    last = [*[((), ())] * (len(parts) - 1), (submission.ended, submission.rejects)]
    return [
        _marked(_packed(part, declared, ended, submission.producer, rejects, at), submission)
        for part, declared, (ended, rejects) in zip(parts, first, last, strict=True)
    ]


def _parts(events: Sequence[EventFields], most: int) -> list[Sequence[EventFields]]:
    """Return the events in parts of at most `most`, and of fewer where they are of many models; one part if there are none."""
    most = min(most, record_events(len({event.model for event in events})) or most)
    return [events[start : start + most] for start in range(0, len(events), most)] or [events]


def _marked(record: bytes, submission: Submission) -> bytes:
    return mark_imported(record) if submission.imported else record


def _messages(submission: Submission) -> Iterator[tuple[str | None, bytes]]:
    """Return messages of one benchmark each, with its name; None for rejects that name none."""
    for declaration in _declared(submission):
        yield declaration["declare"], msgspec.json.encode(declaration)
    for name, events in _by_benchmark(submission.events).items():
        for part in _parts(events, _MESSAGE_EVENTS):
            yield from ((name, _marked(value, submission)) for value in _split(part))
    for ended in submission.ended:
        if submission.imported:
            yield ended.ended, _marked(_packed((), ended=[ended]), submission)
        else:
            yield ended.ended, ended.model_dump_json(exclude_none=True).encode()
    if submission.board is not None:
        yield submission.board.benchmark, encode_board_change(submission.board)
    rejects: dict[str | None, list[Reject]] = {}
    for reject in submission.rejects:
        rejects.setdefault(reject.get("benchmark"), []).append(reject)
    for about, some in rejects.items():
        for start in range(0, len(some), _MESSAGE_REJECTS):
            yield about, _packed((), rejects=some[start : start + _MESSAGE_REJECTS])


def _split(events: Sequence[EventFields]) -> Iterator[bytes]:
    value = _packed(events)
    if len(value) <= _MESSAGE_BYTES or len(events) == 1:
        yield value
        return
    middle = len(events) // 2
    yield from _split(events[:middle])
    yield from _split(events[middle:])

"""The boards of a topic, where no server is: listed from the stored state, changed by a record of the topic."""

import asyncio
from collections.abc import Iterator
from typing import Any

from monitor.engine.chunk_fold import Partition
from monitor.engine.state.boards import Boards
from monitor.log.kafka.settings import KafkaSettings
from monitor.publish.kafka_producer import KafkaProducer, Message
from monitor.retries import RetryPolicy
from monitor.service.operations.record_logs import TopicRecords
from monitor.service.operations.undo import BoardError, FoldedBoard, Undoing
from monitor.service.source_topic import SourceTopic
from monitor.settings import Settings
from monitor.store.state_reader import StateReader
from monitor.store.transfer.transfer import StoredBoard, Transfer
from monitor.view.from_state import board_view
from monitor.view.score_lines import SENTINEL, all_score_lines
from schemas.records.boards import BoardEntry
from schemas.records.declaration import Spec
from schemas.records.names import natural
from schemas.records.operations import BoardChange, Undone, encode_board_change
from schemas.records.origins import OriginKey
from schemas.records.ownership import owner
from schemas.records.text import Refusal

_POLL_SECONDS = 0.2


class TopicBoards:
    """The boards of a topic."""

    def __init__(self, settings: Settings, kafka: KafkaSettings | None) -> None:
        assert settings.redis_url is not None, "the command asks for it"
        self._redis, self._topic = settings.redis_url.get_secret_value(), settings.topic
        self._settings, self._kafka, self._seconds = settings, kafka, settings.start_seconds

    def rows(self) -> list[dict[str, Any]]:
        """Return a summary of each board, by name."""
        boards = asyncio.run(self._stored())
        return [_row(each) for each in sorted(boards, key=lambda each: natural(each.entry.benchmark))]

    def show(self, benchmark: str) -> dict[str, Any]:
        """Return one board with its declaration; raise `BoardError` if there is none."""
        stored = self._find(asyncio.run(self._stored()), benchmark)
        spec = None if stored.spec is None else Spec.model_validate_json(stored.spec).model_dump(mode="json")
        return {**_row(stored), "spec": spec}

    def change(self, change: BoardChange) -> bool:
        """Append a change to the topic; return whether a worker has folded it in time, and stored the result."""
        return asyncio.run(self._change(change))

    def scores(self, benchmark: str) -> Iterator[bytes]:
        """Yield the scores of a board as JSON lines, in parts."""
        partition = asyncio.run(self._load(benchmark))
        board = partition.benchmarks.get(benchmark)
        if board is None:
            raise BoardError(f"{benchmark} is deleted, so there is nothing to export")
        if board.sentinel is not None:
            raise BoardError(f"{benchmark} {SENTINEL}")
        yield from all_score_lines(map(board_view, [board]))

    async def _stored(self) -> list[StoredBoard]:
        async with Transfer.open(self._redis, self._topic, RetryPolicy(timeout=self._seconds)) as transfer:
            return await transfer.boards()

    async def _load(self, benchmark: str) -> Partition:
        number = self._find(await self._stored(), benchmark).partition
        async with await StateReader.open(
            self._redis, self._topic, retries=RetryPolicy(timeout=self._seconds)
        ) as reader:
            return Partition.restore(await reader.load(number))

    def _find(self, boards: list[StoredBoard], benchmark: str) -> StoredBoard:
        for each in boards:
            if each.entry.benchmark == benchmark:
                return each
        raise BoardError(f"there is no board {benchmark} in topic {self._topic}; `rankwatch board list` lists them")

    def undo(self, change: BoardChange) -> Undone:
        """Begin a board again without the events that a change withdraws, or go on with that; the copies are in the log on return."""
        return asyncio.run(self._undo(change))

    async def _undo(self, change: BoardChange) -> Undone:
        assert self._kafka is not None
        source = SourceTopic(self._settings, self._kafka)
        await source.require()
        async with (
            await StateReader.open(self._redis, self._topic, retries=RetryPolicy(timeout=self._seconds)) as state,
            KafkaProducer(self._kafka.client_options(), timeout=self._seconds) as producer,
        ):
            secret = await state.find_origin_secret()
            if secret is None:
                raise BoardError(state.no_origin_secret)
            partition = owner(change.benchmark, source.partitions)
            key = OriginKey(secret, source.identity)
            records = TopicRecords(self._kafka, self._topic, partition, change.benchmark, producer, key)
            undoing = Undoing(records, lambda: self._view(change.benchmark), change, self._seconds)
            begun = await undoing.begin()
            await undoing.copy()
            return begun._replace(in_force=await undoing.ended())

    async def _view(self, benchmark: str) -> FoldedBoard:
        stored = next((each for each in await self._stored() if each.entry.benchmark == benchmark), None)
        entry = BoardEntry(benchmark) if stored is None else stored.entry
        return FoldedBoard(entry, lambda change: _fault(stored, change), {} if stored is None else stored.counters)

    async def _change(self, change: BoardChange) -> bool:
        assert self._kafka is not None
        boards = {each.entry.benchmark: each for each in await self._stored()}
        fault = _fault(boards.get(change.benchmark), change)
        if fault is not None:
            raise BoardError(fault.reason)
        async with KafkaProducer(self._kafka.client_options(), timeout=self._seconds) as producer:
            partition = owner(change.benchmark, await producer.partitions(self._topic))
            message = Message(partition, change.benchmark.encode(), encode_board_change(change))
            ends = await producer.deliver(self._topic, [message])
        return await self._folded(partition, ends[partition])

    async def _folded(self, partition: int, end: int) -> bool:
        """Wait until a worker has stored a partition up to an offset; return whether it has."""
        retries = RetryPolicy(timeout=self._seconds)
        async with Transfer.open(self._redis, self._topic, retries) as transfer:
            try:
                async with asyncio.timeout(self._seconds):
                    while True:
                        position = (await transfer.positions()).get(partition)
                        if position is not None and position.off >= end:
                            return True
                        await asyncio.sleep(_POLL_SECONDS)
            except TimeoutError:
                return False


def _fault(stored: StoredBoard | None, change: BoardChange) -> Refusal | None:
    """Return why a change of a stored board is refused, or None."""
    entries = [] if stored is None else [stored.entry]
    exists = stored is not None and stored.entry.state != "deleted"
    return Boards(entries).fault(change, stored.names if stored is not None and exists else None)


def _row(stored: StoredBoard) -> dict[str, Any]:
    """Return a board as the API shows it."""
    entry = stored.entry
    return {
        "benchmark": entry.benchmark,
        "title": entry.title or None,
        "state": entry.state,
        "since": entry.since,
        "generation": entry.generation,
        "note": entry.note,
        "partition": stored.partition,
        "models": len(stored.models),
        "events": stored.counters.get("events", 0),
        "rejected": stored.counters.get("rejected", 0),
    }

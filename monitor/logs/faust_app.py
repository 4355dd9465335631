"""The Faust application that the monitor runs in: no tables, no leader, no web server, nothing on the terminal."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn

import faust
from faust.tables import TableManager
from faust.types import TP, EventT, Message, StreamT

from monitor.engine.chunk import Chunk
from monitor.logs.file_log import FileLog
from monitor.logs.kafka_settings import KafkaSettings

KAFKA_CHUNK_BYTES = 1 << 20
KAFKA_CHUNK_RECORDS = 6000
"""Messages may be packed: what bounds a chunk of them is their bytes. As many single events as fit into those, where they have piled up:
each chunk waits for the store once."""


class ChunkSchema(faust.Schema):  # type: ignore[misc]
    """Hands a message's chunk to the agent as it is, and a record to the log as it is."""

    def loads_key(self, app: faust.App, message: Message, **_: object) -> bytes | None:  # noqa: ARG002
        """Return the key untouched."""
        return message.key  # type: ignore[no-any-return]

    def loads_value(self, app: faust.App, message: Message, **_: object) -> Chunk:  # noqa: ARG002
        """Return the chunk untouched."""
        return message.value  # type: ignore[no-any-return]


class NoTables(TableManager):  # type: ignore[misc]
    """Starts at once: stock Faust gives agents a second to register their tables."""

    async def on_start(self) -> None:
        """Declare that all tables are registered, and let the first assignment through."""
        await self._update_channels()
        await self.recovery.start()


class AgentProgress(faust.Sensor):  # type: ignore[misc]
    """Knows the chunk that the agent has, and how far it has got in each partition.

    Attributes
    ----------
    next
        Where a partition goes on for the agent: behind the last chunk that it was given.
    done
        The end of the last chunk after which the agent has asked for another.
    """

    def __init__(self) -> None:
        super().__init__()
        self.next: dict[TP, int] = {}
        self.done: dict[TP, int] = {}
        self.free = asyncio.Event()
        self.free.set()

    def on_stream_event_in(self, tp: TP, offset: int, stream: StreamT, event: EventT) -> None:  # noqa: ARG002
        """Note that the agent takes a chunk."""
        self.next[tp] = event.message.value.end
        self.free.clear()

    def on_stream_event_out(
        self,
        tp: TP,
        offset: int,  # noqa: ARG002
        stream: StreamT,  # noqa: ARG002
        event: EventT,
        state: object = None,  # noqa: ARG002
    ) -> None:
        """Note that the agent has finished a chunk."""
        self.done[tp] = event.message.value.end
        self.free.set()


async def _nothing(partitions: set[TP]) -> None:
    pass


class FaustApp(faust.App):  # type: ignore[misc]
    """A Faust application whose agents read chunks and whose offsets are in the application's own store.

    Attributes
    ----------
    chunks
        The topic: one agent, ``@app.agent(app.chunks)``, gets one `monitor.engine.chunk.Chunk` after the other.
    stored_offsets
        Set it before the start: answers, for the partitions assigned, the offset to go on from; a partition it leaves
        out is read from its beginning.
    on_assigned
        For Kafka: awaited with all partitions of this worker before `stored_offsets` and their first chunks. A partition that
        it had before may have been another's in between: what is kept of it has to be compared with the store. Pause here what
        shall not be read yet.
    on_revoked
        For Kafka: awaited with all partitions of this worker in a rebalance, after their last chunk, before another gets them.
        Not called when the application stops.
    progress
        What the agent has been given.
    kafka
        For ``kafka://``: how to reach the brokers.
    file_log
        For ``file://``: the open log; whoever opened it closes it, after the application has stopped.
    chunk_records, chunk_bytes
        Bounds of a chunk; a longer record comes alone.
    """

    chunks: faust.TopicT
    stored_offsets: Callable[[set[TP]], Awaitable[Mapping[TP, int]]]
    on_assigned: Callable[[set[TP]], Awaitable[None]] = staticmethod(_nothing)
    on_revoked: Callable[[set[TP]], Awaitable[None]] = staticmethod(_nothing)
    progress: AgentProgress
    kafka: KafkaSettings | None = None
    file_log: FileLog | None = None
    chunk_records = 2000
    chunk_bytes = 1 << 18

    async def on_start(self) -> None:
        """Refuse to start without knowing where to start from."""
        if not hasattr(self, "stored_offsets"):
            raise ValueError("stored_offsets is not set: set app.stored_offsets before the start")
        await super().on_start()

    async def wait_failed(self) -> NoReturn:
        """Wait until the application fails, and raise the reason; wait for ever if it does not."""
        await self._crashed.wait()
        raise self.crash_reason

    async def settled(self) -> None:
        """Wait until the agent has no chunk; it gets none while the flow is suspended (`flow_control`)."""
        await self.progress.free.wait()

    async def _on_agent_error(self, agent: faust.Agent, exc: BaseException) -> None:  # noqa: ARG002
        # Faust starts the agent again behind the chunk that it failed on; let no later chunk get to it.
        self.flow_control.suspend()
        await self.crash(exc)

    def _create_directories(self) -> None:
        # Faust's data directory is for tables.
        pass


def make_app(url: str, topic: str, *, app_id: str, kafka: KafkaSettings | None = None) -> FaustApp:
    """Make the application for the log at `url`; register agents on its `chunks`, then start it within a running loop.

    Parameters
    ----------
    url
        ``file:///absolute/path/log.jsonl``, as `pathlib.Path.as_uri` writes it, or ``kafka://host:port[,host:port]/topic``.
    topic
        Name of the topic, whatever the URL says.
    app_id
        Name of the application; for Kafka, of its consumer group.
    kafka
        How to reach Kafka; none: by the addresses of the URL alone.

    Raises
    ------
    ValueError
        If a ``kafka://`` URL is none.
    """
    over_kafka = url.startswith("kafka:")
    app = FaustApp(
        app_id,
        broker=url,
        env={},  # Faust would let variables as common as BROKER_URL or WEB_PORT overrule what is said here
        autodiscover=False,
        debug=False,
        store="memory://",
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        stream_buffer_maxsize=1,
        stream_wait_empty=False,
        TableManager=NoTables,
    )
    app.progress = AgentProgress()
    app.sensors.add(app.progress)
    if over_kafka:
        app.kafka = kafka or KafkaSettings.from_url(url)
        app.chunk_bytes = KAFKA_CHUNK_BYTES
        app.chunk_records = KAFKA_CHUNK_RECORDS
    app.chunks = app.topic(topic, schema=ChunkSchema(value_serializer="raw"), acks=False, partitions=1)
    return app

"""Make the Faust application that the monitor runs in, without tables, leader, web server or terminal output."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn

import faust
from faust.tables import TableManager
from faust.types import TP, EventT, Message, StreamT

from monitor.log.file.log import FileLog
from monitor.log.kafka.settings import CHUNK_BYTES, CHUNK_RECORDS, KafkaSettings
from monitor.log.kafka.topic_identity import TopicIdentity
from schemas.records.chunks import Chunk
from schemas.records.origins import OriginKey


class ChunkSchema(faust.Schema):  # type: ignore[misc]
    """Passes chunks to the agent, and records to the log, unchanged."""

    def loads_key(self, app: faust.App, message: Message, **_: object) -> bytes | None:  # noqa: ARG002
        """Return the key unchanged."""
        return message.key  # type: ignore[no-any-return]

    def loads_value(self, app: faust.App, message: Message, **_: object) -> Chunk:  # noqa: ARG002
        """Return the chunk unchanged."""
        return message.value  # type: ignore[no-any-return]


class NoTables(TableManager):  # type: ignore[misc]
    """Starts immediately: stock Faust gives agents a second to register their tables."""

    async def on_start(self) -> None:
        """Mark all tables as registered, and allow the first assignment."""
        await self._update_channels()
        await self.recovery.start()


class AgentProgress(faust.Sensor):  # type: ignore[misc]
    """Records the progress of the agent in each partition."""

    def __init__(self) -> None:
        super().__init__()
        self.next: dict[TP, int] = {}
        self.done: dict[TP, int] = {}
        self.free = asyncio.Event()
        self.free.set()

    def on_stream_event_in(self, tp: TP, offset: int, stream: StreamT, event: EventT) -> None:  # noqa: ARG002
        """Record that the agent takes a chunk."""
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
        """Record that the agent has finished a chunk."""
        end = event.message.value.end
        self.done[tp] = min(end, self.next.get(tp, end))  # a chunk may end before its end, and a seek is to where
        self.free.set()


class ConsumerOnly(faust.App.BootStrategy):  # type: ignore[misc]
    """Starts no producer: `FileLog` and `monitor.publish` write."""

    enable_kafka_producer = False


async def _nothing(partitions: set[TP]) -> None:
    pass


async def _accept(partition: TP) -> bool:  # noqa: ARG001 - nothing is compared
    return True


class FaustApp(faust.App):  # type: ignore[misc]
    """A Faust application whose agents read chunks and whose offsets are in the application's own store."""

    BootStrategy = ConsumerOnly

    chunks: faust.TopicT  # the topic: the agent of `fold_by` gets one `schemas.records.chunks.Chunk` at a time
    # Set it before the start. Returns the offset at which each assigned partition continues; omitted partitions are read from their
    # beginning.
    stored_offsets: Callable[[set[TP]], Awaitable[Mapping[TP, int]]]
    # For Kafka: awaited with all partitions of this worker before `stored_offsets` and their first chunks. Another worker may have had a
    # partition meanwhile, so load its state again. Pause partitions here that must not be read yet.
    on_assigned: Callable[[set[TP]], Awaitable[None]] = staticmethod(_nothing)
    # For Kafka: awaited in a rebalance with all partitions of this worker, after their last chunk and before another worker gets them. Not
    # called when the application stops.
    on_revoked: Callable[[set[TP]], Awaitable[None]] = staticmethod(_nothing)
    # For ``kafka://``: awaited before records of a partition are delivered that came over another connection than those before. Returns
    # whether it could compare what was folded; it is called again if not.
    on_reconnected: Callable[[TP], Awaitable[bool]] = staticmethod(_accept)
    progress: AgentProgress  # the progress of the agent
    kafka: KafkaSettings | None = None  # for ``kafka://``: how to reach the brokers
    # for ``kafka://``: verifies the origins of republished records; without it none is believed
    origin_key: OriginKey | None = None
    # topic_name, topic_folded: For ``kafka://``: the name of the topic, and the identity of the topic that the state was folded from;
    # records of another one end the application with `TopicChanged`. Without an identity nothing is compared.
    topic_name: str
    topic_folded: TopicIdentity | None = None
    # For ``file://``: the open log. Its opener closes it after the application has stopped.
    file_log: FileLog | None = None
    chunk_records = 2000
    chunk_bytes = 1 << 18

    def fold_by(self, fold: Callable[[StreamT], Awaitable[None]]) -> None:
        """Register the agent that gets the chunks."""
        # `faust.App.agent` also finds out which of 1,500 modules it is called from, for a discovery that is switched off: this takes 0.06
        # s.
        agent = self.conf.Agent(fold, name="fold", app=self, channel=self.chunks, on_error=self._on_agent_error)
        self.agents[agent.name] = agent
        self.topics.beacon.add(agent)

    async def on_start(self) -> None:
        """Raise ValueError if `stored_offsets` is not set."""
        if not hasattr(self, "stored_offsets"):
            raise ValueError("stored_offsets is not set; set app.stored_offsets before the start")
        await super().on_start()

    async def wait_failed(self) -> NoReturn:
        """Wait until the application fails, and raise the reason."""
        await self._crashed.wait()
        raise self.crash_reason

    async def settled(self) -> None:
        """Wait until the agent has no chunk; it gets none while `flow_control` is suspended."""
        await self.progress.free.wait()

    async def _on_agent_error(self, agent: faust.Agent, exc: BaseException) -> None:  # noqa: ARG002
        # Faust restarts the agent after the chunk that it failed on; keep later chunks from it.
        self.flow_control.suspend()
        await self.crash(exc)

    def _create_directories(self) -> None:
        # Faust's data directory holds tables only.
        pass


def make_app(url: str, topic: str, *, app_id: str, kafka: KafkaSettings | None = None) -> FaustApp:
    """Make the application for the log at `url`. Give it an agent by `fold_by`, then start it in a running event loop."""
    over_kafka = url.startswith("kafka:")
    app = FaustApp(
        app_id,
        broker=url,
        env={},  # Faust would let common variables such as BROKER_URL or WEB_PORT override these options
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
        app.chunk_bytes = CHUNK_BYTES
        app.chunk_records = CHUNK_RECORDS
    app.topic_name = topic
    app.chunks = app.topic(topic, schema=ChunkSchema(value_serializer="raw"), acks=False, partitions=1)
    return app

"""Release a benchmark that workers have set aside, and send again what of it they have passed over."""

from collections.abc import AsyncIterator

from monitor.engine.decoder import Declared, Decoder, RunEnded
from monitor.log.kafka.records import records_between
from monitor.log.kafka.settings import KafkaSettings
from monitor.publish.kafka_producer import KafkaProducer, Message
from schemas.records.boards import Suspect
from schemas.records.chunks import Chunk
from schemas.records.columns import EventBatch
from schemas.records.operations import encode_release
from schemas.records.ownership import owner
from schemas.records.packed import encode_events

_AT_ONCE = 1_000


async def release(kafka: KafkaSettings, topic: str, suspect: Suspect, *, replay: bool, seconds: float) -> int:
    """Append the release of a benchmark to its partition, and with `replay` what was set aside; return how many messages that are."""
    # Only what can be read is sent again. A score that was counted meanwhile is a duplicate, so a second replay changes nothing.
    async with KafkaProducer(kafka.client_options(), timeout=seconds) as producer:
        partition = owner(suspect.benchmark, await producer.partitions(topic))
        key = suspect.benchmark.encode()
        await producer.deliver(topic, [Message(partition, key, encode_release(suspect.benchmark))])
        sent, part = 0, list[Message]()
        if replay and suspect.since is not None:
            records = records_between(kafka, topic, partition, suspect.since, suspect.last)
            async for payload in readable(records, suspect.benchmark):
                part.append(Message(partition, key, payload))
                if len(part) == _AT_ONCE:
                    await producer.deliver(topic, part)
                    sent, part = sent + len(part), []
        await producer.deliver(topic, part)
        return sent + len(part)


async def readable(records: AsyncIterator[tuple[int, bytes]], benchmark: str) -> AsyncIterator[bytes]:
    """Yield what of some records is of a benchmark and can be read, in their order: events, declarations and ends of runs."""
    decoder = Decoder(lambda name: name == benchmark, {}, {})
    async for offset, record in records:
        for step in decoder.steps(Chunk(0, offset, offset + 1, [offset], [record])):
            match step:
                case EventBatch():
                    for start in range(0, len(step.events), _AT_ONCE):
                        yield encode_events(list(step.events[start : start + _AT_ONCE]))
                case Declared():
                    yield step.declaration.model_dump_json().encode()
                case RunEnded():
                    yield step.ended.model_dump_json(exclude_none=True).encode()

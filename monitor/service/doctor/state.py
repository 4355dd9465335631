"""Check that the topic still holds everything that the state has not folded yet, and that the state has no gaps."""

from collections.abc import Iterator, Mapping

from aiokafka.errors import KafkaError

from monitor.log.kafka.records import earliest_offsets
from monitor.log.kafka.settings import KafkaSettings
from monitor.retries import RetryPolicy
from monitor.service.doctor.finding import Finding, fault, ok, warning
from monitor.store.errors import StoreError
from monitor.store.transfer.transfer import Position, Transfer
from monitor.words.order import gap

_SUBJECT = "gaps"
_RETRY_SECONDS = 5.0


async def check_state(kafka: KafkaSettings, redis_url: str, topic: str, *, accept_gap: bool) -> list[Finding]:
    """Compare the topic with the state; brokers or servers that do not answer are the findings of other checks."""
    try:
        earliest = await earliest_offsets(kafka, topic)
        async with Transfer.open(redis_url, topic, RetryPolicy(timeout=_RETRY_SECONDS)) as transfer:
            positions = await transfer.positions()
    except (KafkaError, StoreError, OSError, ValueError):
        return [not_checked()]
    return list(check_positions(topic, earliest, positions, accept_gap=accept_gap))


def not_checked() -> Finding:
    """Return that there is nothing to compare."""
    return warning(_SUBJECT, "not checked", "correct what the other checks of the topic and of Redis report")


def check_positions(
    topic: str, earliest: Mapping[int, int], positions: Mapping[int, Position], *, accept_gap: bool
) -> Iterator[Finding]:
    """Check where each partition begins, how far it is folded, and what it had lost before it was folded."""
    level, findings = warning if accept_gap else fault, 0
    for partition, first in sorted(earliest.items()):
        off, _ = positions.get(partition, Position())
        if off < first:
            findings += 1
            reach = f"is folded up to offset {off:,}" if off else "is empty"
            advice = (
                f"records {off:,} to {first - 1:,} were deleted before they were folded, and `rankwatch run` refuses to start: import a "
                "`state export`, fold a topic that has them, or start with --accept-gap"
            )
            yield level(
                _SUBJECT, f"partition {partition} of {topic} begins at offset {first:,}, and the state {reach}", advice
            )
    for partition, (_, gaps) in sorted(positions.items()):
        if gaps:
            findings += 1
            lost = "; ".join(gap(*each) for each in gaps)
            yield warning(
                _SUBJECT,
                f"partition {partition} of {topic}: records {lost} were deleted before they were folded",
                "its benchmarks report that they may be partial; to replace them, send all their events to a topic with another name",
            )
    if not findings:
        yield ok(_SUBJECT, "the topic holds every record that the state has not folded")

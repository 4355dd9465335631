"""End a process over Kafka: a log that cannot be read stays in the metrics for a while, and errors of the client get our words."""

import asyncio
from collections.abc import Awaitable

import structlog
from aiokafka.errors import KafkaError

from monitor.instruments import ProcessMetrics
from monitor.log.errors import OffsetOutOfRange, TopicChanged
from monitor.publish.kafka_errors import broker_error
from monitor.service.source_topic import SourceGap
from monitor.store.errors import StateRefused

log = structlog.get_logger()


async def linger(failed: Awaitable[None], process_metrics: ProcessMetrics, seconds: float, addresses: str) -> None:
    """Await a failure and raise it; a log or a state that is refused stays in the metrics and the log for some seconds first.

    An alert can fire meanwhile, and a supervisor does not start the process in a tight loop.
    """
    try:
        await failed
    except (SourceGap, OffsetOutOfRange, TopicChanged, StateRefused) as error:
        refused = "state" if isinstance(error, StateRefused) else "log"
        process_metrics.source_gap.set(refused == "log")
        log.error("refused", what=refused, reason=str(error), ends_in_seconds=seconds)  # noqa: TRY400
        await asyncio.sleep(seconds)
        raise
    except KafkaError as error:
        raise broker_error(error, addresses) from error

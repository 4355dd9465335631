"""`rankwatch run`: one worker of the service over Kafka and Redis."""

from typing import TYPE_CHECKING, Annotated

from monitor.cli.shared.errors import USAGE, end_at_once, stop
from monitor.cli.shared.options import HostOption, PortOption, TopicOption, option

if TYPE_CHECKING:
    from monitor.settings import Settings


def run(
    broker: Annotated[
        str | None, option("--broker", "kafka://host:port\\[,host:port]\\[/topic]", metavar="URL")
    ] = None,
    redis_url: Annotated[str | None, option("--redis-url", "redis://host:port of the state", metavar="URL")] = None,
    topic: TopicOption = None,
    group: Annotated[str | None, option("--group", "consumer group of the workers  \\[default: rankwatch]")] = None,
    accept_gap: Annotated[
        bool | None,
        option(
            "--accept-gap",
            "continue where records were deleted before they were folded; benchmarks that may lack some are reported as partial",
        ),
    ] = None,
    host: HostOption = None,
    port: PortOption = None,
) -> None:
    """Run one worker: events from Kafka, state in Redis, verdicts to a topic.

    Any number of workers share the partitions of the topic; each benchmark lives in one partition. Every setting is also an environment
    variable RANKWATCH_*; `rankwatch config` lists them.

    Example: rankwatch run --broker kafka://localhost:9092 --redis-url redis://localhost:6379
    """
    end_at_once()
    from monitor.cli.shared.process import log_json, run_to_end
    from monitor.cli.shared.settings import read_settings
    from monitor.logs.kafka_settings import split_url

    settings = read_settings(
        broker_url=broker, redis_url=redis_url, topic=topic, group=group, accept_gap=accept_gap, host=host, port=port
    )
    log_json()
    if settings.broker_url is None:
        stop("no broker is set; give --broker kafka://host:port (or RANKWATCH_BROKER_URL)", USAGE)
    if settings.redis_url is None:
        stop("no Redis is set; give --redis-url redis://host:port (or RANKWATCH_REDIS_URL)", USAGE)
    try:
        addresses, url_topic = split_url(settings.broker_url)
    except ValueError as error:
        stop(f"--broker: {error}", USAGE)
    if url_topic:
        settings = settings.model_copy(update={"topic": url_topic})
    run_to_end(_serve(settings, addresses))


async def _serve(settings: "Settings", addresses: str) -> None:
    from contextlib import AsyncExitStack

    import structlog

    from monitor.app.cluster_worker import ClusterWorker
    from monitor.cli.shared.kafka import kafka_settings
    from monitor.cli.shared.stopping import Stopping

    stopping = Stopping(settings.drain_seconds)
    log = structlog.get_logger()
    service = ClusterWorker(settings, kafka_settings(addresses, settings))
    try:
        async with AsyncExitStack() as stack:
            await stopping.unless_requested(stack.enter_async_context(service))
            if not stopping.requested:
                url = service.web.url if service.web else None
                log.info("started", url=url, topic=settings.topic, group=settings.group)
                await stopping.unless_requested(service.failed())
            log.info("stopping")
    except TimeoutError:
        stop(
            f"the brokers at {addresses} did not answer within {settings.start_seconds:g} s; check that they run and the address"
        )
    log.info("stopped")

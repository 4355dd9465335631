"""`rankwatch run`: one worker of the service over Kafka and Redis."""

from typing import TYPE_CHECKING, Annotated

from monitor.cli.shared.declared.prices import parse_prices
from monitor.cli.shared.options import HostOption, PortOption, PriceOption, PricesOption, TopicOption, option
from monitor.cli.shared.running.process import BrokerOption, RedisOption, run_service
from monitor.service.worker import ClusterWorker

if TYPE_CHECKING:
    from monitor.log.kafka.settings import KafkaSettings
    from monitor.settings import Settings


def run(
    broker: BrokerOption = None,
    redis_url: RedisOption = None,
    topic: TopicOption = None,
    group: Annotated[str | None, option("--group", "consumer group of the workers  \\[default: rankwatch]")] = None,
    accept_gap: Annotated[
        bool | None,
        option(
            "--accept-gap",
            "continue where records were deleted before they were folded; benchmarks that may lack some are reported as partial",
        ),
    ] = None,
    price: PriceOption = None,
    prices: PricesOption = None,
    host: HostOption = None,
    port: PortOption = None,
) -> None:
    """Run one worker: events from Kafka, state in Redis, verdicts to a topic.

    Any number of workers share the partitions of the topic; each benchmark lives in one partition. Every setting is also an environment
    variable RANKWATCH_*; `rankwatch config` lists them. At its stop it logs each goal: whether it is met, and what was run and saved.

    Example: rankwatch run --broker kafka://localhost:9092 --redis-url redis://localhost:6379
    """

    def make(settings: "Settings", kafka: "KafkaSettings") -> "ClusterWorker":
        return ClusterWorker(settings, kafka)

    run_service(
        make,
        broker_url=broker,
        redis_url=redis_url,
        topic=topic,
        group=group,
        accept_gap=accept_gap,
        prices=parse_prices(price or (), prices, of_all=True),
        host=host,
        port=port,
    )

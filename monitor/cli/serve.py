"""`rankwatch serve`: the read side of the service over Kafka and Redis."""

from typing import TYPE_CHECKING, Annotated

from monitor.cli.shared.declared.prices import parse_prices
from monitor.cli.shared.declared.suites import suites_flag
from monitor.cli.shared.options import (
    DistinctOption,
    HostOption,
    PortOption,
    PriceOption,
    PricesOption,
    SuiteMissingOption,
    SuiteOption,
    TopicOption,
    option,
)
from monitor.cli.shared.running.process import BrokerOption, RedisOption, run_service
from monitor.service.reader import Reader

if TYPE_CHECKING:
    from monitor.log.kafka.settings import KafkaSettings
    from monitor.settings import Settings


def serve(
    broker: BrokerOption = None,
    redis_url: RedisOption = None,
    topic: TopicOption = None,
    benchmarks: Annotated[
        str | None, option("--benchmarks", "show only benchmarks whose names match, as in 'mmlu*'", metavar="GLOB")
    ] = None,
    suite: SuiteOption = None,
    price: PriceOption = None,
    prices: PricesOption = None,
    suite_missing: SuiteMissingOption = None,
    distinct: DistinctOption = False,
    host: HostOption = None,
    port: PortOption = None,
) -> None:
    """Serve the page, API and metrics of all benchmarks that the workers fold.

    A reader loads the state from Redis, follows the topic from there, and writes neither to Redis nor to the consumer group. Run any number
    behind a load balancer: at the same offset of the log all of them give the same answer.

    Example: rankwatch serve --broker kafka://localhost:9092 --redis-url redis://localhost:6379
    """

    def make(settings: "Settings", kafka: "KafkaSettings") -> "Reader":
        return Reader(settings, kafka, benchmarks)

    run_service(
        make,
        broker_url=broker,
        redis_url=redis_url,
        topic=topic,
        suites=suites_flag(suite),
        prices=parse_prices(price or (), prices, of_all=True),
        suite_missing=None if suite_missing is None else suite_missing.value,
        distinct_items=distinct or None,
        host=host,
        port=port,
    )

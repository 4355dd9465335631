"""`rankwatch quarantine`: list the benchmarks that workers have set aside, and release them."""

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import typer

from monitor.cli.shared.commands import Group, add_command
from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.options import TableFormat, TableFormatOption, TopicOption, option
from monitor.cli.shared.remote.kafka import broker_settings, silence_kafka
from monitor.cli.shared.settings import read_settings
from monitor.publish.kafka_errors import BrokerError
from monitor.retries import RetryPolicy
from monitor.service.operations.quarantine import release as append
from monitor.store.errors import StoreError
from monitor.store.transfer.transfer import Transfer
from schemas.records.text import shorten

if TYPE_CHECKING:
    from monitor.settings import Settings
    from schemas.records.boards import Suspect


BrokerOption = Annotated[
    str | None, option("--broker", "Kafka  \\[default: the setting broker_url]", metavar="HOST:PORT,...")
]
RedisOption = Annotated[str | None, option("--redis-url", "server of the state", metavar="URL")]


def list_(
    redis_url: RedisOption = None, topic: TopicOption = None, form: TableFormatOption = TableFormat.table
) -> None:
    """List the benchmarks whose records are set aside: since when, why, and how many records.

    Example: rankwatch quarantine list --redis-url redis://localhost:6379
    """
    entries = _entries(read_settings(redis_url=redis_url, topic=topic))
    if form is TableFormat.json:
        rows = [{"partition": number, **entry._asdict()} for number, entry in entries]
        print(json.dumps({"quarantine": rows}, indent=2))
    for number, entry in entries if form is TableFormat.table else ():
        print(
            f"{shorten(entry.benchmark)}: {entry.records:,} records set aside from offset {entry.since:,} of partition {number} on\n"
            f"  {entry.reason}"
        )
    if not entries and form is TableFormat.table:
        print("no benchmark is set aside")


def release(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="its name", show_default=False)],
    broker: BrokerOption = None,
    redis_url: RedisOption = None,
    topic: TopicOption = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="send the records again that were set aside; those that cannot be read are omitted"
        ),
    ] = False,
) -> None:
    """Let the records of a benchmark count again, from now on.

    Fix the producer first: unreadable records set the benchmark aside again. The release is a record of the topic, and every later fold of
    the topic follows it.

    Example: rankwatch quarantine release mmlu-pro --replay
    """
    settings = read_settings(redis_url=redis_url, topic=topic, broker_url=broker)
    kafka, settings = broker_settings(settings)
    suspect = next((entry for _, entry in _entries(settings) if entry.benchmark == benchmark), None)
    if suspect is None:
        stop(f"{shorten(benchmark)} is not set aside; `rankwatch quarantine list` lists the benchmarks that are")
    silence_kafka()
    try:
        sent = asyncio.run(append(kafka, settings.topic, suspect, replay=replay, seconds=settings.start_seconds))
    except BrokerError as error:
        stop(str(error))
    again = f"; {sent:,} messages sent again" if replay else ""
    print(f"released {shorten(benchmark)}{again}")


def _entries(settings: "Settings") -> "list[tuple[int, Suspect]]":
    """Return the partition and the entry of each benchmark that is set aside."""
    if settings.redis_url is None:
        stop("no Redis is set; give --redis-url redis://host:port (or RANKWATCH_REDIS_URL)", USAGE)
    url = settings.redis_url.get_secret_value()

    async def read() -> "list[tuple[int, Suspect]]":
        async with Transfer.open(url, settings.topic, RetryPolicy(timeout=settings.start_seconds)) as transfer:
            return await transfer.quarantine()

    try:
        return asyncio.run(read())
    except (StoreError, ValueError) as error:
        stop(str(error))


quarantine = typer.Typer(cls=Group, no_args_is_help=True)
add_command(quarantine, list_, "list")
add_command(quarantine, release, "release")

"""What `run` and `serve` share: the settings that they need, and how they run to their end."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

import structlog

from monitor.cli.shared.errors import USAGE, end_at_once, stop
from monitor.cli.shared.options import option
from monitor.cli.shared.remote.kafka import broker_settings
from monitor.cli.shared.running.process import log_json, run_to_end
from monitor.cli.shared.running.stopping import Stopping
from monitor.cli.shared.settings import SettingsError, parse_settings, read_settings
from monitor.settings import RELOADED, Settings

if TYPE_CHECKING:
    from monitor.log.kafka.settings import KafkaSettings
    from monitor.service.process import ServedProcess


BrokerOption = Annotated[str | None, option("--broker", "kafka://host:port\\[,host:port]\\[/topic]", metavar="URL")]
RedisOption = Annotated[str | None, option("--redis-url", "redis://host:port of the state", metavar="URL")]

Make = Callable[["Settings", "KafkaSettings"], "ServedProcess"]  # makes the process for its settings


def run_service(make: Make, **flags: Any) -> None:  # noqa: ANN401 - the values of flags, None where one is not given
    """Run a process over Kafka and Redis until a signal or an error ends it."""
    end_at_once()
    given = settings = read_settings(**flags)
    log_json()
    kafka, settings = broker_settings(settings)
    if settings.redis_url is None:
        stop("no Redis is set; give --redis-url redis://host:port (or RANKWATCH_REDIS_URL)", USAGE)
    run_to_end(_serve(make, settings, kafka, lambda service: _reload(service, given, flags)))


def _reload(service: "ServedProcess", given: "Settings", flags: dict[str, Any]) -> None:
    """Read the file of settings again at SIGHUP, take what may change, and name what needs a restart."""
    log = structlog.get_logger()
    try:
        later = parse_settings(**flags)
    except SettingsError as error:
        log.error("settings not reloaded", reason=str(error))  # noqa: TRY400 - the message is complete
        return
    changed = {name: getattr(later, name) for name in RELOADED}
    changed = {name: value for name, value in changed.items() if value != getattr(service.settings, name)}
    others = Settings.model_fields.keys() - set(RELOADED)
    service.reload(changed)
    log.info(
        "settings reloaded",
        changed=changed,
        need_a_restart=sorted(name for name in others if getattr(later, name) != getattr(given, name)),
    )


async def _serve(
    make: Make, settings: "Settings", kafka: "KafkaSettings", reload: "Callable[[ServedProcess], None]"
) -> None:
    stopping = Stopping(settings.drain_seconds)
    log = structlog.get_logger()
    service = make(settings, kafka)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload, service)
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
            f"the brokers at {kafka.addresses} did not answer within {settings.start_seconds:g} s; check that they run and the address"
        )
    log.info("stopped")

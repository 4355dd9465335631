"""What commands that run the monitor share: their logs, and how they end."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

import structlog
from structlog.typing import Processor

from monitor.cli.shared.errors import USAGE, end_at_once, file_error, stop
from monitor.cli.shared.options import option
from monitor.cli.shared.remote.kafka import broker_settings
from monitor.cli.shared.running.stopping import Stopping
from monitor.cli.shared.settings import SettingsError, parse_settings, read_settings
from monitor.settings import RELOADED, Settings


def log_to_terminal() -> None:
    """Log readable lines on standard error."""
    _configure_logs(logging.ERROR)


def log_json() -> None:
    """Log JSON lines on standard error."""
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.processors.dict_tracebacks,
    ]
    as_json = structlog.processors.JSONRenderer()
    _configure_logs(logging.WARNING, processors=[*processors, as_json])
    # Libraries log through the standard library: their lines get the same form.
    (handler,) = logging.getLogger().handlers
    formatter = structlog.stdlib.ProcessorFormatter
    handler.setFormatter(
        formatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *processors],
            processors=[formatter.remove_processors_meta, as_json],
        )
    )


def _configure_logs(level: int, **configuration: Any) -> None:  # noqa: ANN401 - what structlog takes
    logging.basicConfig(level=level, stream=sys.stderr, format="%(name)s: %(message)s", force=True)
    # These log an error and raise it too: the command reports it once, in its own words.
    for name in ("faust", "mode", "monitor.log"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        **configuration,
    )


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run `work`; an error from outside ends the command with its message, Ctrl-C with exit 130."""
    try:
        from monitor.service.process import (
            startup_errors,  # late, for commands that only log: it loads the whole application
        )

        try:
            asyncio.run(work)
        except BrokenPipeError:
            raise  # the reader of the output has gone: no error to report
        except startup_errors() as error:
            stop(file_error(error) if isinstance(error, OSError) else str(error))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        work.close()  # Ctrl-C may come before it has begun


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

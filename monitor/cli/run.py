"""`rankwatch run`: the service over Kafka and Redis."""

import asyncio
import contextlib
import logging
import sys
from typing import Any

import structlog

from monitor.cli.errors import FAULT, USAGE, stop
from monitor.cli.kafka import kafka_settings
from monitor.cli.settings import read_settings
from monitor.settings import Settings


def run(flags: dict[str, Any]) -> None:
    """Run one worker until a signal or a fault."""
    settings = read_settings(flags)
    _log_lines()
    from monitor.app.process import startup_errors
    from monitor.logs.kafka_settings import split_url

    if settings.broker_url is None:
        stop("no broker is named: give --broker kafka://host:port[,host:port] (or RANKWATCH_BROKER_URL)", USAGE)
    if settings.redis_url is None:
        stop("no Redis is named: give --redis-url redis://host:port (or RANKWATCH_REDIS_URL)", USAGE)
    try:
        addresses, topic = split_url(settings.broker_url)
    except ValueError as error:
        stop(f"--broker: {error}", USAGE)
    if topic:
        settings = settings.model_copy(update={"topic": topic})
    try:
        asyncio.run(_serve(settings, addresses))
    except TimeoutError:
        stop(
            f"the brokers at {addresses} did not answer within {settings.start_seconds:g} s: are they running, and is this "
            "their address?",
            FAULT,
        )
    except startup_errors() as error:
        stop(str(error), FAULT)


async def _serve(settings: Settings, addresses: str) -> None:
    from monitor.app.cluster_worker import ClusterWorker
    from monitor.cli.stopping import Stopping

    stopping = Stopping(settings.drain_seconds)
    log = structlog.get_logger()
    service = ClusterWorker(settings, kafka_settings(addresses, settings))
    async with contextlib.AsyncExitStack() as stack:
        await stopping.unless_asked(stack.enter_async_context(service))
        if not stopping.asked:
            url = service.web.url if service.web else None
            log.info("started", url=url, topic=settings.topic, group=settings.group)
            await stopping.unless_asked(service.failed())
        log.info("stopping")
    log.info("stopped")


def _log_lines() -> None:
    """Log JSON lines on standard error."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    # What Faust logs as an error it raises too, and then it is told in our own words.
    for name in ("faust", "mode", "monitor.logs.faust_app"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )

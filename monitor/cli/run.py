"""`rankwatch run`: the service over Kafka and Redis."""

import asyncio
import logging
import signal
import sys
from typing import Any

import structlog

from monitor.cli.errors import FAULT, USAGE, stop
from monitor.cli.kafka import kafka_settings
from monitor.cli.watch import read_settings
from monitor.settings import Settings


def run(flags: dict[str, Any]) -> None:
    """Run one worker until a signal or a fault."""
    settings = read_settings(flags)
    _log_lines()
    from monitor.app import start_faults
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
    except start_faults() as error:
        stop(str(error), FAULT)


async def _serve(settings: Settings, addresses: str) -> None:
    from monitor.app import Service

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    log = structlog.get_logger()
    stopped = asyncio.create_task(stopping.wait())
    starting = asyncio.create_task(_started(Service(settings, kafka_settings(addresses, settings))))
    await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return
    service = starting.result()
    try:
        log.info("started", url=service.web.url if service.web else None, topic=settings.topic, group=settings.group)
        failed = asyncio.create_task(service.failed())
        await asyncio.wait({failed, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        failed.cancel()
        log.info("stopping")
    finally:
        await service.__aexit__(None, None, None)
    log.info("stopped")


async def _started(service: Any) -> Any:  # noqa: ANN401
    return await service.__aenter__()


def _log_lines() -> None:
    """Log JSON lines on standard error."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
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

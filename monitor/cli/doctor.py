"""`rankwatch doctor`: check the surroundings of the service."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from monitor.cli.shared.errors import FAULT, USAGE, stop
from monitor.cli.shared.options import DataDirOption, TopicOption, option
from monitor.cli.shared.remote.kafka import broker_settings, silence_kafka
from monitor.cli.shared.settings import read_settings, settings_rows
from monitor.service.doctor.bundle import collect, write
from monitor.service.doctor.data_dir import check_data_dir
from monitor.service.doctor.finding import fault, ok
from monitor.service.doctor.kafka import check_kafka
from monitor.service.doctor.redis import check_redis
from monitor.service.doctor.state import check_state, not_checked
from monitor.service.loops import check_loops

if TYPE_CHECKING:
    from monitor.service.doctor.finding import Finding
    from monitor.settings import Settings


_MARKS: Final = {"ok": "ok     ", "warning": "warning", "fault": "FAULT  "}


def doctor(
    broker: Annotated[
        str | None,
        option("--broker", "Kafka, also as kafka://...  \\[default: the setting broker_url]", metavar="HOST:PORT,..."),
    ] = None,
    topic: TopicOption = None,
    redis_url: Annotated[
        str | None, option("--redis-url", "Redis or Valkey  \\[default: the setting redis_url]")
    ] = None,
    data_dir: DataDirOption = None,
    bundle: Annotated[
        Path | None,
        option(
            "--bundle",
            "write findings, settings, versions, metrics and counts to a ZIP file, without secrets",
            metavar="FILE",
        ),
    ] = None,
    log: Annotated[
        Path | None, option("--log", "log of the service, whose end goes into the bundle", metavar="FILE")
    ] = None,
) -> None:
    """Check brokers, topic, Redis, clock and data directory; print what to fix.

    Exits with 1 if the service cannot work with what is there. A bundle holds names of benchmarks and models, and no scores: look at it
    before you send it.

    Example: rankwatch doctor --broker localhost:9092 --redis-url redis://localhost:6379
    """
    if log is not None and bundle is None:
        stop("--log goes into a bundle; add --bundle FILE", USAGE)
    settings = read_settings(broker_url=broker, topic=topic, redis_url=redis_url, data_dir=data_dir)
    findings = asyncio.run(_check(settings))
    width = max(len(finding.subject) for finding in findings)
    for level, subject, fact, advice in findings:
        print(f"{_MARKS[level]}  {subject:<{width}}  {fact}")
        if advice:
            print(f"{'':>9}{'':<{width}}  -> {advice}")
    counts = {level: sum(finding.level == level for finding in findings) for level in _MARKS}
    print(f"ok: {counts['ok']}, warnings: {counts['warning']}, faults: {counts['fault']}")
    if bundle is not None:
        _write_bundle(bundle, settings, findings, log)
    if counts["fault"]:
        raise SystemExit(FAULT)


def _write_bundle(file: Path, settings: "Settings", findings: "list[Finding]", log: Path | None) -> None:
    texts = asyncio.run(collect(settings, settings_rows(settings), findings, log))
    try:
        write(file, texts)
    except FileExistsError:
        stop(f"{file} exists; choose another name for the bundle")
    except OSError as error:
        stop(f"{file}: {error.strerror}; choose another place for the bundle")
    print(f"{file}: {', '.join(texts)}; secrets are removed, names of benchmarks and models are not")


async def _check(settings: "Settings") -> "list[Finding]":
    log, state = await _check_kafka(settings), await _check_redis(settings)
    return [
        *log,
        *state,
        *await _check_state(settings, [*log, *state]),
        *check_data_dir(settings.data_dir),
        check_loops(),
    ]


async def _check_kafka(settings: "Settings") -> "list[Finding]":
    if settings.broker_url is None:
        return [ok("Kafka", "not checked: broker_url is not set, the log is a file")]
    silence_kafka()
    kafka, settings = broker_settings(settings)
    try:
        options = kafka.client_options()
    except OSError as error:
        advice = "check the paths of kafka_ca_file, kafka_certificate_file and kafka_key_file"
        return [fault("TLS", str(error), advice)]
    return await check_kafka(options, settings.topic, settings.verdict_topic)


async def _check_redis(settings: "Settings") -> "list[Finding]":
    if settings.redis_url is None:
        return [ok("Redis", "not checked: redis_url is not set, an embedded Valkey keeps the state")]
    return await check_redis(settings.redis_url.get_secret_value())


async def _check_state(settings: "Settings", found: "list[Finding]") -> "list[Finding]":
    """Compare the topic with the state, if both were found: to wait for one that is missing takes a minute."""
    if settings.broker_url is None or settings.redis_url is None:
        return []
    redis_url = settings.redis_url.get_secret_value()
    kafka, settings = broker_settings(settings)
    there = {finding.subject for finding in found if finding.level == "ok"}
    if not {"Redis", f"topic {settings.topic}"} <= there:
        return [not_checked()]
    return await check_state(kafka, redis_url, settings.topic, accept_gap=settings.accept_gap)

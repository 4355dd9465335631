"""`rankwatch doctor`: whether everything around the service is as it needs it."""

import asyncio
from typing import TYPE_CHECKING, Any

from monitor.cli.errors import FAULT, USAGE, stop
from monitor.cli.settings import read_settings
from monitor.settings import Settings

if TYPE_CHECKING:
    from monitor.app.doctor import Finding

_MARKS = {"ok": "ok     ", "warning": "warning", "fault": "FAULT  "}


def run(flags: dict[str, Any]) -> None:
    """Look at everything, print a line for each thing, and exit with 1 if there is a fault."""
    findings = asyncio.run(_look(read_settings(flags)))
    width = max(len(finding.subject) for finding in findings)
    for level, subject, found, advice in findings:
        print(f"{_MARKS[level]}  {subject:<{width}}  {found}")
        if advice:
            print(f"{'':>9}{'':<{width}}  -> {advice}")
    counts = {level: sum(finding.level == level for finding in findings) for level in _MARKS}
    print(f"ok: {counts['ok']}, warnings: {counts['warning']}, faults: {counts['fault']}")
    if counts["fault"]:
        raise SystemExit(FAULT)


async def _look(settings: Settings) -> "list[Finding]":
    from monitor.app.doctor import Finding, judge_folder, look_at_redis

    findings = await _kafka(settings)
    if settings.redis_url is None:
        findings.append(
            Finding("ok", "Redis", "not looked at: no redis_url is set, so an embedded Valkey keeps the state")
        )
    else:
        findings += await look_at_redis(settings.redis_url.get_secret_value())
    return [*findings, *judge_folder(settings.data_dir)]


async def _kafka(settings: Settings) -> "list[Finding]":
    from monitor.app.doctor import Finding

    if settings.broker_url is None:
        return [Finding("ok", "Kafka", "not looked at: no broker_url is set, so the log is a file")]
    from monitor.app.doctor import look_at_kafka
    from monitor.cli.kafka import kafka_settings, quiet_kafka
    from monitor.logs.kafka_settings import split_url

    quiet_kafka()
    url = settings.broker_url if "://" in settings.broker_url else f"kafka://{settings.broker_url}"
    try:
        addresses, topic = split_url(url)
        options = kafka_settings(addresses, settings).client_options()
    except ValueError as error:
        stop(str(error), USAGE)
    except OSError as error:
        return [
            Finding(
                "fault",
                "TLS",
                str(error),
                "check the paths of kafka_ca_file, kafka_certificate_file and kafka_key_file",
            )
        ]
    return await look_at_kafka(options, topic or settings.topic, settings.verdict_topic)

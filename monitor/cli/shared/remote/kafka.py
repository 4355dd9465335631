"""How a command reaches Kafka."""

import logging

from monitor.cli.shared.errors import USAGE, stop
from monitor.log.kafka.settings import KafkaSettings, split_url
from monitor.settings import Settings


def silence_kafka() -> None:
    """Hide the log of the Kafka client: it raises the same errors."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


def broker_settings(settings: Settings, advice: str = "") -> tuple[KafkaSettings, Settings]:
    """Return how to reach the brokers of the settings, and the settings with the topic of the URL, if it names one."""
    if settings.broker_url is None:
        stop(f"no broker is set; give --broker kafka://host:port (or RANKWATCH_BROKER_URL){advice}", USAGE)
    url = settings.broker_url if "://" in settings.broker_url else f"kafka://{settings.broker_url}"
    try:
        addresses, topic = split_url(url)
    except ValueError as error:
        stop(f"--broker: {error}", USAGE)
    return kafka_settings(addresses, settings), settings.model_copy(update={"topic": topic}) if topic else settings


def kafka_settings(addresses: str, settings: Settings) -> KafkaSettings:
    """Return how to reach brokers at `addresses`; settings that contradict each other end the command."""
    password = settings.kafka_password
    try:
        return KafkaSettings(
            addresses=addresses,
            tls=settings.kafka_tls,
            ca_file=settings.kafka_ca_file,
            certificate_file=settings.kafka_certificate_file,
            key_file=settings.kafka_key_file,
            mechanism=settings.kafka_mechanism,
            username=settings.kafka_username,
            password=password.get_secret_value() if password is not None else None,
            token_file=settings.kafka_token_file,
            session_seconds=settings.kafka_session_seconds,
            instance=settings.instance,
        )
    except ValueError as error:
        stop(f"setting kafka_{error}", USAGE)

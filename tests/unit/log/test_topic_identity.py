"""Asking brokers which topic has a name."""

import socket

from monitor.log.kafka.settings import KafkaSettings
from monitor.log.kafka.topic_identity import topic_identity


async def test_brokers_that_cannot_be_reached_name_no_topic():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens at it
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        assert await topic_identity(KafkaSettings(addresses=address), "events") is None

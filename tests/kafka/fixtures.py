"""The cluster that all tests share which do not kill brokers."""

import uuid

import pytest

from tests.kafka.broker import KafkaCluster
from tests.kafka.jars import KafkaUnavailableError, classpath


def broker_or_skip():
    """Skip the test where Apache Kafka cannot be had."""
    try:
        classpath()
    except KafkaUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kafka():
    """One node of Apache Kafka; name topics and groups so that no other test meets them."""
    broker_or_skip()
    with KafkaCluster() as cluster:
        yield cluster


@pytest.fixture
def topic():
    """Return the name of a topic, and of a group, that no other test has."""
    return f"events-{uuid.uuid4().hex}"

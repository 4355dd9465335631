"""The cluster that all tests share which do not kill brokers."""

import uuid

import pytest

from tests.kafka.broker import KafkaCluster
from tests.kafka.jars import KafkaUnavailableError, classpath


@pytest.fixture(scope="session")
def kafka():
    """One node of Apache Kafka; name topics and groups so that no other test meets them."""
    try:
        classpath()
    except KafkaUnavailableError as error:
        pytest.skip(str(error))
    with KafkaCluster() as cluster:
        yield cluster


@pytest.fixture
def topic():
    """Return the name of a topic, and of a group, that no other test has."""
    return f"events-{uuid.uuid4().hex}"

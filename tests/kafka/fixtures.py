"""Provide Kafka clusters: a shared one, and one per test for tests that kill brokers."""

import uuid

import pytest

from tests.kafka.jars import class_archive_options, classpath
from tests.maven import UnavailableError


def broker_or_skip():
    """Skip the test where Apache Kafka is not available."""
    try:
        classpath()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kafka():
    """Run one node for the whole session; use the fixture `topic` so that no two tests share a name."""
    broker_or_skip()
    from tests.kafka.broker import KafkaCluster

    with class_archive_options() as java, KafkaCluster(java=java) as cluster:
        yield cluster
        if java:
            cluster.brokers[0].stop(seconds=60)


@pytest.fixture
def own_kafka(request):
    """Run a cluster for this test only, so that it may kill brokers; an indirect parameter sets the number of nodes."""
    broker_or_skip()
    from tests.kafka.broker import KafkaCluster

    with KafkaCluster(getattr(request, "param", 1)) as cluster:
        yield cluster


@pytest.fixture
def topic():
    """Return a name for a topic and a consumer group that no other test uses."""
    return f"events-{uuid.uuid4().hex}"

"""`rankwatch send` and `rankwatch doctor` where the brokers ask for a login: the settings reach every client."""

import asyncio

import pytest

from tests.commands import rankwatch
from tests.kafka.broker import KafkaCluster
from tests.kafka.records import read_all
from tests.ports import free_port

pytestmark = pytest.mark.kafka

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
USER = {"RANKWATCH_KAFKA_MECHANISM": "PLAIN", "RANKWATCH_KAFKA_USERNAME": "alice"}


@pytest.fixture(scope="module")
def guarded(kafka):
    """A node with a listener that asks for a login: the cluster, and the address of that listener."""
    port = free_port()
    extra = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{LOGIN} required user_alice="secret";',
    }
    with KafkaCluster(extra=extra, listeners={"LOGIN": (port, "SASL_PLAINTEXT")}) as cluster:
        asyncio.run(cluster.create_topic("events", 2))
        yield cluster, f"127.0.0.1:{port}"


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"benchmark": "b", "item_id": "1", "model": "m", "score": 1}\n')
    return path


def test_the_right_password(guarded, results, tmp_path):
    cluster, address = guarded
    login = USER | {"RANKWATCH_KAFKA_PASSWORD": "secret"}
    rankwatch("send", results, "--to", f"kafka://{address}/events", "--data-dir", tmp_path, **login)
    assert len(asyncio.run(read_all(cluster, "events"))) == 1
    ended = rankwatch("doctor", "--broker", address, "--topic", "events", "--data-dir", tmp_path, **login)
    assert f"answers at {address}" in ended.stdout


def test_a_wrong_password_is_reported_and_not_shown(guarded, results, tmp_path):
    _, address = guarded
    login = USER | {"RANKWATCH_KAFKA_PASSWORD": "wrong-and-private"}
    send = rankwatch("send", results, "--to", f"kafka://{address}/events", "--data-dir", tmp_path, code=1, **login)
    doctor = rankwatch("doctor", "--broker", address, "--data-dir", tmp_path, code=1, **login)
    for output in (send.stderr, doctor.stdout):
        assert "password" in output
        assert "wrong-and-private" not in output


def test_settings_that_contradict_each_other(results, tmp_path):
    ended = rankwatch("send", results, "--to", "kafka://localhost/events", "--data-dir", tmp_path, code=2, **USER)
    assert "password is not set" in ended.stderr

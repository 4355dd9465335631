"""TLS and SASL, against a real Apache Kafka that asks for them."""

import asyncio
import json
import shutil
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode

import pytest
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError

from monitor.log.faust_app import make_app
from monitor.log.kafka.settings import KafkaSettings
from monitor.publish.kafka_producer import KafkaProducer, Message
from tests.kafka.broker import KafkaCluster
from tests.ports import free_ports

pytestmark = pytest.mark.kafka

LOGIN = "org.apache.kafka.common.security"
SASL = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "plain.sasl.jaas.config": f'{LOGIN}.plain.PlainLoginModule required user_alice="secret";',
    "scram-sha-256.sasl.jaas.config": f"{LOGIN}.scram.ScramLoginModule required;",
    "scram-sha-512.sasl.jaas.config": f"{LOGIN}.scram.ScramLoginModule required;",
    "oauthbearer.sasl.jaas.config": f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";',
}


@pytest.fixture(scope="module")
def secured(kafka, tmp_path_factory):
    """A node with a listener for mutual TLS and one for SASL over TLS: the cluster, the addresses, the certificates."""
    if shutil.which("openssl") is None:
        pytest.skip("certificates are made by openssl, which is not on PATH (on Debian: apt-get install openssl)")
    folder = tmp_path_factory.mktemp("certificates")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    request = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=rankwatch -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run([*request.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    store = folder / "store.pem"
    store.write_bytes(key.read_bytes() + certificate.read_bytes())
    mutual, sasl = free_ports(2)
    tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": store}
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": certificate, "ssl.client.auth": "required"}
    extra = {f"listener.name.sasl.{name}": value for name, value in {**tls, **SASL}.items()}
    extra |= {f"listener.name.mutual.{name}": value for name, value in {**tls, **trust}.items()}
    with KafkaCluster(
        extra={**extra, "sasl.enabled.mechanisms": SASL["sasl.enabled.mechanisms"]},
        scram=[f"SCRAM-SHA-{bits}=[name=alice,password=secret]" for bits in (256, 512)],
        listeners={"MUTUAL": (mutual, "SSL"), "SASL": (sasl, "SASL_SSL")},
    ) as cluster:
        yield cluster, f"127.0.0.1:{mutual}", f"127.0.0.1:{sasl}", certificate, key


def token():
    """Return an unsigned token: the broker's default validator, not for production, takes it."""
    now = int(time.time())
    parts = {"alg": "none"}, {"sub": "alice", "iat": now, "exp": now + 600}
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


class Provider(AbstractTokenProvider):
    async def token(self):
        return token()


async def written_and_read(cluster, settings):
    """Write a record and read it back, with the clients of the service."""
    topic = f"events-{uuid.uuid4().hex}"
    await cluster.create_topic(topic)
    app = make_app(f"kafka://{settings.addresses}/{topic}", topic, app_id=topic, kafka=settings)
    read = asyncio.get_running_loop().create_future()

    async def stored_offsets(assigned):
        return {}

    async def agent(stream):
        async for chunk in stream:
            read.set_result(chunk.records)

    app.stored_offsets = stored_offsets
    app.fold_by(agent)
    try:
        await app.start()
        async with KafkaProducer(settings.client_options(), timeout=5) as producer:
            await producer.deliver(topic, [Message(0, None, b"1")])
        assert await asyncio.wait_for(read, 20) == [b"1"]
    finally:
        await app.stop()


PASSWORD = {"username": "alice", "password": "secret"}


@pytest.mark.parametrize(
    "given",
    [
        {"mechanism": "PLAIN", **PASSWORD},
        {"mechanism": "SCRAM-SHA-256", **PASSWORD},
        {"mechanism": "SCRAM-SHA-512", **PASSWORD},
        {"mechanism": "OAUTHBEARER", "token_provider": Provider()},
        {"mechanism": "OAUTHBEARER", "token_file": None},
    ],
    ids=lambda given: "-".join(sorted(given.keys() | {given["mechanism"]})),
)
async def test_every_mechanism_lets_the_application_in(secured, tmp_path, given):
    cluster, _, address, certificate, _ = secured
    if "token_file" in given:
        given = {**given, "token_file": tmp_path / "token"}
        given["token_file"].write_text(token())
    await written_and_read(cluster, KafkaSettings(addresses=address, ca_file=certificate, **given))


async def test_a_certificate_of_its_own_lets_the_application_in(secured):
    cluster, address, _, certificate, key = secured
    settings = KafkaSettings(addresses=address, ca_file=certificate, certificate_file=certificate, key_file=key)
    await written_and_read(cluster, settings)


@pytest.mark.parametrize("wrong", ["password", "authority", "no certificate"])
async def test_what_is_wrong_ends_the_start(secured, wrong):
    cluster, mutual, sasl, certificate, _ = secured
    settings = {
        "password": {"addresses": sasl, "ca_file": certificate, "mechanism": "PLAIN", **PASSWORD, "password": "guess"},
        "authority": {"addresses": sasl, "tls": True, "mechanism": "PLAIN", **PASSWORD},
        "no certificate": {"addresses": mutual, "ca_file": certificate},
    }[wrong]
    with pytest.raises(KafkaError):
        await written_and_read(cluster, KafkaSettings(**settings))

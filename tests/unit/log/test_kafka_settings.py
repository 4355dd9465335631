"""What is refused before any broker is asked."""

import ssl
from pathlib import Path

import pytest

from monitor.log.kafka.settings import KafkaSettings, TokenFile, split_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("kafka://one:9092/events", ("one:9092", "events")),
        ("kafka://one:1,two:2/a.b", ("one:1,two:2", "a.b")),
        ("kafka://one", ("one:9092", "")),
        ("kafka://one,two/", ("one:9092,two:9092", "")),
        ("kafka://[::1]:9093,[::2]/events", ("[::1]:9093,[::2]:9092", "events")),
    ],
)
def test_a_url_is_addresses_and_a_topic(url, expected):
    assert split_url(url) == expected


@pytest.mark.parametrize("url", ["file:///x", "kafka:///x", "kafka://one/x/y", "kafka://one/x?y=1", "one:9092"])
def test_what_is_no_such_url_is_refused(url):
    with pytest.raises(ValueError, match="use kafka://host:port"):
        split_url(url)


def test_a_password_in_a_url_is_refused_and_not_shown():
    with pytest.raises(ValueError, match="RANKWATCH_KAFKA_USERNAME and RANKWATCH_KAFKA_PASSWORD") as refused:
        split_url("kafka://alice:secret@one:9092/events")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"mechanism": "GSSAPI"}, "mechanism is 'GSSAPI'; use one of PLAIN"),
        ({"mechanism": "PLAIN", "password": "x"}, "username is not set; SASL PLAIN needs it"),
        ({"mechanism": "SCRAM-SHA-256", "username": "x"}, "password is not set; SASL SCRAM-SHA-256 needs it"),
        ({"mechanism": "OAUTHBEARER"}, "token_file or token_provider"),
        ({"certificate_file": Path("x")}, "certificate_file and key_file"),
    ],
)
def test_what_cannot_work_is_refused(given, reason):
    with pytest.raises(ValueError, match=reason):
        KafkaSettings(addresses="one:9092", **given)


def test_the_password_is_not_shown():
    settings = KafkaSettings(addresses="one:1", mechanism="PLAIN", username="alice", password="secret")
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("given", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"tls": True}, "SSL"),
        ({"mechanism": "SCRAM-SHA-512", "username": "a", "password": "b"}, "SASL_PLAINTEXT"),
        ({"mechanism": "PLAIN", "username": "a", "password": "b", "tls": True}, "SASL_SSL"),
    ],
)
def test_the_protocol_follows_from_what_is_set(given, protocol):
    options = KafkaSettings(addresses="one:1", **given).client_options()
    assert options["security_protocol"] == protocol
    assert ("ssl_context" in options) == protocol.endswith("SSL")
    if protocol.endswith("SSL"):
        assert options["ssl_context"].verify_mode is ssl.CERT_REQUIRED
        assert options["ssl_context"].check_hostname
    assert options.get("sasl_mechanism") == given.get("mechanism")


async def test_a_token_is_read_anew_each_time(tmp_path):
    path = tmp_path / "token"
    for token in ("one", "two"):
        path.write_text(f"{token}\n")
        assert await TokenFile(path).token() == token

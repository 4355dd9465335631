"""Describe how every Kafka client reaches the brokers."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args
from urllib.parse import urlsplit

from aiokafka.abc import AbstractTokenProvider

from schemas.records.text import mask_url, shorten

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

DEFAULT_PORT: Final = 9092
CHUNK_BYTES: Final = 4 << 20
CHUNK_RECORDS: Final = 24_000
"""As many single events as are fetched at a time: each chunk waits for the store once, and has a cost for each benchmark in it.

A reader takes as many, so that it keeps up where benchmarks are many. Requests wait for a part of a chunk at most.
"""


def split_url(url: str) -> tuple[str, str]:
    """Split ``kafka://host:port[,host:port]/topic`` into ``host:port[,host:port]`` and the topic.

    >>> split_url("kafka://one:9092,two/rankwatch.events")
    ('one:9092,two:9092', 'rankwatch.events')
    """
    advice = "use kafka://host:port[,host:port]/topic"
    try:
        parts = urlsplit(url)
        hosts = [host for host in parts.netloc.split(",") if host]
        valid = all(urlsplit(f"//{host}").port != 0 for host in hosts)
    except ValueError:
        raise ValueError(f"{shorten(mask_url(url))}: a host or a port is not valid; {advice}") from None
    topic = parts.path.strip("/")
    if parts.scheme != "kafka" or not (hosts and valid) or "/" in topic or parts.query:
        raise ValueError(f"{shorten(mask_url(url))} is not the address of Kafka brokers; {advice}")
    if "@" in parts.netloc:
        raise ValueError(
            f"{shorten(mask_url(url))} contains a user or password; give them with RANKWATCH_KAFKA_USERNAME and RANKWATCH_KAFKA_PASSWORD"
        )
    return ",".join(host if _has_port(host) else f"{host}:{DEFAULT_PORT}" for host in hosts), topic


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]  # an IPv6 address is in brackets


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """Reads the token for each connection from a file that another program keeps fresh."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:
        """Return the current content of the file."""
        return self._path.read_text(encoding="ascii").strip()  # a few hundred bytes, per connection


@dataclass(frozen=True, kw_only=True)
class KafkaSettings:
    """How to reach the brokers, and how to read from them."""

    addresses: str  # ``host:port[,host:port]`` of some brokers; they name the others
    tls: bool = False  # whether the brokers use TLS; any of the three files implies it
    ca_file: Path | None = None  # certificates to trust (PEM), instead of the system's
    # certificate_file, key_file: the client's own certificate and key (PEM)
    certificate_file: Path | None = None
    key_file: Path | None = None
    mechanism: Mechanism | None = None  # of SASL; None for no SASL
    # username, password: for PLAIN and SCRAM
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token_file: Path | None = None  # for OAUTHBEARER: a file with the token, which another program keeps fresh
    token_provider: AbstractTokenProvider | None = None  # for OAUTHBEARER, instead of the file
    session_seconds: float = 10.0  # how long a worker may be silent before its partitions go to other workers
    # How long a rebalance waits for a worker to release its partitions. Half of it is for finishing the current chunk.
    rebalance_seconds: float = 40.0
    # the permanent name of this worker in its group (static membership), which survives a restart; None for a member that leaves at its end
    instance: str | None = None
    fetch_wait_seconds: float = 0.5  # how long a broker may delay a fetch while there is nothing to read
    fetch_bytes: int = 4 << 20  # how much of a partition is fetched, and held in memory, at a time

    @classmethod
    def from_url(cls, url: str, **others: Any) -> Self:  # noqa: ANN401 - the attributes above
        """Take the addresses from a URL, as `split_url`."""
        return cls(addresses=split_url(url)[0], **others)

    def __post_init__(self) -> None:
        if self.mechanism not in (None, *get_args(Mechanism)):
            raise ValueError(f"mechanism is {self.mechanism!r}; use one of {', '.join(get_args(Mechanism))}, or none")
        if self.mechanism not in (None, "OAUTHBEARER"):
            for name in ("username", "password"):
                if not getattr(self, name):
                    raise ValueError(f"{name} is not set; SASL {self.mechanism} needs it")
        if self.mechanism == "OAUTHBEARER" and (self.token_file is None) == (self.token_provider is None):
            raise ValueError("SASL OAUTHBEARER needs either token_file or token_provider; set one of them")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together; set both, or neither")

    def client_options(self) -> dict[str, Any]:
        """Return the keyword arguments for any client of aiokafka: consumer, producer or admin."""
        tls = self.tls or any((self.ca_file, self.certificate_file))
        options: dict[str, Any] = {"bootstrap_servers": self.addresses, "client_id": "rankwatch"}
        options["security_protocol"] = ("SASL_" if self.mechanism else "") + ("SSL" if tls else "PLAINTEXT")
        if tls:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file, self.key_file)
            options["ssl_context"] = context
        if self.mechanism is not None:
            options["sasl_mechanism"] = self.mechanism
        if self.mechanism == "OAUTHBEARER":
            options["sasl_oauth_token_provider"] = self.token_provider or TokenFile(self.token_file)  # type: ignore[arg-type]
        elif self.mechanism is not None:
            options["sasl_plain_username"] = self.username
            options["sasl_plain_password"] = self.password
        return options

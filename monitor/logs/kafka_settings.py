"""How Kafka is reached: one description for every client, whatever it is for."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

from aiokafka.abc import AbstractTokenProvider

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

DEFAULT_PORT: Final = 9092


def split_url(url: str) -> tuple[str, str]:
    """Split ``kafka://host:port[,host:port]/topic`` into ``host:port[,host:port]`` and the topic.

    Parameters
    ----------
    url
        A host without a port has port 9092; without a path, the topic is empty.

    Raises
    ------
    ValueError
        If it is not such a URL, or holds a user or a password.

    Examples
    --------
    >>> split_url("kafka://one:9092,two/rankwatch.events")
    ('one:9092,two:9092', 'rankwatch.events')
    """
    parts = urlsplit(url)
    shown = f"{parts.scheme}://...{parts.path}" if "@" in parts.netloc else url
    hosts = [host for host in parts.netloc.split(",") if host]
    topic = parts.path.strip("/")
    if parts.scheme != "kafka" or not hosts or "/" in topic or parts.query:
        raise ValueError(f"url is {shown}: give kafka://host:port[,host:port]/topic")
    if "@" in parts.netloc:
        raise ValueError(f"url is {shown}, with a user in it: give the user and the password as settings of their own")
    return ",".join(host if _has_port(host) else f"{host}:{DEFAULT_PORT}" for host in hosts), topic


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]  # an IPv6 address stands in brackets


class TokenFile(AbstractTokenProvider):  # type: ignore[misc]
    """Reads the token for each connection anew from a file that something else keeps fresh."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def token(self) -> str:
        """Return what the file holds now."""
        return self._path.read_text(encoding="ascii").strip()  # a few hundred bytes, on a connection only


@dataclass(frozen=True, kw_only=True)
class KafkaSettings:
    """How to reach the brokers, and how to read from them.

    Attributes
    ----------
    addresses
        ``host:port[,host:port]`` of some brokers; the others are found through them.
    tls
        Whether the brokers speak TLS; set by any of the three files.
    ca_file
        Certificates to trust (PEM), instead of the system's.
    certificate_file, key_file
        The client's own certificate and key (PEM).
    mechanism
        Of SASL; none: no SASL.
    username, password
        For PLAIN and SCRAM.
    token_file
        For OAUTHBEARER: a file that holds the token now and is kept fresh by something else.
    token_provider
        For OAUTHBEARER, instead of the file.
    session_seconds
        How long a worker may be silent before its partitions go to others.
    rebalance_seconds
        How long the others wait for a worker to let its partitions go. It has half of that to finish the chunk in hand.
    fetch_wait_seconds
        How long a broker may hold a fetch back while there is nothing to read.
    fetch_bytes
        How much is fetched of a partition at a time, and so held before it is asked for.
    """

    addresses: str
    tls: bool = False
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    mechanism: Mechanism | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    token_provider: AbstractTokenProvider | None = None
    session_seconds: float = 10.0
    rebalance_seconds: float = 40.0
    fetch_wait_seconds: float = 0.5
    fetch_bytes: int = 4 << 20

    @classmethod
    def from_url(cls, url: str, **others: Any) -> Self:  # noqa: ANN401 - the attributes above
        """Take the addresses from a URL; raise `ValueError` as `split_url`."""
        return cls(addresses=split_url(url)[0], **others)

    def __post_init__(self) -> None:
        needed: dict[str | None, tuple[str, ...]] = {
            None: (),
            "PLAIN": ("username", "password"),
            "SCRAM-SHA-256": ("username", "password"),
            "SCRAM-SHA-512": ("username", "password"),
            "OAUTHBEARER": (),
        }
        if self.mechanism not in needed:
            known = ", ".join(str(name) for name in needed if name)
            raise ValueError(f"mechanism is {self.mechanism!r}: give one of {known}, or none")
        for name in needed[self.mechanism]:
            if not getattr(self, name):
                raise ValueError(f"{name} is not set: SASL {self.mechanism} needs it")
        if self.mechanism == "OAUTHBEARER" and (self.token_file is None) == (self.token_provider is None):
            raise ValueError(
                "token_file and token_provider are both set or both not: SASL OAUTHBEARER needs one of them"
            )
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together: give both, or none")

    def client_options(self) -> dict[str, Any]:
        """Return the keyword arguments with which any client of aiokafka (consumer, producer, admin) reaches the brokers.

        Raises
        ------
        OSError, ssl.SSLError
            If a file cannot be read, or does not hold what it should.
        """
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

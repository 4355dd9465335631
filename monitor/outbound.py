"""Post to web addresses that users configure, without reaching addresses of a private network that were not allowed.

The name is resolved once, every address it has is checked, and the connection goes to a checked address: a name that resolves to another
address a moment later (DNS rebinding) changes nothing. Redirects are not followed, and proxies of the environment are not used.
"""

import http.client
import smtplib
import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

_NAT64: Final = IPv6Network("64:ff9b::/96")
_GLOBAL: Final = IPv6Network("2000::/3")
"""All global IPv6 addresses; others may be translated to private ones, and `is_global` holds for many of them."""

_LONGEST_ANSWER: Final = 64_000

Address = IPv4Address | IPv6Address


class NotAcceptedError(Exception):
    """A request failed; the message never holds the URL, which may contain a secret."""

    def __init__(
        self, reason: str, *, wait: float | None = None, status: int | None = None, passing: bool = False
    ) -> None:
        super().__init__(reason)
        self.wait, self.status = wait, status
        self.passing = passing  # the server was away or busy, and may answer later


class Allowed:
    """The private addresses that may be reached.

    >>> allowed = Allowed("alertmanager, 10.0.0.0/8")
    >>> allowed.refusal("example.org", "10.1.2.3"), allowed.refusal("alertmanager", "172.17.0.2")
    (None, None)
    >>> allowed.refusal("rebind.example.org", "169.254.169.254")
    'it resolves to 169.254.169.254, which is not a public address; allow it with RANKWATCH_PRIVATE_ADDRESSES'
    """

    def __init__(self, text: str | None = None) -> None:
        parts = [part.strip().lower() for part in (text or "").split(",") if part.strip()]
        self._all = "*" in parts
        self._hosts = {part for part in parts if part != "*" and not _is_network(part)}
        if broken := sorted(host for host in self._hosts if "/" in host):
            raise ValueError(f"private_addresses has the network {broken[0]!r}, which is not valid; use 10.0.0.0/8")
        self._networks = [ip_network(part, strict=False) for part in parts if _is_network(part)]

    def refusal(self, host: str, address: str) -> str | None:
        """Return why an address of a host may not be reached, or None."""
        found = _plain(ip_address(address.partition("%")[0]))
        if self._all or host.lower() in self._hosts or any(found in network for network in self._networks):
            return None
        if found.is_global and not found.is_multicast and (found.version == 4 or found in _GLOBAL):
            return None
        return f"it resolves to {found}, which is not a public address; allow it with RANKWATCH_PRIVATE_ADDRESSES"


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _plain(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 address, if there is one."""
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        return inner or address
    return address


def connect(host: str, port: int, allowed: Allowed, seconds: float) -> socket.socket:
    """Connect to a host at one of its addresses, all of which have to be allowed; raise `NotAcceptedError` if one is not."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for *_, place in addresses:
        refused = allowed.refusal(host, str(place[0]))
        if refused is not None:
            raise NotAcceptedError(refused)
    error: OSError = OSError("no address")
    for family, kind, protocol, _, place in addresses:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(seconds)
            connection.connect(place)
        except OSError as failure:
            connection.close()
            error = failure
        else:
            return connection
    raise error


class _Http(http.client.HTTPConnection):
    allowed: Allowed

    def connect(self) -> None:
        self.sock = connect(self.host, self.port, self.allowed, self.timeout or 0)


class _Https(http.client.HTTPSConnection):
    allowed: Allowed

    def connect(self) -> None:
        plain = connect(self.host, self.port, self.allowed, self.timeout or 0)
        try:
            self.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


class Smtp(smtplib.SMTP):
    """An SMTP client that reaches allowed addresses only, over TLS from the start or after STARTTLS."""

    def __init__(self, host: str, port: int, allowed: Allowed, seconds: float, *, tls: bool) -> None:
        self._allowed, self._tls = allowed, tls
        super().__init__(host, port, timeout=seconds)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        plain = connect(host, port, self._allowed, timeout)
        if not self._tls:
            return plain
        try:
            return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise


def check_url(url: str, setting: str) -> None:
    """Raise ValueError unless a URL is http or https; the message names the setting and does not repeat the URL."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"{setting} is not a web address; use http://host/... or https://host/...")


def post(url: str, body: bytes, headers: Mapping[str, str], allowed: Allowed, seconds: float) -> None:
    """Post a body; raise `NotAcceptedError` unless the answer has a status of 2xx."""
    _ask("POST", url, body, headers, allowed, seconds, _LONGEST_ANSWER)


def get(url: str, headers: Mapping[str, str], allowed: Allowed, seconds: float, most: int) -> bytes:
    """Return the answer of a URL, of at most `most` bytes; raise `NotAcceptedError` unless it is whole and has a status of 2xx."""
    answer = _ask("GET", url, None, headers, allowed, seconds, most + 1)
    if len(answer) > most:
        raise NotAcceptedError(f"answered with more than {most:,} bytes", status=HTTPStatus.OK)
    return answer


def _ask(
    method: str, url: str, body: bytes | None, headers: Mapping[str, str], allowed: Allowed, seconds: float, most: int
) -> bytes:
    parts = urlsplit(url)
    assert parts.hostname is not None, "check_url has seen it"
    kind = _Https if parts.scheme == "https" else _Http
    connection = kind(parts.hostname, parts.port, timeout=seconds)
    connection.allowed = allowed
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path, body, {"User-Agent": "rankwatch", **headers})
        answer = connection.getresponse()
        content = answer.read(most)
        if method == "GET" and answer.length and len(content) < most:
            raise http.client.IncompleteRead(content, answer.length)
    except (OSError, http.client.HTTPException, UnicodeError, ValueError) as error:
        raise NotAcceptedError(f"not reached: {type(error).__name__}", passing=True) from None
    finally:
        connection.close()
    if answer.status // 100 != HTTPStatus.OK // 100:
        after = answer.headers.get("Retry-After", "")
        raise NotAcceptedError(
            f"answered with status {answer.status}",
            wait=float(after) if after.isdecimal() else None,
            status=answer.status,
            passing=answer.status == HTTPStatus.TOO_MANY_REQUESTS or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR,
        )
    return content

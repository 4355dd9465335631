"""Users that a proxy has signed in: it names them and their groups in headers, which are believed from its address only."""

from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers

from monitor.serve.access.caller import Caller, caller_name_fault
from monitor.serve.access.scopes import Grants
from monitor.serve.api.problems import ProblemError

EVERYONE = "*"  # the group of all users whom the proxy lets in


class TrustedProxy:
    """The proxies that may name a user."""

    def __init__(
        self, addresses: str, user_header: str, groups_header: str, groups: Callable[[], Mapping[str, Grants]]
    ) -> None:
        self._networks = [_network(text.strip()) for text in addresses.split(",") if text.strip()]
        self._user, self._in_groups = user_header.lower(), groups_header.lower()
        self._groups = groups

    def user(self, headers: Headers, address: str) -> Caller | None:
        """Return the user that a trusted proxy names; None if there is none, or if the request comes from elsewhere."""
        if not self._trusts(address):
            return None
        users, groups = headers.getlist(self._user), headers.getlist(self._in_groups)
        if not users:
            return None
        if len(users) > 1 or len(groups) > 1:
            raise ProblemError(
                400,
                f"The request has several headers {self._user} or {self._in_groups}. Let the proxy replace those of its clients.",
            )
        fault = caller_name_fault(users[0])
        if fault:
            raise ProblemError(400, f"{self._user}: {fault}.")
        granted = self._groups()
        names = [EVERYONE, *(name.strip() for name in (groups[0] if groups else "").split(","))]
        scopes = [scope for name in names if name in granted for scope in granted[name].scopes]
        return Caller(f"user:{users[0]}", Grants.of(scopes), by_proxy=True)

    def _trusts(self, address: str) -> bool:
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(ip, IPv6Address):
            ip = ip.ipv4_mapped or ip
        return any(ip in network for network in self._networks)


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"trusted_proxies: {text!r} is no address or network; use 10.0.0.7 or 10.0.0.0/24") from error

"""One connection to a monitor, and what its answers mean for whoever sends."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_PASSING = frozenset({408, 429})


class Answer(NamedTuple):
    """The answer to a request; `status` 0 when there was none."""

    status: int
    body: Any
    retry_after: float | None = None

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status == 0 or self.status >= 500 or self.status in _PASSING

    @property
    def reason(self) -> str:
        """What it says, on one line."""
        detail = self.body.get("detail") if isinstance(self.body, dict) else self.body
        return "".join(c if c.isprintable() else "?" for c in str(detail)[:500])


class Transport:
    """Speaks HTTP with a monitor; for one thread at a time.

    Parameters
    ----------
    url : str
        ``http[s]://host[:port][/prefix]``.
    token : str or None
        Bearer token to carry.
    timeout : float
        Seconds to wait for an answer.

    Raises
    ------
    ValueError
        If the URL is none, or holds a user or password.
    """

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("the URL of a monitor is http[s]://host[:port]")
        if parts.username is not None or parts.password is not None:
            raise ValueError("the URL may hold no user or password: give the token as token=, or RANKWATCH_TOKEN")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._prefix = parts.path.rstrip("/")
        self._headers: dict[str, Any] = {} if token is None else {"Authorization": b"Bearer " + token.encode()}

    def request(self, method: str, path: str, body: bytes | None = None, content_type: str = "") -> Answer:
        """Send a request; a fault of the network is an answer of status 0."""
        headers = {**self._headers, "Content-Type": content_type} if body is not None else self._headers
        try:
            self._connection.request(method, f"{self._prefix}/api/v1/{path}", body, headers)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return Answer(0, f"no answer ({getattr(error, 'strerror', None) or error or type(error).__name__})")
        after = response.headers.get("Retry-After", "")
        return Answer(response.status, _parsed(text), float(after) if after.isdecimal() else None)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _parsed(text: bytes) -> Any:  # noqa: ANN401 - whatever it says
    try:
        return json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace")

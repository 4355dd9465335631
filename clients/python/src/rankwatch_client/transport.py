"""Send requests to a monitor over one connection, and classify the responses."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_TRANSIENT = frozenset({408, 429})


class Response(NamedTuple):
    """The response to a request; `status` is 0 without a response.

    Attributes
    ----------
    status : int
    body : any
    retry_after : float or None
        Seconds to wait before the next request.
    tag : str or None
        ``ETag`` of the response.
    offset : str or None
        Offset of the monitor's log, after what the request wrote.
    """

    status: int
    body: Any
    retry_after: float | None = None
    tag: str | None = None
    offset: str | None = None

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status == 0 or self.status >= 500 or self.status in _TRANSIENT

    @property
    def reason(self) -> str:
        """The error message, on one line."""
        detail = self.body.get("detail") if isinstance(self.body, dict) else self.body
        return "".join(c if c.isprintable() else "?" for c in str(detail)[:500])


class Transport:
    """An HTTP connection to a monitor, for one thread at a time.

    Parameters
    ----------
    url : str
        ``http[s]://host[:port][/prefix]``.
    token : str or None
        Bearer token of each request.
    timeout : float
        Seconds to wait for a response.

    Raises
    ------
    ValueError
        If the URL is invalid, or contains a user or password.
    """

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("the URL of the monitor is invalid; use http[s]://host[:port]")
        if parts.username is not None or parts.password is not None:
            raise ValueError("the URL contains a user or password; pass the token as token=, or set RANKWATCH_TOKEN")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._prefix = parts.path.rstrip("/")
        self._headers: dict[str, Any] = {} if token is None else {"Authorization": b"Bearer " + token.encode()}

    def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = "", known: str | None = None
    ) -> Response:
        """Send a request; a network error returns status 0, the response whose tag is `known` status 304."""
        headers = {**self._headers, "Content-Type": content_type} if body is not None else dict(self._headers)
        if known is not None:
            headers["If-None-Match"] = known
        kept = self._connection.sock is not None
        try:
            try:
                response, text = self._exchange(method, path, body, headers)
            except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
                if not kept:
                    raise
                self._connection.close()  # the server had closed a connection that was idle
                response, text = self._exchange(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return Response(0, f"no response ({getattr(error, 'strerror', None) or error or type(error).__name__})")
        after = response.headers.get("Retry-After", "")
        return Response(
            response.status,
            _parsed(text),
            float(after) if after.isdecimal() else None,
            response.headers.get("ETag"),
            response.headers.get("Rankwatch-Offset"),
        )

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, Any]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        self._connection.request(method, f"{self._prefix}/api/v1/{path}", body, headers)
        response = self._connection.getresponse()
        return response, response.read()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _parsed(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except ValueError:
        return text.decode("utf-8", "replace")

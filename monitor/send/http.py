"""Deliver events to another rankwatch over HTTP: in order, durable when acknowledged, with retries while the server is away."""

import asyncio
import gzip
import http.client
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from email.message import Message
from http import HTTPStatus
from itertools import chain, groupby
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from monitor.retries import RetryPolicy
from monitor.send.messages import Outgoing
from schemas.records.declaration import Spec
from schemas.records.packed import IMPORTED_HEADER, LAG_HEADER, OFFSET_HEADER, parse_offsets
from schemas.records.text import mask_url, shorten

PATH: Final = "/api/v1/events"
BATCH_BYTES: Final = 2_000_000
"""Bytes of one request: far below the limit of a server, and enough to make the round trip cheap."""

_TIMEOUT_SECONDS: Final = 60.0
_RETRIES: Final = RetryPolicy()
_TEMPORARY: Final = frozenset({408, 429, 500, 502, 503, 504})
_DETAIL_LENGTH: Final = 600
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class DeliveryError(OSError):
    """The server cannot be reached, or rejects a request; the message names what to do."""


class _Temporary(Exception):  # noqa: N818 - not an error yet
    """A failure that a retry may overcome."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class HttpDelivery:
    """Posts messages of one event or declaration each."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        retries: RetryPolicy = _RETRIES,
        on_note: Callable[[str], None] = lambda _: None,
        on_refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.url = checked_url(url)
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=_TIMEOUT_SECONDS)
        self._path = f"{parts.path}{PATH}"
        self._packed = parts.hostname not in _LOOPBACK
        self._retries, self._on_note, self._on_refused = retries, on_note, on_refused
        self._set_aside: set[str] = set()
        self._headers = {"Content-Type": "application/x-ndjson"}
        if token is not None:
            self._headers["Authorization"] = b"Bearer " + token.encode()  # type: ignore[assignment]  # bytes are sent unchanged
        if self._packed:
            self._headers["Content-Encoding"] = "gzip"

    async def __call__(self, messages: Sequence[Outgoing]) -> None:
        """Deliver messages in order; when this returns, the server has them on its disk, but for those that it has refused."""
        for imported, some in groupby(messages, lambda message: message.imported):
            headers = {**self._headers, **({IMPORTED_HEADER: "true"} if imported else {})}
            for body in _bodies(some):
                await self._deliver(gzip.compress(body, 1) if self._packed else body, headers)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    async def _deliver(self, body: bytes, headers: dict[str, str]) -> None:
        reported = False

        def retry_on(error: Exception) -> bool | float:
            nonlocal reported
            if not isinstance(error, _Temporary):
                return False
            if not reported:
                limit = "" if self._retries.timeout is None else f" for up to {self._retries.timeout:g} s"
                self._on_note(f"{self.url}: {error}; retrying{limit}")
                reported = True
            return error.wait or True

        try:
            answer = await self._retries.run(lambda: asyncio.to_thread(self._post, body, headers), retry_on)
        except _Temporary as failure:
            raise DeliveryError(f"{self.url}: {failure}") from failure
        for reason in _refused(answer):
            self._on_refused(reason)
        fresh = _set_aside(answer) - self._set_aside
        self._set_aside |= fresh
        for name in sorted(fresh):
            self._on_note(
                f"{self.url}: {shorten(name)} is set aside there: its events are in the log, and count once an operator has released it"
            )

    def _post(self, body: bytes, headers: dict[str, str]) -> bytes:
        try:
            self._connection.request("POST", self._path, body, headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            timed_out = isinstance(error, TimeoutError)
            reason = "timed out" if timed_out else getattr(error, "strerror", None) or "the connection broke"
            raise _Temporary(f"no answer ({reason}); check that it runs and the address") from error
        if response.status == 200:
            return answer
        detail = _detail(answer)
        if response.status in _TEMPORARY:
            after = response.headers.get("Retry-After", "")
            raise _Temporary(f"answered {response.status}: {detail}", float(after) if after.isdecimal() else None)
        raise DeliveryError(f"{self.url} answered {response.status}: {detail}{_REMEDIES.get(response.status, '')}")


_REMEDIES: Final = {
    401: "; give --token-file, or set RANKWATCH_TOKEN",
    404: "; check that this is the address of a rankwatch",
    413: "; raise max_body_bytes there",
}


def checked_url(url: str) -> str:
    """Return a URL in its shortest form; raise ValueError if it has parts that it may not have."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(
            f"{shorten(mask_url(url))}: the host or the port is not valid; use http[s]://host[:port]"
        ) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{shorten(mask_url(url))} is not the address of a server; use http[s]://host[:port]")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL contains a user or password; give the token with --token-file or RANKWATCH_TOKEN")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"


def _bodies(messages: Iterable[Outgoing]) -> Iterator[bytes]:
    """Join messages into bodies of bounded size."""
    lines: list[bytes] = []
    size = 0
    for line in chain((message.value for message in messages), (None,)):
        if lines and (line is None or size + len(line) > BATCH_BYTES):
            yield b"\n".join(lines)
            lines, size = [], 0
        if line is not None:
            lines.append(line)
            size += len(line) + 1


def _refused(answer: bytes) -> list[str]:
    """Return the reasons of the records that a server has refused."""
    try:
        return [f"{each['field']}: {each['reason']}" for each in json.loads(answer)["rejected"]]
    except (ValueError, KeyError, TypeError):
        return []  # another version of the server


def _set_aside(answer: bytes) -> set[str]:
    """Return the benchmarks whose records a server keeps without counting them."""
    try:
        return set(map(str, json.loads(answer)["set_aside"]))
    except (ValueError, KeyError, TypeError):
        return set()  # another version of the server


def _detail(answer: bytes) -> str:
    """Return the detail of a problem, or the answer itself."""
    try:
        text = str(json.loads(answer)["detail"])
    except (ValueError, KeyError, TypeError):
        text = answer.decode("utf-8", "replace")
    return shorten(text, _DETAIL_LENGTH)


def call(
    url: str, token: str | None, method: str, path: str, body: object = None, *, what: str, known: str | None = None
) -> tuple[bytes, Message]:
    """Ask a server for something below ``/api/v1``, `what` in the words of an error; return the answer and its headers."""
    # The answer is empty if it is still the one whose ``ETag`` is `known`.
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if known is not None:
        headers["If-None-Match"] = known
    data = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body).encode()
    request = Request(f"{checked_url(url)}/api/v1/{path}", data, headers, method=method)  # noqa: S310 - checked
    try:
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 - checked
            return response.read(), response.headers
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_MODIFIED:
            return b"", error.headers
        remedy = _REMEDIES.get(error.code, "") if error.code != HTTPStatus.NOT_FOUND else ""
        raise DeliveryError(f"{url}: {what}: {_detail(error.read())}{remedy}") from error
    except (OSError, http.client.HTTPException) as error:
        raise DeliveryError(f"{url}: {what}: no answer; check that it runs, and the address") from error


def declared_spec(url: str, token: str | None, benchmark: str) -> Spec | None:
    """Ask a server what is declared of a benchmark; None without a declaration, or if the server does not answer that."""
    address = f"{checked_url(url)}/api/v1/boards/{quote(benchmark, safe='')}"
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urlopen(Request(address, headers=headers), timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 - checked
            spec = json.load(response)["spec"]
    except (OSError, ValueError, KeyError):
        return None
    return None if spec is None else Spec.model_validate(spec)


def newest_epochs(url: str, token: str | None, benchmark: str) -> dict[str, int]:
    """Ask a server for the newest epoch of each model of a benchmark; empty for a benchmark without events there."""
    address = f"{checked_url(url)}/api/v1/benchmarks/{quote(benchmark, safe='')}"
    try:
        report, missing = _read_report(address, token)
        if missing:  # an answer of an earlier state may lack the newest epoch, which would be used again
            report, _ = _read_report(f"{address}?at_least={missing}", token)
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return {}
        raise DeliveryError(
            f"{url}: the newest epochs of {shorten(benchmark)} are refused (HTTP {error.code})"
        ) from error
    except OSError as error:
        raise DeliveryError(
            f"{url}: the newest epochs of {shorten(benchmark)} cannot be read; start the server"
        ) from error
    newest = {model["model"]: model["epoch"] for model in report["models"]}
    return newest | {alias: model["epoch"] for model in report["models"] for alias in model["aliases"]}


def _read_report(address: str, token: str | None) -> tuple[dict[str, Any], str]:
    """Return the report of a benchmark, and the offsets that are folded already and that it lacks, as `at_least` takes them."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with urlopen(Request(address, headers=headers), timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 - checked
        (report,) = json.load(response)["benchmarks"]
        shown, lag = (parse_offsets(response.headers.get(name, "")) for name in (OFFSET_HEADER, LAG_HEADER))
    return report, ",".join(f"{partition}:{shown[partition] + late}" for partition, late in lag.items())

"""Fetch the experiments of a dataset from the API of Langfuse or Phoenix, into a file that their readers take.

Addresses and keys come from the variables that the tools' own clients read. A key is sent over TLS, or to a private address; redirects
are not followed. A page that fails is asked for again from its cursor, until the deadline of a download.
"""

import json
import os
import re
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from monitor.files.streams.copying import MAX_BYTES, CopyError
from monitor.outbound import Allowed, NotAcceptedError, check_url, get

TIMEOUT_SECONDS: Final = 60.0  # of one request
FIRST_WAIT_SECONDS: Final = 1.0  # each wait doubles
_TRIES: Final = 4
_MOST_PAGES: Final = 100_000
_PAGE: Final = 100  # the most that both serve
_FIRST_TIME: Final = "2015-01-01T00:00:00Z"  # the API of Langfuse asks for one
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_DENIED: Final = frozenset({401, 403})
_MISSING: Final = 404


class _Cursor(msgspec.Struct):
    cursor: str | None = None


class _Page(msgspec.Struct):
    data: list[msgspec.Raw]
    meta: _Cursor = msgspec.field(default_factory=_Cursor)  # of Langfuse
    next_cursor: str | None = None  # of Phoenix


class _Named(msgspec.Struct):
    id: str
    name: str | None = None


class _PrivateOnly(Allowed):
    """The addresses that a key may be sent to without TLS."""

    def refusal(self, host: str, address: str) -> str | None:
        public = super().refusal(host, address) is None
        return "http:// would show the key to a public network; use https://" if public else None


class _Service(NamedTuple):
    """How a tool is reached: variables of the environment, the first that is set."""

    name: str
    addresses: tuple[str, ...]
    default: str
    keys: tuple[str, ...]


_LANGFUSE: Final = _Service(
    "Langfuse", ("LANGFUSE_BASE_URL", "LANGFUSE_HOST"), "https://cloud.langfuse.com",
    ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"),
)  # fmt: skip
_PHOENIX: Final = _Service(
    "Phoenix", ("PHOENIX_COLLECTOR_ENDPOINT", "PHOENIX_HOST"), "http://localhost:6006", ("PHOENIX_API_KEY",)
)


def fetch(place: str, folder: Path) -> Path:
    """Write the experiments of a dataset, `langfuse:NAME` or `phoenix:NAME`, to a file."""
    tool, _, dataset = place.partition(":")
    client, experiments = (
        (_Client(_LANGFUSE), _langfuse) if tool.lower() == "langfuse" else (_Client(_PHOENIX), _phoenix)
    )
    file = folder / f"{_UNSAFE.sub('_', dataset)[:80].lstrip('.') or 'dataset'}.json"
    with file.open("wb") as target:
        for piece in experiments(client, dataset):
            target.write(piece)
    return file


def _langfuse(client: "_Client", dataset: str) -> Iterator[bytes]:
    found = client.read(f"/api/public/v2/datasets/{quote(dataset, safe='')}", {}, _Named, f"the dataset {dataset}")
    yield b'{"dataset": ' + json.dumps(dataset).encode() + b', "data": ['
    query = {
        "fields": "core,dataset,scores",
        "datasetId": found.id,
        "fromStartTime": _FIRST_TIME,
        "toStartTime": datetime.now(UTC).isoformat(),  # what is added meanwhile would move the pages
        "scoreLimit": "50",
    }
    yield from client.pages("/api/public/experiment-items", query, "its experiments API (Langfuse v4)")
    yield b"]}\n"


def _phoenix(client: "_Client", dataset: str) -> Iterator[bytes]:
    known = client.read("/v1/datasets", {"name": dataset}, _Page, "the REST API of Phoenix").data
    named = [each for each in map(_named, known) if dataset in {each.name, each.id}]
    if not named:
        raise CopyError(f"{client.address} has no dataset {dataset}; check its name")
    yield b'{"dataset": ' + json.dumps(dataset).encode() + b', "experiments": ['
    path = f"/v1/datasets/{quote(named[0].id, safe='')}/experiments"
    listed = b"".join(client.pages(path, {}, "the experiments of the dataset"))
    for number, each in enumerate(msgspec.json.decode(b"[" + listed + b"]", type=list[_Named])):
        # Of an experiment without runs there is no file.
        runs = client.ask(f"/v1/experiments/{quote(each.id, safe='')}/json", {}) or b"[]"
        head = json.dumps({"id": each.id, "name": each.name or each.id})
        yield (b", " if number else b"") + head[:-1].encode() + b', "runs": ' + runs + b"}"
    yield b"]}\n"


def _named(raw: msgspec.Raw) -> _Named:
    return msgspec.json.decode(raw, type=_Named)


class _Client:
    """Reads from the API of one tool."""

    def __init__(self, service: _Service) -> None:
        variable = next((name for name in service.addresses if os.environ.get(name)), service.addresses[0])
        self.address = os.environ.get(variable) or service.default
        keys = [os.environ.get(name, "") for name in service.keys]
        if service is _LANGFUSE and not all(keys):
            missing = " and ".join(name for name, key in zip(service.keys, keys, strict=True) if not key)
            raise CopyError(f"Langfuse asks for keys; set {missing} (project settings, API keys)")
        try:
            check_url(self.address, variable)
        except ValueError as error:
            raise CopyError(str(error)) from None
        if "@" in urlsplit(self.address).netloc:
            raise CopyError(f"{variable} holds a password; set {' and '.join(service.keys)} instead")
        self.address = self.address.rstrip("/")
        self._service, self._read = service, 0
        key = ":".join(keys).encode()
        basic = f"Basic {b64encode(key).decode()}" if service is _LANGFUSE else f"Bearer {keys[0]}"
        self._headers = {"Authorization": basic} if any(keys) else {}
        self._allowed = Allowed("*") if self.address.startswith("https:") or not any(keys) else _PrivateOnly()

    def pages(self, path: str, query: Mapping[str, str], what: str) -> Iterator[bytes]:
        """Yield what the pages of a list hold, separated by commas."""
        cursor, seen, first = None, set[str](), True
        for _ in range(_MOST_PAGES):
            asked = {**query, "limit": str(_PAGE), **({"cursor": cursor} if cursor else {})}
            page = self.read(path, asked, _Page, what)
            if page.data:
                yield (b"" if first else b", ") + b", ".join(map(bytes, page.data))
                first = False
            cursor = page.meta.cursor or page.next_cursor
            if not cursor:
                return
            if cursor in seen:
                break
            seen.add(cursor)
        raise CopyError(f"{self.address}{path} lists its pages without an end; update {self._service.name}")

    def read(self, path: str, query: Mapping[str, str], kind: type[Any], what: str) -> Any:  # noqa: ANN401 - of this kind
        """Ask for something that has to be there, and decode it."""
        answer = self.ask(path, query)
        if answer is None:
            raise CopyError(f"{self.address} has not {what}; check the name, the address and the project of the key")
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.MsgspecError:
            raise CopyError(
                f"{self.address}{path} answered with something else than its API documents; check the address"
            ) from None

    def ask(self, path: str, query: Mapping[str, str]) -> bytes | None:
        """Return an answer, None if there is nothing; ask again where the server is busy or away."""
        url = f"{self.address}{path}" + (f"?{urlencode(query)}" if query else "")
        for left in reversed(range(_TRIES)):
            try:
                answer = get(url, self._headers, self._allowed, TIMEOUT_SECONDS, MAX_BYTES - self._read)
            except NotAcceptedError as error:
                if error.status == _MISSING:
                    return None
                if not left or not error.passing:
                    raise self._failed(path, error) from None
                time.sleep(error.wait or FIRST_WAIT_SECONDS * 2 ** (_TRIES - 1 - left))
            else:
                self._read += len(answer)
                return answer
        raise AssertionError("the last try returns or raises")

    def _failed(self, path: str, error: NotAcceptedError) -> CopyError:
        advice = "check the address and the network"
        if error.status in _DENIED:
            advice = f"check {' and '.join(self._service.keys)}"
        elif error.status is not None and not error.passing:
            advice = f"check the version of {self._service.name}"
        return CopyError(f"{self.address}{path}: {error}; {advice}")

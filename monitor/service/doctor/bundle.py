"""Write what helps to find a fault into one archive, without secrets: to be looked at, and sent to someone who helps."""

import json
import os
import platform
import sys
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http.client import HTTPException
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from monitor.retries import RetryPolicy
from monitor.serve.metrics.collector import program_version
from monitor.service.doctor.finding import Finding
from monitor.service.doctor.redact import Redactor
from monitor.settings import Settings
from monitor.store.errors import StoreError
from monitor.store.transfer.transfer import Transfer
from schemas.records.versions import STATE_VERSION, STATISTICS_VERSION

_SECONDS: Final = 10.0
_LOG_BYTES: Final = 2_000_000  # the end of a log that is taken

_PAGES: Final = {"metrics.txt": "/metrics", "ready.txt": "/readyz", "boards.json": "/api/v1/boards?limit=1000"}
"""Of the process that serves at host and port."""


async def collect(
    settings: Settings, rows: Sequence[Mapping[str, str | None]], findings: Sequence[Finding], log: Path | None
) -> dict[str, str]:
    """Return the texts of a bundle by name."""
    lines = [" | ".join(filter(None, finding)) for finding in findings]
    texts = {"findings.txt": "\n".join(lines), "settings.json": _json(rows), "versions.json": _json(_versions())}
    texts |= {name: _page(settings, path) for name, path in _PAGES.items()}
    if settings.redis_url is not None:
        texts["state.json"] = await _state(settings.redis_url.get_secret_value(), settings.topic)
    if log is not None:
        texts["log.txt"] = _end_of(log)
    redactor = Redactor(settings)
    return {name: redactor.text(text) for name, text in texts.items()}


def write(file: Path, texts: Mapping[str, str]) -> None:
    """Write an archive that only its owner may read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as raw, zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)


def _versions() -> dict[str, Any]:
    return {
        "rankwatch": program_version(),
        "statistics_version": STATISTICS_VERSION,
        "state_version": STATE_VERSION,
        "python": sys.version,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": dict(sorted((each.metadata["Name"], each.version) for each in distributions())),
    }


def _page(settings: Settings, path: str) -> str:
    """Return a page of the running process, or why there is none."""
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, settings.host)  # noqa: S104 - not bound here
    headers = {} if settings.token is None else {"Authorization": f"Bearer {settings.token.get_secret_value()}"}
    request = Request(f"http://{host}:{settings.port}{path}", headers=headers)
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=_SECONDS) as response:
            return str(response.read().decode("utf-8", "replace"))
    except HTTPError as error:
        with error:
            return f"{path} answered {error.code}: {error.read(1_000).decode('utf-8', 'replace')}"
    except (OSError, ValueError, HTTPException) as error:
        return f"{path} of {host}:{settings.port} did not answer: {getattr(error, 'reason', error)}"


async def _state(redis_url: str, topic: str) -> str:
    try:
        async with Transfer.open(redis_url, topic, RetryPolicy(timeout=_SECONDS / 2)) as transfer:
            return _json([vars(summary) for summary in await transfer.summarize()])
    except (StoreError, OSError, ValueError) as error:
        return _json({"error": str(error)})


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_BYTES))
            return file.read(_LOG_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return f"the log cannot be read: {error.strerror}"


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str)

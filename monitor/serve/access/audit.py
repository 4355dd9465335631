"""Keep a record of who wrote, declared and was refused: JSON lines in a file of bounded size."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

_log = structlog.get_logger()

AUDIT_BYTES: Final = 50_000_000
"""Default size at which the file is moved to the same name with `.1`, which replaces the one before."""

_MAX_BENCHMARKS: Final = 100  # benchmarks of one request with lines of their own; the rest is one line

_REFUSALS_A_MINUTE: Final = 60
"""Lines about refused credentials: a flood of them must not push the others out of the file."""


class Audit:
    """The audit log."""

    def __init__(
        self,
        path: Path | None = None,
        limit: int = AUDIT_BYTES,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path, self._limit, self._now = path, limit, now
        self._failed = False
        self._minute, self._refusals, self._omitted = -1, 0, 0

    def add(
        self, action: str, producer: str, address: str, counts: Mapping[str, int], outcome: str, **more: int | str
    ) -> None:
        """Add a line for each benchmark of a request."""
        if self._path is None:
            return
        names: list[tuple[str | None, int]] = [*list(counts.items())[:_MAX_BENCHMARKS]]
        rest = list(counts.values())[_MAX_BENCHMARKS:]
        if rest:
            names.append((None, sum(rest)))
        self._write(
            {
                "action": action,
                "producer": producer,
                "address": address,
                "benchmark": name,
                "count": count,
                "outcome": outcome,
                **more,
            }
            for name, count in names or [(None, 0)]
        )

    def refused(self, address: str, path: str, status: int) -> None:
        """Add a line for a request without valid credentials; beyond 60 a minute they are only counted, in the next line."""
        if self._path is None:
            return
        minute = int(self._now().timestamp() // 60)
        if minute != self._minute:
            self._minute, self._refusals = minute, 0
        self._refusals += 1
        if self._refusals > _REFUSALS_A_MINUTE:
            self._omitted += 1
            return
        line = {
            "action": "identify",
            "producer": None,
            "address": address,
            "path": path[:200],
            "outcome": "refused",
            "status": status,
        }
        if self._omitted:
            line["omitted"], self._omitted = self._omitted, 0
        self._write([line])

    def _write(self, lines: Iterable[Mapping[str, object]]) -> None:
        """Append lines in one write. A failure is logged once and does not stop the service."""
        assert self._path is not None
        time = self._now().isoformat(timespec="milliseconds")
        data = "".join(json.dumps({"time": time, **line}) + "\n" for line in lines).encode()
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
            try:
                if 0 < os.fstat(descriptor).st_size > self._limit - len(data):
                    self._path.rename(self._path.with_name(f"{self._path.name}.1"))
                    os.close(descriptor)
                    descriptor = os.open(self._path, flags, 0o600)
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError as error:
            if not self._failed:
                _log.error("the audit log cannot be written", path=str(self._path), reason=error.strerror or str(error))
            self._failed = True
        else:
            self._failed = False

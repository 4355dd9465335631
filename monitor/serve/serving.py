"""What a process gives to its application."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final, Literal, NamedTuple, Protocol

from monitor.serve.access.audit import Audit
from monitor.serve.access.limits import ClientLimits
from monitor.serve.access.rules import AccessRules
from monitor.serve.api.writing.request import Intake, Submission
from monitor.serve.log_position import FoldedLog
from monitor.serve.report_cache import ReportCache
from schemas.records.text import Fault
from schemas.results.api import RecordError

BODY_BYTES: Final = 16_000_000  # default limit of a request body


class FileError(ValueError):
    """A file that cannot be read at all, with the status of the answer."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class FileResults(NamedTuple):
    """What a file holds."""

    submission: Submission
    errors: Sequence[RecordError]
    first: str | None
    notes: list[str]


class ReadFile(Protocol):
    """Reads a file of a name; raises `FileError` if it cannot be read at all."""

    def __call__(self, name: str, body: bytes, model: str | None) -> FileResults:
        """Read a file; `model` names the model where the file does not."""


Signal = Literal["logs", "traces"]


class OtlpResults(NamedTuple):
    """The results in an export: events and rejects, and the faults of log records or spans by their place in it."""

    submission: Submission
    faults: dict[int, Fault]


class ReadOtlp(Protocol):
    """Reads the body of an export; raises `ValueError` if it is none."""

    def __call__(self, body: bytes, signal: Signal, *, protobuf: bool) -> OtlpResults:
        """Read a body."""


Collect = Literal["all", "process"]
"""Whether a scrape gets the boards too, or what the process exports of itself and its partitions."""

Scrape = Callable[[str, Collect], tuple[bytes, str]]
"""Takes an Accept header, and what to collect; returns the metrics and their content type."""


@dataclass(frozen=True)
class Serving:
    """What an application serves, and where what is posted goes; a worker's has probes and metrics alone."""

    reports: ReportCache
    scrape: Scrape
    waiting_for: Callable[[], str | None]
    log: FoldedLog | None = None
    _: KW_ONLY
    access: AccessRules
    loopback: bool
    low_coverage: float
    cache_seconds: int = 0
    intake: Intake | None = None
    read_otlp: ReadOtlp | None = None
    read_file: ReadFile | None = None
    body_bytes: int = BODY_BYTES
    limits: ClientLimits | None = None
    audit: Audit | None = None
    holds: Callable[[], str] = lambda: "ok"
    count_quota: Callable[[str], None] = lambda _: None
    watched: Sequence[str] = ()
    topic: str | None = None

"""Files whose lines are records of their own, whatever program wrote them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from monitor.ingest.files.blocks import BOM, is_record
from monitor.ingest.files.translated import Lines, Refusal
from schemas.decode import Fault
from schemas.events import EventFields

Made = EventFields | Fault | bytes
"""What a record comes to: an event, why there is none, or a line as it is written."""


class Records(ABC):
    """Translates a file record by record, until it is refused."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._refused = False

    def line(self, line: bytes, number: int) -> bytes:
        """Translate a line."""
        line = line.removeprefix(BOM).strip(b" \t\r")
        if self._refused or not line:
            return b""
        try:
            return b"".join(self._written(made, line, number) for made in self.made(line))
        except Refusal as refusal:
            self._refused = True
            return self._lines.reject(refusal.fault, number, line)

    def last(self, line: bytes, number: int) -> bytes | None:
        """Translate the last line, if it is a whole object."""
        return self.line(line, number) if is_record(line) else None

    def end(self) -> Fault | None:
        """Say what is wrong with the file as a whole."""
        return None

    @abstractmethod
    def made(self, line: bytes) -> Iterable[Made]:
        """Make events of a line that is not blank; raises `Refusal` if there is no use in going on."""

    def _written(self, made: Made, line: bytes, number: int) -> bytes:
        if isinstance(made, EventFields):
            return self._lines.event(made, number, line)
        return self._lines.reject(made, number, line) if isinstance(made, Fault) else made

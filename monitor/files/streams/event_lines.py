"""Write logs of other programs as event lines, and read the rejects among such lines."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import msgspec

from monitor.files.formats.choices import Derived
from monitor.files.streams.regular import Refusal
from monitor.files.streams.stream import is_record
from schemas.records.decode import BOM, Checker, check_object, plain_text, writable
from schemas.records.events import EventFields
from schemas.records.names import MAX_INDEX, MAX_NAME_LENGTH, names_hold
from schemas.records.text import Fault

if TYPE_CHECKING:
    from schemas.records.run_columns import RunEvents

REJECT_START: Final = b'{"rejected":'  # how an event line begins that names a record which cannot be read

RAW_BYTES: Final = 8_000  # how much of such a record is kept


class EventLines(bytes):
    """Event lines with the events that they decode to, so that their reader need not decode them."""

    events: list[EventFields]

    @classmethod
    def of(cls, lines: bytes, events: list[EventFields]) -> Self:
        """Return lines with their events."""
        made = cls(lines)
        made.events = events
        return made

    @classmethod
    def joined(cls, parts: Sequence[bytes]) -> bytes:
        """Join lines, with their events where every part has them."""
        parts = [part for part in parts if part]
        if len(parts) == 1:
            return parts[0]
        lines = b"".join(parts)
        events = [event for part in parts if isinstance(part, EventLines) for event in part.events]
        return cls.of(lines, events) if parts and all(isinstance(part, EventLines) for part in parts) else lines


_PROMPT_NOTE: Final = (
    f"ids of over {MAX_NAME_LENGTH} characters, or with line breaks, count as their beginning and a hash of the whole"
)
_BEGINNING: Final = 80  # characters of a prompt that are part of the id of its item
_HASH: Final = 16


def prompt_id(text: object) -> str | None:
    r"""Return the id of an item that is named by its prompt: how the text begins, and a hash of all of it; None for any other name.

    >>> prompt_id("What is 1 + 1?\nAnswer with a number."), prompt_id("q17")
    ('What is 1 + 1? Answer with a number. #cf821a58c7d0d8f5', None)
    """
    if not isinstance(text, str) or not text.strip() or (len(text) <= MAX_NAME_LENGTH and text.isprintable()):
        return None
    if len(text) <= MAX_NAME_LENGTH and text.splitlines() == [text] and "\t" not in text:
        return None
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    words = " ".join("".join(each if each.isprintable() else " " for each in text[: 4 * _BEGINNING]).split())
    return f"{words[:_BEGINNING].rstrip()} #{digest}".lstrip()


Columns = Sequence[Sequence[Any]]
"""The values of each field of `EventFields`, all of one length, which is not 0; units may be left out."""


class EventLineWriter:
    """Writes event lines; an event that no reader accepts becomes a reject with its place in the log.

    Items that are named by their prompts get the id of `prompt_id`, which `note` is called for.
    """

    def __init__(self, note: Callable[[str], None] | None = None) -> None:
        self._checker = Checker()
        self._note = note
        self._pending: list[tuple[EventFields, int, bytes]] = []

    def plain(self, events: Sequence[EventFields] | None) -> bytes | None:
        """Write events whose names have a usual length; None without events, and where one needs a closer look."""
        if events is None:
            return None
        try:
            lines = _encode_lines(events)
        except UnicodeEncodeError:
            return None
        return lines if plain_text(lines) else None

    def checked(self, events: list[EventFields] | None) -> EventLines | None:
        """Write events that were checked as a decoder does; None without events, and where one cannot be written."""
        if events is None:
            return None
        try:
            return EventLines.of(_encode_lines(events), events)
        except UnicodeEncodeError:
            return None

    @staticmethod
    def run(
        benchmark: str, model: str, items: Sequence[str], scores: Sequence[Any], clusters: Sequence[str | None] | None
    ) -> "RunEvents | None":
        """Return the events of one benchmark and model as columns; None if one of them needs a closer look."""
        from schemas.records.run_columns import RunEvents, are_plain  # noqa: PLC0415 - start-up: event lines need no arrays

        kinds = set(map(type, scores))
        if int in kinds or not _are_scores(scores, kinds):
            return None
        labels = () if clusters is None or isinstance(clusters, Derived) else clusters
        names = {benchmark, model, *(label for label in set(labels) if label is not None)}
        try:
            hold = names_hold(names) and (are_plain(items) or names_hold(items))
        except TypeError:  # a name that is no text
            return None
        return RunEvents.read(benchmark, model, items, scores, clusters) if hold else None

    def columns(self, columns: Columns) -> EventLines | None:
        """Write events, given their fields; None if one of them needs a closer look."""
        return _event_lines(list(map(EventFields, *columns)), columns)

    @staticmethod
    def run_lines(run: "RunEvents") -> EventLines:
        """Write the events of columns."""
        events = list(run)
        return EventLines.of(_encode_lines(events), events)

    def event(self, event: EventFields, number: int, raw: bytes = b"") -> bytes:
        """Write the event of line (or sample, row) `number` of the log."""
        if self._note is not None and (named := prompt_id(event.item_id)) is not None:
            self._note(_PROMPT_NOTE)
            event.item_id = named
        if (
            _fits(event.item_id)
            and _fits(event.model)
            and _fits(event.benchmark)
            and _fits(event.cluster or event.model)
            and _fits(event.unit or event.model)
        ):
            try:
                line = _encode(event)
            except UnicodeEncodeError:  # a lone surrogate: the check below reports it
                pass
            else:
                if plain_text(line):
                    return line + b"\n"
        found = check_object(msgspec.to_builtins(event)) if self._checker.bad([event]) else writable(event)
        if isinstance(found, Fault):
            return self.reject(found, number, raw)
        return msgspec.json.encode(event) + b"\n"

    def add(self, event: EventFields, number: int, raw: bytes = b"") -> None:
        """Keep the event of line `number` until `flush` writes it with others, which is faster."""
        self._pending.append((event, number, raw))

    @property
    def is_full(self) -> bool:
        """Whether enough events are kept to write them."""
        return len(self._pending) >= _TOGETHER

    def flush(self) -> bytes:
        """Write the events that are kept, in their order."""
        pending, self._pending = self._pending, []
        events = [event for event, _, _ in pending]
        if set(map(type, events)) == {EventFields}:
            lines = _event_lines(events, list(zip(*map(_fields, events), strict=True)))
            if lines is not None:
                return lines
        return b"".join([self.event(*each) for each in pending])

    def declare(self, benchmark: str, **counts: int) -> bytes:
        """Write the declaration of an item count, or of repeats; a bad name is rejected when the line is read."""
        return msgspec.json.encode({"declare": _replace_surrogates(benchmark), **counts}) + b"\n"

    def reject(self, fault: Fault, number: int, raw: bytes = b"") -> bytes:
        """Write that line `number` of the log cannot be read."""
        text = raw[:RAW_BYTES].decode("utf-8", "replace")
        if self._note is not None and (named := prompt_id(fault.item)) is not None:
            fault = fault._replace(item=named)
        fields = {
            name: _replace_surrogates(value) if isinstance(value, str) else value
            for name, value in fault._asdict().items()
        }
        return REJECT_START + msgspec.json.encode({"line": number, "raw": text, **fields}) + b"}\n"


def _fits(name: str) -> bool:
    """Return whether a name has a length that needs no closer look."""
    return 0 < len(name) <= MAX_NAME_LENGTH


def _event_lines(events: list[EventFields], columns: Columns) -> EventLines | None:
    """Write events, given their fields by column too; None if one of them needs a closer look."""
    benchmarks, items, models, scores, clusters, repeats, epochs, *units = columns
    kinds = set(map(type, scores))
    names = {*benchmarks, *models, *clusters, *chain.from_iterable(units)} - {None}
    try:
        if not (_are_scores(scores, kinds) and _are_indices(repeats) and _are_indices(epochs) and names_hold(names)):
            return None
        lines = _encode_lines(events)
        if not (all(items) and max(map(len, items)) <= MAX_NAME_LENGTH and (plain_text(lines) or names_hold(items))):
            return None
    except (TypeError, UnicodeEncodeError):  # a name that is no text, or holds a lone surrogate
        return None
    if int in kinds:
        for event in events:
            if type(event.score) is int:
                event.score = float(event.score)  # as it is decoded
    return EventLines.of(lines, events)


def _are_scores(scores: Sequence[Any], kinds: set[type]) -> bool:
    if kinds <= {bool, type(None)}:
        return True
    numbers = [score for score in scores if score is not None] if type(None) in kinds else scores
    # A sum with NaN is NaN.
    return kinds <= _SCORES and min(numbers) >= 0 and max(numbers) <= 1 and sum(numbers) >= 0


def _are_indices(indices: Sequence[Any]) -> bool:
    return set(map(type, indices)) == {int} and all(0 <= index <= MAX_INDEX for index in set(indices))


_TOGETHER: Final = 512
_SCORES: Final = frozenset({float, bool, int, type(None)})
_fields: Final = attrgetter(*EventFields.__struct_fields__)

_encode: Final = msgspec.json.Encoder().encode
_encode_lines: Final = msgspec.json.Encoder().encode_lines


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which logs may hold escaped and UTF-8 does not allow."""
    return text.encode("utf-8", "replace").decode()


def read_reject(line: bytes) -> tuple[Fault, int, bytes]:
    """Return the fault of a rejected record, its line in the log, and how it begins."""
    data: dict[str, Any] = msgspec.json.decode(line)["rejected"]
    number, raw = data.pop("line"), data.pop("raw")
    return Fault(**data), number, raw.encode()


class Translator(Protocol):
    """Translates the lines of a file to event lines, from the first line on."""

    def lines(self, lines: Sequence[bytes], number: int) -> bytes:
        """Translate lines (without their newlines), the first of which is line `number`, to event lines, each with a newline."""
        ...

    def last(self, line: bytes, number: int) -> bytes | None:
        """Translate the last line, which has no newline; None if it is half-written."""
        ...

    def end(self) -> Fault | None:
        """Return the fault of a file that ends here, if it has one."""
        ...


class RecordTranslator(ABC):
    """Translates a file of one record a line, until the file is refused."""

    def __init__(self, note: Callable[[str], None] | None = None) -> None:
        self._writer = EventLineWriter(note)
        self._refused = False

    def lines(self, lines: Sequence[bytes], number: int) -> bytes:
        """Translate lines."""
        parts: list[bytes] = []
        for place, raw in enumerate(lines, number):
            line = raw.removeprefix(BOM).strip(b" \t\r")
            if self._refused or not line:
                continue
            try:
                events = list(self.events(line))
            except Refusal as refusal:
                self._refused = True
                events = [refusal.fault]
            for event in events:
                if isinstance(event, EventFields):
                    self._writer.add(event, place, line)
                else:
                    parts.append(self._writer.flush())
                    parts.append(self._writer.reject(event, place, line) if isinstance(event, Fault) else event)
        return EventLines.joined([*parts, self._writer.flush()])

    def last(self, line: bytes, number: int) -> bytes | None:
        """Translate the last line, if it is a whole object."""
        return self.lines([line], number) if is_record(line) else None

    def end(self) -> Fault | None:
        """Return the fault of the file as a whole."""
        return None

    @abstractmethod
    def events(self, line: bytes) -> Iterable[EventFields | Fault | bytes]:
        """Return the events of a line that is not blank: events, faults, or lines to copy. Raise `Refusal` to stop reading the file."""

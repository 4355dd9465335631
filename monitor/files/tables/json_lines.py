"""JSON lines: events, samples of lm-evaluation-harness, or objects with fields of other names."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from monitor.files.formats.choices import FIELDS
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.plugins import match
from monitor.files.formats.registry import Format
from monitor.files.streams.encodings import open_stream
from monitor.files.streams.event_lines import RecordTranslator, Translator
from monitor.files.streams.regular import Refusal
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import TranslatedStream
from monitor.files.tables.battle_columns import BattleColumns, columns_of, refusal_of, repeated_cell
from monitor.files.tables.columns import ColumnError, Columns, WideTableError, flatten
from schemas.records.declaration import Declaration
from schemas.records.decode import BOM, Decoded, decode_message, decode_record, read_object
from schemas.records.events import Ended, EventFields
from schemas.records.lenient import read_name, read_score, without_value
from schemas.records.repeated import decode_whole, is_repeated
from schemas.records.text import Fault, shorten

_EVENTS: Final = ("benchmark", "item_id", "model", "score"), ("benchmark", "item_id", "model_a", "model_b", "winner")
"""The fields of a score, and of a battle."""

_SAMPLE: Final = frozenset({"doc_id", "doc", "target"})  # fields of a sample of lm-evaluation-harness

_OWN: Final = frozenset(FIELDS)
_OTHER_RECORDS: Final = frozenset({"declare", "ended", "events"})


def open_log(log: LogFile) -> Stream:
    """Open a file of JSON lines as event lines."""
    return TranslatedStream(open_stream(log.path), lambda first: _choose(first, log))


def is_sample(line: bytes) -> bool:
    """Return whether a line is a sample of lm-evaluation-harness."""
    record = _object(line)
    return record is not None and record.keys() >= _SAMPLE


def _choose(first: bytes, log: LogFile) -> Translator | None:
    """Return the translator of a file from its first line; None for a file of events."""
    choices, model = log.choices, log.model
    record = _object(first)
    if record is None:
        return None
    if record.keys() >= _SAMPLE:
        from monitor.files.tools.lm_eval import SampleTranslator  # noqa: PLC0415 - for start-up: most files are events

        return SampleTranslator(log)
    if not choices.columns and ("declare" in record or any(all(field in record for field in each) for each in _EVENTS)):
        log.note_unused("events")
        return None if model is None and not choices.scale else _EventTranslator(log)
    if (found := match(record, lines=True)) is not None:  # the first line was half-written when the file was opened
        return _choose_tool(found, log)
    return _choose_columns(record, log)


def _choose_tool(found: Format, log: LogFile) -> Translator:
    from monitor.files.formats.result_writer import translate_lines  # noqa: PLC0415 - start-up: most files are events
    from monitor.files.importer import load_tool  # noqa: PLC0415 - it imports this module

    tool = None if found.refusal is not None else load_tool(found)
    if tool is None or tool.lines is None:
        return _Refused(found.refusal or "the file was not complete when it was opened; read it again")
    return translate_lines(tool, log, found.name if found.tool is not None else None)


def _choose_columns(record: dict[str, Any], log: LogFile) -> Translator | None:
    """Return the translator of objects with fields of other names; None for a file of events whose first line is a bad one."""
    names, choices, model = list(flatten(record)), log.table_choices, log.model
    if (battle := refusal_of(names)) and not choices.columns:
        return _Refused(battle)
    try:
        objects = [name for name, value in record.items() if isinstance(value, dict)]
        columns = columns_of(names, choices, model, objects, flatten(record))
    except ColumnError as error:
        if choices.columns or model is not None:
            return _Refused(str(error))
        wide = isinstance(error, WideTableError) and _holds_scores(record)
        return _RowTranslator(names, str(error)) if wide or not _is_event(record) else None
    log.note_columns(columns)
    return _ObjectTranslator(columns, log)


class _Refused(RecordTranslator):
    """Rejects a file that is not read."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def events(self, line: bytes) -> Iterable[EventFields | Fault | bytes]:
        """Refuse the file."""
        raise Refusal("columns", shorten(line.decode("utf-8", "replace")), self._reason)


class _RowTranslator(RecordTranslator):
    """Rejects rows that lack a field, with the flag that names it; copies any other line."""

    def __init__(self, names: Iterable[str], reason: str) -> None:
        super().__init__()
        self._names, self._reason = frozenset(names), reason

    def events(self, line: bytes) -> Iterator[EventFields | Fault | bytes]:
        """Reject a row that shares two fields with the first one."""
        record = _object(line)
        if record is not None and not _is_event(record) and len(self._names & flatten(record).keys()) > 1:
            yield Fault("columns", shorten(line.decode("utf-8", "replace")), self._reason)
        else:
            yield line + b"\n"


class _EventTranslator(RecordTranslator):
    """Gives the events of one model its name on the command line, and divides scores by the largest one."""

    def __init__(self, log: LogFile) -> None:
        super().__init__()
        self._log, self._model = log, log.model
        self._original: str | None = None

    def events(self, line: bytes) -> Iterator[EventFields | Fault | bytes]:
        """Rename the model of an event, and scale its score."""
        record = self._record(line)
        if isinstance(record, Declaration):
            yield line + b"\n"
        elif isinstance(record, Ended):
            renamed = record if self._model is None else record.model_copy(update={"model": self._model})
            yield renamed.model_dump_json(exclude_none=True).encode() + b"\n"
        elif isinstance(record, EventFields) and self._model is not None:
            self._original = self._original or record.model
            if record.model == self._original:
                record.model = self._model
                yield record
            else:
                name, first = shorten(record.model), shorten(self._original)
                reason = f"{name} is a second model after {first}; use NAME=PATH (the field model of an upload) with a file of one model"
                yield Fault("model", name, reason, record.benchmark)
        else:
            yield record

    def _record(self, line: bytes) -> Decoded | Fault:
        converted: set[str] = set()
        data = _object(line) if self._log.choices.scale else None
        if data is None or "score" not in data or is_repeated(data):
            record = decode_message(line, converted)
        else:
            score = read_score(without_value(data["score"]))
            data["score"] = self._log.choices.scaled(score, read_name(data.get("benchmark")))
            record = read_object(data, converted)
        for clause in sorted(converted):
            self._log.note(clause)
        return record


class _ObjectTranslator(RecordTranslator):
    """Translates objects with fields of other names."""

    def __init__(self, columns: Columns | BattleColumns, log: LogFile) -> None:
        super().__init__(log.note)
        self._columns = columns
        self._titled = log.choices.benchmark is None and "benchmark" in columns.choices_used

    def events(self, line: bytes) -> Iterator[EventFields | Fault | bytes]:
        """Return the events of an object."""
        record = _object(line)
        if (
            record is not None and self._titled and "benchmark" in record
        ):  # an event after a first line that was a bad one
            yield line + b"\n"
            return
        if record is not None:
            twice = repeated_cell(record, self._columns)
            yield from self._columns.events(flatten(record)) if twice is None else [twice]
            return
        fault = decode_record(line)
        assert isinstance(fault, Fault), "only an object is an event"
        yield fault


def _is_event(record: dict[str, Any]) -> bool:
    """Return whether an object is a record of ours, however bad: it lacks one field at most, or has no field of another name."""
    lacks = min(len({*each} - record.keys()) for each in _EVENTS)
    return lacks < 2 or record.keys() <= _OWN or not record.keys().isdisjoint(_OTHER_RECORDS)


def _holds_scores(record: dict[str, Any]) -> bool:
    """Return whether two fields or more have values that are scores."""
    return sum(isinstance(value, int | float) and 0 <= value <= 1 for value in flatten(record).values()) > 1


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = decode_whole(line.removeprefix(BOM))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None

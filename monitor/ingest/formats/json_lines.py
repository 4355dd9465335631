"""JSON lines: events as they stand, samples of lm-evaluation-harness, or objects whose fields are called something else."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from monitor.ingest.files.blocks import BOM
from monitor.ingest.files.event_lines import Made, Records
from monitor.ingest.files.translated import Refusal, Translator
from monitor.ingest.formats.columns import ColumnError, Columns, flat
from monitor.ingest.formats.log_file import Reading
from schemas.decode import Fault, decode_message, decode_record
from schemas.events import Declaration, EventFields
from schemas.text import shorten

_EVENT: Final = ("benchmark", "item_id", "model", "score")
_SAMPLE: Final = ("doc_id", "doc", "target")


def choose(first: bytes, reading: Reading) -> Translator | None:
    """Choose how a file is read, by its first line; None for events as they stand."""
    choices, model = reading.choices, reading.model
    record = _object(first)
    if record is None:
        return None
    if all(field in record for field in _SAMPLE):
        from monitor.ingest.formats.lm_eval import Samples

        return Samples(reading)
    if not choices.columns and ("declare" in record or all(field in record for field in _EVENT)):
        return None if model is None else Renamed(model)
    try:
        columns = Columns(list(flat(record)), choices, model)
    except ColumnError as error:
        # With nothing to go by this is a file of events whose first line is a bad one: each line will say what is wrong with it.
        return Refused(str(error)) if choices.columns or model is not None else None
    reading.notes(columns.told)
    return Objects(columns)


class Refused(Records):
    """A file that is not read."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self._reason = reason

    def made(self, line: bytes) -> Iterable[Made]:
        """Refuse the file."""
        raise Refusal("columns", shorten(line.decode("utf-8", "replace")), self._reason)


class Renamed(Records):
    """Events of one model, under the name it has on the command line."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model
        self._was: str | None = None

    def made(self, line: bytes) -> Iterator[Made]:
        """Rename the model of an event."""
        found = decode_message(line)
        if isinstance(found, Declaration):
            yield line + b"\n"
        elif isinstance(found, EventFields):
            self._was = self._was or found.model
            if found.model == self._was:
                found.model = self._model
                yield found
            else:
                reason = f"NAME=PATH names a run of one model, and the first here is {shorten(self._was)}: name a file with that one alone"
                yield Fault("model", shorten(found.model), reason, found.benchmark)
        else:
            yield found


class Objects(Records):
    """Objects whose fields are called something else."""

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self._columns = columns

    def made(self, line: bytes) -> Iterator[Made]:
        """Make the events of an object."""
        record = _object(line)
        if record is not None:
            yield from self._columns.events(flat(record))
            return
        found = decode_record(line)
        yield (
            found
            if isinstance(found, Fault)
            else Fault("record", shorten(line.decode("utf-8", "replace")), "give an object")
        )


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line.removeprefix(BOM))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None

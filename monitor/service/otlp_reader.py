"""Read evaluation results from exports of OpenTelemetry that were posted, by the mappings of a file."""

from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any, Final

import msgspec

from monitor.files.formats.choices import ChoiceError, Choices
from monitor.files.formats.log_file import LogFile, Notices, RunRegistry
from monitor.files.formats.results import Result
from monitor.files.maps.mapped import read_evaluation
from monitor.files.maps.table import read_mappings
from monitor.files.streams.paths import show
from monitor.files.streams.segments import RAW_LENGTH
from monitor.files.tools.open_telemetry import NAME, Signal, decode_export, evaluations
from monitor.notices import Notices as LogNotices
from monitor.serve.api.writing.request import Submission
from monitor.serve.serving import OtlpResults
from schemas.records.decode import check_object
from schemas.records.events import EventFields
from schemas.records.names import name_fault
from schemas.records.text import Fault, Reject, shorten

_NO_FILE: Final = Path("otlp")  # in place of the path of a file: posted results have none


class OtlpReader:
    """Reads exports."""

    def __init__(self, file: Path) -> None:
        # Clients read where a mapping is wrong, and nothing of the folders here.
        self._mappings = [
            replace(mapping, where=mapping.where.replace(show(file), show(file.name)))
            for mapping in read_mappings(file)
            if mapping.evaluation is not None
        ]
        if not self._mappings:
            raise ChoiceError(
                f'{file}: no table [[map]] has evaluation; name the evaluation, or use evaluation = "*", and give item_id'
            )
        for mapping in self._mappings:
            if mapping.spans is not None:
                raise ChoiceError(
                    f"{mapping.where}: spans: it is for files; remove it, and export item and model with each result"
                )
        notices = Notices(None)
        self._log = LogFile(_NO_FILE, None, Choices(), RunRegistry(notices), notices)
        self._notices = LogNotices()

    def read(self, body: bytes, signal: Signal, *, protobuf: bool) -> OtlpResults:
        """Return the events of an export, and the faults of log records or spans, by their place."""
        submission, faults, rejects = Submission.empty(), dict[int, Fault](), list[Reject]()
        for place, attributes in evaluations(decode_export(body, signal, protobuf=protobuf)):
            entries = list(read_evaluation(self._mappings, attributes, self._log))
            if not entries:
                name = shorten(attributes.get(NAME))
                self._notices.log("warning", "OpenTelemetry results without a mapping are omitted", evaluation=name)
            for entry in entries:
                given = _fields(entry) if isinstance(entry, Result) else attributes
                event = check_object(given) if isinstance(entry, Result) else entry
                if isinstance(event, EventFields):
                    submission.events.append(event)
                    submission.event_lines.append(place)
                elif isinstance(event, Fault):
                    faults.setdefault(place, event)
                    rejects.append(_reject(event, signal, place, given))
        if faults:
            fault = next(iter(faults.values()))
            self._notices.log(
                "warning", "OpenTelemetry results were rejected", records=len(faults), reason=fault.reason
            )
        return OtlpResults(submission._replace(rejects=tuple(rejects)), faults)


def _fields(result: Result) -> dict[str, Any]:
    """Return a result as an event of any other source, to be checked."""
    score = result.values.get("score")
    if isinstance(score, float) and isnan(score):
        score = None
    event = {"benchmark": result.benchmark, "item_id": result.item, "model": result.model, "score": score}
    return {**event, "repeat": result.repeat, "epoch": result.epoch, **result.tags}


def _reject(fault: Fault, signal: Signal, place: int, given: dict[str, Any]) -> Reject:
    """Return what the log keeps of a result that cannot be used: the event, or the attributes of one that makes none."""
    known = fault.benchmark if fault.benchmark is not None and name_fault(fault.benchmark) is None else None
    return {
        "source": f"OTLP {signal}",
        "line": place,
        "field": fault.field,
        "found": fault.found,
        "reason": fault.reason,
        "benchmark": known,
        "raw": msgspec.json.encode(given).decode()[:RAW_LENGTH],
    }

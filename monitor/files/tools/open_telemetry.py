"""OpenTelemetry: evaluation results (events ``gen_ai.evaluation.result``) in OTLP exports of logs and of traces, as JSON or protobuf.

The semantic conventions name no attribute for the item of an evaluation, so a mapping names it (`map_table`). A result
of a span has the attributes of the span; one of a log record has its own, and those of its span only if a file of spans is given.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from monitor.files.formats.documents import read_bytes
from schemas.records.text import Fault, shorten

EVENT: Final = "gen_ai.evaluation.result"
NAME: Final = "gen_ai.evaluation.name"
ERROR: Final = "error.type"
SOURCES: Final = {"benchmark": NAME, "model": "gen_ai.request.model", "score": "gen_ai.evaluation.score.value"}
"""The attributes of fields that a mapping does not name."""

Signal = Literal["logs", "traces"]
Attributes = Mapping[str, Any]
Spans = Callable[[str, str], Attributes]
"""Returns the attributes of a span by its trace id and span id, none of an unknown one."""


class AnyValue(msgspec.Struct, rename="camel"):
    """The value of an attribute; lists and maps of values are not read."""

    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | str | None = None
    double_value: float | str | None = None


class KeyValue(msgspec.Struct):
    """An attribute."""

    key: str = ""
    value: AnyValue | None = None


class Resource(msgspec.Struct):
    """What produced the records."""

    attributes: list[KeyValue] | None = None


class LogRecord(msgspec.Struct, rename="camel"):
    """A record of a log."""

    event_name: str | None = None
    attributes: list[KeyValue] | None = None
    trace_id: str | None = None
    span_id: str | None = None


class ScopeLogs(msgspec.Struct, rename="camel"):
    """The records of one library."""

    log_records: list[LogRecord] | None = None


class ResourceLogs(msgspec.Struct, rename="camel"):
    """The records of one resource."""

    resource: Resource | None = None
    scope_logs: list[ScopeLogs] | None = None


class SpanEvent(msgspec.Struct):
    """An event of a span."""

    name: str | None = None
    attributes: list[KeyValue] | None = None


class Span(msgspec.Struct, rename="camel"):
    """A span."""

    attributes: list[KeyValue] | None = None
    events: list[SpanEvent] | None = None
    trace_id: str | None = None
    span_id: str | None = None


class ScopeSpans(msgspec.Struct):
    """The spans of one library."""

    spans: list[Span] | None = None


class ResourceSpans(msgspec.Struct, rename="camel"):
    """The spans of one resource."""

    resource: Resource | None = None
    scope_spans: list[ScopeSpans] | None = None


class Export(msgspec.Struct, rename="camel"):
    """An export of logs or of traces. Messages of `opentelemetry.proto` have the same fields, and are read by the same code."""

    resource_logs: list[ResourceLogs] | None = None
    resource_spans: list[ResourceSpans] | None = None


class Evaluation(NamedTuple):
    """A result: the place of its log record or span in the export, from 1, and the attributes that hold for it."""

    place: int
    attributes: dict[str, Any]


_EXPORT: Final = msgspec.json.Decoder(Export)
_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_SPANS_REMEMBERED: Final = 8
_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")  # as JSON of protobuf writes them

_LONGEST: Final = 200  # longest text of a span that may be a name: prompts and answers are attributes too


def decode_export(body: bytes, signal: Signal, *, protobuf: bool) -> Any:  # noqa: ANN401 - an `Export`, or a message like it
    """Decode the body of an export request."""
    if not protobuf:
        try:
            return _EXPORT.decode(body)
        except _BROKEN:
            raise ValueError(
                f"The body is not OTLP JSON of {signal}. Send an object with resource{_what(signal)}."
            ) from None
    # Start-up: only a server that gets protobuf needs it.
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData  # noqa: PLC0415
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData  # noqa: PLC0415

    try:
        return LogsData.FromString(body) if signal == "logs" else TracesData.FromString(body)
    except DecodeError:
        raise ValueError(
            f"The body is not OTLP protobuf of {signal}. Send Export{_what(signal)}ServiceRequest."
        ) from None


def _what(signal: Signal) -> str:
    return "Logs" if signal == "logs" else "Spans"


def no_span(_trace: str, _span: str) -> Attributes:
    """Return no attributes: the span of a log record is not known."""
    return {}


def evaluations(export: Any, spans: Spans = no_span) -> Iterator[Evaluation]:  # noqa: ANN401 - see `decode_export`
    """Return the evaluation results of an export."""
    yield from _of_logs(getattr(export, "resource_logs", None) or (), spans)
    yield from _of_spans(getattr(export, "resource_spans", None) or ())


def _of_logs(resources: Any, spans: Spans) -> Iterator[Evaluation]:  # noqa: ANN401
    records = (
        (resource.resource, record)
        for resource in resources
        for scope in resource.scope_logs or ()
        for record in scope.log_records or ()
    )
    for place, (resource, record) in enumerate(records, 1):
        own = _attributes(record)
        if EVENT in (record.event_name, own.get("event.name")):
            span = spans(record.trace_id or "", record.span_id or "")
            yield Evaluation(place, {**_attributes(resource), **span, **own})


def _of_spans(resources: Any) -> Iterator[Evaluation]:  # noqa: ANN401
    spans = (
        (resource.resource, span)
        for resource in resources
        for scope in resource.scope_spans or ()
        for span in scope.spans or ()
    )
    for place, (resource, span) in enumerate(spans, 1):
        for event in span.events or ():
            if event.name == EVENT:
                yield Evaluation(place, _attributes(resource) | _attributes(span) | _attributes(event))


def _attributes(of: Any) -> dict[str, Any]:  # noqa: ANN401
    return {} if of is None else {each.key: _value(each.value) for each in of.attributes or ()}


def _value(value: Any) -> str | bool | int | float | None:  # noqa: ANN401
    """Return a scalar value; None for a list or a map."""
    if isinstance(value, AnyValue):
        if value.double_value in _NO_NUMBERS:
            return float(value.double_value)
        for number in (value.int_value, value.double_value):
            if number is not None:
                return number
        return value.string_value if value.bool_value is None else value.bool_value
    kind = None if value is None else value.WhichOneof("value")
    return getattr(value, kind) if kind in AnyValue.__struct_fields__ else None


def as_export(record: object) -> Export | Fault:
    """Return a line or a document of a file as an export, or what is wrong with it."""
    try:
        return msgspec.convert(record, Export)
    except _BROKEN:
        reason = "the record is not OTLP JSON with resourceLogs or resourceSpans; give a file of an OTLP file exporter"
        return Fault("record", shorten(record), reason)


def spans_of(file: Path) -> Spans:
    """Return the spans of a file of traces, which is read again when it has changed."""
    status = file.stat()
    spans = _read_spans(file, status.st_size, status.st_mtime_ns)
    return lambda trace, span: spans.get((trace, span), {})


@lru_cache(maxsize=_SPANS_REMEMBERED)
def _read_spans(file: Path, *_: int) -> dict[tuple[str, str], dict[str, Any]]:
    spans: dict[tuple[str, str], dict[str, Any]] = {}
    for line in read_bytes(file).splitlines():
        try:
            export = _EXPORT.decode(line)
        except _BROKEN:
            continue  # cut off, or still being written: its results are reported as without an item
        for resource in export.resource_spans or ():
            for scope in resource.scope_spans or ():
                for span in scope.spans or ():
                    own = _attributes(span).items()
                    short = {name: value for name, value in own if not isinstance(value, str) or len(value) <= _LONGEST}
                    spans[span.trace_id or "", span.span_id or ""] = short
    return spans

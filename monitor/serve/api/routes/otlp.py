"""Routes of OpenTelemetry (OTLP/HTTP): evaluation results in exports of logs and of traces, as JSON or protobuf.

Requests and answers follow https://opentelemetry.io/docs/specs/otlp/#otlphttp: an answer has the content type of its request, an error is a
`google.rpc.Status`, and a request of which some records were rejected succeeds in part.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from monitor.background import in_background
from monitor.serve.access.rules import require_any
from monitor.serve.api.problems import ProblemError, fault_detail
from monitor.serve.api.writing.appending import (
    LARGE_BYTES,
    append_to_log,
    refused_events,
    require_media_type,
    require_quotas,
    require_submission,
)
from monitor.serve.api.writing.request import Intake, WriteRules
from monitor.serve.report_cache import ReportCache
from monitor.serve.serving import ReadOtlp, Signal
from schemas.records.packed import IMPORTED_HEADER
from schemas.records.text import Fault

_PROTOBUF: Final = "application/x-protobuf"
_TYPES: Final = (_PROTOBUF, "application/json")
_INVALID: Final = 3  # INVALID_ARGUMENT of google.rpc.Code; the codes of other errors are in the HTTP status


def otlp_routes(reports: ReportCache, intake: Intake, rules: WriteRules, read: ReadOtlp | None) -> APIRouter:
    """Make the routes."""
    routes = APIRouter(prefix="/v1", include_in_schema=False)  # the contract is that of OTLP

    @routes.post("/logs")
    async def logs(request: Request) -> Response:
        return await answered(request, lambda: export(request, "logs"))

    @routes.post("/traces")
    async def traces(request: Request) -> Response:
        return await answered(request, lambda: export(request, "traces"))

    async def export(request: Request, signal: Signal) -> Response:
        with rules.writing(request) as writing:
            require_any("write")
            media_type = require_media_type(request, _TYPES)
            if read is None:
                raise ProblemError(
                    404,
                    "This server reads no OpenTelemetry. Set otel_map to a TOML file that names the item and the model of a result.",
                )
            body, protobuf = await writing.body(), media_type == _PROTOBUF
            try:
                if len(body) > LARGE_BYTES:
                    results = await in_background(lambda: read(body, signal, protobuf=protobuf))
                else:
                    results = read(body, signal, protobuf=protobuf)
            except ValueError as error:
                raise ProblemError(400, str(error)) from None
            submission, faults = results
            writing.count_all(submission)
            require_submission(submission)
            await require_quotas(reports, submission)
            # Exporters ignore what an answer lists: what the state refuses is appended too, and the fold keeps it as a dead letter.
            for place, fault in (await refused_events(reports, intake, submission)).items():
                faults.setdefault(place, fault)
            writing.rejected = len(faults)
            if submission:
                imported = request.headers.get(IMPORTED_HEADER, "").lower() == "true"
                await append_to_log(intake, submission._replace(imported=imported))
        return Response(_answer(signal, faults, protobuf=protobuf), media_type=media_type)

    return routes


async def answered(request: Request, work: Callable[[], Awaitable[Response]]) -> Response:
    """Do the work; an error is a status message in the content type of the request."""
    try:
        return await work()
    except ProblemError as error:
        status, detail = error.problem.status, error.problem.detail
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type == _PROTOBUF:
            from google.rpc.status_pb2 import Status  # noqa: PLC0415 - start-up: only a server that gets protobuf needs it

            body = Status(code=_INVALID, message=detail).SerializeToString()
        else:
            media_type, body = _TYPES[1], json.dumps({"code": _INVALID, "message": detail}).encode()
        return Response(body, status, error.headers, media_type)


def _answer(signal: Signal, faults: dict[int, Fault], *, protobuf: bool) -> bytes:
    """Return the answer to an export that was stored, but for the records with a fault."""
    message = ""
    if faults:
        place, fault = min(faults.items())
        records = "log record" if signal == "logs" else "span"
        message = (
            f"{len(faults):,} of the {records}s were rejected. The first is {records} {place}: {fault_detail(fault)}"
        )
    if protobuf:
        return _message(signal, len(faults), message)
    rejected = "rejectedLogRecords" if signal == "logs" else "rejectedSpans"
    partial: dict[str, Any] = (
        {"partialSuccess": {rejected: str(len(faults)), "errorMessage": message}} if faults else {}
    )
    return json.dumps(partial).encode()


def _message(signal: Signal, rejected: int, message: str) -> bytes:
    # Start-up: only a server that gets protobuf needs it.
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs  # noqa: PLC0415
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces  # noqa: PLC0415

    if not rejected:
        return b""
    answer: bytes
    if signal == "logs":
        records = logs.ExportLogsPartialSuccess(rejected_log_records=rejected, error_message=message)
        answer = logs.ExportLogsServiceResponse(partial_success=records).SerializeToString()
    else:
        spans = traces.ExportTracePartialSuccess(rejected_spans=rejected, error_message=message)
        answer = traces.ExportTraceServiceResponse(partial_success=spans).SerializeToString()
    return answer

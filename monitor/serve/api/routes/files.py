"""The route that takes a whole file of results, as a browser sends it."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from monitor.background import in_background
from monitor.serve.access.rules import require_any
from monitor.serve.api.problems import ProblemError
from monitor.serve.api.writing.appending import WRITE_ERRORS, require_media_type, store
from monitor.serve.api.writing.request import Intake, Submission, WriteRules
from monitor.serve.report_cache import ReportCache
from monitor.serve.serving import FileError, FileResults, ReadFile
from schemas.records.names import Name
from schemas.records.packed import IMPORTED_HEADER
from schemas.results.api import FileAccepted

_TYPE: Final = "application/octet-stream"  # no form can send it, so pages of other origins cannot post

_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": "The file: JSON lines, a table, or the log of an evaluation harness, also as gzip.",
        "content": {_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


def file_routes(reports: ReportCache, intake: Intake, rules: WriteRules, read: ReadFile | None) -> APIRouter:
    """Make the route."""
    routes = APIRouter(prefix="/api/v1")

    @routes.post("/files", openapi_extra=_BODY, responses=WRITE_ERRORS, response_model=FileAccepted)
    async def files(
        request: Request,
        name: Annotated[str, Query(description="name of the file")],
        model: Annotated[Name | None, Query(description="the model, of a file that does not name it")] = None,
    ) -> Response:
        """Append the results of a file durably, or nothing of it.

        The file is read as `rankwatch send` reads it, with the same errors. If a line cannot be read, the answer lists it, and nothing is
        stored. Results that the state refuses are listed in `rejected`, by their number in the file, and are not stored; the rest is.
        """
        with rules.writing(request) as writing:
            writing.file = name
            require_any("write")
            require_media_type(request, (_TYPE,))
            if read is None:
                raise ProblemError(404, "This server reads no files. POST events as JSON lines to /api/v1/events.")
            body = await writing.body()
            imported = request.headers.get(IMPORTED_HEADER, "").lower() == "true"

            async def append() -> Response:
                upload = await in_background(lambda: _read(read, name, body, model))
                taken = await store(reports, intake, writing, upload.submission, imported=imported)
                answer = FileAccepted(**taken.as_dict(), benchmarks=_benchmarks(upload.submission), notes=upload.notes)
                return Response(answer.as_json(), media_type="application/json")

            return await writing.once(f"{name}\0{model}\0".encode("utf-8", "replace") + body, append)

    return routes


def _read(read: ReadFile, name: str, body: bytes, model: str | None) -> FileResults:
    """Read a file, or raise the refusal."""
    try:
        upload = read(name, body, model)
    except FileError as error:
        raise ProblemError(error.status, f"Nothing was stored. {error}") from None
    if upload.errors:
        count = "1 line" if len(upload.errors) == 1 else f"{len(upload.errors):,} lines"
        raise ProblemError(422, f"Nothing was stored: {count} cannot be read. {upload.first}", upload.errors)
    if not upload.submission:
        raise ProblemError(422, f"Nothing was stored: {name} has no results.")
    return upload


def _benchmarks(submission: Submission) -> list[str]:
    named = {event.benchmark for event in submission.events} | {end.ended for end in submission.ended}
    return sorted(named | {each.declare for each in submission.declarations})

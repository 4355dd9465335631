"""Routes that append to the log: events, declarations of benchmarks, and the ends of runs."""

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from monitor.background import in_background
from monitor.serve.access.caller import may_read
from monitor.serve.access.rules import require, require_any
from monitor.serve.api.openapi import json_body, request_schema
from monitor.serve.api.problems import ProblemError, fault_detail, validation_problem
from monitor.serve.api.writing.appending import (
    _CHECKED_AT_ONCE,
    LARGE_BYTES,
    WRITE_ERRORS,
    append_to_log,
    check_declaration,
    require_media_type,
    require_quotas,
    store,
    until,
)
from monitor.serve.api.writing.body_parser import parse_body
from monitor.serve.api.writing.request import Intake, Submission, WriteRules, Writing
from monitor.serve.report_cache import ReportCache, own_benchmark
from monitor.view.board import BoardView
from schemas.records.declaration import Declaration, Spec
from schemas.records.decode import validate_body
from schemas.records.events import End, Ended, Event
from schemas.records.names import Name as CheckedName
from schemas.records.packed import IMPORTED_HEADER
from schemas.records.text import Fault
from schemas.results.api import Accepted, DeclarationTaken, EndTaken, RunName

_EVENT_TYPES: Final = ("application/x-ndjson", "application/json")
Name = Annotated[CheckedName, Query()]

_EVENTS_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": "Events as JSON lines or as a JSON array, optionally gzip. Declarations apply before the events, ends of runs "
        "after them.",
        "content": {
            "application/x-ndjson": {"schema": {"type": "string", "contentMediaType": "application/x-ndjson"}},
            "application/json": {
                "schema": {
                    "type": "array",
                    "items": {"anyOf": [request_schema(each) for each in (Event, Declaration, Ended)]},
                }
            },
        },
    }
}


def write_routes(reports: ReportCache, intake: Intake, rules: WriteRules) -> APIRouter:
    """Make the routes that append to the log."""
    routes = APIRouter(prefix="/api/v1")
    _add_events(routes, reports, intake, rules)
    _add_declarations(routes, reports, intake, rules)
    _add_ends(routes, reports, intake, rules)
    return routes


def _add_events(routes: APIRouter, reports: ReportCache, intake: Intake, rules: WriteRules) -> None:
    @routes.post("/events", openapi_extra=_EVENTS_BODY, responses=WRITE_ERRORS, response_model=Accepted)
    async def events(request: Request) -> Response:
        """Append events durably.

        A request with a record that cannot be read is refused as a whole, with an error for each. Records that can be read and that the
        state refuses (scores of ended runs or of items that are not declared, names beyond a limit, ends of runs without scores) are listed
        in `rejected` and are not stored; the rest is. Sending a request twice is safe: only the first score of a key counts. With an
        `Idempotency-Key` the second one gets the answer of the first one, and nothing is appended. With `Rankwatch-Imported: true` nobody
        is notified of what these results decide.
        """
        with rules.writing(request) as writing:
            require_any("write")
            media_type = require_media_type(request, _EVENT_TYPES)
            body = await writing.body()
            imported = request.headers.get(IMPORTED_HEADER, "").lower() == "true"
            return await writing.once(body, lambda: append(writing, body, media_type, imported=imported))

    async def append(writing: Writing, body: bytes, media_type: str, *, imported: bool) -> Response:
        if len(body) > LARGE_BYTES:
            submission = await in_background(lambda: parse_body(body, media_type))
        else:
            submission = parse_body(body, media_type)
        accepted = await store(reports, intake, writing, submission, imported=imported)
        # A long list costs seconds: FastAPI's own encoding would take them on the event loop.
        text = (
            await in_background(accepted.as_json) if len(accepted.rejected) > _CHECKED_AT_ONCE else accepted.as_json()
        )
        return Response(text, media_type="application/json")


def _add_declarations(routes: APIRouter, reports: ReportCache, intake: Intake, rules: WriteRules) -> None:
    @routes.get("/declarations")
    async def declaration(benchmark: Name) -> Spec:
        """Return the declaration in force."""
        await reports.at_rest()
        state = reports.readable_by(may_read).benchmark(benchmark)
        if state is None:
            raise ProblemError(
                404, f"Benchmark {benchmark!r} is unknown here. PUT its declaration before the first score."
            )
        if not state.declared:
            raise ProblemError(404, f"Benchmark {benchmark!r} has no declaration. {_how_to_declare(state)}")
        return state.spec

    @routes.put("/declarations", status_code=202, openapi_extra=json_body(Spec), responses=WRITE_ERRORS)
    async def declare(benchmark: Name, request: Request) -> DeclarationTaken:
        """Declare a benchmark before its first score, or again as the next version."""
        with rules.writing(request) as writing:
            writing.count("declare", benchmark)
            require("declare", [benchmark])
            require_media_type(request, ("application/json",))
            try:
                spec = validate_body(Spec, await writing.body(), "declaration")
            except ValidationError as error:
                raise validation_problem(error.errors(), Spec.model_fields) from error
            declaration = Declaration.model_validate(spec.model_dump() | {"declare": benchmark})
            asked = Submission.empty()._replace(declarations=[declaration])
            await require_quotas(reports, asked)
            await reports.at_rest()
            check_declaration(reports, intake, declaration)
            place = await append_to_log(intake, asked)
            in_force = await until(reports, lambda: _in_force(reports, intake, declaration))
        return DeclarationTaken(benchmark=benchmark, place=place, in_force=in_force, spec=spec)


def _how_to_declare(benchmark: BoardView) -> str:
    if not benchmark.counters["events"]:
        return "PUT one before the first score."
    return (
        f"It has scores: PUT one with version {benchmark.spec.version + 1}. The scores stay, and verdicts then assume that it was "
        "chosen without knowing any of them."
    )


def _in_force(reports: ReportCache, intake: Intake, declaration: Declaration) -> bool:
    """Return whether a declaration is in force; raise the 409 if scores are ahead of it in the log."""
    partition = reports.partition_of(declaration.declare)
    if partition is not None and partition.is_declared(declaration):
        return True
    check_declaration(reports, intake, declaration)
    return False


def _add_ends(routes: APIRouter, reports: ReportCache, intake: Intake, rules: WriteRules) -> None:
    @routes.post(
        "/benchmarks/{name:path}/ended", openapi_extra=json_body(End), responses=WRITE_ERRORS, response_model=EndTaken
    )
    async def end_runs(name: str, request: Request) -> Response:
        """End runs: nothing more of them will come. Later scores of an ended run are refused.

        The body names the model, or is {} for every run of the benchmark. Sending a request twice is safe.
        """
        with rules.writing(request) as writing:
            writing.count("end", name)
            require("write", [name])
            require_media_type(request, ("application/json",))
            body = await writing.body()
            try:
                end = validate_body(End, body, "end")
            except ValidationError as error:
                raise validation_problem(error.errors(), End.model_fields) from error
            return await writing.once(body, lambda: append(name, end))

    async def append(name: str, end: End) -> Response:
        # Its scores may have been posted just before.
        await until(reports, lambda: isinstance(_runs(reports, name, end), list))
        await reports.at_rest()
        runs = _runs(reports, name, end)
        if isinstance(runs, ProblemError):
            raise runs
        partition = reports.partition_of(name)
        fault = None if partition is None else partition.closed(name)
        if fault is not None:
            raise ProblemError(409, fault_detail(fault))
        place = await append_to_log(intake, Submission.empty()._replace(ended=[Ended(ended=name, **end.model_dump())]))
        in_force = await until(reports, lambda: _have_ended(reports, name, runs))
        taken = EndTaken(benchmark=name, place=place, in_force=in_force, runs=runs)
        return Response(taken.as_json(), media_type="application/json")


def _runs(reports: ReportCache, name: str, end: End) -> list[RunName] | ProblemError:
    """Return the runs that end, or the 404."""
    try:
        own_benchmark(reports, name)
    except ProblemError as unknown:
        return unknown
    partition = reports.partition_of(name)
    assert partition is not None
    runs = partition.ending(Ended(ended=name, **end.model_dump()))
    return (
        ProblemError(404, fault_detail(runs)) if isinstance(runs, Fault) else [RunName(**run._asdict()) for run in runs]
    )


def _have_ended(reports: ReportCache, name: str, runs: Sequence[RunName]) -> bool:
    benchmark = reports.benchmark(name)
    return benchmark is not None and all(
        benchmark.epoch_contestant_of.get((run.model, run.epoch)) in benchmark.ended for run in runs
    )

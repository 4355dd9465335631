"""Routes that append to the log: events, declarations of benchmarks, and the ends of runs."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from monitor.background import in_background
from monitor.serve.access.caller import current_caller, may_read
from monitor.serve.access.rules import require, require_any
from monitor.serve.api.openapi import json_body, request_schema
from monitor.serve.api.problems import ProblemError, fault_detail, validation_problem
from monitor.serve.api.routes.found import own_benchmark
from monitor.serve.api.writing.body_parser import parse_body
from monitor.serve.api.writing.intake import Intake, IntakeError, Submission
from monitor.serve.api.writing.quotas import require_quotas
from monitor.serve.api.writing.refusals import refuse
from monitor.serve.api.writing.request import WriteRules, Writing
from monitor.serve.log_position import note_position
from monitor.serve.report_cache import ReportCache
from monitor.view.board import BoardView
from schemas.records.declaration import Declaration, Spec
from schemas.records.decode import validate_body
from schemas.records.events import End, Ended, Event
from schemas.records.names import Name as CheckedName
from schemas.records.packed import IMPORTED_HEADER, parse_offsets
from schemas.records.text import Fault
from schemas.results.api import Accepted, DeclarationTaken, EndTaken, RunName

FOLD_SECONDS: Final = 2.0  # how long a response waits until the log is folded to a record

_POLL_SECONDS: Final = 0.02
LARGE_BYTES: Final = 1 << 18  # longer bodies are parsed in a thread
_CHECKED_AT_ONCE: Final = 100
_EVENT_TYPES: Final = ("application/x-ndjson", "application/json")
Name = Annotated[CheckedName, Query()]

WRITE_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    403: {"description": "The token may not write or declare the benchmark, or a quota of it is used up."},
    408: {"description": "The body did not arrive in time."},
    409: {
        "description": "Scores exist, and the declaration changes what their verdicts rest on without being the next version, or there are "
        "as many benchmarks as the limit allows."
    },
    413: {"description": "The body is too large."},
    415: {"description": "The content type or the encoding is not supported."},
    429: {"description": "This client has sent too much. Retry after the time in `Retry-After`."},
    503: {"description": "The log cannot be written now, or all clients send too much at once. Retry."},
}
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


async def store(
    reports: ReportCache, intake: Intake, writing: Writing, submission: Submission, *, imported: bool
) -> Accepted:
    """Append what a request holds, but for what the state refuses."""
    writing.count_all(submission)
    require_submission(submission)
    await require_quotas(reports, submission)
    for place, declaration in enumerate(submission.declarations):
        if place % _CHECKED_AT_ONCE == 0:
            await asyncio.sleep(0)
            await reports.at_rest()
        check_declaration(reports, intake, declaration)
    submission, rejected = await refuse(reports, intake, submission, until)
    writing.rejected = len(rejected)
    if submission:
        await append_to_log(intake, submission._replace(imported=imported))
    await reports.at_rest()
    return Accepted(
        accepted=len(submission.events),
        declarations=len(submission.declarations),
        ended=len(submission.ended),
        rejected=rejected,
        converted=sorted(submission.converted),
        set_aside=_set_aside(reports, submission),
    )


def _set_aside(reports: ReportCache, submission: Submission) -> list[str]:
    """Return the benchmarks of a request whose records are set aside."""
    names = {declaration.declare for declaration in submission.declarations}
    names |= {event.benchmark for event in submission.events} | {end.ended for end in submission.ended}
    return sorted(
        name
        for name in names
        if (partition := reports.partition_of(name)) is not None and partition.suspect(name) is not None
    )


def require_submission(submission: Submission) -> None:
    """Raise the 403 unless the caller may write and declare all that a request holds."""
    require("declare", {declaration.declare for declaration in submission.declarations})
    require("write", {event.benchmark for event in submission.events} | {end.ended for end in submission.ended})
    require("write", {name for reject in submission.rejects if (name := reject.get("benchmark")) is not None})


def require_media_type(request: Request, supported: Sequence[str]) -> str:
    """Return the media type of a body. Forms cannot send a supported type, so pages of other origins cannot post."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in supported:
        raise ProblemError(415, f"Content-Type {media_type[:60]!r} is not supported. Send {' or '.join(supported)}.")
    return media_type


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


def check_declaration(reports: ReportCache, intake: Intake, declaration: Declaration) -> None:
    """Raise the 409 if a declaration contradicts the one under which scores exist, or is of a benchmark too many."""
    name = declaration.declare
    partition = reports.partition_of(name)
    fault = None if partition is None else partition.declaration_fault(declaration, folded=intake.is_folded(name))
    if fault is not None:
        raise ProblemError(409, fault_detail(fault))


async def append_to_log(intake: Intake, submission: Submission) -> str:
    """Append a request for its caller; return the offsets after it, or raise the 503."""
    try:
        caller = current_caller()
        place = await intake.append(submission._replace(producer=caller.name if caller.signed_in else None))
    except IntakeError as error:
        raise ProblemError(503, str(error), headers={"Retry-After": "5"}) from error
    note_position(parse_offsets(place))
    return place


async def until_folded(reports: ReportCache, intake: Intake | None, benchmark: str) -> None:
    """Wait until what was written to a benchmark before is folded, where this process writes and so can know that."""
    await reports.at_rest()
    if intake is not None and reports.owns(benchmark):
        await until(reports, lambda: intake.is_folded(benchmark))


async def until(reports: ReportCache, condition: Callable[[], bool]) -> bool:
    """Return whether a condition comes true in time, while the log is folded."""
    try:
        async with asyncio.timeout(FOLD_SECONDS):
            while True:
                await reports.at_rest()
                if condition():
                    return True
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        return False

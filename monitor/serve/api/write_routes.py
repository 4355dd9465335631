"""What can be put in: events, and declarations of benchmarks."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final, Protocol

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError

from monitor.engine.partition import refusal
from monitor.serve.api.body_parser import Records, read_records
from monitor.serve.api.body_reader import Bodies
from monitor.serve.api.openapi import reference
from monitor.serve.api.problems import ProblemError, parameter_error
from monitor.serve.report_cache import Board
from schemas.api import Accepted, DeclarationTaken
from schemas.events import Declaration, Event, Spec
from schemas.names import Name as CheckedName

MEDIA_TYPES: Final = ("application/x-ndjson", "application/json")
FOLD_SECONDS: Final = 2.0
"""How long a declaration waits to be folded before it is answered."""

_LOOK_SECONDS: Final = 0.02
_LARGE_BYTES: Final = 1 << 18
Name = Annotated[CheckedName, Query()]


class IntakeError(Exception):
    """The log takes nothing now; the message says why, and what to do."""


class Intake(Protocol):
    """Where events are appended to the log."""

    async def append(self, records: Records) -> str:
        """Append declarations and, behind them, events; return their place once all of it is durable, or raise `IntakeError`."""


class Closed:
    """An intake for a server that only shows."""

    async def append(self, records: Records) -> str:  # noqa: ARG002 - the protocol's
        """Refuse."""
        raise IntakeError("this server takes no events: it only shows")


def writing_routes(board: Board, intake: Intake, bodies: Bodies) -> APIRouter:
    """Make the routes that write to the log."""
    routes = APIRouter(prefix="/api/v1")
    _events(routes, board, intake, bodies)
    _declarations(routes, board, intake, bodies)
    return routes


_EVENTS_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": "Events, one JSON object a line, or a JSON array of them; also as gzip. Declarations hold before the events.",
        "content": {
            "application/x-ndjson": {"schema": {"type": "string", "contentMediaType": "application/x-ndjson"}},
            "application/json": {
                "schema": {"type": "array", "items": {"anyOf": [reference(Event), reference(Declaration)]}}
            },
        },
    }
}


def _events(routes: APIRouter, board: Board, intake: Intake, bodies: Bodies) -> None:
    @routes.post(
        "/events",
        openapi_extra=_EVENTS_BODY,
        responses={
            408: {"description": "the body took too long"},
            409: {"description": "a declaration contradicts what scores have come under"},
            413: {"description": "the body is too long"},
            415: {"description": "neither JSON lines nor JSON"},
            503: {"description": "the log takes nothing now: try again"},
        },
    )
    async def events(request: Request) -> Accepted:
        """Append events: all of the request, durably, or none.

        A request with a bad record is refused whole, with what is wrong line by line. Sending a request twice changes no score: the first
        score of a key counts.
        """
        media_type = _media_type(request, MEDIA_TYPES)
        body = await bodies.read(request)
        if len(body) > _LARGE_BYTES:
            records = await asyncio.to_thread(read_records, body, media_type)
        else:
            records = read_records(body, media_type)
        for declaration in records.declarations:
            _check(board, declaration)
        if records.events or records.declarations:
            await _append(intake, records)
        return Accepted(accepted=len(records.events), declarations=len(records.declarations), rejected=[])


def _media_type(request: Request, known: Sequence[str]) -> str:
    """Return the media type of a body. That it is none a form can have keeps pages of other origins from posting."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in known:
        raise ProblemError(415, f"Content-Type: found {media_type[:60] or 'nothing'!r}: send {' or '.join(known)}")
    return media_type


_SPEC_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": Spec.model_json_schema(ref_template="#/components/schemas/{model}")}
        },
    }
}


def _declarations(routes: APIRouter, board: Board, intake: Intake, bodies: Bodies) -> None:
    @routes.get("/declarations")
    async def declaration(benchmark: Name) -> Spec:
        """Return the declaration that is in force."""
        found = board.benchmarks().get(benchmark)
        if found is None or not found.declared:
            known = "has events, and no declaration" if found is not None else "is not known here"
            raise ProblemError(404, f"{benchmark!r} {known}: PUT one before the first score")
        return found.spec

    @routes.put(
        "/declarations",
        status_code=202,
        openapi_extra=_SPEC_BODY,
        responses={
            408: {"description": "the body took too long"},
            413: {"description": "the body is too long"},
            415: {"description": "not JSON"},
            409: {"description": "scores have come, and the declaration would change what verdicts rest on"},
            503: {"description": "the log takes nothing now: try again"},
        },
    )
    async def declare(benchmark: Name, request: Request) -> DeclarationTaken:
        """Declare a benchmark, before its first score."""
        _media_type(request, ("application/json",))
        spec = _read_spec(await bodies.read(request))
        declaration = Declaration.model_validate(spec.model_dump() | {"declare": benchmark})
        _check(board, declaration)
        place = await _append(intake, Records([], [declaration]))
        return DeclarationTaken(benchmark=benchmark, place=place, in_force=await _folded(board, declaration), spec=spec)


def _read_spec(body: bytes) -> Spec:
    try:
        return Spec.model_validate_json(body)
    except ValidationError as error:
        errors = [parameter_error(each) for each in error.errors()]
        first = errors[0]
        raise ProblemError(422, f"{first.field}: found {first.found}: {first.reason}", errors) from error


def _check(board: Board, declaration: Declaration) -> None:
    benchmark = board.benchmarks().get(declaration.declare)
    fault = refusal(benchmark, declaration.spec()) if benchmark is not None else None
    if fault is not None:
        raise ProblemError(409, f"{fault.field}: found {fault.found}: {fault.reason}")


async def _append(intake: Intake, records: Records) -> str:
    try:
        return await intake.append(records)
    except IntakeError as error:
        raise ProblemError(503, str(error), headers={"Retry-After": "5"}) from error


async def _folded(board: Board, declaration: Declaration) -> bool:
    """Wait until a declaration is in force; raise when scores were before it in the log after all. False: it is not folded yet."""
    spec = declaration.spec()
    try:
        async with asyncio.timeout(FOLD_SECONDS):
            while True:
                benchmark = board.benchmarks().get(declaration.declare)
                if benchmark is not None and benchmark.declared and benchmark.spec == spec:
                    return True
                _check(board, declaration)
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        return False

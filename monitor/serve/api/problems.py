"""Report every error as a problem detail (RFC 9457)."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from monitor.state_lock import StateTorn
from schemas.records.decode import describe_error, show_input
from schemas.records.text import Fault
from schemas.results.api import Problem, RecordError

MEDIA_TYPE: Final = "application/problem+json"
_TORN_SECONDS: Final = 5  # when to ask again for a state that has to be loaded first

_HINTS: Final = {
    404: "No such route. GET /api/v1/openapi.json lists every route.",
    405: "This route does not support the method. GET /api/v1/openapi.json lists the methods of every route.",
}


class ProblemError(Exception):
    """A request that cannot be answered."""

    def __init__(
        self,
        status: int,
        detail: str,
        errors: Sequence[RecordError] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(
            type="about:blank",
            title=HTTPStatus(status).phrase,
            status=status,
            detail=detail,
            errors=None if errors is None else list(errors),
        )
        self.headers = headers

    def response(self) -> Response:
        """Return the problem as a response."""
        return Response(self.problem.as_json(), self.problem.status, self.headers, MEDIA_TYPE)


class QuotaExceeded(ProblemError):  # noqa: N818 - what happened
    """A request that would take its caller beyond a quota."""

    def __init__(self, status: int, quota: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, detail, headers=headers)
        self.quota = quota


def fault_detail(fault: Fault | RecordError) -> str:
    """Return one sentence about a wrong field."""
    return f"{fault.field}: {fault.reason}."


def validation_problem(errors: Sequence[Mapping[str, Any]], fields: Iterable[str] = ()) -> ProblemError:
    """Return the problem for pydantic's errors about the parameters, or about a body that may have some fields."""
    wrong: dict[str, RecordError] = {}
    for error in errors:
        record = _record_error(error, fields)
        wrong.setdefault(record.field, record)  # a field of several types has an error for each
    return ProblemError(422, fault_detail(next(iter(wrong.values()))), list(wrong.values()))


def _record_error(error: Mapping[str, Any], fields: Iterable[str]) -> RecordError:
    """Describe a wrong parameter, or a wrong field of a body; pydantic adds the type that it tried to the place."""
    path = [
        str(part)
        for part in error["loc"]
        if part not in {"query", "body", "path", "header"} and (isinstance(part, int) or part.isidentifier())
    ]
    if error["type"] == "missing" and error["loc"][0] == "query":
        reason = f"the query parameter is missing; add {path[0]}=VALUE"
    else:
        reason = describe_error(error, path[0] if path and fields else "", fields)
    return RecordError(line=None, field=".".join(path) or "body", found=show_input(error), reason=reason)


def unknown_benchmark(name: str) -> ProblemError:
    """Return the problem for a benchmark that this server does not show."""
    return ProblemError(
        404, f"Benchmark {name!r} has no events here. GET /api/v1/summaries lists the benchmarks of this server."
    )


def add_problems(web: FastAPI, no_route: str | None = None) -> None:
    """Make an application report every error as a problem; `no_route` is the detail where it does not have the route, or the method."""
    hints = _HINTS if no_route is None else dict.fromkeys(_HINTS, no_route)

    @web.exception_handler(ProblemError)
    async def problem(_: Request, error: ProblemError) -> Response:
        return error.response()

    @web.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return validation_problem(error.errors()).response()

    @web.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        detail = hints.get(error.status_code, str(error.detail))
        return ProblemError(error.status_code, detail, headers=dict(error.headers or {})).response()

    @web.exception_handler(StateTorn)
    async def torn(_: Request, error: StateTorn) -> Response:
        return ProblemError(503, f"{error}. Retry.", headers={"Retry-After": str(_TORN_SECONDS)}).response()

    @web.exception_handler(Exception)
    async def fault(_: Request, __: Exception) -> Response:
        return ProblemError(500, "Internal error in rankwatch. Its log on standard error has the cause.").response()

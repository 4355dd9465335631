"""Errors as problem details (RFC 9457), whoever found them."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from schemas.api import Problem, RecordError
from schemas.text import shorten

MEDIA_TYPE: Final = "application/problem+json"
_HINTS: Final = {
    404: "there is nothing here; GET /api/v1/openapi.json describes every route",
    405: "this route does not take the method",
}


class ProblemError(Exception):
    """A request that cannot be answered as asked.

    Parameters
    ----------
    status : int
    detail : str
        What was found, and what to do.
    errors : sequence of RecordError, optional
    total : int, optional
        How many errors there are, where not all are given.
    headers : dict, optional
    """

    def __init__(
        self,
        status: int,
        detail: str,
        errors: Sequence[RecordError] | None = None,
        total: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(
            title=HTTPStatus(status).phrase,
            status=status,
            detail=detail,
            errors=None if errors is None else list(errors),
            errors_total=total,
        )
        self.headers = headers


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """Return a problem as the answer."""
    return Response(problem.model_dump_json(exclude_none=True), problem.status, headers, MEDIA_TYPE)


def plain_problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Return an answer of a status and what to do."""
    return problem_response(ProblemError(status, detail).problem, headers)


def add_problems(web: FastAPI) -> None:
    """Let every error of an application be told as a problem."""

    @web.exception_handler(ProblemError)
    async def ours(_: Request, error: ProblemError) -> Response:
        return problem_response(error.problem, error.headers)

    @web.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        errors = [parameter_error(each) for each in error.errors()]
        first = errors[0]
        detail = f"{first.field}: found {first.found}: {first.reason}"
        return problem_response(ProblemError(422, detail, errors).problem)

    @web.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        detail = _HINTS.get(error.status_code, str(error.detail))
        return plain_problem(error.status_code, detail, dict(error.headers or {}))

    @web.exception_handler(Exception)
    async def fault(_: Request, __: Exception) -> Response:
        return plain_problem(500, "a fault of rankwatch: its log on standard error has the reason")


def parameter_error(error: Mapping[str, Any]) -> RecordError:
    """Say what is wrong with a parameter, from an error of pydantic."""
    place = [str(part) for part in error["loc"] if part not in {"query", "body", "path", "header"}]
    missing = error["type"] == "missing"
    return RecordError(
        line=None,
        field=".".join(place) or "body",
        found="nothing" if missing else shorten(repr(error.get("input"))),
        reason=str(error["msg"]).removeprefix("Value error, "),
    )

"""Routes of newcomers: admit a model to a board, and see its ranks."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Any, Final, TypeVar

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from monitor.background import in_background
from monitor.serve.access.caller import may_read
from monitor.serve.access.rules import require
from monitor.serve.api.openapi import json_body
from monitor.serve.api.problems import ProblemError, validation_problem
from monitor.serve.api.writing.appending import (
    WRITE_ERRORS,
    append_to_log,
    check_declaration,
    require_media_type,
    until,
    until_folded,
)
from monitor.serve.api.writing.request import Intake, Submission, WriteRules
from monitor.serve.report_cache import Name, ReportCache, own_benchmark
from monitor.view.admission import AdmissionError, AdmissionGoal
from monitor.view.newcomers import Newcomers, Proposal, Standing, admission_of, over, propose, standing
from monitor.words import admission as words
from schemas.records.declaration import MAX_GOAL_LENGTH, Admitted, Declaration
from schemas.records.decode import validate_body
from schemas.records.events import MAX_LINE_BYTES
from schemas.records.text import shorten
from schemas.results.admission import (
    AHEAD,
    AdmissionAsked,
    AdmissionGoalReport,
    AdmissionReport,
    AdmissionTaken,
    AdmissionWords,
    AdmittedModel,
    PossibleTotals,
    canonical,
)

MAX_NEXT: Final = 100_000  # items that an answer lists, at most

_STEPS: Final = 24  # numbers of items for which the interval of the total is shown
_FIRST: Final = 20  # the first of them

_ITEM_BYTES: Final = 300  # what a newcomer takes in memory for each item of its board

Goal = Annotated[
    str | None, Query(max_length=MAX_GOAL_LENGTH, description="model:MODEL,width=3, top:K or score,width=2")
]
Following = Annotated[int, Query(ge=0, le=MAX_NEXT, description="how many of the next items to list")]

Result = TypeVar("Result")

_NONE: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "The model is not admitted, or the board is not the one that was frozen."}
}


def admission_routes(readable: ReportCache, intake: Intake | None = None) -> APIRouter:
    """Make the routes that read the ranks of newcomers; `intake` is where their scores come in, None on a server that does not write."""
    routes, newcomers = APIRouter(prefix="/api/v1/admissions"), Newcomers()

    async def locate(benchmark: str, model: str) -> Standing:
        await until_folded(readable, intake, benchmark)
        return await readable.read(lambda: _found(lambda: _standing(readable, benchmark, model)), [benchmark])

    @routes.get("")
    async def admissions(benchmark: Name) -> dict[str, Admitted]:
        """Return the newcomers that are admitted to a board, by name."""
        await readable.at_rest()
        board = own_benchmark(readable, benchmark)
        return {name: each for name in board.spec.admissions or {} if (each := admission_of(board, name)) is not None}

    @routes.get("/report", responses=_NONE)
    async def report(benchmark: Name, model: Name, goal: Goal = None, next: Following = 0) -> AdmissionReport:  # noqa: A002
        """Report a newcomer: its ranks, the interval of its total, and its next items along the committed order."""
        try:
            asked = None if goal is None else AdmissionGoal.parse(goal, model)
        except ValueError as error:
            raise ProblemError(422, f"goal: {error}.") from error
        found = await locate(benchmark, model)
        return await in_background(lambda: _found(lambda: _report(newcomers, found, asked, next)))

    @routes.get("/certificate", response_class=Response, responses=_NONE)
    async def certificate(benchmark: Name, model: Name) -> Response:
        """Return the certificate of a newcomer, which `rankwatch verify` recomputes elsewhere."""
        found = await locate(benchmark, model)
        text = await in_background(lambda: _found(lambda: canonical(newcomers.certify(found, version("rankwatch")))))
        return Response(text, media_type="application/json", headers={AHEAD: str(found.ahead)})

    return routes


def _standing(reports: ReportCache, benchmark: str, model: str) -> Standing:
    """Return a newcomer as it is now: to see whether its board has changed, the board is frozen once a state."""
    board = own_benchmark(reports, benchmark)
    key, size = ("newcomer", benchmark, model, reports.revision), board.items * _ITEM_BYTES
    origin = reports.origin_of(benchmark, (board,))
    return reports.cache.get(key, origin, lambda: standing(board, model), size=size, most_seconds=0)


def _found(look: Callable[[], Result]) -> Result:
    try:
        return look()
    except AdmissionError as error:
        raise ProblemError(409, f"{error}.") from error


def admit_routes(reports: ReportCache, intake: Intake, rules: WriteRules) -> APIRouter:
    """Make the route that admits a newcomer."""
    routes, readable = APIRouter(prefix="/api/v1"), reports.readable_by(may_read)

    @routes.post("/admissions", openapi_extra=json_body(AdmissionAsked), responses=WRITE_ERRORS)
    async def admit(request: Request) -> AdmissionTaken:
        """Admit a newcomer to a board: freeze its complete models, and draw the seed of the newcomer's order.

        That is a declaration in the log, before the first score of the newcomer. A second request returns the first admission.
        """
        with rules.writing(request) as writing:
            require_media_type(request, ("application/json",))
            try:
                asked = validate_body(AdmissionAsked, await writing.body(), None)
            except ValidationError as error:
                raise validation_problem(error.errors(), AdmissionAsked.model_fields) from error
            writing.count("declare", asked.benchmark)
            require("declare", [asked.benchmark])
            await until_folded(reports, intake, asked.benchmark)
            return await _admit(readable, intake, asked)

    return routes


async def _admit(reports: ReportCache, intake: Intake, asked: AdmissionAsked) -> AdmissionTaken:
    name, model = asked.benchmark, asked.model

    def look() -> tuple[Admitted | None, Proposal, list[str], Declaration]:
        board = own_benchmark(reports, name)
        known = admission_of(board, model)
        try:
            proposal = propose(board, model, asked.alpha, asked.seed)
            items = _standing(reports, name, model).order if known is not None else proposal.order
        except AdmissionError as error:
            raise ProblemError(409, f"{error}.") from error
        admissions = {**(board.spec.admissions or {}), model: proposal.admitted}
        fields = board.spec.model_dump() | {"declare": name, "admissions": admissions}
        return known, proposal, items, Declaration.model_validate(fields)

    known, proposal, items, declaration = await reports.read(look, [name])
    place, in_force, admitted = None, True, known or proposal.admitted
    if known is None:
        check_declaration(reports, intake, declaration)
        if (size := len(declaration.model_dump_json().encode())) > MAX_LINE_BYTES:
            raise ProblemError(
                409, f"The declaration has {size:,} bytes with this newcomer, and a record at most {MAX_LINE_BYTES:,}."
            )
        place = await append_to_log(intake, Submission.empty()._replace(declarations=[declaration]))

        def in_force_() -> bool:
            board = reports.benchmark(name)
            if board is not None and admission_of(board, model) == admitted:
                return True
            check_declaration(reports, intake, declaration)  # another request, or a score, may have been ahead
            return False

        in_force = await until(reports, in_force_)
    elif (asked.alpha, asked.seed) != (None, None) and (asked.alpha or known.alpha, asked.seed or known.seed) != (
        known.alpha,
        known.seed,
    ):
        raise ProblemError(
            409,
            f"{shorten(model)} is admitted with another seed or alpha; both are fixed before its first score, so omit them.",
        )
    left_out = [each for each in proposal.left_out if each not in admitted.models]
    return AdmissionTaken(
        benchmark=name, model=model, place=place, in_force=in_force, admission=admitted, items=items, left_out=left_out
    )


def _report(newcomers: Newcomers, found: Standing, goal: AdmissionGoal | None, following: int) -> AdmissionReport:
    """Return the ranks of a newcomer, in facts and words."""
    certificate = newcomers.certify(found, version("rankwatch"))
    board, result, left = found.board, certificate.result, found.following
    steps = _steps(result.items_run)
    asked = None
    if goal is not None:
        state, among = goal.state(board, result), goal.among(result)
        asked = AdmissionGoalReport(goal=goal.text, state=state, among=among)
    totals = {each.model: (each.low, each.high) for each in board.models}
    models = [
        AdmittedModel(**each.model_dump(), low=totals[each.model][0], high=totals[each.model][1])
        for each in sorted(result.opponents, key=lambda each: (-sum(totals[each.model]), each.model))
    ]
    done = over(found, certificate, goal)
    return AdmissionReport(
        benchmark=board.benchmark,
        model=found.commitment.model,
        items=len(board.items),
        unit=board.unit,
        admission=found.admitted,
        goal=asked,
        over=done,
        ahead=found.ahead,
        next=[] if done else left[:following],
        result=result,
        models=models,
        totals=[
            PossibleTotals(items=items, least=least, most=most)
            for items, least, most in newcomers.intervals(found, steps)
        ],
        words=AdmissionWords(
            headline=words.headline(certificate),
            opponents_line=words.opponents(certificate),
            score_line=words.score(certificate),
            goal_line=None if asked is None else words.goal(asked.goal, asked.state, len(left), among=asked.among),
            ahead_line=words.ahead(found.commitment.model, found.ahead, left[0]) if found.ahead else None,
            promise_line=words.promise(certificate),
            claim_line=words.claim(certificate),
        ),
    )


def _steps(items: int) -> list[int]:
    """Return numbers of items up to all that are run, evenly on a log scale.

    >>> _steps(0), _steps(30)[:3], len(_steps(10_000))
    ([0], [20, 21, 22], 24)
    """
    if items <= _FIRST:
        return [items]
    return sorted({*np.geomspace(_FIRST, items, _STEPS).round().astype(int).tolist()})

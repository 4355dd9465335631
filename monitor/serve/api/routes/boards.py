"""Routes for the life of a board: list, archive, restore, delete, reopen, rename, undo, and export of its scores."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from monitor.serve.access.caller import may_read
from monitor.serve.access.rules import require
from monitor.serve.api.openapi import json_body
from monitor.serve.api.problems import ProblemError, fault_detail, unknown_benchmark, validation_problem
from monitor.serve.api.writing.appending import WRITE_ERRORS, append_to_log, require_media_type, until
from monitor.serve.api.writing.request import Intake, IntakeError, Submission, UndoRefused, WriteRules
from monitor.serve.log_position import format_offsets
from monitor.serve.report_cache import NEXT_CURSOR, Cursor, ReportCache
from monitor.view.partition_view import PartitionView, board_detail, board_summaries
from monitor.view.score_lines import SENTINEL, score_lines
from schemas.records.decode import validate_body
from schemas.records.operations import BoardChange
from schemas.results.api import BoardAsked, BoardDetail, BoardPage, BoardTaken

_CELLS_AT_ONCE: Final = 100_000  # scores of a page of an export, at most, but for the models of one item

_ERRORS: Final[dict[int | str, dict[str, Any]]] = WRITE_ERRORS | {
    403: {"description": "The token may not manage the benchmark."},
    409: {"description": "The state of the board does not allow the change."},
}
_SCORES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "JSON lines", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}},
    409: {"description": "The board was deleted and begun again since the first page."},
}


def board_routes(reports: ReportCache, intake: Intake, rules: WriteRules) -> APIRouter:
    """Make the routes for boards; `reports` has every benchmark."""
    routes = APIRouter(prefix="/api/v1/boards")
    _add_lists(routes, reports)
    _add_changes(routes, reports, intake, rules)
    return routes


def _add_lists(routes: APIRouter, reports: ReportCache) -> None:
    readable = reports.readable_by(may_read)

    @routes.get("")
    async def boards(limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000, cursor: Cursor = None) -> BoardPage:
        """List the boards by name, deleted ones too, page by page."""

        def page() -> BoardPage:
            listed = sorted(
                (board for each in reports.partitions for board in board_summaries(each) if may_read(board.benchmark)),
                key=lambda board: board.benchmark,
            )
            start = int(cursor or 0)
            end = start + limit
            return BoardPage(
                boards=listed[start:end], total=len(listed), next_cursor=str(end) if end < len(listed) else None
            )

        return await reports.read(page, [])

    @routes.get("/{name:path}/scores", response_class=Response, responses=_SCORES)
    async def scores(
        name: str,
        cursor: Annotated[
            str | None, Query(pattern=r"^[0-9]{1,9}-[0-9]{1,9}$", description="as the last page named it")
        ] = None,
    ) -> Response:
        """Export the scores of a board as JSON lines, page by page: the declaration, the scores that count, the ends of runs.

        `Rankwatch-Next-Cursor` names the next page; the last one has no such header. Items are in the order of their first score. Scores
        that arrive between two pages may be omitted: archive the board for an export that is complete.
        """

        def page() -> tuple[bytes, int | None, int]:
            benchmark = readable.benchmark(name)
            if benchmark is None:
                raise unknown_benchmark(name)
            if benchmark.drift is not None:
                raise ProblemError(409, f"Benchmark {name!r} {SENTINEL}.")
            generation, start = map(int, cursor.split("-")) if cursor else (benchmark.generation, 0)
            if generation != benchmark.generation:
                raise ProblemError(
                    409, f"Benchmark {name!r} was deleted and begun again meanwhile. Export it from the start."
                )
            end = start + max(1, _CELLS_AT_ONCE // max(1, len(benchmark.contestants)))
            return score_lines(benchmark, start, end), end if end < benchmark.rows else None, generation

        text, end, generation = await readable.read(page, [name])
        headers = {} if end is None else {NEXT_CURSOR: f"{generation}-{end}"}
        return Response(text, media_type="application/x-ndjson", headers=headers)

    @routes.get("/{name:path}")
    async def board(name: str) -> BoardDetail:
        """Return one board, deleted or not, with its declaration."""
        await reports.at_rest()
        partition = reports.partition_of(name)
        board = board_detail(partition, name) if partition is not None and may_read(name) else None
        if board is None:
            raise unknown_benchmark(name)
        return board


def _add_changes(routes: APIRouter, reports: ReportCache, intake: Intake, rules: WriteRules) -> None:
    @routes.post("", openapi_extra=json_body(BoardAsked), responses=_ERRORS)
    async def change_board(request: Request) -> BoardTaken:
        """Archive, restore, delete, reopen or rename a board, or undo what a producer has sent.

        The change is a record of the log, so every fold of the log makes it at the same place. `archive` keeps the report and refuses later
        records; `restore` ends that. `delete` withdraws the verdicts and removes the board; later records of the name are refused until
        `reopen` begins it again, without scores, as the next generation. `rename` sets the title that is shown, of the board or of a
        model; the name stays. `undo` withdraws the events of a producer since a time, or of a model: the board begins again as the next
        generation, and the records that stay are copied to the end of the log. That goes on after the answer if it takes longer.
        """
        with rules.writing(request) as writing:
            require_media_type(request, ("application/json",))
            try:
                asked = validate_body(BoardAsked, await writing.body(), None)
            except ValidationError as error:
                raise validation_problem(error.errors(), BoardAsked.model_fields) from error
            writing.count(asked.board, asked.benchmark)
            require("manage", [asked.benchmark])
            since = None if asked.since is None else round(1_000 * asked.since.timestamp())
            change = BoardChange(asked.board, asked.benchmark, asked.title, asked.producer, since, asked.model)
            withdrawn = kept = None
            if change.board == "undo":
                place, withdrawn, kept = await _undo(reports, intake, change)
            else:
                await _check(reports, change)
                place = await append_to_log(intake, Submission.empty()._replace(board=change))
            in_force = await until(reports, lambda: _in_force(reports.partition_of(change.benchmark), change))
        await reports.at_rest()
        partition = reports.partition_of(change.benchmark)
        return BoardTaken(
            benchmark=change.benchmark,
            place=place,
            in_force=in_force,
            withdrawn=withdrawn,
            kept=kept,
            board=None if partition is None else board_detail(partition, change.benchmark),
        )


async def _undo(reports: ReportCache, intake: Intake, change: BoardChange) -> tuple[str, int | None, int | None]:
    """Begin an undo; return the offset of its record, and the events that are withdrawn and stay. Raise the 409 or the 503."""

    async def partition() -> PartitionView | None:
        await reports.at_rest()
        return reports.partition_of(change.benchmark)

    try:
        withdrawn, kept = await intake.undo(change, partition)
    except UndoRefused as error:
        raise ProblemError(409, f"{error}.") from error
    except IntakeError as error:
        raise ProblemError(503, str(error), headers={"Retry-After": "5"}) from error
    folded = await partition()
    entry = None if folded is None else folded.entry(change.benchmark)
    place = "" if folded is None or entry is None else format_offsets({folded.number: entry.begun})
    return place, withdrawn, kept


async def _check(reports: ReportCache, change: BoardChange) -> None:
    """Raise the 409 if the state of a board does not allow a change; wait for records that were sent just before."""
    await reports.at_rest()
    partition = reports.partition_of(change.benchmark)
    if partition is None:
        return

    if not await until(reports, lambda: partition.change_fault(change) is None):
        await reports.at_rest()
        fault = partition.change_fault(change)
        if fault is not None:
            raise ProblemError(409, fault_detail(fault))


def _in_force(partition: PartitionView | None, change: BoardChange) -> bool:
    """Return whether the board is as a change leaves it."""
    if partition is None:
        return False
    entry = partition.entry(change.benchmark)
    state = "open" if entry is None else entry.state
    if change.board == "undo":
        return entry is not None and entry.undo is not None and entry.undo.done
    if change.model is not None:
        return entry is not None and entry.titles.get(change.model) == change.title
    if change.board == "rename":
        title = "" if entry is None else entry.title
        return title == ("" if change.title in {None, change.benchmark} else change.title)
    return state == {"archive": "archived", "delete": "deleted"}.get(change.board, "open")

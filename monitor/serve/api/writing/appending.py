"""Append what a request holds to the log, but for what quotas and the state refuse."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from fastapi import Request

from monitor.serve.access.caller import Caller, current_caller
from monitor.serve.access.rules import require
from monitor.serve.api.problems import ProblemError, QuotaExceeded, fault_detail
from monitor.serve.api.writing.request import Intake, IntakeError, Submission, Writing
from monitor.serve.log_position import note_position
from monitor.serve.report_cache import ReportCache
from monitor.view.board import BoardView
from monitor.view.partition_view import Judge
from schemas.records.declaration import Declaration
from schemas.records.events import BattleFields, Ended, models_of
from schemas.records.packed import parse_offsets
from schemas.records.text import Fault, shorten
from schemas.results.api import Accepted, RecordError


async def require_quotas(reports: ReportCache, submission: Submission) -> None:
    """Raise the 403 if a request would begin more than the caller's quotas allow."""
    # What is folded counts, with what the request adds: requests that are under way at the same time may exceed a quota together.
    caller = current_caller()
    quotas = caller.grants.quotas
    if quotas.keys() <= {"events"}:
        return
    await reports.at_rest()
    models, items = _names(submission)
    if "boards" in quotas:
        begun = {name for partition in reports.partitions for name in partition.names()}
        _check_boards(caller, begun, {*models, *(each.declare for each in submission.declarations)})
    if "items" in quotas:
        for declaration in submission.declarations:
            _check_declared(caller, declaration)
    for name in models:
        partition = next((each for each in reports.partitions if each.is_ours(name)), None)
        benchmark = None if partition is None else partition.board(name)
        known, seen = (0, 0) if benchmark is None else (len(benchmark.latest_epoch), benchmark.items)
        _check(caller, "models", name, known, sum(1 for _ in _new_models(benchmark, models[name])))
        _check(
            caller,
            "items",
            name,
            seen,
            len(items[name]) if partition is None else partition.new_items(name, items[name]),
        )


def _names(submission: Submission) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the models and the items of the events, by benchmark; a battle has no item."""
    models: dict[str, set[str]] = {}
    items: dict[str, set[str]] = {}
    for event in submission.events:
        models.setdefault(event.benchmark, set()).update(models_of(event))
        of = items.setdefault(event.benchmark, set())
        if not isinstance(event, BattleFields):
            of.add(event.item_id)
    return models, items


def _new_models(benchmark: BoardView | None, models: Iterable[str]) -> Iterator[str]:
    aliases = {} if benchmark is None else benchmark.spec.aliases
    known = {} if benchmark is None else benchmark.latest_epoch
    yield from {aliases.get(model, model) for model in models} - known.keys()


def _check_boards(caller: Caller, begun: set[str], names: set[str]) -> None:
    new = names - begun
    own = sum(caller.grants.may("write", name) or caller.grants.may("declare", name) for name in begun)
    most = caller.grants.quotas["boards"]
    if new and own + len(new) > most:
        raise QuotaExceeded(
            403,
            "boards",
            f"{caller.name} has a quota of {most:,} boards (quota:boards={most}), its scopes have {own:,}, and the request begins "
            f"{len(new):,}, such as {shorten(min(new))}. Delete boards that are not needed, or ask for another quota.",
        )


def _check_declared(caller: Caller, declaration: Declaration) -> None:
    spec, most = declaration.spec(), caller.grants.quotas["items"]
    if (spec.items or 0) > most:
        raise QuotaExceeded(
            403,
            "items",
            f"{caller.name} has a quota of {most:,} items a board (quota:items={most}), and the declaration of "
            f"{shorten(declaration.declare)} has {spec.items:,}. Declare fewer, or ask for another quota.",
        )


def _check(caller: Caller, quota: str, name: str, known: int, new: int) -> None:
    most = caller.grants.quotas.get(quota)
    if most is not None and new and known + new > most:
        raise QuotaExceeded(
            403,
            quota,
            f"{caller.name} has a quota of {most:,} {quota} a board (quota:{quota}={most}), {shorten(name)} has {known:,}, and the request "
            f"adds {new:,}. Nothing of the request is kept. Send what the board has already, or ask for another quota.",
        )


# Find the records of a request that can be read, and that the state refuses: the answer lists them, and they are not stored.
#
# Where the state cannot judge a record, because the log is not folded to its end, the record is appended; if the fold refuses it, it is
# kept as a dead letter.

_AT_ONCE: Final = 5_000  # events that are checked before other requests get a turn

_NAMES_AT_ONCE: Final = 100

_NOUNS: Final = "battles", "scores of items"
_ONE_EACH: Final = "Nothing was stored: give scores and battles a benchmark each."

Until = Callable[
    [ReportCache, Callable[[], bool]], Awaitable[bool]
]  # waits until a condition comes true, for a bounded time


async def refuse(
    reports: ReportCache, intake: Intake, submission: Submission, until: Until
) -> tuple[Submission, list[RecordError]]:
    """Return what of a request is to be appended, and the records that are refused, by line."""
    await reports.at_rest()
    _require_one_kind(reports, submission)
    refused = await refused_events(reports, intake, submission)
    if refused:
        kept = [k for k, line in enumerate(submission.event_lines) if line not in refused]
        submission = submission._replace(
            events=[submission.events[k] for k in kept], event_lines=[submission.event_lines[k] for k in kept]
        )
    if submission.ended:
        faults = await _unknown_runs(reports, intake, submission, until)
        refused |= faults
        kept = [k for k, line in enumerate(submission.ended_lines) if line not in faults]
        submission = submission._replace(
            ended=[submission.ended[k] for k in kept], ended_lines=[submission.ended_lines[k] for k in kept]
        )
    return submission, [
        RecordError(line=line, field=fault.field, found=fault.found, reason=fault.reason)
        for line, fault in sorted(refused.items())
    ]


def _require_one_kind(reports: ReportCache, submission: Submission) -> None:
    """Raise the 409 if a benchmark holds battles, or gets any, and would get scores, or the reverse."""
    kinds = dict.fromkeys((event.benchmark, not isinstance(event, BattleFields)) for event in submission.events)
    for name, scored in kinds:
        benchmark = reports.benchmark(name)
        begun = benchmark is not None and bool(benchmark.counters["events"])
        if (name, not scored) in kinds:
            raise ProblemError(
                409,
                f"The request has both scores and battles for {name!r}, and a benchmark holds one of them. {_ONE_EACH}",
            )
        if begun and benchmark is not None and scored != benchmark.by_item.has_scores:
            raise ProblemError(
                409, f"{name!r} holds {_NOUNS[not scored]}, so it takes no {_NOUNS[scored]}. {_ONE_EACH}"
            )


async def refused_events(reports: ReportCache, intake: Intake, submission: Submission) -> dict[int, Fault]:
    """Return the fault of each event that the fold would refuse, as far as it can be known here, by line."""
    judges = await _judges(reports, intake, submission)
    refused: dict[int, Fault] = {}
    if not judges:
        return refused
    for start in range(0, len(submission.events), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        for line, event in zip(submission.event_lines[piece], submission.events[piece], strict=True):
            judge = judges.get(event.benchmark)
            fault = judge if judge is None or isinstance(judge, Fault) else judge(event)
            if fault is not None:
                refused[line] = fault
        await asyncio.sleep(0)
        await reports.at_rest()
    return refused


async def _judges(reports: ReportCache, intake: Intake, submission: Submission) -> dict[str, Judge | Fault]:
    """Return what judges the events of each benchmark that may refuse some, or why it cannot begin."""
    declared = {declaration.declare: declaration for declaration in submission.declarations}
    with_battles = {event.benchmark for event in submission.events if isinstance(event, BattleFields)}
    runs: dict[str, set[tuple[str, int]]] = {}
    for event in submission.events:
        runs.setdefault(event.benchmark, set()).update((model, event.epoch) for model in models_of(event))
    judges: dict[str, Judge | Fault] = {}
    begun: Counter[int] = Counter()
    for place, name in enumerate(dict.fromkeys([*declared, *runs])):
        if place % _NAMES_AT_ONCE == 0:
            await asyncio.sleep(0)
            await reports.at_rest()
        partition = reports.partition_of(name)
        if partition is None:
            continue
        judge = partition.judge(
            name,
            len(submission.events),
            len(runs.get(name, ())),
            battles=name in with_battles,
            begun=begun[partition.number],
            folded=intake.is_folded(name),
            declared=declared.get(name),
        )
        begun[partition.number] += not isinstance(judge, Fault) and name not in partition.names()
        if judge is not None:
            judges[name] = judge
    return judges


async def _unknown_runs(reports: ReportCache, intake: Intake, submission: Submission, until: Until) -> dict[int, Fault]:
    """Return the fault of each end of a run without scores, by line; wait for scores that were posted just before."""
    runs = {(event.benchmark, model, event.epoch) for event in submission.events for model in models_of(event)}
    of_sentinels: set[tuple[str, str | None, int | str | None]] = {
        (event.benchmark, event.model, str(event.run)) for event in submission.events if event.run is not None
    }
    of_sentinels |= {_run(end) for end in submission.ended if end.state == "started"}
    declared = {each.declare: each for each in submission.declarations}
    begun = {
        *runs,
        *of_sentinels,
        *((name, None, epoch) for name, _, epoch in runs),
        *((name, None, None) for name, _, _ in runs),
    }
    ends = [
        (line, end)
        for line, end in zip(submission.ended_lines, submission.ended, strict=True)
        if reports.owns(end.ended) and (_run(end) not in begun or end.state == "started")
    ]

    def faults() -> Iterator[tuple[int, Fault]]:
        for line, end in ends:
            partition = reports.partition_of(end.ended)
            runs = None if partition is None else partition.ending(end, declared.get(end.ended))
            if isinstance(runs, Fault):
                yield line, runs

    if await until(reports, lambda: not any(faults())):
        return {}
    await reports.at_rest()
    folded = {name: intake.is_folded(name) for name in {end.ended for _, end in ends}}
    known = {line for line, end in ends if folded[end.ended]}
    return {line: fault for line, fault in faults() if line in known}


def _run(end: Ended) -> tuple[str, str | None, int | str | None]:
    """Return benchmark, model and epoch, or run of a sentinel, of an end, as far as it names them."""
    if end.run is not None:
        return end.ended, end.model, end.run
    return end.ended, end.model, end.epoch if end.model is None else end.epoch or 0


FOLD_SECONDS: Final = 2.0  # how long a response waits until the log is folded to a record

_POLL_SECONDS: Final = 0.02
LARGE_BYTES: Final = 1 << 18  # longer bodies are parsed in a thread
_CHECKED_AT_ONCE: Final = 100


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

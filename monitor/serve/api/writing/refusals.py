"""Find the records of a request that can be read, and that the state refuses: the answer lists them, and they are not stored.

Where the state cannot judge a record, because the log is not folded to its end, the record is appended; if the fold refuses it, it is
kept as a dead letter.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from monitor.serve.api.problems import ProblemError
from monitor.serve.api.writing.intake import Intake, Submission
from monitor.serve.report_cache import ReportCache
from monitor.view.partition_view import Judge
from schemas.records.events import BattleFields, Ended, models_of
from schemas.records.text import Fault
from schemas.results.api import RecordError

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
    """Return what judges the events of each benchmark of which some may be refused, or why it cannot begin."""
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

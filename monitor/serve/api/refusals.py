"""Find the records of a request that can be read, and that the state refuses: the answer lists them, and they are not stored.

The state is that of this worker. Where it cannot judge a record, because the benchmark belongs to another worker or the log is not folded
to its end, the record is appended; if the fold refuses it, it is kept as a dead letter.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from monitor.engine.fold import no_runs, refusals, runs_of
from monitor.serve.api.intake import Intake, Submission
from monitor.serve.report_cache import ReportCache
from schemas.api import RecordError
from schemas.decode import Fault
from schemas.events import Ended, EventFields

_AT_ONCE: Final = 5_000
"""Events that are checked before other requests get a turn."""

Until = Callable[[Callable[[], bool]], Awaitable[bool]]
"""Waits until a condition comes true, for a bounded time."""


async def refuse(
    reports: ReportCache, intake: Intake, submission: Submission, until: Until
) -> tuple[Submission, list[RecordError]]:
    """Return what of a request is to be appended, and the records that are refused, by line."""
    refused = await _late_or_unlisted(reports, intake, submission)
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


async def _late_or_unlisted(reports: ReportCache, intake: Intake, submission: Submission) -> dict[int, Fault]:
    """Return the fault of each score of an ended run, or of an item that is not declared, by line."""
    redeclared = {declaration.declare for declaration in submission.declarations}
    benchmarks = {name: each for name, each in reports.benchmarks().items() if each.ended or each.declared_items}
    found: dict[int, Fault] = {}
    if not benchmarks:
        return found
    for start in range(0, len(submission.events), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        by_name: dict[str, list[tuple[int, EventFields]]] = {}
        for line, event in zip(submission.event_lines[piece], submission.events[piece], strict=True):
            if event.benchmark in benchmarks:
                by_name.setdefault(event.benchmark, []).append((line, event))
        for name, events in by_name.items():
            listed = name not in redeclared and intake.is_folded(name)
            found.update(refusals(benchmarks[name], events, listed=listed))
        await asyncio.sleep(0)
    return found


async def _unknown_runs(reports: ReportCache, intake: Intake, submission: Submission, until: Until) -> dict[int, Fault]:
    """Return the fault of each end of a run without scores, by line; wait for scores that were posted just before."""
    runs = {(event.benchmark, event.model, event.epoch) for event in submission.events}
    begun = {*runs, *((name, None, epoch) for name, _, epoch in runs), *((name, None, None) for name, _, _ in runs)}
    ends = [
        (line, end)
        for line, end in zip(submission.ended_lines, submission.ended, strict=True)
        if reports.owns(end.ended) and _run(end) not in begun
    ]

    def faults() -> Iterator[tuple[int, Fault]]:
        benchmarks = reports.benchmarks()
        for line, end in ends:
            benchmark = benchmarks.get(end.ended)
            runs = no_runs(end.ended) if benchmark is None else runs_of(benchmark, end)
            if isinstance(runs, Fault):
                yield line, runs

    if await until(lambda: not any(faults())):
        return {}
    folded = {name: intake.is_folded(name) for name in {end.ended for _, end in ends}}
    known = {line for line, end in ends if folded[end.ended]}
    return {line: fault for line, fault in faults() if line in known}


def _run(end: Ended) -> tuple[str, str | None, int | None]:
    """Return benchmark, model and epoch of an end, as far as it names them."""
    return end.ended, end.model, end.epoch if end.model is None else end.epoch or 0

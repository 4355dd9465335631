"""Declare benchmarks that begin in files, before their first event."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from schemas.records.columns import JoinedEvents
from schemas.records.declaration import Declaration
from schemas.records.events import EventFields
from schemas.records.packed import Segment
from schemas.records.run_columns import RunEvents

Declare = Callable[[str, Declaration | None, bool, str | None], dict[str, Any] | None]
"""Returns what to declare of a benchmark: its name, what its file declares, whether one of its first scores is neither 0 nor 1, and the
file that has them, if they come from one."""

_benchmark: Final = attrgetter("benchmark")


def begin(segment: Segment, known: set[str], declare: Declare | None) -> Segment:
    """Return a segment with the declarations of the benchmarks that begin in it; add these to `known`."""
    names = benchmarks_of(segment.events)
    segment = with_own_declarations(segment, declare)
    known.update(declaration.declare for declaration in segment.declarations)
    fresh = names - known
    known |= fresh
    begun = {
        name: declare(name, None, has_graded(segment.events, name), segment.path) if declare else None
        for name in sorted(fresh)
    }
    return segment._replace(begun=begun)


def with_own_declarations(segment: Segment, declare: Declare | None) -> Segment:
    """Return a segment with what is declared in place of the declarations in its file."""
    if declare is None or not segment.declarations:
        return segment
    return segment._replace(declarations=[_replaced(each, segment, declare) for each in segment.declarations])


def benchmarks_of(events: Iterable[EventFields]) -> set[str]:
    """Return the benchmarks of events, which may be columns."""
    names: set[str] = set()
    for part in _parts(events):
        names |= {part.benchmark} if isinstance(part, RunEvents) else set(map(_benchmark, part))
    return names


def has_graded(events: Iterable[EventFields], benchmark: str) -> bool:
    """Return whether a score of the benchmark is neither 0 nor 1."""
    return any(
        part.benchmark == benchmark and part.graded
        if isinstance(part, RunEvents)
        else any(event.score not in (0, 1, None) for event in part if event.benchmark == benchmark)
        for part in _parts(events)
    )


def _parts(events: Iterable[EventFields]) -> Sequence[Iterable[EventFields]]:
    return events.parts if isinstance(events, JoinedEvents) else [events]


def _replaced(declaration: Declaration, segment: Segment, declare: Declare) -> Declaration:
    name = declaration.declare
    fields = declare(name, declaration, has_graded(segment.events, name), segment.path)
    return declaration if fields is None else Declaration.model_validate(fields)

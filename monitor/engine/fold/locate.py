"""Find the row, contestant and code of each event of a piece, and add the names and scores that are new."""

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.engine.limits import Limits, Usage, bad_name, budget_fault, exceeds, limit_fault, model_fault
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.changes import BenchmarkDelta
from monitor.engine.state.graded import unweighted_reason
from monitor.words.order import UNDECLARED_UNITS
from schemas.records.columns import EventBatch, EventColumns, Index, Scores
from schemas.records.declaration import ANCHOR, unit_name_problem
from schemas.records.events import EventFields
from schemas.records.names import names_hold
from schemas.records.scores import ABSENT, ONE, SCORE_UNIT, SKIPPED, ZERO
from schemas.records.text import Fault, Refusal, shorten


@dataclass
class Located:
    """A batch with the row, contestant and code of each event; code ABSENT for a refused event."""

    batch: EventBatch
    row: Index
    contestant: Index
    code: NDArray[np.uint32]
    cut: int
    """The first event with an item too many, from which nothing is settled, nor decided under policy completion; else the length."""
    newer: dict[int, int]  # contestant of each event that begins a newer epoch of a model, by the event's position
    held: bool  # whether the declared assumption held before the batch
    exceeded: bool  # whether there were items too many before the batch
    undeclared: tuple[int, str] | None = None
    """The first event of a unit where none is declared, and why that holds the benchmark."""


def locate(
    benchmark: Benchmark, batch: EventBatch, delta: BenchmarkDelta, limits: Limits
) -> tuple[Located, list[tuple[int, Fault]]]:
    """Return the rows, contestants and codes of events, and the refused events; add new names and scores."""
    held, exceeded = benchmark.assumption_holds, benchmark.exceeded
    faults: list[tuple[int, Fault]] = []
    events, size = batch.events, len(batch.events)
    row, contestant = events.rows(benchmark), events.contestants(benchmark)
    codes = _known_codes(benchmark, events.scores())
    plain = codes >= 0
    if (simple := events.plain()) is not None:
        plain &= simple
    unknown = np.flatnonzero((row < 0) | (contestant < 0) | ~plain)
    row_limits = limits if _rows_may_fill(benchmark, limits, row, contestant, simple) else None
    cut = size
    newer: dict[int, int] = {}
    undeclared: tuple[int, str] | None = None
    wary = 0
    while unknown.size:
        if not wary:
            others = np.flatnonzero((contestant[unknown] < 0) | ~plain[unknown])
            stretch = unknown[: int(others[0]) if others.size else unknown.size]
            added = _add_items(benchmark, events, stretch, delta, row_limits)
            if added is not None:
                row[stretch], unknown = added, unknown[stretch.size :]
                continue
            wary = stretch.size
        position, unknown, wary = int(unknown[0]), unknown[1:], max(0, wary - 1)
        rows, known = len(benchmark.rows), len(benchmark.contestants)
        event = events[position]
        place = _place(benchmark, event, delta, limits, row_limits)
        if len(benchmark.contestants) > known and benchmark.is_newer(known):
            newer[position] = known
        if isinstance(place, Fault):
            faults.append((position, place))
            place = 0, 0, ABSENT
        else:
            reason = _undeclared_unit(benchmark, event, delta)
            undeclared = undeclared or (None if reason is None else (position, reason))
        row[position], contestant[position], codes[position] = place
        if cut == size and not benchmark.exceeded and benchmark.too_many_items:
            cut = position
        left = _still_unknown(benchmark, events, unknown, (row, contestant, plain), before=(rows, known))
        unknown, wary = left, max(0, wary - (unknown.size - left.size))
    if benchmark.ended:
        benchmark.grow()
        faults += _refuse_ended(benchmark, events, row, contestant, codes)
    return Located(batch, row, contestant, codes.astype(np.uint32), cut, newer, held, exceeded, undeclared), faults


def _still_unknown(
    benchmark: Benchmark,
    events: EventColumns,
    unknown: Index,
    places: tuple[Index, Index, NDArray[np.bool_]],
    *,
    before: tuple[int, int],
) -> Index:
    """Look unknown events up again if the one before them has just added a name; return those that are still unknown."""
    # `before`: how many rows and contestants there were. It ends at the first event that has an unknown model where a model was added, an
    # unknown item otherwise. Eight times as many are looked up each time: a name that many events share costs each of them one search.
    row, contestant, plain = places
    models = len(benchmark.contestants) > before[1]
    if not (models or len(benchmark.rows) > before[0]):
        return unknown
    left, width = [], 1
    while unknown.size:
        first = int(unknown[0])
        here = unknown[: int(np.searchsorted(unknown, first + width))]
        part = events[first : int(here[-1]) + 1]
        if (row[here] < 0).any():
            row[here] = part.rows(benchmark)[here - first]
        if (contestant[here] < 0).any():
            contestant[here] = part.contestants(benchmark)[here - first]
        left.append(here[(row[here] < 0) | (contestant[here] < 0) | ~plain[here]])
        unknown, width = unknown[here.size :], 8 * width
        if ((contestant if models else row)[here] < 0).any():
            break
    return np.concatenate([*left, unknown])


def _known_codes(benchmark: Benchmark, scores: Scores) -> Index:
    """Return the code of each score, -1 for one that is new."""
    units = scores * SCORE_UNIT
    np.rint(units, out=units)
    right = units == SCORE_UNIT
    codes = np.where(right, ONE, ZERO)
    others = np.flatnonzero(~right & (units != 0))
    if others.size:
        skipped = np.isnan(units[others])
        values = np.where(skipped, 0, units[others]).astype(np.int64)
        known = np.fromiter(map(benchmark.table.code_of.get, values.tolist(), repeat(-1)), np.int64, others.size)
        codes[others] = np.where(skipped, SKIPPED, known)
    return codes


def _rows_may_fill(
    benchmark: Benchmark, limits: Limits, row: Index, contestant: Index, simple: NDArray[np.bool_] | None
) -> bool:
    """Return whether events may meet a limit of rows, if each of those whose item or model is not known adds another one."""
    others = np.True_ if simple is None else simple
    rows = len(benchmark.rows) + int(np.count_nonzero((row < 0) | ~others))
    models = len(benchmark.contestants) + int(np.count_nonzero((contestant < 0) | ~others))
    most = Usage.sized(rows, min(models, limits.contestants))
    return rows > min(limits.rows, benchmark.bets.most_items) or exceeds(limits.others.plus(most), limits.budget)


def _add_items(
    benchmark: Benchmark, events: EventColumns, stretch: Index, delta: BenchmarkDelta, row_limits: Limits | None
) -> Index | None:
    """Add the items of events that are new in nothing else, and return their rows; None, with nothing added, if one needs a closer look."""
    simple = benchmark.by_item.are_rows and benchmark.weighting is None and row_limits is None and not benchmark.ended
    if not stretch.size or not simple:
        return None
    items, clusters = events.items(stretch)
    fresh: dict[str, str | None] = {}
    for item, cluster in zip(items, clusters, strict=True):
        fresh.setdefault(item, cluster)  # the first event of an item sets its cluster
    known, listed = benchmark.row_of, benchmark.declared_items
    if not known.keys().isdisjoint(fresh):
        fresh = {item: cluster for item, cluster in fresh.items() if item not in known}
    if not (
        names_hold(fresh)
        and names_hold({cluster for cluster in fresh.values() if cluster is not None})
        and benchmark.takes_items(fresh)
        and (listed is None or listed.issuperset(fresh))
    ):
        return None
    delta.rows += benchmark.add_items(fresh)
    return np.fromiter(map(known.__getitem__, items), np.int64, len(items))


def _place(
    benchmark: Benchmark, event: EventFields, delta: BenchmarkDelta, limits: Limits, row_limits: Limits | None
) -> tuple[int, int, int] | Fault:
    """Return (row, contestant, code) of an event and add those that are new; or refuse the event and add nothing."""
    # `row_limits` is None where no limit of rows can be met.
    item, model = event.item_id, event.model
    row = benchmark.repeat_row_of.get((item, event.repeat)) if event.repeat else benchmark.row_of.get(item)
    contestant = benchmark.epoch_contestant_of.get((model, event.epoch))
    units = None if event.score is None else round(event.score * SCORE_UNIT)
    code = SKIPPED if units is None else benchmark.table.code_of.get(units)
    fault = (
        (contestant in benchmark.ended and ended_fault(benchmark, event, row, contestant))
        or unit_fault(benchmark, event)
        or role_fault(benchmark, event)
        or (row is None and row_fault(benchmark, event, row_limits))
        or (contestant is None and contestant_fault(benchmark, event, limits))
        or (code is None and value_fault(benchmark, event, limits))
    )
    if fault:
        return fault
    if row is None:
        row = benchmark.add_row(item, event.repeat, event.cluster)
        delta.rows.append(benchmark.rows[row])
    if contestant is None:
        contestant = benchmark.add_contestant(benchmark.spec.aliases.get(model, model), event.epoch)
        delta.contestants.append(benchmark.contestants[contestant])
    if code is None:
        assert units is not None
        code = benchmark.add_value(units)
        delta.values.append(units)
    return row, contestant, code


def _refuse_ended(
    benchmark: Benchmark, events: EventColumns, row: Index, contestant: Index, codes: Index
) -> list[tuple[int, Fault]]:
    """Refuse new cells of ended runs: set their codes to ABSENT."""
    inside = np.flatnonzero((codes != ABSENT) & np.isin(contestant, list(benchmark.ended)))
    inside = inside[
        _is_new(benchmark, benchmark.scores[row[inside], contestant[inside]], codes[inside], contestant[inside])
    ]
    codes[inside] = ABSENT
    faults = ((k, ended_fault(benchmark, events[k], int(row[k]), int(contestant[k]))) for k in inside.tolist())
    return [(k, fault) for k, fault in faults if fault is not None]


def ended_fault(benchmark: Benchmark, event: EventFields, row: int | None, contestant: int | None) -> Fault | None:
    """Return why a score of an ended run is refused; None if the run has that cell, so that it is a duplicate or a conflict."""
    existing = ABSENT if row is None or row >= len(benchmark.scores) else benchmark.scores[row, contestant]
    if not _is_new(benchmark, existing, SKIPPED if event.score is None else ONE, contestant):
        return None
    model = shorten(event.model)
    reason = f"the run of {model} has ended; send changed scores under a new epoch"
    return Refusal("model", model, reason, benchmark.name)


def _is_new(benchmark: Benchmark, existing: Any, code: Any, contestant: Any) -> Any:  # noqa: ANN401 - one cell, or arrays of cells
    """Return whether a code would enter the matrix where another one is."""
    return (existing == ABSENT) | ((existing == SKIPPED) & (code != SKIPPED) & benchmark.skips_wait(contestant))


def row_fault(
    benchmark: Benchmark, event: EventFields, limits: Limits | None, rows: int = 0, items: int = 0
) -> Fault | None:
    """Return why a new row is refused, when so many rows and items come before it that the state does not have yet."""
    # `limits` is None where none can be met.
    # The first event of a row sets its cluster; the fold ignores later ones, however the log is chunked.
    fault = bad_name(benchmark.name, "item_id", event.item_id) or bad_name(benchmark.name, "cluster", event.cluster)
    if fault is not None:
        return fault
    fault = (
        _unlisted_fault(benchmark, event) or _unweighted_fault(benchmark, event) or _unit_name_fault(benchmark, event)
    )
    if fault is not None or limits is None:
        return fault
    if event.item_id not in benchmark.by_item:
        fault = limit_fault(
            benchmark.name, "item_id", event.item_id, benchmark.items + items, benchmark.bets.most_items
        )
    count = len(benchmark.rows) + rows
    return (
        fault
        or limit_fault(benchmark.name, "item_id", event.item_id, count, limits.rows)
        or budget_fault(benchmark.name, "item_id", event.item_id, limits, count + 1, len(benchmark.contestants))
    )


def _unlisted_fault(benchmark: Benchmark, event: EventFields) -> Fault | None:
    """Return why a score of an item is refused that is not in the declared list."""
    listed = benchmark.declared_items
    if listed is None or event.item_id in listed:
        return None
    fixed = benchmark.spec.order.policy == "committed"
    also = (
        "omit the score: the committed list never changes"
        if fixed
        else "add the item in the next version of the declaration"
    )
    reason = f"{shorten(event.item_id)} is not in the declared list of {len(listed):,} items; correct the id, or {also}"
    return Refusal("item_id", shorten(event.item_id), reason, benchmark.name)


def unit_fault(benchmark: Benchmark, event: EventFields) -> Fault | None:
    """Return why a score is refused whose unit is not the declared one of its item."""
    unit, spec = event.unit, benchmark.spec
    if unit is None:
        return None
    known = unit if spec.units is None else spec.unit_of(event.item_id)
    if known == unit:
        return bad_name(benchmark.name, "unit", unit)
    declared = "has no declared unit" if known == event.item_id else f"is declared to be in unit {shorten(known)}"
    reason = f"{shorten(event.item_id)} {declared}, and comes with unit {shorten(unit)}; give each item one unit"
    return Refusal("unit", shorten(unit), reason, benchmark.name)


def role_fault(benchmark: Benchmark, event: EventFields) -> Fault | None:
    """Return why a score of a frozen answer is refused: it measures the judge, not the model."""
    if event.role != ANCHOR:
        return None
    reason = "the score of a frozen answer measures the judge, not the model; read such runs with `rankwatch drift`"
    return Refusal("role", ANCHOR, reason, benchmark.name)


def _undeclared_unit(benchmark: Benchmark, event: EventFields, delta: BenchmarkDelta) -> str | None:
    """Return why an event of a unit holds the benchmark where none is declared, and what to do; None for any other event."""
    item, unit = event.item_id, event.unit
    if unit is None or unit == item or benchmark.spec.units is not None:
        return None
    benchmark.found_units.add(item, unit)
    if not benchmark.unknown_units:
        benchmark.unknown_units = delta.unknown_units = True
    return UNDECLARED_UNITS


def _unit_name_fault(benchmark: Benchmark, event: EventFields) -> Fault | None:
    """Return why a score of a new item is refused that has the name of a declared unit and is in none."""
    if event.item_id not in benchmark.unit_names or event.item_id in (benchmark.spec.units or {}):
        return None
    return Refusal("item_id", shorten(event.item_id), unit_name_problem(event.item_id), benchmark.name)


def _unweighted_fault(benchmark: Benchmark, event: EventFields) -> Fault | None:
    """Return why a score of a new item is refused that has no weight in the declared ones."""
    if benchmark.spec.weights is None or event.item_id in benchmark.by_item:
        return None
    reason = unweighted_reason(benchmark.spec, event.cluster)
    return None if reason is None else Refusal("cluster", shorten(event.cluster), reason, benchmark.name)


def contestant_fault(benchmark: Benchmark, event: EventFields, limits: Limits, more: int = 0) -> Fault | None:
    """Return why a new contestant is refused, when so many come before it that the state does not have yet."""
    count = len(benchmark.contestants) + more
    return model_fault(benchmark.name, event.model, limits, count) or budget_fault(
        benchmark.name, "model", event.model, limits, len(benchmark.rows), count + 1
    )


def value_fault(benchmark: Benchmark, event: EventFields, limits: Limits, more: int = 0) -> Fault | None:
    """Return why a new score is refused, when so many come before it that the state does not have yet."""
    return limit_fault(benchmark.name, "score", event.score, len(benchmark.table) + more, limits.values)

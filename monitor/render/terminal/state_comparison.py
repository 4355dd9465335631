"""Show how the verdicts of two states compare."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from monitor.store.transfer.comparison import BoardComparison, Difference
from monitor.words.counts import counted
from schemas.records.text import printable
from schemas.results.changes import AnyChange, DriftChange

_LISTED: Final = 20  # differences of a board in the text; the JSON has the first 1,000

_WHAT: Final = {
    "other outcome": "other leader",
    "other record": "same leader, decided at another record",
    "only here": "only in this state",
    "only there": "only in the other state",
}


def as_json(compared: Sequence[BoardComparison]) -> dict[str, Any]:
    """Return the comparison as JSON."""
    boards = [
        {
            "benchmark": each.benchmark,
            "same": each.same,
            "same_times": each.same_times,
            "later": each.later,
            "differ": dict(each.counts),
            "reason": each.reason or None,
            "differences": [
                {"what": what, "here": _dump(here), "there": _dump(there)} for what, here, there in each.differences
            ],
        }
        for each in compared
    ]
    return {"differs": any(each.differs for each in compared), "boards": boards}


def _dump(change: AnyChange | None) -> dict[str, Any] | None:
    return None if change is None else change.as_dict()


def as_text(compared: Sequence[BoardComparison]) -> str:
    """Return the comparison as lines: the counts, then the boards that differ."""
    same, times, later = (sum(getattr(each, name) for each in compared) for name in ("same", "same_times", "later"))
    differ = sum(sum(each.counts.values()) for each in compared)
    counts = f"{counted(same, 'verdict')} with the same leader and id, {times:,} of them with the same time; {differ:,} differ"
    lines = [f"{counted(len(compared), 'board')}: {counts}"]
    if later:
        lines.append(f"Not compared: {counted(later, 'verdict')} of records that only one state has folded")
    for board in compared:
        lines += _board(board)
    return "\n".join(lines)


def _board(board: BoardComparison) -> Iterator[str]:
    name = printable(board.benchmark)
    if board.reason:
        yield f"{name}: not compared: {board.reason}"
    elif board.differs:
        counts = ", ".join(f"{count:,} {_WHAT[what]}" for what, count in board.counts.items() if count)
        yield f"{name}: {board.same:,} the same; {counts}"
        yield from map(_difference, board.differences[:_LISTED])
        if (more := sum(board.counts.values()) - _LISTED) > 0:
            yield f"  ... and {more:,} more; --format json lists up to 1,000"


def _difference(difference: Difference) -> str:
    change = difference.here or difference.there
    assert change is not None
    if isinstance(change, DriftChange):
        named = f"{printable(change.model)} at {printable(change.run)}, {change.kind}"
    else:
        named = f"{printable(change.model_a)} / {printable(change.model_b)}, {change.procedure} {change.kind}"
    here, there = (_state(each) for each in (difference.here, difference.there))
    return f"  {named}: {here} here, {there} there"


def _state(change: AnyChange | None) -> str:
    if change is None:
        return "not reached"
    if isinstance(change, DriftChange):
        return f"since {printable(change.start or change.run)} (id {change.id})"
    leader = {"a": change.model_a, "b": change.model_b, "tie": "a tie", None: "ended"}[change.after]
    return f"{printable(leader)} (id {change.id})"

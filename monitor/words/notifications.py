"""The titles and lines of notifications."""

from collections.abc import Mapping, Sequence
from typing import Final

from monitor.words.counts import counted
from monitor.words.drift import change_arguments
from monitor.words.order import SCOPES, level
from monitor.words.points import points, size
from schemas.records.text import Sentence, shorten
from schemas.results.changes import DriftChange, VerdictChange

_NAMED: Final = 3  # changes that a title names; the lines name more
_NAME_LENGTH: Final = 60
_LINES: Final = 10


def decided(changes: Sequence[VerdictChange], noun: str) -> Sentence:
    """Return the title of some decisions; `noun` is what one of them is called."""
    named = ", ".join(map(_clause, changes[:_NAMED]))
    more = f", and {len(changes) - _NAMED:,} more" if len(changes) > _NAMED else ""
    return f"{counted(len(changes), noun)} on {short(changes[0].benchmark)}: {named}{more}"


def lines(changes: Sequence[VerdictChange], ranks: Mapping[str, str] | None) -> list[Sentence]:
    """Return a line for each of the first decisions, with the ranks of the models where they are known."""
    return first([_line(change, ranks or {}) for change in changes[:_LINES]], len(changes))


def sentences(changes: Sequence[VerdictChange]) -> list[Sentence]:
    """Return the sentences of the first changes, and how many more there are."""
    return first([change.sentence for change in changes[:_LINES]], len(changes))


def first(texts: Sequence[Sentence], count: int) -> list[Sentence]:
    """Return the first lines, and how many more there are."""
    shown = [*texts[:_LINES]]
    return shown if count <= _LINES else [*shown, f"and {count - _LINES:,} more"]


def withdrawn(board: str, count: int) -> Sentence:
    """Return the title of decisions that no longer count."""
    return f"{counted(count, 'decision')} on {short(board)} no longer {'counts' if count == 1 else 'count'}"


def superseded(board: str, count: int) -> Sentence:
    """Return the title of decisions on scores that were replaced."""
    return f"{counted(count, 'decision')} on {short(board)} {'is' if count == 1 else 'are'} superseded"


def goal_met(board: str, goal: str, reason: Sentence) -> Sentence:
    """Return the title of a goal that is met."""
    return f"Goal met on {short(board)} ({goal}): {reason}"


def ties_broken(board: str) -> Sentence:
    """Return the title of a ranking whose neighbours are all decided."""
    return f"Every tie on {short(board)} is broken: each rank is decided against the next"


def settled(board: str) -> Sentence:
    """Return the title of a ranking that is settled."""
    return f"The order of all models on the items of {short(board)} is settled"


def held(board: str, reason: Sentence | None) -> tuple[Sentence, list[Sentence]]:
    """Return the title and the lines of a board whose verdicts are held."""
    return f"Results of {short(board)} arrive, and its verdicts are held", [f"The reason: {reason}."]


def stalled(board: str, seconds: float, fewest: int, items: int) -> tuple[Sentence, list[Sentence]]:
    """Return the title and the lines of a board to which nothing comes."""
    return f"No event of {short(board)} for {duration(seconds)}, and it is incomplete", [
        "The evaluation, or the delivery of its results, has stopped.",
        f"The model with the fewest has {fewest:,} of {counted(items, 'item')}.",
    ]


def drifted(change: DriftChange, server: str | None) -> tuple[Sentence, list[Sentence]]:
    """Return the title and the lines of what a monitor of a sentinel reports, for a command that reaches the service that reports it."""
    if change.start is None:
        return f"{change.sentence}.", []
    lines = [f"The change lies between {short(change.after_run or '')} and {short(change.last_start or '')}."]
    if change.judge_moved is None:
        lines.append(
            "A judge that moves looks the same: judge frozen answers in every run (role: anchor) to separate the two."
        )
    elif change.of == "model":
        judge = (
            "has moved too, so the size is on its scale of today"
            if change.judge_moved
            else "scores its frozen answers as before"
        )
        lines.append(f"The judge {judge}.")
    own = change_arguments(change.benchmark, change.model, server)
    lines.append(f"Was it you? Announce it: rankwatch drift change {own}")
    return f"{change.sentence}.", lines


def digest(notifications: int, boards: int, title: str) -> Sentence:
    """Return the title of several notifications in one."""
    return f"{counted(notifications, 'notification')} on {counted(boards, 'benchmark')}: {title}"


def trial() -> tuple[Sentence, list[Sentence]]:
    """Return the title and the lines of a notification that tries the way."""
    return "Trial: 1 new decision on example: model-a beats model-b (+1.2 points)", [
        "This is a trial of `rankwatch notify`; nothing was decided.",
        f"model-a (rank 1) beats model-b (rank 2) by 1.2 points on 4,000 shared items; decided family-wise {level(0.05)}.",
    ]


def _sides(change: VerdictChange) -> tuple[str, str, float]:
    """Return who leads, who trails, and the gap."""
    gap = change.evidence.gap
    if change.after == "b":
        return change.model_b, change.model_a, -gap
    return change.model_a, change.model_b, gap


def _clause(change: VerdictChange) -> str:
    leader, trailer, gap = _sides(change)
    verb = "now leads" if change.kind == "reversed" else "beats"
    return f"{short(leader)} {verb} {short(trailer)} ({points(gap, 1)} points)"


def _line(change: VerdictChange, ranks: Mapping[str, str]) -> str:
    leader, trailer, gap = _sides(change)

    def ranked(name: str) -> str:
        rank = ranks.get(name)
        return short(name) if rank is None else f"{short(name)} (rank {rank})"

    verb = "now leads" if change.kind == "reversed" else "beats"
    epochs = sorted({change.epoch_a, change.epoch_b})
    of = f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {epochs[0]} and {epochs[1]}"
    items = counted(change.evidence.n, "shared item")
    how = ""
    if change.kind == "decided" and change.alpha is not None:
        how = f"; decided {SCOPES[change.procedure]} {level(change.alpha)}"
    return f"{ranked(leader)} {verb} {ranked(trailer)} by {size(gap, 1)} points on {items}, {of}{how}."


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> duration(1_830), duration(9)
    ('30 minutes', '9 seconds')
    """
    return counted(int(seconds // 60), "minute") if seconds >= 60 else counted(int(seconds), "second")


def short(name: str) -> str:
    """Return a name that leaves room for others."""
    return shorten(name, _NAME_LENGTH)

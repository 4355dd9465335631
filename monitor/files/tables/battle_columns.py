"""Match the columns of a table, or the fields of JSON lines, to the fields of a battle.

Arena files (``model_a``, ``model_b``, ``winner``), FastChat's pairwise judgments (``model_1``, ``model_2``, ``g1_winner``, ``g2_winner``:
the same pair in both orders) and tables with ``left`` and ``right`` differ in names only.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from monitor.files.formats.choices import NONE, SWAP_AGREE, Choices
from monitor.files.tables.columns import USUAL, ColumnError, Columns, event_of, find_battle, flatten
from schemas.records.decode import repeated_fault
from schemas.records.events import BattleFields, EventFields
from schemas.records.lenient import read_index, read_name
from schemas.records.names import MAX_NAME_LENGTH
from schemas.records.repeated import Repeating
from schemas.records.text import Fault, shorten

_SIDES: Final = (("model_a", "model_b"), ("model_1", "model_2"), ("left", "right"), ("model_x", "model_y"))
"""Columns of the two models; of several the first are read."""
_MOST_COLUMNS: Final = 100_000
_PROMPTS: Final = ("item_id", "question_id", "prompt_id", "prompt", "conversation_id", "instruction", "question", "id")
_JUDGES: Final = ("cluster", "judge", "judge_id", "worker", "voter", "annotator", "user", "language")
_PLACED: Final = frozenset({"left", "right"})  # columns that are places: the model on the left was shown first
_UNDECIDED: Final = frozenset({"inconsistent", "error"})
"""Words for a verdict that changed with the order: a tie where only the two together are given, and no result of one game."""

_TIES: Final = frozenset(
    {"tie", "draw", "tie (bothbad)", "tie (both bad)", "both_bad", "bothbad", "inconsistent", "error"}
)
_RESULTS: Final = ("a", "b", "tie")
_TIES_NOTE: Final = "both bad, and a verdict that changed with the order (inconsistent), count as ties"

_GAMES: Final = (("g1_winner", "a"), ("g2_winner", "b"))
"""FastChat's two games of a pair, and the model that was shown first."""

_MOST_WINNERS: Final = 1_000_000  # results of which the winner is remembered, each with its two models


class _Names(NamedTuple):
    """The columns of a battle."""

    a: str
    b: str
    winners: tuple[tuple[str, str | None], ...]
    """Columns of results, each with the model that was shown first, where that is known."""
    item: str
    judge: str | None
    benchmark: str | None
    position: str | None
    repeat: str | None
    turn: str | None


class BattleColumns:
    """The columns of a table of battles."""

    def __init__(self, names: Sequence[str], choices: Choices, model: str | None) -> None:
        if model is not None:
            raise ColumnError("a file of battles holds two models in each row; omit NAME= in front of the path")
        self._benchmark, self._agree = choices.benchmark, choices.swap_rule == SWAP_AGREE
        self._winners: dict[tuple[Any, Any, Any], Any] = {}
        self._names = _find(names, choices)
        found = self._names
        if found.benchmark is None and self._benchmark is None:
            raise ColumnError(
                f"no column for the benchmark in {', '.join(map(shorten, names))}; name the benchmark with --benchmark NAME"
            )
        pairs = {
            "item_id": found.item,
            "model_a": found.a,
            "model_b": found.b,
            "winner": " and ".join(name for name, _ in found.winners),
            "judge": found.judge,
            "benchmark": found.benchmark,
            "position": found.position,
            "turn": found.turn,
        }
        picked = ", ".join(f"{field} = {shorten(name)}" for field, name in pairs.items() if name is not None)
        self.description = f"battles: {picked}; {self._position_note}; {_TIES_NOTE}"

    @property
    def _position_note(self) -> str:
        found = self._names
        if found.position is not None:
            return "the position column names the model shown first"
        if len(found.winners) > 1:
            rule = (
                "are one battle, a tie unless both agree"
                if self._agree
                else "count by their mean (--swap-rule agree: a tie unless both agree)"
            )
            return (
                f"{shorten(found.a)} was shown first in game 1, and second in game 2; the two games of a prompt {rule}"
            )
        if found.a in _PLACED:
            return f"{shorten(found.a)} counts as shown first"
        return "which answer was shown first is not known (a column position, with a or b, names it)"

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        found = self._names
        every = (found.item, found.a, found.b, *(name for name, _ in found.winners), found.judge, found.benchmark)
        return [name for name in (*every, found.position, found.repeat, found.turn) if name is not None]

    @property
    def choices_used(self) -> tuple[str, ...]:
        """The choices on the command line that the table uses."""
        return ("cluster",) if self._names.benchmark is not None else ("cluster", "benchmark")

    def usual(self, rows: Sequence[Mapping[str, Any]]) -> list[BattleFields] | None:
        """Return the battles of rows as `events` does, column by column; None if a row needs a closer look, or may hold two games."""
        found = self._names
        ((column, first), *games) = found.winners
        if games or found.benchmark is not None or found.repeat is not None or any("." in name for name in self.names):
            return None
        items, a, b, values = ([row.get(name) for row in rows] for name in (found.item, found.a, found.b, column))
        judges = [None] * len(rows) if found.judge is None else [row.get(found.judge) or None for row in rows]
        shown = [first] * len(rows) if found.position is None else [row.get(found.position) or first for row in rows]
        benchmark = self._benchmark
        named = {*a, *b, *items} if all(map(_are_text, (items, a, b, values))) else {""}
        if (
            benchmark is None
            or not all(map(_fits, named | {benchmark}))
            or not _are_text([each for each in judges if each is not None])
        ):
            return None
        known, winners = self._winners, []
        for key in zip(values, a, b, strict=True):
            if (winner := known.get(key)) is None:
                if len(known) >= _MOST_WINNERS:
                    known.clear()
                winner = known[key] = _winner(*key, found)
            winners.append(winner)
        if (
            not {*winners} <= {"a", "b", "tie"}
            or not {*shown} <= {None, "a", "b"}
            or not all(map(_fits, {*judges} - {None}))
        ):
            return None
        return [
            BattleFields(
                benchmark=benchmark, item_id=item, model_a=x, model_b=y, winner=winner, cluster=judge, position=place
            )
            for item, x, y, winner, judge, place in zip(items, a, b, winners, judges, shown, strict=True)
        ]

    def events(self, row: Mapping[str, Any]) -> Iterator[EventFields | Fault]:
        """Return the battles of a row: one, or one for each of two games."""
        found = self._names
        a, b = read_name(row.get(found.a)), read_name(row.get(found.b))
        item = read_name(row.get(found.item))
        if found.turn is not None and row.get(found.turn) is not None:
            item = f"{item}/{read_name(row[found.turn])}"
        judge = row.get(found.judge) if found.judge is not None else None
        common = {
            "benchmark": read_name(row.get(found.benchmark)) if found.benchmark is not None else self._benchmark,
            "item_id": item,
            "model_a": a,
            "model_b": b,
            "cluster": read_name(judge[0] if isinstance(judge, list) and judge else judge) or None,
            "repeat": read_index(row.get(found.repeat)) if found.repeat is not None else 0,
        }
        position = row.get(found.position) if found.position is not None else None
        for column, value, first in self._games(row, a, b):
            if len(found.winners) > 1 and _is_undecided(value):
                reason = f"{column} is {shorten(value)}: the judge gave no result; the {'pair' if self._agree else 'game'} is omitted"
                yield Fault(column, shorten(value), reason, str(common["benchmark"]))
                continue
            battle = {**common, "winner": _winner(value, a, b, found), "position": position or first}
            yield event_of(
                {name: each for name, each in battle.items() if each is not None or name == "item_id"}, BattleFields
            )

    def _games(self, row: Mapping[str, Any], a: object, b: object) -> list[tuple[str, Any, str | None]]:
        """Return the results of a row, each with its column and the model shown first; one of two games if they have to agree."""
        games = [(column, row.get(column), first) for column, first in self._names.winners]
        if not self._agree or len(games) < 2:
            return games
        (first, one, _), (second, other, _) = games
        if _is_undecided(one) or _is_undecided(other):
            return [(first, one, None) if _is_undecided(one) else (second, other, None)]
        winners = [_winner(value, a, b, self._names) for value in (one, other)]
        if winners[1] not in _RESULTS:
            return [(second, other, None)]
        return [(first, one if winners[0] == winners[1] or winners[0] not in _RESULTS else "tie", None)]


def columns_of(
    names: Sequence[str],
    choices: Choices,
    model: str | None,
    objects: Collection[str] = (),
    first: Mapping[str, Any] | None = None,
) -> Columns | BattleColumns:
    """Return the columns of a table of battles, or of scores; see `Columns`."""
    if len(names) > _MOST_COLUMNS:
        raise ColumnError(
            f"the table has {len(names):,} columns, more than {_MOST_COLUMNS:,}; write a row for each score"
        )
    if not choices.columns and is_battle(names):
        return BattleColumns(names, choices, model)
    return Columns(names, choices, model, objects, first)


def repeated_cell(row: dict[str, Any], columns: Columns | BattleColumns) -> Fault | None:
    """Return the fault of a decoded object that has twice what one of the columns reads."""
    twice, objects = set[str](), [("", row)]
    while objects:
        prefix, fields = objects.pop()
        if isinstance(fields, Repeating):
            twice |= {f"{prefix}{name}" for name in fields.repeated}
        objects += [(f"{prefix}{name}.", value) for name, value in fields.items() if isinstance(value, dict)]
    read = {name[:k] for name in columns.names for k, letter in enumerate(f"{name}.") if letter == "."} if twice else ()
    name = min(twice.intersection(read), default=None)
    benchmark = next((event.benchmark for event in columns.events(flatten(row))), None) if name else None
    return None if name is None else repeated_fault(name, benchmark)


def is_battle(names: Collection[str]) -> bool:
    """Return whether rows with these columns are battles that are read.

    >>> is_battle(["question_id", "model_a", "model_b", "winner"]), is_battle(["item_id", "model", "score"])
    (True, False)
    """
    results = "winner" in names or all(game in names for game, _ in _GAMES)
    return results and any(set(sides) <= set(names) for sides in _SIDES) and any(name in names for name in _PROMPTS)


def _are_text(values: Collection[object]) -> bool:
    return {*map(type, values)} <= {str}


def _fits(name: str | None) -> bool:
    """Return whether a name has a length that needs no closer look."""
    return name is not None and 0 < len(name) <= MAX_NAME_LENGTH


def _find(names: Sequence[str], choices: Choices) -> _Names:
    def first(usual: Sequence[str]) -> str | None:
        return next((name for name in usual if name in names), None)

    a, b = next(sides for sides in _SIDES if set(sides) <= set(names))
    if {"left", "right"} <= set(names):
        a, b = "left", "right"  # names, where model_x and model_y are numbers
    games = tuple(game for game in _GAMES if game[0] in names)
    shown = "a" if a in _PLACED else None
    item = first(_PROMPTS)
    assert item is not None, "is_battle has found one"
    judge = first(_JUDGES) if choices.cluster is None else choices.cluster
    if judge is not None and judge != NONE and judge not in names:
        raise ColumnError(f"{shorten(judge)} is no column of {', '.join(map(shorten, names))}; correct --cluster")
    return _Names(
        a,
        b,
        games if len(games) == len(_GAMES) else (("winner", shown),),
        item,
        None if judge == NONE else judge,
        first(USUAL["benchmark"]),
        first(("position",)),
        first(("repeat",)),
        first(("turn",)) if len(games) == len(_GAMES) else None,
    )


def _is_undecided(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in _UNDECIDED


def _winner(value: object, a: object, b: object, names: _Names) -> object:
    """Return a result as a, b or tie; a value that is none of them is left for the check to refuse."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    for winner, model, column in (("a", a, names.a), ("b", b, names.b)):
        if text in {model, column, f"model_{winner}", f"assistant_{winner}"} or text.lower() == winner:
            return winner
    return "tie" if text.lower() in _TIES else value


def refusal_of(names: Sequence[str]) -> str | None:
    """Return why battles with these columns are not read, or None if they are, or are none."""
    return None if is_battle(names) else find_battle(names)

"""Keep what operators have done with the boards of a partition: archived, deleted, begun again, renamed, freed of some records.

All of it comes from records of the log, so every fold of the log has it at the same place: see docs/decisions/0024-life-of-a-board.md.
"""

import shlex
from collections.abc import Collection, Iterable, Iterator

from schemas.records.boards import BoardEntry, Undo
from schemas.records.operations import BoardChange
from schemas.records.text import Refusal, shorten


class Boards:
    """The boards of a partition that are not as they began.

    >>> boards = Boards()
    >>> boards.apply(BoardChange("delete", "m"), 7, decided=2)
    >>> boards.refusal("m").reason
    'm was deleted at offset 7, so it takes no records; `rankwatch board reopen m` begins it again, as generation 2'
    >>> boards.apply(BoardChange("reopen", "m"), 9)
    >>> boards.refusal("m"), boards.of("m").generation
    (None, 2)
    """

    def __init__(self, entries: Iterable[BoardEntry] = ()) -> None:
        self._entries = {each.benchmark: each for each in entries}
        self._changed: set[str] = set()

    def __bool__(self) -> bool:
        """Return whether any board is not as it began."""
        return bool(self._entries)

    def __iter__(self) -> Iterator[BoardEntry]:
        """Iterate over the entries."""
        return iter(self._entries.values())

    def of(self, benchmark: str) -> BoardEntry | None:
        """Return the entry of a benchmark; None for a board that is as it began."""
        return self._entries.get(benchmark)

    def refusal(self, benchmark: str) -> Refusal | None:
        """Return why the records of a benchmark are refused, or None."""
        entry = self._entries.get(benchmark)
        if entry is None or entry.state == "open":
            return None
        name, argument = shorten(benchmark), shorten(shlex.quote(benchmark))
        if entry.state == "archived":
            ended, again = f"is archived from offset {entry.since:,} on", f"restore {argument}` opens it again"
        else:
            ended = f"was deleted at offset {entry.since:,}"
            again = f"reopen {argument}` begins it again, as generation {entry.generation + 1:,}"
        reason = f"{name} {ended}, so it takes no records; `rankwatch board {again}"
        return Refusal("benchmark", name, reason, benchmark)

    def fault(self, change: BoardChange, models: Collection[str] | None) -> Refusal | None:
        """Return why a change is refused, or None; `models`: the names of the benchmark's models, None if the partition lacks it."""
        entry = self._entries.get(change.benchmark) or BoardEntry(change.benchmark)
        problem = _problem(change, entry, models)
        return None if problem is None else Refusal("board", change.board, problem, change.benchmark)

    def apply(
        self, change: BoardChange, offset: int, decided: int = 0, *, scored: bool = False, late: Iterable[str] = ()
    ) -> None:
        """Apply a change, whose record is at an offset."""
        entry = self._entries.get(change.benchmark) or BoardEntry(change.benchmark)
        entry = entry._replace(late=list(dict.fromkeys([*entry.late, *late])))
        entry = _applied(entry, change, offset, decided, scored=scored)
        self._changed.add(entry.benchmark)
        if entry.clear:
            self._entries.pop(entry.benchmark, None)
        else:
            self._entries[entry.benchmark] = entry

    def changed(self) -> dict[str, BoardEntry]:
        """Return the entries that have changed since the last call; one with nothing to remember is `clear`."""
        changed, self._changed = self._changed, set()
        return {name: self._entries.get(name, BoardEntry(name)) for name in changed}


def _applied(entry: BoardEntry, change: BoardChange, offset: int, decided: int, *, scored: bool) -> BoardEntry:
    """Return the entry after a change."""
    withdrawn, generation = entry.withdrawn + decided, entry.generation + 1
    match change.board:
        case "archive":
            after = entry._replace(state="archived", since=offset)
        case "restore":
            after = entry._replace(state="open", since=entry.begun)
        case "delete":
            after = BoardEntry(entry.benchmark, "deleted", offset, entry.generation, withdrawn, "", offset)
            after = after._replace(scored=entry.scored or scored, late=entry.late)
        case "reopen":
            after = entry._replace(state="open", since=offset, generation=generation, begun=offset)
        case "rename":
            after = _renamed(entry, change)
        case "undo":
            undo = Undo(change.producer, change.since, change.model, entry.first, change.kept)
            begun = entry._replace(state="open", since=offset, generation=generation, begun=offset)
            after = begun._replace(withdrawn=withdrawn, undo=undo)
        case "undone":
            after = entry._replace(undo=entry.undo and entry.undo._replace(done=True))
    return after


def _renamed(entry: BoardEntry, change: BoardChange) -> BoardEntry:
    title, model = change.title or "", change.model
    if model is None:
        return entry._replace(title="" if title == change.benchmark else title)
    others = {name: shown for name, shown in entry.titles.items() if name != model}
    return entry._replace(titles=others if title in {"", model} else others | {model: title})


def _problem(change: BoardChange, entry: BoardEntry, models: Collection[str] | None) -> str | None:
    """Return what of a board does not allow a change, or None."""
    name, action, problem = shorten(change.benchmark), change.board, None
    if action == "reopen" and entry.state != "deleted":
        problem = f"{name} is not deleted; only a deleted board is begun again"
    elif action == "undone" and entry.unfinished is None:
        problem = f"{name} has no undo that is unfinished"
    elif action in {"reopen", "undone"}:
        pass
    elif models is None and (entry.state == "deleted" or entry.unfinished is None):
        problem = f"{name} has no board; `rankwatch board list` lists them"
    elif action == "archive" and entry.state == "archived":
        problem = f"{name} is archived already, from offset {entry.since:,} on"
    elif action == "restore" and entry.state != "archived":
        problem = f"{name} is not archived; only an archived board is restored"
    elif action == "undo":
        problem = _undo_problem(change, entry, models or ())
    elif action == "rename" and change.model is not None:
        problem = _title_problem(change.model, change.title, entry, models or ())
    return problem


def _undo_problem(change: BoardChange, entry: BoardEntry, models: Collection[str]) -> str | None:
    name = shorten(change.benchmark)
    if entry.state == "archived":
        return f"{name} is archived, so it takes no records; restore it first"
    if entry.unfinished is not None:
        return f"{name} is still being copied without {entry.unfinished.describe()}; let that end first"
    if (change.producer is None) == (change.model is None):
        return "an undo names a producer, or a model"
    if change.model is not None and change.model not in models:
        return f"{name} has no model {shorten(change.model)}; use the name that its records have"
    return None


def _title_problem(model: str, title: str | None, entry: BoardEntry, models: Collection[str]) -> str | None:
    if model not in models:
        return f"{shorten(entry.benchmark)} has no model {shorten(model)}; use the name that its records have"
    if title is None or title == model:
        return None
    other = next((each for each, shown in entry.titles.items() if shown == title and each != model), None)
    if title in models:
        return f"{shorten(title)} is the name of another model of {shorten(entry.benchmark)}; use another title"
    return None if other is None else f"{shorten(title)} is the title of {shorten(other)}; use another title"

"""Keep what operators have done with the boards of a partition: archived, deleted, begun again, renamed.

All of it comes from records of the log, so every fold of the log has it at the same place: see docs/decisions/0024-life-of-a-board.md.
"""

import shlex
from collections.abc import Iterable, Iterator

from monitor.engine.state.delta import BoardEntry, Refusal
from schemas.operations import BoardChange
from schemas.text import shorten


class Boards:
    """The boards of a partition that are not as they began.

    Examples
    --------
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

    def fault(self, change: BoardChange, *, exists: bool) -> Refusal | None:
        """Return why a change is refused, or None; `exists`: whether the partition has this benchmark."""
        entry = self._entries.get(change.benchmark) or BoardEntry(change.benchmark)
        name, problem = shorten(change.benchmark), None
        if change.board == "reopen":
            if entry.state != "deleted":
                problem = f"{name} is not deleted; only a deleted board is begun again"
        elif not exists:
            problem = f"{name} has no board; `rankwatch board list` lists them"
        elif change.board == "archive" and entry.state == "archived":
            problem = f"{name} is archived already, from offset {entry.since:,} on"
        elif change.board == "restore" and entry.state != "archived":
            problem = f"{name} is not archived; only an archived board is restored"
        return None if problem is None else Refusal("board", change.board, problem, change.benchmark)

    def apply(self, change: BoardChange, offset: int, decided: int = 0) -> None:
        """Apply a change, whose record is at an offset; `decided`: the family-wise decisions that a deletion withdraws."""
        entry = self._entries.get(change.benchmark) or BoardEntry(change.benchmark)
        match change.board:
            case "archive":
                entry = entry._replace(state="archived", since=offset)
            case "restore":
                entry = entry._replace(state="open", since=offset)
            case "delete":
                entry = BoardEntry(
                    entry.benchmark, "deleted", offset, entry.generation, entry.withdrawn + decided, "", offset
                )
            case "reopen":
                entry = entry._replace(state="open", since=offset, generation=entry.generation + 1)
            case "rename":
                title = "" if change.title in {None, change.benchmark} else change.title or ""
                entry = entry._replace(title=title)
        self._changed.add(entry.benchmark)
        if entry.clear:
            self._entries.pop(entry.benchmark, None)
        else:
            self._entries[entry.benchmark] = entry

    def changed(self) -> dict[str, BoardEntry]:
        """Return the entries that have changed since the last call; one with nothing to remember is `clear`."""
        changed, self._changed = self._changed, set()
        return {name: self._entries.get(name, BoardEntry(name)) for name in changed}

"""What is remembered of the board of a benchmark: what operators did with it, and why its records are set aside."""

import json
from typing import Literal, NamedTuple

from schemas.records.text import Sentence, shorten, utc_text


class Suspect(NamedTuple):
    """A benchmark with unreadable records, or one that is set aside."""

    benchmark: str
    weight: int = 0  # the sum of its unreadable records, see `monitor.engine.state.quarantine`
    since: int | None = None  # offset of the first record that is set aside; None while none is
    reason: Sentence = ""  # why it is set aside
    # records, last: how many records are set aside (packed ones by their events), and the offset of the last one
    records: int = 0
    last: int = 0

    @property
    def clear(self) -> bool:
        """Whether nothing has to be remembered."""
        return self.since is None and self.weight == 0


class Undo(NamedTuple):
    """What the last undo of a board withdraws: the events of a producer since a time, or of a model."""

    producer: str | None = None
    since: int | None = None  # milliseconds since 1970; None: all events of the producer
    model: str | None = None
    former: int = 0  # offset from which on the log has the records of the generation before
    kept: int = 0  # how many of its events stay, at least
    done: bool = False  # whether all records that stay have been copied

    def same(self, other: "Undo") -> bool:
        """Return whether another undo withdraws the same."""
        return self[:3] == other[:3]

    def describe(self) -> str:
        """Return which events are withdrawn.

        >>> Undo("ci", 1_767_225_600_000).describe(), Undo(model="ash").describe()
        ('the events of producer ci since 2026-01-01T00:00:00Z', 'the events of model ash')
        """
        if self.producer is None:
            return f"the events of model {shorten(self.model or '')}"
        time = "" if self.since is None else f" since {utc_text(self.since)}"
        return f"the events of producer {shorten(self.producer)}{time}"


class BoardEntry(NamedTuple):
    """What operators have done with the board of a benchmark."""

    benchmark: str
    # a deleted board has no benchmark; its name takes no records until it is begun again
    state: Literal["open", "archived", "deleted"] = "open"
    # offset of the record that archived or deleted it; of an open board, of the record that began it, archived meanwhile or not
    since: int = 0
    generation: int = 1  # how often the name was begun
    withdrawn: int = 0  # family-wise decisions that held when earlier generations ended
    title: str = ""  # the name to show; if empty, the benchmark's own
    deleted: int | None = None  # offset of the last deletion
    begun: int = 0  # offset of the record that began this generation; 0 for the first one
    undo: Undo | None = None  # what the undo has withdrawn that began this generation
    titles: dict[str, str] = {}  # noqa: RUF012 - never changed in place
    scored: bool = False  # whether a deleted board of the name had scores
    late: list[str] = []  # noqa: RUF012 - never changed in place

    @classmethod
    def parse(cls, stored: bytes | str) -> "BoardEntry":
        """Return the entry that is stored as JSON; earlier versions stored when an open board was restored."""
        entry = cls(*json.loads(stored))
        entry = entry._replace(since=entry.begun) if entry.state == "open" else entry
        return entry if entry.undo is None else entry._replace(undo=Undo(*entry.undo))

    @property
    def clear(self) -> bool:
        """Whether nothing has to be remembered: the board is as it would be without the records that changed it."""
        return self.state == "open" and self.generation == 1 and not self.title and not self.titles

    @property
    def first(self) -> int:
        """Offset from which on the log has the records of this generation."""
        return max(self.begun, self.deleted or 0)

    @property
    def unfinished(self) -> Undo | None:
        """The undo whose copies have not ended, or None."""
        return None if self.undo is None or self.undo.done else self.undo

    @property
    def knows_scores(self) -> bool:
        """Whether scores of an earlier generation are known to those who declare; the copies of an undo repeat what was declared."""
        return self.unfinished is None and (self.scored or self.undo is not None)

    @property
    def note(self) -> str | None:
        """What a reader of the report has to know, or None.

        >>> BoardEntry("m", "archived", 7).note
        'archived: no record from offset 7 on counts'
        >>> BoardEntry("m", generation=2, withdrawn=3, deleted=9).note.partition(", and ")[2]
        '3 family-wise decisions were withdrawn; its alpha was spent'
        """
        notes = []
        if self.state == "archived":
            notes.append(f"archived: no record from offset {self.since:,} on counts")
        if self.generation > 1:
            count = f"{self.withdrawn:,} family-wise decision{' was' if self.withdrawn == 1 else 's were'} withdrawn"
            if self.undo is None:
                ended = f"an earlier board of this name was deleted at offset {self.deleted or 0:,}"
            else:
                ended = f"{self.undo.describe()} were withdrawn at offset {self.begun:,}"
            notes.append(f"generation {self.generation:,}: {ended}, and {count}; its alpha was spent")
        if self.unfinished is not None:
            notes.append(
                "the records that stay are still being copied, so it is partial; `rankwatch board undo` continues that"
            )
        return "; ".join(notes) or None

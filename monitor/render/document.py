"""A document: headings, tables, notes and figures. Each surface writes these four; what they hold is declared once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

Kind = Literal["text", "name", "number", "sign", "drawing"]
"""What a column holds: a name may be shortened, a number is set to the right, a sign to the middle."""


class Cell(NamedTuple):
    """A text, and what follows it; tones are those of `signs`."""

    text: str
    tone: str = ""
    more: str = ""
    more_tone: str = ""
    words: str = ""  # what a sign means, for those who do not see it
    svg: str = ""  # a drawing ahead of the text, where there is room for one
    second: str = ""  # a second name, as in: text > second
    relation: str = ""


class Column(NamedTuple):
    """A head, and a cell a row; columns of one group share a head above theirs."""

    head: str
    cells: Sequence[Cell]
    kind: Kind = "text"
    group: str = ""
    about: str = ""


@dataclass(frozen=True)
class Table:
    """Columns by key; the one of kind `name` heads the rows."""

    columns: dict[str, Column]
    title: str = ""
    rules: frozenset[int] = frozenset()  # rows with a line below
    below: Mapping[int, str] = field(default_factory=dict)  # a sentence below a row
    omit: Sequence[str] = ()  # the columns that a narrow surface leaves out, first to last
    cards: bool = False  # a page shows each row on its own

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return max((len(column.cells) for column in self.columns.values()), default=0)

    def of(self, keys: Iterable[str]) -> "Table":
        """Return the table with some of the columns."""
        return replace(self, columns={key: self.columns[key] for key in keys if key in self.columns})


class Note(NamedTuple):
    """A sentence, with the sign and the word ahead of it."""

    text: str
    label: str = ""
    sign: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Notes:
    """Notes of one kind: the lines of a result, what to know first, facts, signs, or plain sentences."""

    notes: Sequence[Note]
    kind: Literal["result", "warnings", "facts", "signs", "reasons", "plain"] = "plain"


@dataclass(frozen=True)
class Heading:
    """A heading; one of level 2 begins a benchmark."""

    text: str
    level: int = 3


@dataclass(frozen=True)
class Figure:
    """A drawing, with what it shows, its key as (class, words), and its numbers as a table; or one of lines of text."""

    svg: str
    title: str
    lines: Sequence[str] = ()
    key: Sequence[tuple[str, str]] = ()
    table: Table | None = None


Element = Heading | Table | Notes | Figure


def texts(cells: Iterable[str]) -> list[Cell]:
    """Return plain cells."""
    return [Cell(each) for each in cells]


def numbers(head: str, cells: Iterable[str]) -> Column:
    """Return a column of numbers."""
    return Column(head, texts(cells), "number")


def plain(*sentences: str, tone: str = "") -> Notes:
    """Return plain sentences."""
    return Notes([Note(each, tone=tone) for each in sentences])

"""Show text from outside on one line, and what is wrong with a record or a file that is read."""

import re
from datetime import UTC, datetime
from typing import Final, NamedTuple, NotRequired

import msgspec
from typing_extensions import TypedDict

Sentence = str
"""Text for people. Programs read the facts next to it: a test finds code that compares, searches or cuts a sentence."""

_SHORT_LENGTH: Final = 80


def printable(text: str) -> str:
    r"""Escape every character that is not printable: controls, line breaks, bidirectional marks, lone surrogates.

    >>> printable("a\x1b[31mb\u202e")
    'a\\x1b[31mb\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shorten(value: object, length: int = _SHORT_LENGTH) -> str:
    """Show a value in at most `length` characters of one line, with the full length if it is cut.

    >>> shorten("m" * 1_000, 5)
    'mmmmm... (1,000 characters)'
    """
    text = value if isinstance(value, str) else repr(value)
    return printable(text if len(text) <= length else f"{text[:length]}... ({len(text):,} characters)")


def utc_text(milliseconds: int) -> str:
    """Return a time as RFC 3339 has it.

    >>> utc_text(1_767_225_600_250)
    '2026-01-01T00:00:00.250Z'
    """
    time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return time.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")


def mask_url(url: str) -> str:
    """Show a URL without what may be a secret: its user, its password and its query. It need not be a valid URL.

    >>> mask_url("https://user:password@host:1/path?token=secret")
    'https://***@host:1/path?***'
    """
    before, at, rest = url.rpartition("@")
    scheme, slashes, _ = before.partition("://")
    shown = f"{scheme}://***@{rest}" if slashes else f"***@{rest}" if at else url
    head, mark = re.match(r"([^?#]*)([?#]?)", shown, re.DOTALL).groups()  # type: ignore[union-attr]
    return printable(f"{head}{mark}***" if mark else head)


class Fault(NamedTuple):
    """Why a record is rejected: the field, its value, and a sentence with the problem and what to do."""

    # `item` is the item that the record would have scored, empty for a record that scores none and None where it is not known; `above` is
    # the score, where it is most likely on another scale. `refuses`: nothing more of the file is read.
    field: str
    found: str
    reason: Sentence
    benchmark: str | None = None
    item: str | None = None
    above: float | None = None
    refuses: bool = False


class Refusal(Fault):
    """Why a record that can be read is refused: it does not fit the declaration, the runs that have ended, or a limit."""

    __slots__ = ()


class Reject(TypedDict):
    """A record that an importer cannot read: where it is, what is wrong, and what to do."""

    # `item_id`, `above` and `refuses` limit what the rest of the file is taken for; see `Fault`.
    source: str
    line: int
    field: str
    found: str
    reason: Sentence
    benchmark: NotRequired[str | None]
    raw: NotRequired[str]
    item_id: NotRequired[str]
    above: NotRequired[float]
    refuses: NotRequired[bool]


class Found(msgspec.Struct, omit_defaults=True):
    """What a watched file has shown of benchmarks, by name: why their items differ, notes, failed results by reason, what was chosen."""

    differing: dict[str, str] = {}
    notes: dict[str, list[str]] = {}
    failed: dict[str, dict[str, int]] = {}
    chosen: dict[str, dict[str, str]] = {}

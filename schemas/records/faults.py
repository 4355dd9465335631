"""What is wrong with a record or a file that is read."""

from typing import NamedTuple, NotRequired

import msgspec
from typing_extensions import TypedDict

from schemas.records.text import Sentence


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

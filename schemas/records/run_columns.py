"""The run message, the columns of one run of one model: no object is made of an event unless somebody asks for it."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Annotated, Any, Final, NamedTuple, overload

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StrictInt
from typing_extensions import override

from schemas.records.columns import EventColumns, Index, Names, Scores
from schemas.records.decode import Decoded, check_object, repeated_fault
from schemas.records.events import EventFields, IndexField, NameField, Role, RunName, ScoreField
from schemas.records.names import MAX_INDEX, MAX_NAME_LENGTH, Name, name_fault
from schemas.records.repeated import count_byte, decode_whole, has_each_once, raw_fields, repeated_among
from schemas.records.text import Fault, shorten

_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_OTHER_RECORDS: Final = frozenset({"item_id", "events", "declare", "ended"})
"""Fields that a run lacks: a record with one of them is no run."""

_EVENT_FIELDS: Final = {  # fields whose meaning would be lost in a run, and what to do
    "score": "use scores, one for each item",
    "cluster": "use clusters, one for each item",
    "unit": "use units, one for each item",
    "repeat": "send scores with repeats as events",
    "repeats": "send scores with repeats as events",
}


class Run(BaseModel):
    """Scores of one model on many items: the same as one event for each item, in the order of the list.

    Unknown fields are ignored.
    """

    model_config = ConfigDict(extra="ignore", title="Run message", defer_build=True)

    benchmark: Name
    model: Name
    item_ids: Annotated[list[Name], Field(min_length=1)]
    scores: list[
        Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
        | Annotated[bool, Field(strict=True)]
        | None
    ] = Field(description="one for each item: a number in [0, 1], a boolean, or null for a skipped item")
    clusters: list[Name | None] | None = Field(None, description="one for each item, or null")
    units: list[Name | None] | None = Field(None, description="the declared unit of each item, or null")
    epoch: Annotated[StrictInt, Field(ge=0, le=MAX_INDEX)] = 0
    run: RunName = None
    role: Role = None


class RunFields(msgspec.Struct, gc=False, omit_defaults=True):
    """A run of the bulk decoder. Its columns are JSON yet: many runs of a benchmark share their items and clusters."""

    benchmark: NameField
    model: NameField
    item_ids: msgspec.Raw
    scores: msgspec.Raw
    clusters: msgspec.Raw = msgspec.Raw(b"null")
    epoch: IndexField = 0
    run: Any = None
    role: Any = None
    units: Any = None
    item_id: Any = msgspec.UNSET
    events: Any = msgspec.UNSET
    declare: Any = msgspec.UNSET
    ended: Any = msgspec.UNSET
    score: Any = msgspec.UNSET
    cluster: Any = msgspec.UNSET
    repeat: Any = msgspec.UNSET
    repeats: Any = msgspec.UNSET
    unit: Any = msgspec.UNSET

    @property
    def is_plain(self) -> bool:
        """Whether the record has no units, which are checked event by event, and no field of another kind of record."""
        return self.units is None and all(
            getattr(self, field) is msgspec.UNSET for field in (*_OTHER_RECORDS, *_EVENT_FIELDS)
        )


class LooseRun(NamedTuple):
    """A run with a faulty part: its events, each decoded on its own."""

    events: list[tuple[dict[str, Any], Decoded | Fault]]


_RUN: Final = msgspec.json.Decoder(RunFields)
_NAMES: Final = msgspec.json.Decoder(list[NameField])
_CLUSTERS: Final = msgspec.json.Decoder(list[NameField | None] | None)
_SCORES: Final = msgspec.json.Decoder(list[ScoreField])
_DIGITS: Final[dict[float | bool | None, int]] = {0: 0, 1: 1}


def decode_run(record: bytes) -> RunFields | None:
    """Decode a run message but for its columns; None if it needs a closer look, or is no run."""
    try:
        run = _RUN.decode(record)
    except _BROKEN:
        return None
    return run if run.is_plain and not _repeats(record, run) else None


def _repeats(record: bytes, run: RunFields) -> bool:
    """Return whether a field of a run comes twice, which the decoder does not see: it keeps the last value."""
    # Every field has a colon. So as many colons as fields that were read prove that none comes twice.
    columns = (run.item_ids, run.scores, *([] if bytes(run.clusters) == b"null" else [run.clusters]))
    given = (run.epoch != 0) + (run.run is not None) + (run.role is not None)
    if count_byte(record) == 2 + len(columns) + given + sum(count_byte(bytes(each)) for each in columns):
        return False
    if has_each_once(record, raw_fields(record)):
        return False
    try:
        return repeated_among(decode_whole(record), Run.model_fields) is not None
    except (ValueError, RecursionError):
        return True  # the whole rule has the fault


def decode_names(column: bytes) -> list[str] | None:
    """Decode the JSON of a list of item ids; None if it needs a closer look."""
    try:
        return _NAMES.decode(column)
    except _BROKEN:
        return None


def decode_clusters(column: bytes) -> list[str | None] | None:
    """Decode the JSON of a list of clusters, equal ones to one string; an empty list if it is null, None if it needs a closer look."""
    try:
        clusters = _CLUSTERS.decode(column)
    except _BROKEN:
        return None
    if clusters is None:
        return []
    same: dict[str | None, str | None] = {}
    return [same.setdefault(cluster, cluster) for cluster in clusters] or None


def decode_scores(column: bytes) -> list[float | bool | None] | None:
    """Decode the JSON of a list of scores; None if it needs a closer look."""
    try:
        return _SCORES.decode(column)
    except _BROKEN:
        return None


def decode_run_loosely(record: bytes) -> LooseRun | Fault | None:
    """Decode a run message event by event; a fault if its columns do not fit together, None if it is no run.

    >>> decode_run_loosely(b'{"benchmark":"b","model":"m","item_ids":["1","2"],"scores":[1]}').reason
    'scores has 1 entry and item_ids 2; give one score for each item'
    """
    try:
        data: Any = decode_whole(record)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.keys() & _OTHER_RECORDS or "item_ids" not in data:
        return None
    repeated = repeated_among(data, Run.model_fields)
    columns = _columns(data) if repeated is None else repeated_fault(repeated)
    if isinstance(columns, Fault):
        named = None if repeated == "benchmark" else data.get("benchmark")
        known = isinstance(named, str) and name_fault(named) is None
        return columns._replace(benchmark=named) if known else columns
    shared = {field: data[field] for field in ("benchmark", "model", "epoch", "run", "role") if field in data}
    events = [shared | dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return LooseRun([(event, check_object(event)) for event in events])


def _columns(data: dict[str, Any]) -> dict[str, list[Any]] | Fault:
    """Return the columns of a run by the field of an event, or why they do not fit together."""
    for field, remedy in _EVENT_FIELDS.items():
        if field in data:
            return Fault(field, shorten(data[field]), f"{field} is not a field of a run message; {remedy}")
    items = data["item_ids"]
    if not isinstance(items, list):
        return Fault("item_ids", shorten(items), "item_ids is not a list; give the ids of the items")
    if not items:
        return Fault("item_ids", "[]", "item_ids is empty; give at least one item")
    columns = {"item_id": items}
    for field, column, noun in (
        ("score", "scores", "score"),
        ("cluster", "clusters", "cluster, or null,"),
        ("unit", "units", "unit, or null,"),
    ):
        values = data.get(column)
        if values is None and column != "scores":
            continue
        if not isinstance(values, list):
            found = "nothing" if column not in data else shorten(values)
            return Fault(column, found, f"{column} is not a list; give one {noun} for each item")
        if len(values) != len(items):
            entries = "1 entry" if len(values) == 1 else f"{len(values):,} entries"
            return Fault(
                column, entries, f"{column} has {entries} and item_ids {len(items):,}; give one {noun} for each item"
            )
        columns[field] = values
    return columns


def encode_run(events: Sequence[EventFields]) -> bytes:
    """Write events of one run, without repeats, as a run message.

    >>> encode_run([EventFields("quiz", "1", "m", True), EventFields("quiz", "2", "m", 0.5)])
    b'{"benchmark":"quiz","model":"m","item_ids":["1","2"],"scores":[1,0.5]}'
    """
    first = events[0]
    optional = {"clusters": [event.cluster for event in events], "units": [event.unit for event in events]}
    run: dict[str, Any] = {
        "benchmark": first.benchmark,
        "model": first.model,
        "item_ids": [event.item_id for event in events],
        "scores": [_DIGITS.get(event.score, event.score) for event in events],
    }
    run |= {name: column for name, column in optional.items() if any(value is not None for value in column)}
    shared = {"epoch": first.epoch or None, "run": first.run, "role": first.role}
    run |= {name: value for name, value in shared.items() if value is not None}
    return msgspec.json.encode(run)


_COMMA, _DIGIT_0 = b",0"
_SPACE, _DELETE = b" \x7f"

Score = float | bool | None


class ItemColumn:
    """The items of a run and their clusters. All runs of a benchmark whose message has the same lists share one."""

    def __init__(self, names: Sequence[str], clusters: Sequence[str | None] | None) -> None:
        self.names, self.clusters = names, clusters
        self._known: tuple[dict[str, int], Index] | None = None

    def rows(self, row_of: dict[str, int], part: slice) -> Index:
        """Return the rows of some items, -1 for a new one. Once a benchmark has all of them they are looked up no more."""
        if self._known is not None and self._known[0] is row_of:
            return self._known[1][part]
        rows = np.fromiter(map(row_of.get, self.names, repeat(-1)), np.int64, len(self.names))
        if (rows >= 0).all():
            self._known = row_of, rows
        return rows[part]


class ItemColumns:
    """The lists of items and clusters that were read last, by their JSON: lists that come again are neither decoded nor looked up."""

    _MOST_NAMES: Final = 200_000  # about 30 MB

    def __init__(self) -> None:
        self._columns: OrderedDict[tuple[bytes, bytes], ItemColumn] = OrderedDict()
        self._names = 0

    def column(self, items: bytes, clusters: bytes = b"null") -> ItemColumn | None:
        """Return lists of item ids and clusters; None if they need a closer look."""
        key = items, clusters
        known = self._columns.get(key)
        if known is not None:
            self._columns.move_to_end(key)
            return known
        names, labels = decode_names(items), decode_clusters(clusters)
        if not names or labels is None or len(labels) not in {0, len(names)}:
            return None
        column = self._columns[key] = ItemColumn(names, labels or None)
        self._names += len(names)
        while self._names > self._MOST_NAMES:
            _, oldest = self._columns.popitem(last=False)
            self._names -= len(oldest.names)
        return column


@dataclass
class _Run:
    """A run whose columns fit together."""

    benchmark: str
    model: str
    epoch: int
    items: ItemColumn
    scores: Scores
    given: bytes | Sequence[Score]
    run: object = None
    role: object = None

    @cached_property
    def given_scores(self) -> Sequence[Score]:
        """The scores as they were sent, or read."""
        return (decode_scores(self.given) or []) if isinstance(self.given, bytes) else self.given

    def event(self, k: int) -> EventFields:
        """Return one event."""
        clusters = self.items.clusters
        cluster = None if clusters is None else clusters[k]
        return EventFields(
            self.benchmark,
            self.items.names[k],
            self.model,
            self.given_scores[k],
            cluster,
            epoch=self.epoch,
            run=self.run,
            role=self.role,
        )


def are_plain(names: Sequence[str]) -> bool:
    """Return whether names are printable ASCII of a usual length, which needs no closer look."""
    codes = np.frombuffer("".join(names).encode("utf-8", "surrogatepass"), np.uint8)
    printable = ((codes - _SPACE) < _DELETE - _SPACE).all()  # what is below a space wraps around
    return bool(printable) and all(names) and max(map(len, names)) <= MAX_NAME_LENGTH


class RunEvents(EventColumns):
    """Events of a run."""

    def __init__(self, run: _Run, part: slice) -> None:
        self._run, self._part = run, part

    @classmethod
    def of(cls, run: RunFields, columns: ItemColumns) -> "RunEvents | None":
        """Return the events of a run; None if it needs a closer look."""
        items = columns.column(bytes(run.item_ids), bytes(run.clusters))
        scores = _scores(bytes(run.scores))
        if items is None or scores is None or len(items.names) != scores.size:
            return None
        kept = _Run(run.benchmark, run.model, run.epoch, items, scores, bytes(run.scores), run.run, run.role)
        return cls(kept, slice(0, scores.size))

    @classmethod
    def read(
        cls,
        benchmark: str,
        model: str,
        items: Sequence[str],
        scores: Sequence[Score],
        clusters: Sequence[str | None] | None,
    ) -> "RunEvents":
        """Return the events of a run that was read from a file; names and scores are as the fold takes them."""
        try:  # booleans alone are bytes already, which takes a quarter of the time
            values = np.frombuffer(bytes(scores), np.uint8).astype(np.float64)  # type: ignore[arg-type]
        except TypeError:
            values = np.array(scores, np.float64)  # None becomes NaN
        return cls(_Run(benchmark, model, 0, ItemColumn(items, clusters), values, scores), slice(0, len(items)))

    @property
    def benchmark(self) -> str:
        """The benchmark of all of them."""
        return self._run.benchmark

    @property
    def graded(self) -> bool:
        """Whether a score is neither 0 nor 1."""
        scores = self.scores()
        return bool(((scores > 0) & (scores < 1)).any())

    def __len__(self) -> int:
        return int(self._part.stop - self._part.start)

    @overload
    def __getitem__(self, place: int) -> EventFields: ...
    @overload
    def __getitem__(self, place: slice) -> "RunEvents": ...
    def __getitem__(self, place: int | slice) -> "EventFields | RunEvents":
        if isinstance(place, slice):
            start, stop, _ = place.indices(len(self))
            first = self._part.start
            return RunEvents(self._run, slice(first + start, first + max(start, stop)))
        return self._run.event(range(self._part.start, self._part.stop)[place])

    @override
    def rows(self, names: Names) -> Index:
        return self._run.items.rows(names.row_of, self._part)

    @override
    def contestants(self, names: Names) -> Index:
        run = self._run
        return np.full(len(self), names.epoch_contestant_of.get((run.model, run.epoch), -1))

    @override
    def scores(self) -> Scores:
        return self._run.scores[self._part]

    @override
    def items(self, places: Index) -> tuple[list[str], list[str | None]]:
        at = (places + self._part.start).tolist()
        names, clusters = self._run.items.names, self._run.items.clusters
        return [names[k] for k in at], [None] * len(at) if clusters is None else [clusters[k] for k in at]

    @override
    def plain(self) -> NDArray[np.bool_] | None:
        return np.zeros(len(self), np.bool_) if self._run.role else None


def _scores(column: bytes) -> Scores | None:
    """Decode the JSON of a list of scores; None if it needs a closer look."""
    # Scores of 0 and 1 are written as one digit each, so that the list is an array already.
    text = np.frombuffer(column, np.uint8)
    digits, between = text[1:-1:2], text[2:-1:2]
    if (
        column.startswith(b"[")
        and len(column) % 2
        and ((digits & ~np.uint8(1)) == _DIGIT_0).all()
        and (between == _COMMA).all()
    ):
        return digits.astype(np.float64) - _DIGIT_0
    scores = decode_scores(column)
    return None if scores is None else np.array(scores, np.float64)  # None becomes NaN

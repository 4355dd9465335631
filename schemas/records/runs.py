"""The run message: the columns of one run of one model, in one record of the log. Writer and reader."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from pydantic import BaseModel, ConfigDict, Field, StrictInt

from schemas.records.decode import Decoded, check_object, repeated_fault
from schemas.records.events import MAX_INDEX, EventFields, IndexField, NameField, Role, RunName, ScoreField
from schemas.records.faults import Fault
from schemas.records.names import Name, name_fault
from schemas.records.repeated import count_byte, decode_whole, has_each_once, raw_fields, repeated_among
from schemas.records.text import shorten

_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_OTHER_RECORDS: Final = frozenset({"item_id", "events", "declare", "ended"})
"""Fields of which a run has none: a record with one is read as what has that field."""

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
    """A run of the bulk decoder. Its columns are JSON yet: many runs of a benchmark share those of items and clusters."""

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
    """A run of which some part is not as it should be: its events, each decoded on its own."""

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
    optional = {
        "clusters": [event.cluster for event in events],
        "units": [event.unit for event in events],
    }
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

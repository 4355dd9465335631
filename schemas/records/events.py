"""The records that a producer sends: events, battles, and the ends of runs."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, Self

import msgspec
from pydantic import BaseModel, ConfigDict, Field, StrictInt, WithJsonSchema, model_validator

from schemas.records.names import MAX_INDEX, MAX_NAME_LENGTH, Name

MAX_LINE_BYTES: Final = 1_000_000  # longest record that is read; a longer one is a dead letter


_NULL: Final = {"type": "null"}
_TIME: Final = {"anyOf": [{"format": "date-time", "type": "string"}, _NULL], "default": None}
_RUN: Final = {"anyOf": [{"type": "string"}, _NULL], "default": None}
_OBJECT: Final = {"anyOf": [{"additionalProperties": True, "type": "object"}, _NULL], "default": None}

RunName = Annotated[Any, WithJsonSchema(_RUN), Field(description="name of the run, for `rankwatch drift`; not checked")]
Role = Annotated[
    Any,
    WithJsonSchema(_RUN),
    Field(
        description="anchor: an answer frozen before the first run, judged again in every run; any other value is ignored"
    ),
]


class Event(BaseModel):
    """One score of one model on one item.

    The key is (benchmark, epoch, item_id, repeat, model); the first score of a key wins. Unknown fields are ignored.
    """

    model_config = ConfigDict(extra="ignore", title="Evaluation event", defer_build=True)

    benchmark: Name
    item_id: Name
    model: Name
    score: (
        Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
        | Annotated[bool, Field(strict=True)]
        | None
    ) = Field(description="a number in [0, 1], kept to 12 decimals, a boolean, or null for a skipped item")
    cluster: Annotated[Name | None, Field(description="what the item belongs to, such as its category")] = None
    repeat: Annotated[StrictInt, Field(ge=0, le=MAX_INDEX, description="label of a further score of the item")] = 0
    epoch: Annotated[StrictInt, Field(ge=0, le=MAX_INDEX, description="a newer one replaces the run before")] = 0
    unit: Name | None = Field(
        None, description="the declared unit of the item: items that are copies or paraphrases of each other have one"
    )
    run: RunName = None
    role: Role = None
    timestamp: Annotated[
        Any, WithJsonSchema(_TIME), Field(description="RFC 3339; never enters a statistic, and is not checked")
    ] = None
    attributes: Annotated[Any, WithJsonSchema(_OBJECT), Field(description="not checked")] = None


NameField = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
IndexField = Annotated[int, msgspec.Meta(ge=0, le=MAX_INDEX)]
ScoreField = Annotated[float, msgspec.Meta(ge=0, le=1)] | bool | None


class EventFields(msgspec.Struct, gc=False, omit_defaults=True):
    """An event of the bulk decoder: four times as fast as `Event`, which explains why a record fails."""

    # Both accept the same records: `timestamp` and `attributes` are never used, so no value of theirs costs a score.
    # `schemas.records.decode.Checker` checks the characters of names, and the fold checks them when a name is new.
    benchmark: NameField
    item_id: NameField
    model: NameField
    score: ScoreField
    cluster: NameField | None = None
    repeat: IndexField = 0
    epoch: IndexField = 0
    unit: NameField | None = None
    run: Any = None
    role: Any = None


class End(BaseModel):
    """The end of a run of a benchmark that is named elsewhere."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    model: Name | None = None
    epoch: Annotated[StrictInt, Field(ge=0, le=MAX_INDEX)] | None = Field(
        None, description="epoch of the model, 0 by default"
    )
    base: Annotated[StrictInt, Field(ge=0, le=MAX_INDEX)] | None = Field(
        None, description="the older epoch whose scores the run inherits where it has none"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.base is not None and self.base >= (self.epoch or 0):
            raise ValueError(
                f"base {self.base} is not older than epoch {self.epoch or 0}; give the epoch of the run too"
            )
        return self


class Ended(End):
    """The end of a run in the log: nothing more of it will come.

    Without a model it is the end of every run that has scores, or of every one of that epoch. With `base`, cells that the epoch lacks are
    copied from that older epoch of the model first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, title="End of a run", defer_build=True)

    ended: Name = Field(description="the benchmark")
    run: Name | None = Field(None, description="of a sentinel: the run that starts or ends")
    state: Literal["started", "ended", "cancelled", "changed"] | None = Field(
        None, description="of a sentinel: what is reported of the run; changed: the model was changed on purpose"
    )
    reason: Annotated[str, Field(max_length=1000)] | None = Field(None, description="of an announced change: why")

    @model_validator(mode="after")
    def _of_a_run(self) -> Self:
        if self.state is None and (self.run is not None or self.reason is not None):
            raise ValueError("a run of a sentinel has a state; give started, ended or cancelled")
        if self.state is not None and self.model is None:
            raise ValueError("what is reported of a run names its model; give the model")
        if self.state not in {None, "changed"} and self.run is None:
            raise ValueError("the start or the end of a run names it; give the run")
        return self


Winner = Literal["a", "b", "tie"]


class Battle(BaseModel):
    """One vote between the answers of two models to one prompt.

    The key is (benchmark, item_id, the two models, cluster, position, repeat); the first vote of a key wins. Unknown fields are ignored.
    """

    model_config = ConfigDict(extra="ignore", title="Battle of two models", defer_build=True)

    benchmark: Name
    item_id: Name = Field(description="the prompt: all votes on one prompt are one unit of its pair")
    model_a: Name
    model_b: Name
    winner: Winner
    cluster: Name | None = Field(None, description="the judge: a voter, a model, a language")
    position: Literal["a", "b"] | None = Field(
        None, description="the model whose answer was shown first; null where that is not known"
    )
    repeat: Annotated[StrictInt, Field(ge=0, le=MAX_INDEX)] = 0
    timestamp: Annotated[
        Any, WithJsonSchema(_TIME), Field(description="RFC 3339; never enters a statistic, and is not checked")
    ] = None
    attributes: Annotated[Any, WithJsonSchema(_OBJECT), Field(description="not checked")] = None


class BattleFields(EventFields, kw_only=True, gc=False, omit_defaults=True):
    """A battle of the bulk decoder, which accepts the same records as `Battle`."""

    # It passes where an event does; it has no model and no score of its own, and both stay at their defaults.
    model: Literal[""] = ""
    score: None = None
    model_a: NameField
    model_b: NameField
    winner: Winner
    position: Literal["a", "b"] | None = None


BATTLE_MARK: Final = b'"winner"'  # what the bytes of every battle hold, unless a key is escaped

_NAMES: Final = tuple(map(attrgetter, ("benchmark", "item_id", "model_a", "model_b", "cluster")))
_EVENT_NAMES: Final = tuple(map(attrgetter, ("benchmark", "item_id", "model", "cluster", "unit")))


def has_battles(events: Iterable[EventFields]) -> bool:
    """Return whether any of some records is a battle."""
    return any(issubclass(kind, BattleFields) for kind in set(map(type, events)))


def names_of(events: Sequence[EventFields]) -> set[str | None]:
    """Return every name that some records hold."""
    battles = [event for event in events if isinstance(event, BattleFields)] if has_battles(events) else []
    names: set[str | None] = set().union(*(map(name, battles) for name in _NAMES))
    if len(battles) < len(events):
        scores = [event for event in events if not isinstance(event, BattleFields)] if battles else events
        names = names.union(*(map(name, scores) for name in _EVENT_NAMES))
    return names


def models_of(event: EventFields) -> tuple[str, ...]:
    """Return the models that a record is about.

    >>> models_of(EventFields("quiz", "1", "m", 1.0))
    ('m',)
    """
    return (event.model_a, event.model_b) if isinstance(event, BattleFields) else (event.model,)


def by_kind(events: Sequence[EventFields]) -> dict[str, Sequence[EventFields]]:
    """Return records as the fields of a packed record: scores under `events`, and battles, if there are any, under `battles`."""
    if not has_battles(events):
        return {"events": events}
    scores = [event for event in events if not isinstance(event, BattleFields)]
    return {"events": scores, "battles": [event for event in events if isinstance(event, BattleFields)]}

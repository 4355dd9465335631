"""The battle: two models answer one prompt, and a judge names the better answer."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, WithJsonSchema

from schemas.records.events import _OBJECT, _TIME, MAX_INDEX, EventFields, NameField
from schemas.records.names import Name

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

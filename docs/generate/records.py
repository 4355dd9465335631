"""List the fields of events and declarations from the classes that read them."""

from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from schemas.records.declaration import Declaration
from schemas.records.events import Event


def event() -> str:
    """Return a table of the fields of an event."""
    return _table(Event)


def declaration() -> str:
    """Return a table of the fields of a declaration, its name first."""
    return _table(Declaration, first="declare")


def _table(record: type[BaseModel], first: str = "") -> str:
    fields = sorted(record.model_fields.items(), key=lambda each: each[0] != first)
    rows = (
        f"| `{name}` | {_default(field.default)} | {(field.description or '').replace('|', chr(92) + '|')} |"
        for name, field in fields
    )
    return "\n".join(("| field | default | meaning |", "|---|---|---|", *rows))


def _default(default: Any) -> str:
    if default is PydanticUndefined:
        return "required"
    if isinstance(default, BaseModel):
        default = getattr(default, "policy", None)
    return "none" if default in (None, (), {}) else f"`{default}`"

"""How a declaration differs from the one under which scores exist."""

from typing import Final

from schemas.records.catalogue import published
from schemas.records.declaration import Admitted, Spec
from schemas.records.text import Fault, Refusal

FREE_TO_CHANGE: Final = (
    "power",
    "margin",
    "goal",
    "anchor",
    "aliases",
    "admissions",
)  # declared fields that no latch depends on

KEEP: Final = "repeat the stored declaration; another order is for new items, and is declared before their first score"
"""What to do, in place of the same scores under another name: these would be tested once more, with an alpha of their own."""


def changed_fields(old: Spec, new: Spec) -> list[str]:
    """Return the fields that verdicts rest on and in which two declarations differ."""
    free = {*FREE_TO_CHANGE, "version", "declared_late", "provenance"}
    return [name for name in Spec.model_fields if name not in free and getattr(old, name) != getattr(new, name)]


def admitted(old: Spec, new: Spec) -> dict[str, Admitted] | None:
    """Return the admissions after a declaration: an earlier one of the same newcomer stays, unless the board has begun again since."""
    kept, added = old.admissions or {}, new.admissions or {}
    later = {
        model: each for model, each in added.items() if model not in kept or each.generation > kept[model].generation
    }
    return {**kept, **later} or None


def parts_chosen(benchmark: str, old: Spec, new: Spec) -> list[str]:
    """Return the parts that a declaration changes, and that may have been chosen if scores are known: all but the published size."""
    known, changed = published(benchmark), changed_fields(old, new)
    if new.margin != old.margin:
        changed.append("margin")
    implied: set[str] = set()
    if {old.order.policy, new.order.policy} <= {"none", "completion"}:
        implied.add("order")
    if {"item_ids", "clusters"} & set(changed) or (known is not None and new.items == known.items):
        implied.add("items")
    return [name for name in changed if name not in implied]


def version_fault(name: str, old: Spec, new: Spec) -> Fault | None:
    """Return why there can be no new version of a declaration, with any scores; None if there can."""
    if old.drift != new.drift:
        reason = f"{name!r} has runs, and a sentinel is declared before the first of them and never changes"
        return Refusal(
            "drift", "drift", f"{reason}; repeat the stored declaration, or begin a sentinel of another name", name
        )
    if "committed" not in {old.order.policy, new.order.policy}:
        return None
    reason = f"{name!r} has scores, and a committed order is declared before the first score and never changes; {KEEP}"
    return Refusal("order", new.order.policy, reason, name)

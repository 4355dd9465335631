"""Verdict changes as CloudEvents 1.0: the same attributes in a topic and over HTTP."""

import json
from collections.abc import Sequence
from typing import Final

from schemas.changes import VerdictChange

TYPE_PREFIX: Final = "io.rankwatch.verdict."
EVENT_TYPE: Final = "application/cloudevents+json"
BATCH_TYPE: Final = "application/cloudevents-batch+json"


def attributes(change: VerdictChange, origin: str) -> dict[str, str]:
    """Return the required attributes of a change; they depend on the change and its position only.

    Parameters
    ----------
    change : VerdictChange
    origin : str
        The log and partition within which the id of the change is unique: ``<log>/<partition>``.
    """
    return {
        "specversion": "1.0",
        "id": f"{origin}/{change.id}",
        "source": f"/rankwatch/{origin.rpartition('/')[0]}",
        "type": f"{TYPE_PREFIX}{change.kind}",
    }


def _structured(change: VerdictChange, origin: str) -> dict[str, object]:
    fields = {"datacontenttype": "application/json", "data": change.model_dump(mode="json")}
    return {**attributes(change, origin), "subject": change.benchmark, **fields}


def event_body(origin: str, changes: Sequence[VerdictChange], now: float) -> bytes:  # noqa: ARG001 - the same bytes on every attempt
    """Return one change as an event in structured mode."""
    (change,) = changes
    return json.dumps(_structured(change, origin), separators=(",", ":")).encode()


def batch_body(origin: str, changes: Sequence[VerdictChange], now: float) -> bytes:  # noqa: ARG001 - the same bytes on every attempt
    """Return changes as a batch of events."""
    return json.dumps([_structured(change, origin) for change in changes], separators=(",", ":")).encode()

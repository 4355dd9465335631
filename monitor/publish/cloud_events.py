"""Verdict changes as CloudEvents 1.0: the same attributes in a topic and over HTTP."""

import json
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from schemas.results.changes import AnyChange

TYPE_PREFIX: Final = "io.rankwatch.verdict."
EVENT_TYPE: Final = "application/cloudevents+json"
BATCH_TYPE: Final = "application/cloudevents-batch+json"

_PLAIN: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


def attributes(change: AnyChange, origin: str) -> dict[str, str]:
    """Return the required attributes of a change; they depend on the change and its position only."""
    return {
        "specversion": "1.0",
        "id": f"{origin}/{change.id}",
        "source": f"/rankwatch/{origin.rpartition('/')[0]}",
        "type": f"{TYPE_PREFIX}{change.kind}",
    }


def headers(origin: str, changes: Sequence[AnyChange]) -> dict[str, str]:
    """Return the attributes of one change as the headers of binary mode; the body is the change."""
    # See the HTTP protocol binding 1.0.2, section 3.1.3: what is not printable ASCII, and quotation marks and percent signs, are
    # percent-encoded.
    (change,) = changes
    values = {**attributes(change, origin), "subject": change.benchmark}
    return {f"ce-{name}": quote(value, safe=_PLAIN) for name, value in values.items()}


def data_body(_: str, changes: Sequence[AnyChange]) -> bytes:
    """Return one change, the data of an event in binary mode."""
    (change,) = changes
    return change.as_json()


def _structured(change: AnyChange, origin: str) -> dict[str, object]:
    fields = {"datacontenttype": "application/json", "data": change.as_dict()}
    return {**attributes(change, origin), "subject": change.benchmark, **fields}


def event_body(origin: str, changes: Sequence[AnyChange]) -> bytes:
    """Return one change as an event in structured mode."""
    (change,) = changes
    return json.dumps(_structured(change, origin), separators=(",", ":")).encode()


def batch_body(origin: str, changes: Sequence[AnyChange]) -> bytes:
    """Return changes as a batch of events."""
    return json.dumps([_structured(change, origin) for change in changes], separators=(",", ":")).encode()

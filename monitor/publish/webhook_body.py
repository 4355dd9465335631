"""Encode verdict changes for a webhook: as alerts of Alertmanager's API v2, or as plain JSON."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from schemas.changes import VerdictChange

FIRING_SECONDS: Final = 900
"""How long an alert fires: it reports an event, so nothing resolves it."""

_NAMES: Final = {
    "decided": "RankwatchPairDecided",
    "reversed": "RankwatchDecisionReversed",
    "invalidated": "RankwatchDecisionInvalidated",
    "superseded": "RankwatchDecisionSuperseded",
}
_SEVERITY: Final = {"decided": "info", "reversed": "warning", "invalidated": "warning", "superseded": "info"}


def json_body(origin: str, changes: Sequence[VerdictChange], now: float) -> bytes:  # noqa: ARG001 - the same bytes on every attempt
    """Return ``{"changes": [...]}``: each change as in the feed, its id made unique over all partitions by the origin."""
    entries = [change.model_dump() | {"id": f"{origin}/{change.id}"} for change in changes]
    return json.dumps({"changes": entries}, separators=(",", ":")).encode()


def alertmanager_body(origin: str, changes: Sequence[VerdictChange], now: float) -> bytes:
    """Return alerts for ``POST /api/v2/alerts``, named and labelled like those of the shipped Prometheus rules."""
    start, end = (datetime.fromtimestamp(at, UTC).isoformat() for at in (now, now + FIRING_SECONDS))
    alerts = [
        {
            "labels": {
                "alertname": _NAMES[change.kind],
                "severity": _SEVERITY[change.kind],
                "benchmark": change.benchmark,
                "model_a": change.model_a,
                "model_b": change.model_b,
                "procedure": change.procedure,
                "change": f"{origin}/{change.id}",
            },
            "annotations": {"summary": _summary(change), "description": change.sentence},
            "startsAt": start,
            "endsAt": end,
        }
        for change in changes
    ]
    return json.dumps(alerts, separators=(",", ":")).encode()


def _summary(change: VerdictChange) -> str:
    if change.kind == "superseded":
        return f"the decision between {change.model_a} and {change.model_b} on {change.benchmark} is superseded"
    if change.after is None:
        return f"the decision between {change.model_a} and {change.model_b} on {change.benchmark} no longer counts"
    better, worse = (change.model_a, change.model_b) if change.after == "a" else (change.model_b, change.model_a)
    verb = "is decided to be better than" if change.kind == "decided" else "now leads"
    return f"{better} {verb} {worse} on {change.benchmark}"

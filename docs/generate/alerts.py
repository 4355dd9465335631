"""List the alerts of Prometheus, from their rules."""

import re
from typing import Any

import yaml

from docs.generate.pages import DOCS

_RULES = DOCS.parent / "deploy/prometheus/rules/alerts.yml"
_LABEL = re.compile(r"{{ \$(?:labels\.)?(\w+)[^}]*}}")


def table() -> str:
    """Return a table of the alerts: the text of each one, and which condition has to hold for how long."""
    groups = yaml.safe_load(_RULES.read_text("utf-8"))["groups"]
    rows = (_row(rule) for group in groups for rule in group["rules"])
    return "\n".join(("| alert | severity | text | fires when |", "|---|---|---|---|", *rows))


def _row(rule: dict[str, Any]) -> str:
    summary = _LABEL.sub(r"`\1`", rule["annotations"]["summary"])
    condition = f"`{' '.join(rule['expr'].split())}`" + (f" for {rule['for']}" if "for" in rule else "")
    return f"| `{rule['alert']}` | {rule['labels']['severity']} | {summary}. {rule['annotations']['description']} | {condition} |"

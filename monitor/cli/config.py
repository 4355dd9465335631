"""`rankwatch config` and `rankwatch schema`: what is set, and what crosses the border."""

import json
import os
import re
from collections.abc import Sequence
from typing import Final

from pydantic import SecretStr

from monitor.cli.errors import USAGE, stop

_HIDDEN: Final = "(set, not shown)"
_LOGIN: Final = re.compile(r"//[^/@]*@")
"""User and password in an address; where they belong is a setting of its own."""


def config(form: str) -> None:
    """Print every setting: its value, where it comes from, and what it means. Secrets are told to be set, never shown."""
    from monitor.cli.settings import read_settings
    from monitor.settings import Settings

    settings = read_settings({})
    file = os.environ.get("RANKWATCH_CONFIG")
    rows = []
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        variable = f"RANKWATCH_{name.upper()}"
        source = "environment" if variable in os.environ else "default"
        if source == "default" and file and name in settings.model_fields_set:
            source = "file"
        shown = None if value is None else _HIDDEN if isinstance(value, SecretStr) else _LOGIN.sub("//***@", str(value))
        rows.append(
            {"setting": name, "value": shown, "source": source, "variable": variable, "meaning": field.description}
        )
    if form == "json":
        print(json.dumps(rows))
        return
    _table(rows)


def _table(rows: Sequence[dict[str, str | None]]) -> None:
    from rich.table import Table

    from monitor.render.terminal.report import output_console

    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "value", "from", "meaning"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row["setting"], row["value"] or "-", row["source"], row["meaning"])
    output_console().print(table)


def schema(name: str | None) -> None:
    """Print the JSON Schema of one thing, or say which there are."""
    from schemas.generate import render

    texts = {file.removesuffix(".schema.json"): text for file, text in render().items()}
    if name is None:
        print("\n".join(texts))
        return
    if name not in texts:
        stop(f"there is no schema {name!r}: choose one of {', '.join(texts)}", USAGE)
    print(texts[name], end="")

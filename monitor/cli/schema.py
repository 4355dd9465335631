"""`rankwatch schema`: the JSON Schemas of what crosses a border, from events to gates."""

from typing import Annotated

import typer

from monitor.cli.shared.errors import USAGE, stop
from schemas.generate import render


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            help="such as event, declaration, report, gate, gate-cases, gate-check, gate-replay or drift; without it, list all"
        ),
    ] = None,
) -> None:
    """Print a JSON Schema: of events, run messages, declarations, ends of runs, verdict changes, reports, gates or drift.

    Example: rankwatch schema event
    """
    texts = {file.removesuffix(".schema.json"): text for file, text in render().items()}
    if name is None:
        print("\n".join(texts))
    elif name in texts:
        print(texts[name], end="")
    else:
        stop(f"there is no schema {name!r}; choose one of {', '.join(texts)}", USAGE)

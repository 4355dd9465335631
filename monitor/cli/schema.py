"""`rankwatch schema`: the JSON Schemas of events, declarations, ends of runs, verdict changes, reports and gates."""

from typing import Annotated

import typer

from monitor.cli.shared.errors import USAGE, stop
from schemas.generate import render


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            help="event, run, declaration, ended, verdict-change, report, report-detail or gate; without it, list them"
        ),
    ] = None,
) -> None:
    """Print a JSON Schema: of events, run messages, declarations, ends of runs, verdict changes, reports or gates.

    Example: rankwatch schema event
    """
    texts = {file.removesuffix(".schema.json"): text for file, text in render().items()}
    if name is None:
        print("\n".join(texts))
    elif name in texts:
        print(texts[name], end="")
    else:
        stop(f"there is no schema {name!r}; choose one of {', '.join(texts)}", USAGE)

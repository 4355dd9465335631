"""`rankwatch drift change`: announce a change that you made, so that the next run begins a new history."""

import json
from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.shared.errors import stop
from monitor.cli.shared.options import option
from monitor.cli.shared.remote.places import bearer_token
from monitor.cli.shared.settings import read_settings
from monitor.send.http import DeliveryError, call
from schemas.records.text import shorten


def change(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="the model that you changed", show_default=False)],
    benchmark: Annotated[str, option("--benchmark", "the sentinel", metavar="NAME")],
    reason: Annotated[str | None, option("--reason", "what you changed")] = None,
    server: Annotated[
        str, typer.Option("--server", help="address of a `rankwatch watch` or `run`", metavar="http\\[s]://HOST:PORT")
    ] = "http://127.0.0.1:8642",
    token_file: Annotated[
        Path | None, option("--token-file", "file with the bearer token  \\[default: $RANKWATCH_TOKEN]")
    ] = None,
) -> None:
    """Announce that you changed a model, its prompt or its harness: the next run of it begins a new history.

    Example: rankwatch drift change gpt-x --benchmark support-qa --reason "new prompt"
    """
    record = {"change": model, "benchmark": benchmark, **({} if reason is None else {"reason": reason})}
    try:
        answer, _ = call(
            server,
            bearer_token(read_settings(), token_file),
            "POST",
            "events",
            [record],
            what="cannot announce a change",
        )
    except (DeliveryError, ValueError) as error:
        stop(str(error))
    for refused in json.loads(answer)["rejected"]:
        stop(f"{server}: {refused['reason']}")
    print(f"announced: the next run of {shorten(model)} on {shorten(benchmark)} begins a new history")

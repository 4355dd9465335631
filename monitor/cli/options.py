"""Arguments, options and choices that several commands offer."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Listing(StrEnum):
    """How what is no report is written."""

    table = "table"
    json = "json"


class Format(StrEnum):
    """How a report is written."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    html = "html"


class Pairs(StrEnum):
    """Which pairs a report lists."""

    adjacent = "adjacent"
    all = "all"


class Order(StrEnum):
    """The order policies that can be declared on the command line."""

    completion = "completion"
    committed = "committed"
    trusted = "trusted"


class GateFormat(StrEnum):
    """How the answer of the gate is written."""

    text = "text"
    json = "json"
    junit = "junit"
    github = "github"


class OrderFormat(StrEnum):
    """How an order is written."""

    list = "list"
    json = "json"


Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="files or folders: events (.jsonl), lm-eval samples, Inspect logs (.eval, .json), tables (.csv, .parquet); NAME=PATH names "
        "the model of what is there",
        show_default=False,
    ),
]

FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="table for the terminal, json and csv for programs, markdown and html (one file, with figures) for people",
    ),
]
ListingOption = Annotated[Listing, typer.Option("--format", help="table for people, json for programs")]
DetailOption = Annotated[
    bool,
    typer.Option(
        "--detail", help="add second opinions: other families, bootstrap, cluster sensitivity (json, markdown, html)"
    ),
]
PairsOption = Annotated[
    Pairs | None,
    typer.Option("--pairs", help="which pairs to list  \\[default: adjacent; json and csv: all]", show_default=False),
]
RejectedOption = Annotated[
    float,
    typer.Option(
        "--max-rejected",
        min=0,
        max=1,
        help="largest share of lines that may be unreadable (the first 20 are always allowed)",
    ),
]

RejectedSetting = Annotated[
    float | None,
    typer.Option("--max-rejected", min=0, max=1, help="largest share of lines that may be unreadable"),
]
OrderOption = Annotated[Order | None, typer.Option("--order", help="order policy to declare for new benchmarks")]
TopicOption = Annotated[
    str | None, typer.Option("--topic", help="topic of the events  \\[default: rankwatch.events]", show_default=False)
]
HostOption = Annotated[
    str | None, typer.Option("--host", help="address to serve on  \\[default: 127.0.0.1]", show_default=False)
]
PortOption = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, help="port to serve on  \\[default: 8642]", show_default=False),
]


def items_option(text: str) -> Any:  # noqa: ANN401 - what typer gives
    """Return the option that gives the item count of benchmarks."""
    return typer.Option("--items", metavar="N | NAME=N", help=text)


def data_option(text: str) -> Any:  # noqa: ANN401 - what typer gives
    """Return the option that gives a directory."""
    return typer.Option("--data-dir", help=text, show_default=False)

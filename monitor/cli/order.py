"""`rankwatch order`: the committed order of a benchmark's items."""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from monitor.cli.shared.declared.values import check_seed
from monitor.cli.shared.errors import FAULT, USAGE, file_error, note, stop
from monitor.cli.shared.options import option
from monitor.files.declaration_file import ItemListError, check_items, read_items
from monitor.files.unit_list import UnitListError, read_units
from schemas.records.declaration import DEFAULT_LOOK, Declaration
from schemas.records.decode import describe_error
from schemas.records.events import MAX_LINE_BYTES
from stats.order import committed_items


class OrderFormat(StrEnum):
    """How an order is written."""

    list = "list"
    json = "json"


def order(
    seed: Annotated[str, option("--seed", "seed of the permutation, as in the declaration")],
    items: Annotated[
        list[str] | None, typer.Argument(metavar="ITEM", help="ids of all items", show_default=False)
    ] = None,
    item_file: Annotated[
        Path | None,
        option(
            "--items",
            "file with one item id a line (- for standard input), or results that have all items",
            metavar="FILE",
        ),
    ] = None,
    unit_file: Annotated[
        Path | None,
        option(
            "--units",
            "items that are one unit (.csv with the columns item and unit, or JSON): the units are put in order, the items of one together",
            metavar="FILE",
        ),
    ] = None,
    benchmark: Annotated[
        str | None, option("--benchmark", "name of the benchmark, for --format json or for results of several")
    ] = None,
    every: Annotated[
        int | None,
        option("--every", "print every R-th item only: those that people label for --labels", min=1, metavar="R"),
    ] = None,
    look: Annotated[
        float | None,
        option(
            "--look",
            f"with --format json: share of alpha, below 1, for one exact test of all items at the end of the order; 0 leaves all to the "
            f"bets  \\[default: {DEFAULT_LOOK}, 0 with --units]",
            min=0,
            metavar="SHARE",
        ),
    ] = None,
    form: Annotated[
        OrderFormat,
        typer.Option("--format", help="list: one id a line; json: the declaration to send before the first score"),
    ] = OrderFormat.list,
) -> None:
    """Print the committed order in which to evaluate a benchmark's items.

    The order depends only on the seed and the ids. Put the declaration (--format json) into the log before the first score; verdicts then
    follow this order, however the scores arrive.

    Example: rankwatch order --seed 2026-leaderboard --items ids.txt
    """
    check_seed(seed)
    if every is not None and (form is OrderFormat.json or unit_file is not None):
        stop("--every: is for a list of items; omit it, or --units and --format json", USAGE)
    if look is not None and (form is OrderFormat.list or (look and unit_file is not None)):
        stop("--look: is part of a declaration of items without units; add --format json, or omit it or --units", USAGE)
    ids, name = _read_ids(items or [], item_file, benchmark)
    units = None if unit_file is None else _read_units(unit_file)
    if form is OrderFormat.json:
        share = look if look is not None or units is not None else DEFAULT_LOOK
        print(_declaration(ids, seed, benchmark or name, units, share))
        return
    print("\n".join(committed_items(seed, ids, units)[:: every or 1]))


def _read_units(file: Path) -> dict[str, str]:
    try:
        return read_units(file)
    except UnitListError as error:
        stop(f"--units: {error}", USAGE)
    except OSError as error:
        stop(f"--units: {file_error(error, file)}", USAGE)


def _read_ids(items: Sequence[str], file: Path | None, benchmark: str | None) -> tuple[list[str], str | None]:
    """Return the ids, and the name of their benchmark where the file has it."""
    if bool(items) == (file is not None):
        stop("give the item ids as arguments or in a file with --items FILE", USAGE)
    for item in items:
        if Path(item).is_file():
            note(
                f"{item} is read as an item id, although there is a file of that name; --items {item} reads the ids in it"
            )
    try:
        if file is not None:
            return read_items(file, benchmark)
        return check_items((f"argument {number}", item) for number, item in enumerate(items, 1)), None
    except ItemListError as error:
        stop(str(error), USAGE if file is None else FAULT)
    except OSError as error:
        stop(file_error(error, file))


def _declaration(
    ids: list[str], seed: str, benchmark: str | None, units: dict[str, str] | None, look: float | None
) -> str:
    if benchmark is None:
        stop("--format json needs the name of the benchmark; give --benchmark NAME", USAGE)
    declaration: dict[str, object] = {
        "declare": benchmark,
        "order": {"policy": "committed", "seed": seed},
        "item_ids": ids,
    }
    if units is not None:
        declaration["units"] = units
    elif look:
        declaration["look"] = look
    try:
        Declaration.model_validate(declaration)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        stop(f"--{'look' if fault['loc'] == ('look',) else 'benchmark'}: {describe_error(fault)}", USAGE)
    line = json.dumps(declaration, ensure_ascii=False, separators=(",", ":"))
    if (size := len(line.encode())) > MAX_LINE_BYTES:
        stop(
            f"the declaration of {len(ids):,} items has {size:,} bytes, more than the {MAX_LINE_BYTES:,} of a record; use shorter item ids"
        )
    return line

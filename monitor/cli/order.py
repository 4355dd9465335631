"""`rankwatch order`: the committed order of a benchmark's items, for a harness to follow."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.cli.errors import FAULT, USAGE, stop
from monitor.ingest.files.paths import show
from monitor.ingest.item_list import ItemListError, check_items, read_items
from schemas.events import MAX_LINE_BYTES

if TYPE_CHECKING:
    from pydantic import ValidationError


def run(items: Sequence[str], file: Path | None, seed: str, benchmark: str | None, form: str) -> None:
    """Print the order, one id a line; or the declaration."""
    _check_seed(seed)
    ids, named = _items(items, file, benchmark)
    if form == "json":
        print(_declaration(ids, seed, benchmark or named))
        return
    from stats.order import committed_order

    order = committed_order(seed, ids).tolist()
    print("\n".join(ids[k] for k in order))


def _check_seed(seed: str) -> None:
    from pydantic import ValidationError

    from schemas.events import OrderSpec

    try:
        OrderSpec(policy="committed", seed=seed)
    except ValidationError as error:
        stop(f"--seed: {_told(error)}", USAGE)


def _told(error: "ValidationError") -> str:
    return str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")


def _items(items: Sequence[str], file: Path | None, benchmark: str | None) -> tuple[list[str], str | None]:
    if bool(items) == (file is not None):
        stop("give the items: their ids as arguments, or a list of them with --items FILE", USAGE)
    try:
        if file is not None:
            return read_items(file, benchmark)
        return check_items((f"argument {number}", item) for number, item in enumerate(items, 1)), None
    except ItemListError as error:
        stop(str(error), USAGE if file is None else FAULT)
    except OSError as error:
        stop(f"{show(error.filename or file or '')}: {error.strerror or error}", FAULT)


def _declaration(ids: list[str], seed: str, benchmark: str | None) -> str:
    """Write the declaration event, ready to stand in a log before the first score."""
    if benchmark is None:
        stop("--format json writes a declaration, which names its benchmark: give --benchmark NAME", USAGE)
    import json

    from pydantic import ValidationError

    from schemas.events import Declaration

    declaration = {"declare": benchmark, "order": {"policy": "committed", "seed": seed}, "item_ids": ids}
    try:
        Declaration.model_validate(declaration)
    except ValidationError as error:
        stop(f"--benchmark: {_told(error)}", USAGE)
    line = json.dumps(declaration, ensure_ascii=False, separators=(",", ":"))
    if (size := len(line.encode())) > MAX_LINE_BYTES:
        most = f"a record at most {MAX_LINE_BYTES:,}: use shorter item ids"
        stop(f"the declaration of these {len(ids):,} items has {size:,} bytes, and {most}", FAULT)
    return line

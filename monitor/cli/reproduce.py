"""`rankwatch reproduce`: the paper's numbers, recomputed."""

from typing import Annotated

import typer

from monitor.cli.shared.options import TableFormat, TableFormatOption
from monitor.cli.shared.progress import progress_bar
from monitor.paper.reproduce import as_json, render_table, run
from monitor.render.terminal.layout import output_console


def reproduce(
    full: Annotated[bool, typer.Option("--full", help="run the simulations too (minutes)")] = False,
    form: TableFormatOption = TableFormat.table,
) -> None:
    """Recompute the paper's numbers and compare them with the published ones.

    Example: rankwatch reproduce --full
    """
    with progress_bar("recomputing", of_bytes=False) as update:

        def show(step: str, done: int, total: int) -> None:
            if update is not None:
                update(description=step, completed=done, total=total)

        sections = run(full, show)
    if form is TableFormat.json:
        print(as_json(sections))
        return
    output_console().print(render_table(sections))

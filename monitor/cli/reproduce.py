"""`rankwatch reproduce`: the paper's numbers, computed beside the published ones."""

import sys
from typing import TYPE_CHECKING

from monitor.paper.reproduce import as_json, render_table
from monitor.paper.reproduce import run as recompute

if TYPE_CHECKING:
    from monitor.paper.reproduce import Section


def run(*, full: bool, form: str) -> None:
    """Recompute and print."""
    sections = _with_progress() if full and sys.stderr.isatty() else recompute(full)
    if form == "json":
        print(as_json(sections))
        return
    from monitor.render.terminal.report import output_console

    output_console().print(render_table(sections))


def _with_progress() -> "list[Section]":
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("recomputing", total=None)

        def progress(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        return recompute(True, progress)

"""`rankwatch reproduce`: the paper's numbers, computed beside the published ones."""

import json

from monitor.reproduce import as_json, render_table
from monitor.reproduce import run as recompute


def run(*, full: bool, form: str) -> None:
    """Recompute and print."""
    sections = recompute(full)
    if form == "json":
        print(json.dumps(as_json(sections)))
        return
    from monitor.serve.terminal import output_console

    output_console().print(render_table(sections))

"""The runs that commands of `rankwatch drift` read, and the options that they share."""

from typing import Annotated

import typer

from monitor.cli.shared.errors import note
from monitor.cli.shared.files import read_runs as read_shared
from monitor.cli.shared.files import refuse_copies
from monitor.cli.shared.options import LogOptions
from monitor.files.dated_runs import DatedRuns
from monitor.files.streams.paths import show
from schemas.records.text import shorten

YearsOption = Annotated[
    float, typer.Option("--years", min=0.01, max=1000, help="years of runs in which one false alarm is expected")
]
RunsAYearOption = Annotated[
    float, typer.Option("--runs-a-year", min=1, max=1_000_000, help="runs of a monitor in a year")
]
MonitorsOption = Annotated[
    int, typer.Option("--monitors", min=1, max=1_000_000, help="monitors that share that false alarm")
]
EqualRunsOption = Annotated[
    bool, typer.Option("--equal-runs", help="files with equal contents are runs that answered alike, not copies")
]


def read_runs(paths: list[str], logs: LogOptions, max_rejected: float, *, equal_runs: bool) -> DatedRuns:
    """Read the runs of files; an error ends the command."""
    runs = read_shared(paths, logs, max_rejected, DatedRuns())
    for of, _ in runs.sentinels().values():
        most = max(len(run.fresh) for run in of)
        refuse_copies(runs, [run for run in of if len(run.fresh) > most / 2], equal_runs=equal_runs)
    for name, path in runs.declaring.items():
        note(
            f"{show(path)}: it declares drift of {shorten(name)}, or reports a cancelled run or a change: `rankwatch watch` goes by that; "
            "`rankwatch drift` goes by its flags (--change RUN)"
        )
    return runs

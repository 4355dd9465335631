"""Options of more than one command of `rankwatch drift`: the rate of false alarms."""

from typing import Annotated

import typer

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

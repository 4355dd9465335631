"""`rankwatch drift plan`: which drop a sentinel finds, in how many runs, at which cost."""

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.text import Text

from monitor.cli.drift.reading import EqualRunsOption, MonitorsOption, RunsAYearOption, YearsOption, read_runs
from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.options import LogOptions, MaxRejectedOption, TableFormat, TableFormatOption, option
from monitor.render.terminal.layout import Column, output_console, table
from monitor.view.drift_plan import Noise, noise_of, planned
from monitor.words import drift_plan as words
from monitor.words.numbers import money
from schemas.records.text import shorten

if TYPE_CHECKING:
    from schemas.results.drift import DriftPlan


_ITEMS = (50, 200, 1_000)
_DROPS = (0.08, 0.04, 0.02)
_FLIPS = 0.28


def plan(
    logs: LogOptions,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH", help="runs of one model, for their noise", show_default=False)
    ] = None,
    items: Annotated[
        list[int] | None,
        option("--items", "items of a run; may be repeated  \\[default: 50, 200 and 1,000]", min=1, max=10**9),
    ] = None,
    flips: Annotated[
        float | None,
        option(
            "--flips",
            "share of the items that differ between two runs, in place of PATH  \\[default: 0.28, as at temperature 1]",
            min=0.0001,
            max=0.5,
        ),
    ] = None,
    history: Annotated[
        list[int] | None,
        option(
            "--history",
            "runs before the change; may be repeated  \\[default: 14 and 90, or those of PATH]",
            min=1,
            max=100_000,
        ),
    ] = None,
    drop: Annotated[
        list[float] | None,
        option(
            "--drop",
            "drop to find, in score units; may be repeated  \\[default: 0.08, 0.04 and 0.02]",
            min=0.0001,
            max=1,
        ),
    ] = None,
    price: Annotated[float | None, option("--price", "price of an item", min=0, max=1e9)] = None,
    years: YearsOption = 5,
    runs_a_year: RunsAYearOption = 365,
    monitors: MonitorsOption = 1,
    equal_runs: EqualRunsOption = False,
    max_rejected: MaxRejectedOption = 0.1,
    form: TableFormatOption = TableFormat.table,
) -> None:
    """Plan how many items to run: which drop is found within how many runs, and what a year of runs costs.

    Example: rankwatch drift plan --price 0.002

    Example: rankwatch drift plan runs/ --items 300
    """
    source, runs = None, 0
    if paths:
        if flips is not None:
            stop("--flips: the noise comes from the runs; omit one of the two", USAGE)
        source, runs, noise = _own(paths, logs, max_rejected, equal_runs=equal_runs)
    else:
        noise = Noise((flips or _FLIPS) / 2)
    made = planned(
        noise,
        items or _ITEMS,
        history or ([runs] if runs else (14, 90)),
        sorted(drop or _DROPS, reverse=True),
        years=years,
        runs_a_year=runs_a_year,
        monitors=monitors,
        price=price,
        source=source,
    )
    if form is TableFormat.json:
        print(msgspec.json.format(msgspec.json.encode(made), indent=2).decode())
    else:
        _print(made)


def _own(paths: list[str], logs: LogOptions, most: float, *, equal_runs: bool) -> "tuple[tuple[str, str], int, Noise]":
    """Return the benchmark and model of runs, how many there are, and their noise."""
    found = read_runs(paths, logs, most, equal_runs=equal_runs).sentinels()
    if len(found) > 1:
        (one, first), (two, second), *_ = found
        stop(
            f"the runs are of {shorten(first)} on {shorten(one)} and of {shorten(second)} on {shorten(two)}; plan one at a time",
            USAGE,
        )
    ((source, (runs, _)),) = found.items()
    try:
        return source, len(runs), noise_of([run.means() for run in runs])
    except ValueError as error:
        stop(f"{shorten(source[1])} on {shorten(source[0])}: {error}")


def _print(made: "DriftPlan") -> None:
    console, watches = output_console(), made.watches
    columns = [
        Column("items", [Text(f"{each.items:,}") for each in watches], right=True),
        Column("history", [Text(f"{each.history:,}") for each in watches], right=True),
    ]
    for place, of in enumerate(watches[0].drops):
        cells = [Text(words.found(each, each.drops[place])) for each in watches]
        columns.append(Column(words.drop(of.drop), cells, right=True))
    costs = [each.cost_a_year for each in watches if each.cost_a_year is not None]
    if costs:
        columns.append(Column("cost a year", [Text(money(cost)) for cost in costs], right=True))
    console.print(Text(words.noise(made)))
    console.print(Text())
    console.print(table(columns))
    console.print(Text())
    for sentence in words.unfound(made):
        console.print(Text(sentence))
    console.print(Text(words.bound(made)))

"""`rankwatch drift PATH...`: find out whether a model has got worse."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from monitor.cli.drift.reading import EqualRunsOption, MonitorsOption, RunsAYearOption, YearsOption, read_runs
from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.options import LogOptions, MaxRejectedOption, OutputOption, Paths, ReportFormat, option
from monitor.cli.shared.output import choose_output
from monitor.files.dated_runs import DatedRuns
from monitor.render import drift as shown
from monitor.view.drift import sentinel_of, with_found
from schemas.records.drift import DriftSettings
from schemas.records.run_names import date_in
from schemas.records.text import shorten
from schemas.results.drift import DriftReport

if TYPE_CHECKING:
    from monitor.cli.shared.output import Output


class Assume(StrEnum):
    """What is assumed while nothing changes."""

    exchangeable_runs = "exchangeable-runs"
    independent_items = "independent-items"


class Strata(StrEnum):
    """The runs among which a run is ranked."""

    weekday = "weekday"


class Missing(StrEnum):
    """What a missing item is."""

    ignore = "ignore"
    fail = "fail"


def runs(
    paths: Paths,
    logs: LogOptions,
    form: Annotated[
        ReportFormat | None,
        option("--format", "table, json or markdown  \\[default: by the name of the output file, else table]"),
    ] = None,
    out: OutputOption = None,
    years: YearsOption = 5,
    runs_a_year: RunsAYearOption = 365,
    monitors: MonitorsOption = 1,
    both: Annotated[bool, typer.Option("--both", help="watch for a model that got better too")] = False,
    ever: Annotated[
        float | None,
        option("--ever", "chance of a false alarm, ever, in a history; replaces --years", min=1e-9, max=0.5),
    ] = None,
    assume: Annotated[
        Assume, typer.Option("--assume", help="independent-items finds drops in shorter histories, and assumes more")
    ] = Assume.exchangeable_runs,
    strata: Annotated[Strata | None, option("--strata", "rank a run among the runs of the same weekday only")] = None,
    missing: Annotated[
        Missing, typer.Option("--missing", help="fail: an item without a score counts as 0")
    ] = Missing.ignore,
    min_coverage: Annotated[
        float, typer.Option("--min-coverage", min=0, max=1, help="least share of the items in a run that is ranked")
    ] = 0.8,
    items: Annotated[
        int | None,
        option("--items", "items of a whole run  \\[default: as many as the first run has]", min=1, max=10**9),
    ] = None,
    change: Annotated[
        list[str] | None,
        option(
            "--change", "a change that you made: the history begins again with this run; may be repeated", metavar="RUN"
        ),
    ] = None,
    seed: Annotated[
        str | None, option("--seed", "splits ties between runs  \\[default: follows from the other flags]")
    ] = None,
    equal_runs: EqualRunsOption = False,
    max_rejected: MaxRejectedOption = 0.1,
) -> None:
    """Find out whether a model has got worse: each file, or each value of the field run, is one run of it.

    Exits with 0 where it is quiet or better, 4 where a model got worse, 5 where its judge alone moved, 3 with too little history.

    `rankwatch drift plan --help`: which drop is found with so many items.

    Example: rankwatch drift runs/
    """
    output = choose_output(form, out)
    if output.form not in {ReportFormat.table, ReportFormat.json, ReportFormat.markdown}:
        stop(f"drift is not written as {output.form.value}; use table, json or markdown", USAGE)
    settings = DriftSettings(
        years=years,
        runs_a_year=runs_a_year,
        monitors=monitors,
        both=both,
        ever=ever,
        assume=assume.value,
        strata=None if strata is None else "weekday",
        missing=missing.value,
        min_coverage=min_coverage,
        items=items,
        seed=seed,
        changes=tuple(change or ()),
    )
    report = _report(read_runs(paths, logs, max_rejected, equal_runs=equal_runs), settings, equal_runs=equal_runs)
    _print(report, output)
    raise SystemExit(report.exit_code)


def _report(runs: "DatedRuns", settings: "DriftSettings", *, equal_runs: bool) -> "DriftReport":
    found = runs.sentinels()
    names = {run.name for of, _ in found.values() for run in of}
    for change in settings.changes:
        if change not in names:
            stop(f"--change {shorten(change)}: no run has this name; the runs are {_some(sorted(names))}", USAGE)
    if settings.strata is not None and (undated := sorted(name for name in names if date_in(name) is None)):
        stop(f"--strata {settings.strata}: run {shorten(undated[0])} has no date in its name", USAGE)
    sentinels = [
        sentinel_of(benchmark, model, of, settings, ordered_by=ordered_by)
        for (benchmark, model), (of, ordered_by) in found.items()
    ]
    return with_found(DriftReport(settings=settings, sentinels=tuple(sentinels), equal_runs=equal_runs))


def _some(names: list[str]) -> str:
    shown = ", ".join(shorten(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5:,} more"


def _print(report: "DriftReport", output: "Output") -> None:
    with output.opened():
        if output.form is ReportFormat.json:
            print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        else:
            print(
                "\n".join(shown.terminal(report))
                if output.form is ReportFormat.table
                else shown.markdown(report).rstrip()
            )

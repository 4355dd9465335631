"""A report on standard output as tables; apart from the other formats, as rich costs start-up time."""

from collections.abc import Iterable

from monitor.cli.shared.options import Pairs
from monitor.cli.shared.settings import read_settings
from monitor.render.terminal.layout import output_console
from monitor.render.terminal.report import ROW_LIMIT, render_report
from monitor.view.build import ReportView
from monitor.view.ranking.standings import tie_bands
from monitor.words.flags import named_flags
from schemas.results.report import Report


def print_table(
    views: Iterable[ReportView],
    pairs: Pairs | None = None,
    *,
    verbose: bool = False,
    top: int | None = None,
    last: bool = True,
) -> None:
    """Print reports as tables for the terminal; `pairs` that were asked for are listed. The last output names the next command."""
    low_coverage = read_settings().low_coverage
    shown = list(views)
    render_report(
        Report(benchmarks=[named_flags(view.report) for view in shown]),
        output_console(),
        limit=top or ROW_LIMIT,
        low_coverage=low_coverage,
        ties={view.report.benchmark: tie_bands(view.table, low_coverage) for view in shown},
        with_pairs=pairs is not None,
        verbose=verbose,
        last=last,
    )

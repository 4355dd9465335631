"""A report on standard output, in every format."""

import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import TYPE_CHECKING

from monitor.engine.partition import Partition

if TYPE_CHECKING:
    from monitor.report.build import Which


def print_report(partitions: Iterable[Partition], form: str, pairs: str, *, detail: bool = False) -> None:
    """Print the report of what has been read, taken as complete where nothing else was declared.

    Parameters
    ----------
    partitions : iterable of Partition
    form : {"table", "json", "csv", "markdown", "html"}
    pairs : {"adjacent", "all"}
    detail : bool
        Whether the second opinions are computed, and shown where the format has room for them.
    """
    from monitor.report.build import build_report, report_views

    which: Which = "all" if pairs == "all" else "adjacent"
    if isinstance(sys.stdout, TextIOWrapper) and form != "table":
        # A document is UTF-8 wherever it is made; a table speaks the encoding of its terminal.
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    if form == "json" and detail:
        from monitor.report.second_opinions import with_detail
        from schemas.detail import DetailedReport

        found = [
            with_detail(view.report, view.table) for view in report_views(partitions, pairs=which, assert_complete=True)
        ]
        print(DetailedReport(benchmarks=found).model_dump_json())
    elif form in {"markdown", "html"}:
        print(_document(partitions, form, which, detail=detail), end="")
    else:
        report = build_report(partitions, pairs=which, assert_complete=True)
        if form == "json":
            print(report.model_dump_json())
        elif form == "csv":
            from monitor.render.csv import render_csv

            print(render_csv(report), end="")
        else:
            from monitor.render.terminal.report import output_console, render_report

            render_report(report, output_console(), low_coverage=low_coverage())


def _document(partitions: Iterable[Partition], form: str, which: "Which", *, detail: bool) -> str:
    from monitor.render.document import ReportDocument
    from monitor.render.html import render_html
    from monitor.render.markdown import render_markdown
    from monitor.report.build import report_views
    from monitor.report.evidence_path import chart_data

    share = low_coverage()
    shown = []
    for view in report_views(partitions, pairs=which, assert_complete=True):
        more = None
        if detail:
            from monitor.report.second_opinions import benchmark_detail

            more = benchmark_detail(view.table)
        shown.append(ReportDocument(view.report, chart_data(view.table), share, more))
    return render_html(shown) if form == "html" else render_markdown(shown)


def low_coverage() -> float:
    """Return the setting; a wrong one ends the command."""
    from monitor.cli.settings import read_settings

    return read_settings({}).low_coverage

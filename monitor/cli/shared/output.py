"""A report on standard output, in every format."""

import sys
from collections.abc import Iterable
from io import TextIOWrapper

from monitor.cli.shared.errors import note
from monitor.cli.shared.options import Pairs, ReportFormat
from monitor.cli.shared.settings import read_settings
from monitor.engine.partition import Partition
from monitor.render.flags import named_flags, with_flags
from monitor.report.build import build_report, report_views
from schemas.report import FILES_COMPLETE, Report
from schemas.text import shorten


def print_report(
    partitions: Iterable[Partition], form: ReportFormat, pairs: Pairs, *, second_opinions: bool = False
) -> None:
    """Print a report that takes undeclared benchmarks as complete.

    Parameters
    ----------
    partitions : iterable of Partition
    form : ReportFormat
    pairs : Pairs
    second_opinions : bool
        Whether to add the second opinions: in json, markdown and html.
    """
    if isinstance(sys.stdout, TextIOWrapper) and form is not ReportFormat.table:
        # A document is UTF-8 everywhere; a table uses the encoding of its terminal.
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    # Each format loads only what it needs: rich and the figures cost start-up time.
    if form in {ReportFormat.markdown, ReportFormat.html}:
        print(_document(partitions, form, pairs, second_opinions=second_opinions), end="")
    elif second_opinions:
        from monitor.report.second_opinions import with_detail
        from schemas.detail import DetailedReport

        reports = report_views(partitions, pairs=pairs.value, assert_complete=True)
        print(DetailedReport(benchmarks=[with_detail(each.report, each.table) for each in reports]).model_dump_json())
    else:
        report = build_report(partitions, pairs=pairs.value, assert_complete=True)
        if form is ReportFormat.json:
            print(report.model_dump_json())
        elif form is ReportFormat.csv:
            from monitor.render.csv import render_csv

            print(render_csv(report), end="")
            for benchmark in report.benchmarks:
                if benchmark.incomplete or (benchmark.order.reason or "").startswith(
                    FILES_COMPLETE
                ):  # no column has it
                    note(f"{shorten(benchmark.benchmark)}: {with_flags(benchmark.order.reason or '')}")
                if benchmark.partial:
                    note(f"{shorten(benchmark.benchmark)}: may be partial: {benchmark.partial}")
                if benchmark.clusters is not None and benchmark.clusters.warning:
                    note(f"{shorten(benchmark.benchmark)}: {benchmark.clusters.warning}")
        else:
            from monitor.render.terminal.layout import output_console
            from monitor.render.terminal.report import render_report

            report = Report(benchmarks=[named_flags(each) for each in report.benchmarks])
            render_report(report, output_console(), low_coverage=read_settings().low_coverage)


def _document(partitions: Iterable[Partition], form: ReportFormat, pairs: Pairs, *, second_opinions: bool) -> str:
    from monitor.render.document import ReportDocument
    from monitor.render.html import render_html
    from monitor.render.markdown import render_markdown
    from monitor.report.evidence_path import chart_data
    from monitor.report.second_opinions import benchmark_detail

    low_coverage = read_settings().low_coverage
    documents = [
        ReportDocument(
            named_flags(each.report),
            chart_data(each.table),
            low_coverage,
            benchmark_detail(each.table) if second_opinions else None,
        )
        for each in report_views(partitions, pairs=pairs.value, assert_complete=True)
    ]
    return render_html(documents) if form is ReportFormat.html else render_markdown(documents)

"""A report on standard output, in every format."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from monitor.cli.shared.declared.prices import prices_fault
from monitor.cli.shared.errors import USAGE, note, stop, writing
from monitor.cli.shared.options import Pairs, ReportFormat
from monitor.cli.shared.settings import read_settings
from monitor.files.streams.paths import show
from monitor.render.csv import write_csv
from monitor.view.board import BoardView
from monitor.view.build import MAX_REPORT_PAIRS, ReportView, count_pairs, report_views
from monitor.view.labels import Labels, labels_report
from monitor.view.pairs.second_opinions import with_detail
from monitor.view.ranking.committed_race import with_committed_race
from monitor.view.ranking.goal import priced_report
from monitor.view.ranking.verified import with_verified
from monitor.words.flags import with_flags
from monitor.words.reading import first
from schemas.records.suites import Suite
from schemas.records.text import shorten
from schemas.results.detail import DetailedReport
from schemas.results.reasons import Reason, has
from schemas.results.report import BenchmarkReport

_SUFFIXES: Final = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}


_OTHER: Final = frozenset(  # how the names of files end that a table of text would not be
    {
        ".tex",
        ".svg",
        ".png",
        ".pdf",
        ".xls",
        ".xlsx",
        ".ods",
        ".jsonl",
        ".ndjson",
        ".yaml",
        ".yml",
        ".xml",
        ".tsv",
        ".ipc",
    }
    | {".gz", ".bz2", ".xz", ".zst", ".zip"}
)

_DOCUMENTS: Final = frozenset({ReportFormat.json, ReportFormat.markdown, ReportFormat.html})
"""Formats that have all of a report."""


@dataclass(frozen=True)
class Output:
    """Where a report goes, and how it is written."""

    form: ReportFormat
    path: Path | None = None  # None for standard output
    pairs: Pairs | None = None  # which pairs to list; None for the default of the format
    verbose: bool = False  # whether a table has every procedure, reason and assumption
    top: int | None = None  # models that a table shows
    second_opinions: bool = False  # whether to add the second opinions: in json, markdown and html
    # price of an item for each model, and under "" for all others: goals are priced
    prices: Mapping[str, float] | None = None

    @property
    def streams(self) -> bool:
        """Whether the rows of pairs are written as they are made."""
        return (self.form is ReportFormat.json and not self.second_opinions) or self.form.is_table_of_pairs

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Write standard output to the file; the file is replaced once everything is written."""
        if self.path is None:
            yield
            return
        with writing(self.path), _replaced(self.path):
            yield


@contextmanager
def _replaced(path: Path) -> Iterator[None]:
    """Write standard output to a file."""
    if path.exists() and not path.is_file():  # a device or a pipe: nothing to replace
        with path.open("w", encoding="utf-8", newline="\n") as file, redirect_stdout(file):
            yield
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("x", encoding="utf-8", newline="\n") as file, redirect_stdout(file):
            yield
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def choose_output(
    form: ReportFormat | None,
    path: Path | None,
    pairs: Pairs | None = None,
    *,
    verbose: bool = False,
    top: int | None = None,
    second_opinions: bool = False,
    prices: Mapping[str, float] | None = None,
) -> Output:
    """Check the options of a report before anything is read; the name of the file gives the format unless a flag does."""
    if form is None and path is not None and path.suffix.lower() in _OTHER:
        site = (
            "; rankwatch export writes a table for LaTeX and badges" if path.suffix.lower() in {".tex", ".svg"} else ""
        )
        known = ", ".join(dict.fromkeys(f".{name}" for name in ("html", "md", "json", "csv", "parquet", "arrow")))
        stop(f"--output {show(str(path))}: a report is not written as {path.suffix}; use {known} or .txt{site}", USAGE)
    chosen = form or ReportFormat(_SUFFIXES.get(path.suffix.lower() if path else "", "table"))
    if second_opinions and (chosen is ReportFormat.table or chosen.is_table_of_pairs):
        stop(f"--detail is not available with --format {chosen.value}; use json, markdown or html", USAGE)
    if verbose and chosen is not ReportFormat.table:
        stop(
            f"--verbose is not available with --format {chosen.value}; omit it, or add --detail for second opinions",
            USAGE,
        )
    if top is not None and chosen is not ReportFormat.table:
        stop(f"--top is not available with --format {chosen.value}, which has all models; omit it", USAGE)
    if chosen in {ReportFormat.parquet, ReportFormat.arrow}:
        _check_binary(chosen, path)
    if path is not None and not path.parent.is_dir():
        stop(
            f"--output {show(str(path))}: the folder {show(str(path.parent))} does not exist; create it, or choose another file",
            USAGE,
        )
    if path is not None and path.is_dir():
        stop(f"--output {show(str(path))}: this is a folder; give a file in it", USAGE)
    return Output(chosen, path, pairs, verbose, top, second_opinions, prices)


def _check_binary(form: ReportFormat, path: Path | None) -> None:
    from monitor.render.arrow import ArrowError, require_pyarrow

    if path is None and sys.stdout.isatty():
        stop(f"--format {form.value} is not for a terminal; give a file, -o FILE, or a pipe", USAGE)
    try:
        require_pyarrow()
    except ArrowError as error:
        stop(str(error))


def check_labels_output(labels: Path | None, output: Output) -> None:
    """End a command whose labels have no place in a table of pairs."""
    if labels is not None and output.form.is_table_of_pairs:
        stop(f"--labels is not available with --format {output.form.value}; use table, json, markdown or html", USAGE)


def print_report(
    boards: Mapping[str, BoardView],
    output: Output,
    suites: Sequence[Suite] = (),
    labels: Mapping[str, Labels] | None = None,
) -> None:
    """Print a report that takes undeclared benchmarks as complete; suites come first."""
    listed = _listed_pairs(output, count_pairs(boards.values()))
    views: Iterable[ReportView] = report_views(
        boards, pairs=listed.value, assert_complete=True, suites=suites, with_rows=not output.streams
    )
    if output.prices is not None or any(each.spec.goal for each in boards.values()):
        views = _priced(list(views), output.prices)
    views = map(with_verified, views)
    if output.verbose or output.form in _DOCUMENTS:
        views = (replace(view, report=with_committed_race(view.report, view.table)) for view in views)
    if labels:
        views = (_with_labels(view, labels) for view in views)
    with output.opened():
        _print(views, output)


def _with_labels(view: ReportView, labels: Mapping[str, Labels]) -> ReportView:
    mine = labels.get(view.report.benchmark)
    if mine is None or view.table.benchmark.united is not None:
        return view
    return replace(view, report=view.report.replace(labels=labels_report(view.table, mine)))


def _listed_pairs(output: Output, count: int) -> Pairs:
    """Return which pairs to list; too many are listed only if they are asked for, and only where they need no memory."""
    listed = output.form.pairs(output.pairs)
    if listed is Pairs.adjacent or count <= MAX_REPORT_PAIRS:
        return listed
    if output.pairs is None:
        note(f"only neighbours in rank are listed: there are {count:,} pairs; --pairs all lists all of them")
        return Pairs.adjacent
    if not output.streams:
        detail = " --detail" if output.second_opinions else ""
        stop(
            f"--pairs all: there are {count:,} pairs, and --format {output.form.value}{detail} lists at most {MAX_REPORT_PAIRS:,}; "
            "use json, csv, parquet or arrow without --detail, or --pairs adjacent",
            USAGE,
        )
    return listed


def _priced(views: list[ReportView], given: Mapping[str, float] | None) -> Iterator[ReportView]:
    """Price the goals of reports; prices of flags that do not fit the models end the command, those of the settings may have others."""
    reports = [view.report for view in views]
    if given is not None:
        prices = given
        fault = prices_fault(reports, prices)
        if fault is not None:
            stop(fault, USAGE)
    else:
        runs = [run for report in reports if report.goal is not None for run in report.goal.by_model]
        prices = {
            name: price for name, price in read_settings().prices.items() if name in {"", *(r.model for r in runs)}
        }
        if prices and (fault := prices_fault(reports, prices, "prices of the settings")) is not None:
            note(fault)
    return (replace(view, report=priced_report(view.report, prices)) for view in views)


def _print(views: Iterable[ReportView], output: Output) -> None:
    form, second_opinions = output.form, output.second_opinions
    if isinstance(sys.stdout, TextIOWrapper) and form is not ReportFormat.table:
        # A document is UTF-8 everywhere; a table uses the encoding of its terminal.
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    # Each format loads only what it needs: rich and the figures cost start-up time.
    if form in {ReportFormat.markdown, ReportFormat.html}:
        print(_document(views, form, second_opinions=second_opinions), end="")
    elif second_opinions:
        print(DetailedReport(benchmarks=[with_detail(each.report, each.table) for each in views]).as_json().decode())
    elif form is ReportFormat.table:
        from monitor.cli.shared.table import print_table

        print_table(views, output.pairs, verbose=output.verbose, top=output.top)
    elif form is ReportFormat.json:
        _print_json(views)
    else:
        views = list(views)
        _print_pairs((part for view in views for part in _report_parts(view)), form)
        for view in views:
            _note_without_column(view.report)


def _note_without_column(benchmark: BenchmarkReport) -> None:
    """Print what a table of pairs has no column for."""
    for text in first(benchmark):
        note(f"{shorten(benchmark.benchmark)}: {text}")
    if benchmark.incomplete or has(benchmark.order.facts, Reason.FILES_COMPLETE):  # no column has it
        note(f"{shorten(benchmark.benchmark)}: {with_flags(benchmark.order.reason or '')}")
    if benchmark.partial:
        note(f"{shorten(benchmark.benchmark)}: may be partial: {benchmark.partial}")
    if benchmark.clusters is not None and benchmark.clusters.warning:
        note(f"{shorten(benchmark.benchmark)}: {benchmark.clusters.warning}")


def _print_json(views: Iterable[ReportView]) -> None:
    """Print the model `Report`, the rows of its pairs as they are made: `pairs` is the last field of a benchmark."""
    print('{"benchmarks":[', end="")
    for number, view in enumerate(views):
        print("," * (number > 0) + view.report.as_json().decode().removesuffix("]}"), end="")
        rows = (row.as_json().decode() for part in view.parts() for row in part)
        print(next(rows, ""), end="")
        for row in rows:
            print(f",{row}", end="")
        print("]}", end="")
    print("]}")


def _report_parts(view: ReportView) -> Iterator[BenchmarkReport]:
    """Yield the report with some rows at a time."""
    return (view.report.replace(pairs=part) for part in view.parts())


def _print_pairs(reports: Iterable[BenchmarkReport], form: ReportFormat) -> None:
    if form is ReportFormat.csv:
        write_csv(reports, sys.stdout)
        return
    from monitor.render.arrow import write_pairs

    write_pairs(reports, sys.stdout.buffer, "parquet" if form is ReportFormat.parquet else "arrow")


def _document(views: Iterable[ReportView], form: ReportFormat, *, second_opinions: bool) -> str:
    from monitor.render.report import document_of, render_html, render_markdown

    low_coverage, listed = read_settings().low_coverage, list(views)
    documents = [document_of(each, low_coverage, detail=second_opinions, several=len(listed) > 1) for each in listed]
    return render_html(documents) if form is ReportFormat.html else render_markdown(documents)

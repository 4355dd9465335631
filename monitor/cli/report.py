"""`rankwatch report`: report on complete results."""

from typing import Annotated

import typer

from monitor.cli.shared.conflicts import check_conflicts_file, save_conflicts
from monitor.cli.shared.declared.prices import parse_prices
from monitor.cli.shared.declared.suites import suites_of_files
from monitor.cli.shared.files import parse_epoch, read_results, stop_refused
from monitor.cli.shared.labels import LabelOptions, check_label_options, check_suites_labelled, read_labels
from monitor.cli.shared.options import (
    ConflictsOption,
    DeclareOptions,
    DistinctOption,
    EpochOption,
    FormatOption,
    InheritOption,
    LogOptions,
    MaxRejectedOption,
    OutputOption,
    PairsOption,
    Paths,
    PriceOption,
    PricesOption,
    SuiteMissingOption,
    SuiteOption,
    TopOption,
    VerboseOption,
)
from monitor.cli.shared.output import check_labels_output, choose_output, print_report


def report(
    paths: Paths,
    declared: DeclareOptions,
    logs: LogOptions,
    people: LabelOptions,
    form: FormatOption = None,
    out: OutputOption = None,
    pairs: PairsOption = None,
    top: TopOption = None,
    second_opinions: Annotated[
        bool,
        typer.Option(
            "--detail",
            help="add second opinions: other families, bootstrap, cluster sensitivity (json, markdown, html)",
        ),
    ] = False,
    verbose: VerboseOption = False,
    epoch: EpochOption = None,
    inherit: InheritOption = False,
    conflicts: ConflictsOption = None,
    max_rejected: MaxRejectedOption = 0.1,
    suite: SuiteOption = None,
    suite_missing: SuiteMissingOption = None,
    distinct: DistinctOption = False,
    price: PriceOption = None,
    prices: PricesOption = None,
) -> None:
    """Report on results that are complete.

    Takes the items in the files as the whole benchmark unless a declaration gives the item count; the report names the assumption.

    Example: rankwatch report results/ -o report.html
    """
    output = choose_output(
        form,
        out,
        pairs,
        verbose=verbose,
        top=top,
        second_opinions=second_opinions,
        prices=parse_prices(price or (), prices, of_all=True),
    )
    check_label_options(people)
    check_labels_output(people.labels, output)
    check_conflicts_file(conflicts)
    boards = read_results(paths, max_rejected, logs, declared, parse_epoch(epoch, inherit=inherit), inherit=inherit)
    labels = read_labels(people, boards, paths, logs, max_rejected)
    suites = suites_of_files(suite, boards, None if suite_missing is None else suite_missing.value, distinct=distinct)
    check_suites_labelled(suites, labels)
    save_conflicts(boards.values(), conflicts)
    print_report(boards, output, suites, labels)
    stop_refused(boards.values())

"""Labels of people and the scores of a judge: read, checked, and matched with the results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from monitor.cli.shared.declared.declarations import Declarations
from monitor.cli.shared.declared.flags import Flags
from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.files import find_files, make_importer, read_results, stop_refused
from monitor.cli.shared.options import LogOptions, ScoreOptions, option
from monitor.files.streams.paths import STDIN, show
from monitor.view.board import BoardView
from monitor.view.items.conflict_rows import conflict_rows
from monitor.view.kinds.kind import kind_of
from monitor.view.labels import Labels, item_ids
from schemas.records.suites import Suite
from schemas.records.text import shorten

_PANEL = "Labels of people"


@dataclass(frozen=True)
class LabelOptions:
    """Labels of people that correct a judge."""

    labels: Annotated[
        Path | None,
        option(
            "--labels",
            "scores by people of a part of the items, in a file with the same ids and models: which model do they prefer on all?",
            metavar="FILE",
            rich_help_panel=_PANEL,
        ),
    ] = None
    label_seed: Annotated[
        str | None,
        option(
            "--label-seed",
            "seed of the order in which people label  \\[default: the seed of a declared committed order]",
            metavar="SEED",
            rich_help_panel=_PANEL,
        ),
    ] = None
    label_every: Annotated[
        int | None,
        option(
            "--label-every",
            "people label every R-th item of that order: rankwatch order --every R lists them",
            min=1,
            metavar="R",
            rich_help_panel=_PANEL,
        ),
    ] = None


def check_label_options(options: LabelOptions) -> None:
    """End the command if the options of labels do not fit together, before anything is read."""
    if options.labels is None:
        if options.label_seed is not None or options.label_every is not None:
            stop("--label-seed and --label-every are for --labels FILE; add it, or omit them", USAGE)
    elif options.label_every is None:
        stop(
            "--labels: add --label-every R, as fixed before the first score: people label every R-th item (1 for all, in order)",
            USAGE,
        )
    elif str(options.labels) == STDIN:
        stop("--labels: give a file; standard input cannot be read twice", USAGE)


def read_labels(
    options: LabelOptions,
    boards: Mapping[str, BoardView],
    paths: Sequence[str],
    logs: ScoreOptions,
    max_rejected: float,
) -> dict[str, Labels]:
    """Return the labels of each benchmark that has some; labels that cannot count end the command."""
    if options.labels is None:
        return {}
    file = str(options.labels)
    # A table need not name its benchmark; one that is named has to be of the results.
    chosen = LogOptions(scale=logs.scale, benchmark=next(iter(boards)) if len(boards) == 1 else None)
    results = {path.resolve() for path in find_files(make_importer(logs), paths)}
    for path in find_files(make_importer(chosen), [file]):
        if path.resolve() in results:
            stop(f"--labels {show(path)} is read as results of the judge too; keep it in another folder", USAGE)
    found = read_results([file], max_rejected, chosen, Declarations({}, Flags({}, {})), part=True)
    stop_refused(found.values())
    return {name: _checked(name, each, boards, options, file) for name, each in found.items()}


def _checked(name: str, labels: BoardView, boards: Mapping[str, BoardView], options: LabelOptions, file: str) -> Labels:
    where, board = f"--labels {show(file)}: {shorten(name)}", boards.get(name)
    if board is None:
        stop(
            f"{where} is no benchmark of the results, which have {', '.join(shorten(each) for each in list(boards)[:5])}",
            USAGE,
        )
    if board.spec.weights or not (kind_of(board).has_end and kind_of(labels).has_end):
        stop(f"{where}: labels are for scores of items, not for battles or weighted clusters; omit --labels", USAGE)
    declared = board.spec.order.seed
    seed = options.label_seed if declared is None else declared
    if not seed:
        stop(f"{where}: add --label-seed SEED, the seed of the order in which people label", USAGE)
    if options.label_seed not in {None, seed}:
        stop(f"{where}: the committed order has the seed {shorten(seed)}, and --label-seed another; omit it", USAGE)
    if labels.incomplete:
        stop(f"{where}: {labels.incomplete}; complete the file")
    if reason := labels.reading.off_scale:
        stop(f"{where}: {reason}")
    if clash := next(conflict_rows(labels), None):
        one, other = ("none" if score is None else f"{score:g}" for score in (clash.old_score, clash.new_score))
        stop(
            f"{where}: {labels.counters['conflicts']:,} labels contradict earlier ones, first item {shorten(clash.item_id)} of "
            f"{shorten(clash.model)}: {one} and {other}; keep one score of each item and model, such as the mean of several people"
        )
    models = {each.model for each in board.contestants} & {each.model for each in labels.contestants}
    if len(models) < 2:
        have = f"only of {shorten(next(iter(models)))}" if models else "of none of its models"
        stop(f"{where}: the labels are {have}; a comparison takes labels of two models, of the same items", USAGE)
    if {key.item for key in labels.item_keys}.isdisjoint(item_ids(board)):
        stop(f"{where}: no labelled item is one of the results; use the same item ids", USAGE)
    return Labels(labels, seed, options.label_every or 1)


def check_suites_labelled(suites: Sequence[Suite], labels: Mapping[str, Labels]) -> None:
    """End the command if a suite has a labelled member: it would rank by the judge alone."""
    for suite in suites:
        for name in filter(labels.__contains__, suite.members):
            stop(
                f"--labels: the suite {shorten(suite.name)} would rank by the judge alone, and people labelled its benchmark "
                f"{shorten(name)}; omit --suite or --labels",
                USAGE,
            )


def check_labelled(labels: Labels, models: Sequence[str]) -> None:
    """End the command if one of some models has no labels: people could not judge it."""
    labelled = {each.model for each in labels.board.contestants}
    if without := [model for model in models if model not in labelled]:
        stop(f"--labels: {shorten(without[0])} has no labels; label it too, or compare other models", USAGE)

"""`rankwatch export`: write a folder of files in some shape, or the scores as one file."""

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.exports.boards import boards_of, write_files
from monitor.cli.exports.shapes import ShapeOptions, check_folder
from monitor.cli.shared.errors import USAGE, note, stop
from monitor.cli.shared.files import parse_epoch, read_results, stop_refused
from monitor.cli.shared.options import (
    DeclareOptions,
    EpochOption,
    InheritOption,
    LogOptions,
    MaxRejectedOption,
    Pairs,
    PairsOption,
    Paths,
)
from monitor.cli.shared.scores import SUFFIXES, check_scores_file, write_scores
from monitor.files.streams.paths import show
from monitor.render.board.exporters import ExportError, export_files
from monitor.view.score_lines import SENTINEL, all_score_lines
from monitor.words.counts import counted


def export(
    site: Annotated[
        Path,
        typer.Argument(
            metavar="SITE",
            help="folder to write: a new one, an empty one, or that of an earlier export; or a new file: .jsonl, .parquet or .arrow",
            show_default=False,
        ),
    ],
    paths: Paths,
    declared: DeclareOptions,
    logs: LogOptions,
    shape: ShapeOptions,
    pairs: PairsOption = None,
    epoch: EpochOption = None,
    inherit: InheritOption = False,
    max_rejected: MaxRejectedOption = 0.1,
) -> None:
    """Write a site of files: reports, tables with ties, badges, and what to quote; or another shape; or the scores as one file.

    A site needs no server and no script. Each benchmark has a folder with its report (index.html), the ranking with its ties (ties.csv,
    ties.json, ties.md, table.tex for LaTeX, embed.html for a frame) and SVG badges of each model. Takes the items in the files as the
    whole benchmark, as report does.

    --as writes the scores of models, with their intervals and ties, in the shape of Every Eval Ever (every-eval-ever) or of Hugging Face
    (hf-eval-results for .eval_results in a repository, hf-model-index for the README), or as an exporter that is installed.

    A file (.jsonl, .parquet, .arrow) gets every score that counts, as events, from results of any harness.

    Example: rankwatch export site/ results/
    """
    is_file = site.suffix.lower() in SUFFIXES and not site.is_dir()
    if is_file:
        check_scores_file(site)
        if site.exists():  # the arguments may be in the wrong order
            stop(
                f"{show(str(site))}: this is no folder, and a file of scores has to be new; give a new name, then the results",
                USAGE,
            )
        if pairs is not None:
            stop("--pairs is about reports, and a file of scores has none; omit it, or give a folder", USAGE)
        if shape.given:
            stop(f"{shape.given[0]} is about folders, and {show(str(site))} is a file of scores; omit it", USAGE)
    else:
        exporter, context = shape.choose()
    earlier = [] if is_file else check_folder(site)
    boards = read_results(paths, max_rejected, logs, declared, parse_epoch(epoch, inherit=inherit), inherit=inherit)
    if is_file:
        for name, board in boards.items():
            if board.drift is not None:
                stop(f"{name} {SENTINEL}")
        write_scores(all_score_lines(boards.values()), site)
        stop_refused(boards.values())
        return
    unknown = sorted(context.datasets.keys() - boards.keys())
    if unknown:
        stop(
            f"--dataset {unknown[0]}: the results have no benchmark of this name; they have {', '.join(boards)}", USAGE
        )
    try:
        files = export_files(exporter, boards_of(boards, pairs or Pairs.adjacent), context)
    except ExportError as error:
        stop(str(error))
    count = write_files(site, earlier, files)
    index = f"; open {site / 'index.html'}" if "index.html" in files else ""
    note(f"{counted(count, 'file')} written{index}")
    stop_refused(boards.values())

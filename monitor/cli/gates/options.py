"""The options of `gate`: its formats, the question of a margin, and an evaluation that it runs itself."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.shared.options import option


class GateFormat(StrEnum):
    """How the verdict is written."""

    text = "text"
    json = "json"
    junit = "junit"
    github = "github"
    markdown = "markdown"
    svg = "svg"
    html = "html"


class OnUndecided(StrEnum):
    """What an undecided gate counts as."""

    pass_ = "pass"  # noqa: S105 - no password
    fail = "fail"
    wait = "wait"


class Expected(StrEnum):
    """The verdict that an exact gate reaches early."""

    pass_ = "pass"  # noqa: S105 - no password
    fail = "fail"


class Conflicts(StrEnum):
    """Which of several scores of an item counts."""

    worst = "worst"
    first = "first"
    last = "last"


_PANEL = "Not worse than a baseline"


@dataclass(frozen=True)
class MarginOptions:
    """The question whether candidates are not worse than a baseline."""

    margin: Annotated[
        str | None,
        option(
            "--margin",
            "pass if the candidate is not worse by more than this: 0.02 is 2 points, 2% a share of the baseline's score",
            metavar="X | X%",
            rich_help_panel=_PANEL,
        ),
    ] = None
    baseline: Annotated[
        str | None,
        option(
            "--baseline",
            "the model to compare with; the second of --pair is another way",
            metavar="B",
            rich_help_panel=_PANEL,
        ),
    ] = None
    max_age: Annotated[
        str | None,
        option(
            "--baseline-max-age",
            "end with an error if results of the baseline are older, by the date in the name of their file or folder, for example 30d",
            metavar="N[h|d|w]",
            rich_help_panel=_PANEL,
        ),
    ] = None
    refresh: Annotated[
        str | None,
        option(
            "--baseline-refresh",
            "with --baseline-max-age: run this first where they are older; it evaluates the baseline and replaces its files",
            metavar="COMMAND",
            rich_help_panel=_PANEL,
        ),
    ] = None
    candidate: Annotated[
        list[str] | None,
        option(
            "--candidate",
            "a model to judge; may be repeated  \\[default: every other model]",
            metavar="A",
            rich_help_panel=_PANEL,
        ),
    ] = None
    rerun: Annotated[
        str | None,
        option(
            "--rerun",
            "a second run of the baseline: if the two differ by more than the noise of repeats, the gate is held",
            metavar="B2",
            rich_help_panel=_PANEL,
        ),
    ] = None
    on_undecided: Annotated[
        OnUndecided,
        typer.Option("--on-undecided", help="exit code of an undecided gate: 0, 4 or 3", rich_help_panel=_PANEL),
    ] = OnUndecided.wait
    price: Annotated[
        list[str] | None,
        option(
            "--price",
            "price of a candidate: the gate passes if one is not worse, and names the cheapest; with --replay, the price of an item",
            metavar="MODEL=PRICE",
            rich_help_panel=_PANEL,
        ),
    ] = None
    prices: Annotated[
        Path | None,
        option(
            "--prices",
            "table of prices (.csv) with the columns model and price",
            metavar="FILE",
            rich_help_panel=_PANEL,
        ),
    ] = None
    write: Annotated[
        list[str] | None,
        option(
            "--write",
            "write the verdict to a file too, in any format; may be repeated",
            metavar="FORMAT=FILE",
            rich_help_panel=_PANEL,
        ),
    ] = None


_CHECK_PANEL = "Before the run"
_CASE_PANEL = "Each case"


@dataclass(frozen=True)
class CheckOptions:
    """What the gate can know before its first call, and each case on its own."""

    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="print what the gate can show, how often it flips, and which cases are flaky; PATH has runs or repeats of the baseline. "
            "Exits with 2 if equal answers cannot pass",
            rich_help_panel=_CHECK_PANEL,
        ),
    ] = False
    replay: Annotated[
        Path | None,
        option(
            "--replay",
            "replay the gate on past runs, without a PATH: each folder or file in this folder is one run of candidate and baseline",
            metavar="ARCHIVE",
            rich_help_panel=_CHECK_PANEL,
        ),
    ] = None
    per_case: Annotated[
        float | None,
        option(
            "--per-case",
            "judge each case by its repeats, in place of a margin: pass if every case is right at least so often",
            metavar="FLOOR",
            rich_help_panel=_CASE_PANEL,
        ),
    ] = None
    pass_k: Annotated[
        int | None,
        option(
            "--pass-k",
            "with --per-case: the floor is of K answers in a row, all right",
            min=1,
            max=1000,
            metavar="K",
            rich_help_panel=_CASE_PANEL,
        ),
    ] = None
    equal_runs: Annotated[
        bool,
        typer.Option(
            "--equal-runs",
            help="with --per-case or --replay: files with equal contents are runs that answered alike, not copies",
            rich_help_panel=_CASE_PANEL,
        ),
    ] = False
    run_anyway: Annotated[
        bool,
        typer.Option("--run-anyway", help="go on where only a better model can pass", rich_help_panel=_CHECK_PANEL),
    ] = False


_RUN_PANEL = "Evaluate until decided"


@dataclass(frozen=True)
class RunOptions:
    """An evaluation that the gate runs itself."""

    run: Annotated[
        str | None,
        option(
            "--run",
            "evaluate the candidates in blocks of a committed order until the gate is decided; {items} is the path of a file with one item "
            "id a line, {output} where the results go (without it, standard output is read), {candidate} the name of the candidate",
            metavar="COMMAND",
            rich_help_panel=_RUN_PANEL,
        ),
    ] = None
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="with --run: the verdict of the full run, as soon as no missing item can change it",
            rich_help_panel=_RUN_PANEL,
        ),
    ] = False
    expect: Annotated[
        Expected,
        typer.Option(
            "--expect",
            help="with --exact: the verdict that comes early; pass: items that the baseline has right come first; fail: a random order",
            rich_help_panel=_RUN_PANEL,
        ),
    ] = Expected.pass_
    folder: Annotated[
        Path,
        typer.Option(
            "--folder", help="where blocks are kept: the same call goes on after a kill", rich_help_panel=_RUN_PANEL
        ),
    ] = Path("rankwatch-gate")
    budget: Annotated[
        int | None,
        option(
            "--budget", "most items to evaluate, of all candidates", min=1, metavar="ITEMS", rich_help_panel=_RUN_PANEL
        ),
    ] = None
    block: Annotated[
        int | None,
        option(
            "--block",
            "items of a block  \\[default: a fiftieth, at least 10]",
            min=1,
            metavar="ITEMS",
            rich_help_panel=_RUN_PANEL,
        ),
    ] = None
    seed: Annotated[
        str | None,
        option(
            "--seed", "seed of the committed order  \\[default: random, kept in the folder]", rich_help_panel=_RUN_PANEL
        ),
    ] = None

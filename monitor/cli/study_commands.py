"""The commands that plan and explain: of results they read a pilot at most."""

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.options import Listing, ListingOption, OrderFormat


def plan(
    gap: Annotated[
        float | None,
        typer.Option("--gap", min=0, max=1, help="gap to detect, in score units: 0.02 is 2 points", show_default=False),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option("--items", min=1, help="items there are: tells the gap that they detect", show_default=False),
    ] = None,
    accuracy: Annotated[
        float | None, typer.Option("--accuracy", min=0, max=1, help="mean accuracy of the two", show_default=False)
    ] = None,
    rho: Annotated[
        float | None,
        typer.Option("--rho", min=-1, max=1, help="correlation of their 0/1 scores", show_default=False),
    ] = None,
    discordance: Annotated[
        float | None,
        typer.Option(
            "--discordance",
            min=0,
            max=1,
            help="share of items on which exactly one of them is right",
            show_default=False,
        ),
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option("--pilot", help="results to take all this from", show_default=False)
    ] = None,
    pair: Annotated[
        tuple[str, str] | None, typer.Option("--pair", metavar="A B", help="the pilot's two models", show_default=False)
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", help="the pilot's benchmark, if it has several", show_default=False)
    ] = None,
    family: Annotated[int, typer.Option("--family", min=1, help="pairs that share alpha")] = 1,
    design_effect: Annotated[
        float | None,
        typer.Option(
            "--design-effect", min=1, help="of items in clusters  \\[default: the pilot's]", show_default=False
        ),
    ] = None,
    alpha: Annotated[float, typer.Option("--alpha", min=0.000001, max=0.5)] = 0.05,
    power: Annotated[float, typer.Option("--power", min=0.5, max=0.999999)] = 0.8,
    mixture: Annotated[str, typer.Option("--mixture", help="of the anytime procedures")] = "beta(1,1)",
    form: ListingOption = Listing.table,
) -> None:
    """Tell how many items a gap needs, or which gap so many items detect, under each procedure.

    Examples
    --------
    rankwatch plan --gap 0.02 --accuracy 0.6 --rho 0.5 --family 45

    rankwatch plan --items 12032 --discordance 0.26

    rankwatch plan --pilot pilot.jsonl --pair model-a model-b --gap 0.01
    """
    from monitor.cli.plan import Wanted, run

    wanted = Wanted(
        gap, accuracy, rho, discordance, pilot, pair, benchmark, items, family, design_effect, alpha, power, mixture
    )
    run(wanted, form.value)


def reproduce(
    full: Annotated[bool, typer.Option("--full", help="run the simulations too (minutes)")] = False,
    form: ListingOption = Listing.table,
) -> None:
    """Recompute every number of the paper that can be recomputed, beside the published one.

    Example: rankwatch reproduce --full
    """
    from monitor.cli.reproduce import run

    run(full=full, form=form.value)


def config(form: ListingOption = Listing.table) -> None:
    """Show every setting: its value, where that comes from, and what it means.

    A flag beats an environment variable RANKWATCH_*, that beats the TOML file that RANKWATCH_CONFIG names. Secrets are never shown.

    Example: RANKWATCH_PORT=9000 rankwatch config
    """
    from monitor.cli.config import config as show_settings

    show_settings(form.value)


def schema(
    name: Annotated[
        str | None, typer.Argument(help="event, declaration, verdict-change, report or report-detail; none: list them")
    ] = None,
) -> None:
    """Print the JSON Schema of what crosses the border.

    Example: rankwatch schema event
    """
    from monitor.cli.config import schema as print_schema

    print_schema(name)


def order(
    seed: Annotated[
        str, typer.Option("--seed", help="seed of the permutation, the one of the declaration", show_default=False)
    ],
    items: Annotated[
        list[str] | None, typer.Argument(metavar="ITEM", help="ids of all items", show_default=False)
    ] = None,
    item_file: Annotated[
        Path | None,
        typer.Option(
            "--items",
            metavar="FILE",
            help="a file with one item id a line (-: standard input), or results that hold all items",
            show_default=False,
        ),
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option(
            "--benchmark", help="name of the benchmark, for --format json or for results of several", show_default=False
        ),
    ] = None,
    form: Annotated[
        OrderFormat,
        typer.Option("--format", help="list: one id a line; json: the declaration to put before the first score"),
    ] = OrderFormat.list,
) -> None:
    """Print the committed order of a benchmark's items, for a harness to follow.

    The order is a function of the seed and the ids alone. Put the declaration (--format json) into the log before the first score; then
    verdicts are given along this order, however the scores arrive.

    Example: rankwatch order --seed 2026-leaderboard --items ids.txt
    """
    from monitor.cli.order import run

    run(items or [], item_file, seed, benchmark, form.value)

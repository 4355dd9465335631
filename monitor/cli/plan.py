"""`rankwatch plan`: how many items to collect."""

import json
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from monitor.cli.gates.goal_plans import plan_goal
from monitor.cli.shared.declared.pairs import choose_pair
from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.files import choose_board, read_results
from monitor.cli.shared.options import TableFormat, TableFormatOption, option
from monitor.files.streams.paths import show
from monitor.render.terminal.goal_plan import render_goal_plan
from monitor.render.terminal.layout import output_console
from monitor.render.terminal.plan import print_admission_plan, render_plan
from monitor.view.admission import AdmissionError, AdmissionGoal
from monitor.view.admission_plan import plan_admission
from monitor.view.build import build_report
from monitor.words.labels import planned_labels
from stats.planning.comparison_plan import Clusters, Likeness, plan_items
from stats.planning.label_plan import plan_labels
from stats.planning.pilot import PilotEffect


@dataclass(frozen=True)
class PlanOptions:
    """The question of a plan."""

    gap: Annotated[float | None, option("--gap", "gap to detect, in score units: 0.02 is 2 points", min=0, max=1)] = (
        None
    )
    items: Annotated[
        int | None,
        option("--items", "item count: prints the gap that it detects, or the power with --gap", min=1, max=10**12),
    ] = None
    accuracy: Annotated[float | None, option("--accuracy", "mean accuracy of the two models", min=0, max=1)] = None
    rho: Annotated[
        float | None, option("--rho", "correlation of their 0/1 scores, the phi coefficient", min=-1, max=1)
    ] = None
    discordance: Annotated[
        float | None, option("--discordance", "share of items that exactly one model has right", min=0, max=1)
    ] = None
    labels: Annotated[
        float | None,
        option(
            "--labels",
            "plan labels of people that correct a judge: the correlation of its differences with theirs, as report --labels shows it; with "
            "--gap, --discordance and --items",
            min=0,
            max=1,
            metavar="CORRELATION",
        ),
    ] = None
    pilot: Annotated[Path | None, option("--pilot", "results of a pilot to take these numbers from")] = None
    pair: Annotated[tuple[str, str] | None, option("--pair", "the pilot's two models", metavar="A B")] = None
    benchmark: Annotated[str | None, option("--benchmark", "the pilot's benchmark, if it has several")] = None
    family: Annotated[int, typer.Option("--family", min=1, max=10**9, help="number of pairs that share alpha")] = 1
    clusters: Annotated[
        int | None, option("--clusters", "number of clusters of the items  \\[default: the pilot's]", min=2, max=10**9)
    ] = None
    icc: Annotated[
        float | None,
        option("--icc", "correlation of the differences inside a cluster  \\[default: the pilot's]", min=0, max=1),
    ] = None
    alpha: Annotated[float, typer.Option("--alpha", min=0.000001, max=0.5, help="error rate")] = 0.05
    power: Annotated[float, typer.Option("--power", min=0.5, max=0.999999, help="probability of detecting the gap")] = (
        0.8
    )
    mixture: Annotated[str, typer.Option("--mixture", help="mixture of the anytime procedures")] = "beta(1,1)"
    look: Annotated[
        float,
        option(
            "--look",
            "share of alpha for one exact test of all items at the end of a committed order, as it is declared",
            min=0,
            max=0.999999,
            metavar="SHARE",
        ),
    ] = 0.0


_MOST_ITEMS = 100_000
_GOAL = "Items until a goal is met"
_NOT_OF_AN_ADMISSION: Final = {"gap", "items", "accuracy", "rho", "discordance", "pilot", "pair", "clusters", "icc"}


@dataclass(frozen=True)
class GoalPlanOptions:
    """The question how many items a goal takes."""

    admit: Annotated[
        str | None,
        option(
            "--admit",
            "plan the admission of a model to the board in PILOT; --goal model:MODEL,width=3 (the default), top:K or score,width=2",
            metavar="MODEL",
            rich_help_panel=_GOAL,
        ),
    ] = None

    goal: Annotated[
        str | None,
        option(
            "--goal",
            "best, top:K, ranking, pair:A,B or model:M, each with ,margin=X if small gaps do not matter",
            rich_help_panel=_GOAL,
        ),
    ] = None
    model: Annotated[
        list[str] | None,
        option(
            "--model",
            "a model and its accuracy, in place of a pilot; may be repeated; needs --rho",
            metavar="MODEL=ACCURACY",
            rich_help_panel=_GOAL,
        ),
    ] = None
    price: Annotated[
        list[str] | None,
        option(
            "--price",
            "price of an item for a model, or for all; may be repeated",
            metavar="PRICE | MODEL=PRICE",
            rich_help_panel=_GOAL,
        ),
    ] = None
    prices: Annotated[
        Path | None,
        option(
            "--prices",
            "table of prices (.csv) with the columns model and price, and tokens of an item if a price is that of a token",
            metavar="FILE",
            rich_help_panel=_GOAL,
        ),
    ] = None
    boards: Annotated[
        int, typer.Option("--boards", min=10, max=100_000, help="boards to simulate", rich_help_panel=_GOAL)
    ] = 100


PilotPaths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PILOT", help="files or folders of a pilot, for --goal", show_default=False),
]


class _Pair(NamedTuple):
    """How alike two models are, where that is known from, and what a pilot shows."""

    likeness: "Likeness"
    source: str
    effect: "PilotEffect | None" = None
    clusters: "Clusters | None" = None


def plan(
    options: PlanOptions,
    question: GoalPlanOptions,
    paths: PilotPaths = None,
    form: TableFormatOption = TableFormat.table,
) -> None:
    """Plan how many items a gap or a goal needs, or which gap an item count detects.

    Example: rankwatch plan --gap 0.02 --accuracy 0.6 --rho 0.5 --family 45

    Example: rankwatch plan --items 12032 --discordance 0.26

    Example: rankwatch plan --gap 0.05 --discordance 0.26 --clusters 14 --icc 0.02

    Example: rankwatch plan --pilot pilot.jsonl --pair model-a model-b

    Example: rankwatch plan --labels 0.85 --gap 0.1 --discordance 0.3 --items 2000

    Example: rankwatch plan --goal top:3 pilot/ --items 2000 --price 0.002

    Example: rankwatch plan --admit my-model --goal top:3 results/
    """
    for flag in ("gap", "labels", "accuracy", "rho", "discordance", "icc", "alpha", "power"):
        if isnan(getattr(options, flag) or 0):
            stop(f"--{flag} nan: use a number", USAGE)
    if question.admit is not None:
        _plan_admission(options, question, paths or [], form)
        return
    if question.goal is not None:
        _plan_goal(options, question, paths or [], form)
        return
    given = {"PILOT": paths, "--model": question.model, "--price": question.price, "--prices": question.prices}
    if other := next((name for name, value in given.items() if value), None):
        stop(f"{other} is for a plan of a goal; give --goal best, or another goal, too", USAGE)
    if options.labels is not None:
        _plan_labels(options, form)
        return
    pair = _pair(options)
    if options.gap is None and options.items is None and pair.effect is None:
        stop(
            "give a target: --gap 0.02 prints the items that a gap of 2 points needs, --items N the gap that N items detect",
            USAGE,
        )
    try:
        planned = plan_items(
            pair.likeness,
            gap=options.gap,
            effect=pair.effect if options.gap is None else None,
            items=options.items,
            family=options.family,
            clusters=_clusters(options, pair.clusters),
            alpha=options.alpha,
            power=options.power,
            mixture=options.mixture,
            look=options.look,
        )
    except ValueError as error:
        stop(str(error), USAGE)
    rendered = render_plan(planned, pair.source, as_json=form is TableFormat.json)
    if isinstance(rendered, str):
        print(rendered)
        return
    output_console().print(rendered)


def _plan_admission(options: PlanOptions, question: GoalPlanOptions, paths: list[str], form: TableFormat) -> None:
    other = {f"--{name}": value for name, value in vars(options).items() if name in _NOT_OF_AN_ADMISSION}
    other |= {"--model": question.model, "--price": question.price, "--prices": question.prices}
    other |= {"--family": None if options.family == 1 else options.family, "--look": options.look or None}
    if unused := next((name for name, value in other.items() if value is not None), None):
        stop(f"{unused} is not for a plan of an admission; omit it, or omit --admit", USAGE)
    if not paths:
        stop("--admit needs the results of the board: rankwatch plan --admit my-model results/", USAGE)
    try:
        goal = AdmissionGoal.parse(question.goal or f"model:{question.admit},width=3", question.admit or "")
    except ValueError as error:
        stop(f"--goal: {error}", USAGE)
    board = choose_board(read_results(paths, 0.1), options.benchmark)
    try:
        planned = plan_admission(board, goal, options.alpha)
    except AdmissionError as error:
        stop(str(error))
    if form is TableFormat.json:
        print(json.dumps(asdict(planned), ensure_ascii=False, indent=2))
    else:
        print_admission_plan(planned)


def _plan_labels(options: PlanOptions, form: TableFormat) -> None:
    gap, discordance, items = options.gap, options.discordance, options.items
    if options.labels is None or gap is None or discordance is None or items is None:
        stop("--labels: give --gap, --discordance and --items too, as people would find them", USAGE)
    given = {
        "--accuracy": options.accuracy,
        "--rho": options.rho,
        "--pilot": options.pilot,
        "--pair": options.pair,
        "--benchmark": options.benchmark,
        "--clusters": options.clusters,
        "--icc": options.icc,
        "--look": options.look or None,
    }
    if other := next((name for name, value in given.items() if value is not None), None):
        stop(f"{other} is not for a plan of labels; omit it", USAGE)
    if not 0 < gap <= discordance or items > _MOST_ITEMS:
        stop(f"--labels: use 0 < gap <= discordance, and at most {_MOST_ITEMS:,} items", USAGE)
    alpha = options.alpha / options.family
    found = plan_labels(gap, discordance, options.labels, items, alpha=alpha, power=options.power)
    if form is TableFormat.json:
        of = {"gap": gap, "discordance": discordance, "correlation": options.labels, "items": items}
        print(json.dumps({**of, "alpha": alpha, "power": options.power, **found._asdict()}))
        return
    print("\n".join(planned_labels(gap, discordance, options.labels, items, options.power, alpha, *found)))


def _plan_goal(options: PlanOptions, question: GoalPlanOptions, paths: list[str], form: TableFormat) -> None:
    given = {
        "--gap": options.gap,
        "--accuracy": options.accuracy,
        "--discordance": options.discordance,
        "--pair": options.pair,
        "--clusters": options.clusters,
        "--icc": options.icc,
        "--labels": options.labels,
        "--family": None if options.family == 1 else options.family,
    }
    if other := next((name for name, value in given.items() if value is not None), None):
        stop(f"{other} is not for a plan of a goal; omit it, or omit --goal", USAGE)
    if options.pilot is not None:
        paths = [*paths, str(options.pilot)]
    planned = plan_goal(
        question.goal or "",
        paths,
        options.benchmark,
        models=question.model or [],
        rho=options.rho,
        prices=(question.price or [], question.prices),
        items=options.items,
        boards=question.boards,
        alpha=options.alpha,
        power=options.power,
        mixture=options.mixture,
        look=options.look,
    )
    rendered = render_goal_plan(planned, as_json=form is TableFormat.json)
    if isinstance(rendered, str):
        print(rendered)
        return
    output_console().print(rendered)


def _clusters(options: PlanOptions, found: "Clusters | None") -> "Clusters | None":
    """Return the clusters that are given, with what a pilot shows in place of what is not."""
    number, icc = options.clusters, options.icc
    if found is not None:
        number = found.number if number is None else number
        icc = found.icc if icc is None else icc
    if number is None and icc is None:
        return None
    if number is None or icc is None:
        stop(
            "give --clusters and --icc together: how many clusters there are, and how alike the items of one are", USAGE
        )
    if number < 2:
        return None
    return Clusters(number, icc, None if found is None else found.size)


def _pair(options: PlanOptions) -> _Pair:
    accuracy, rho, discordance, pilot = options.accuracy, options.rho, options.discordance, options.pilot
    if [accuracy is not None or rho is not None, discordance is not None, pilot is not None].count(True) != 1:
        stop(
            "give the similarity of the two models in one way: --accuracy and --rho, --discordance, or --pilot PATH --pair A B",
            USAGE,
        )
    if pilot is not None:
        return _pilot_pair(options, pilot)
    if options.pair is not None or options.benchmark is not None:
        stop("--pair and --benchmark choose from a pilot; give --pilot PATH too", USAGE)
    if discordance is None and (accuracy is None or rho is None):
        stop(
            "give --accuracy and --rho together: the models' mean accuracy and the correlation of their scores (phi)",
            USAGE,
        )
    return _Pair(Likeness(accuracy, rho, discordance), "as given")


def _pilot_pair(options: PlanOptions, path: Path) -> _Pair:
    if options.pair is None:
        stop("--pilot needs --pair A B, the two models to compare", USAGE)
    report = build_report(read_results([str(path)], 0.1), pairs="all", assert_complete=True, model=options.pair[0])
    benchmark, pair = choose_pair(report, options.pair, options.benchmark, sharing_items=True)
    if pair.b is None or pair.c is None:
        stop(f"{benchmark.benchmark}: a plan needs a pilot with scores 0 and 1", USAGE)
    effect = PilotEffect(pair.n, pair.b, pair.c)
    shown = f"{pair.n:,} item{'s' * (pair.n != 1)} of {benchmark.benchmark} in {show(path)}"
    source = f"{shown}: {pair.b:,} for {pair.model_a}, {pair.c:,} for {pair.model_b}"
    clusters = None
    if (cluster := pair.cluster) is not None:
        clusters = Clusters(cluster.clusters, max(cluster.icc, 0.0), pair.n / max(cluster.clusters, 1))
    return _Pair(Likeness(discordance=effect.discordance), source, effect, clusters)

"""The commands, their arguments and their help."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.importing import (
    BenchmarkOption,
    ClusterOption,
    ColumnsOption,
    FilterOption,
    Logs,
    MetricOption,
    ScorerOption,
)
from monitor.cli.options import Listing
from monitor.cli.state_commands import app as state

app = typer.Typer(
    name="rankwatch",
    help="Tells you when a leaderboard ranking is real: paired, anytime-valid monitoring of evaluation results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(state, name="state", rich_help_panel="Serve")

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="files or folders: events (.jsonl), lm-eval samples, Inspect logs (.eval, .json), tables (.csv, .parquet); NAME=PATH names "
        "the model of what is there",
        show_default=False,
    ),
]


class Format(StrEnum):
    """How a report is written."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    html = "html"


class Pairs(StrEnum):
    """Which pairs a report lists."""

    adjacent = "adjacent"
    all = "all"


class Order(StrEnum):
    """The order policies that can be declared on the command line."""

    completion = "completion"
    committed = "committed"
    trusted = "trusted"


class GateFormat(StrEnum):
    """How the answer of the gate is written."""

    text = "text"
    json = "json"
    junit = "junit"
    github = "github"


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="table for the terminal, json and csv for programs, markdown and html (one file, with figures) for people",
    ),
]
ListingOption = Annotated[Listing, typer.Option("--format", help="table for people, json for programs")]
DetailOption = Annotated[
    bool,
    typer.Option(
        "--detail", help="add second opinions: other families, bootstrap, cluster sensitivity (json, markdown, html)"
    ),
]
PairsOption = Annotated[
    Pairs | None,
    typer.Option("--pairs", help="which pairs to list  \\[default: adjacent; json and csv: all]", show_default=False),
]
RejectedOption = Annotated[
    float,
    typer.Option(
        "--max-rejected",
        min=0,
        max=1,
        help="largest share of lines that may be unreadable (the first 20 are always allowed)",
    ),
]


def _one_thread() -> None:
    """Keep the products of a report in this thread: they are small, and a library that starts more costs more than it saves."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _pairs(pairs: Pairs | None, form: Format) -> Pairs:
    return pairs or (Pairs.all if form in {Format.json, Format.csv} else Pairs.adjacent)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"rankwatch {version('rankwatch')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="show the version and exit")
    ] = False,
) -> None:
    """Tell when a leaderboard ranking is real."""


@app.command(rich_help_panel="Look")
def report(
    paths: Paths,
    form: FormatOption = Format.table,
    pairs: PairsOption = None,
    detail: DetailOption = False,
    max_rejected: RejectedOption = 0.1,
    metric: MetricOption = None,
    filters: FilterOption = None,
    scorer: ScorerOption = None,
    cluster: ClusterOption = None,
    benchmark: BenchmarkOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Report on results that are complete as they are.

    Takes the items found as the whole benchmark (and says so) unless a declaration stands in the files.

    Example: rankwatch report results/ --format html > report.html
    """
    _one_thread()
    from monitor.cli.errors import USAGE, stop
    from monitor.cli.report import run

    if detail and form in {Format.table, Format.csv}:
        stop(f"--detail has no room in --format {form.value}: choose json, markdown or html", USAGE)
    logs = Logs(metric, filters, scorer, cluster, benchmark, columns)
    run(paths, form.value, _pairs(pairs, form).value, max_rejected, logs, detail=detail)


@app.command(rich_help_panel="Look")
def gate(
    paths: Paths,
    pair: Annotated[tuple[str, str], typer.Option("--pair", metavar="A B", help="the two models", show_default=False)],
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", help="where both models stand in several", show_default=False)
    ] = None,
    form: Annotated[
        GateFormat, typer.Option("--format", help="text, json, a JUnit file, or a GitHub annotation")
    ] = GateFormat.text,
    max_rejected: RejectedOption = 0.1,
    metric: MetricOption = None,
    filters: FilterOption = None,
    scorer: ScorerOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Say with the exit code whether A is better than B.

    Exit 0: decided for A. 4: decided for B. 3: undecided, or held. 1: fault. 2: wrong call. The verdict is the anytime-valid one of this
    pair by itself, at the declared alpha (0.05), under the declared order policy; without one the items found are taken as the whole
    benchmark.

    Example: rankwatch gate results/ --pair candidate baseline --format github
    """
    _one_thread()
    from monitor.cli.gate import run

    run(paths, pair, benchmark, form.value, max_rejected, Logs(metric, filters, scorer, None, None, columns))


@app.command(rich_help_panel="Look")
def watch(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH...]",
            help="files or folders, as for report; none: only what is posted over HTTP",
            show_default=False,
        ),
    ] = None,
    items: Annotated[
        list[str] | None,
        typer.Option(
            "--items",
            metavar="N | NAME=N",
            help="item count of every new benchmark, or of one; declares the order policy completion",
        ),
    ] = None,
    order: Annotated[Order | None, typer.Option("--order", help="order policy to declare for new benchmarks")] = None,
    once: Annotated[bool, typer.Option("--once", help="read everything, print the report, exit")] = False,
    form: FormatOption = Format.table,
    pairs: PairsOption = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="log and state  \\[default: rankwatch-data]", show_default=False)
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="address to serve on  \\[default: 127.0.0.1]", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="port to serve on  \\[default: 8642]", show_default=False),
    ] = None,
    max_rejected: Annotated[
        float | None, typer.Option("--max-rejected", min=0, max=1, help="largest share of lines that may be unreadable")
    ] = None,
    metric: MetricOption = None,
    filters: FilterOption = None,
    scorer: ScorerOption = None,
    cluster: ClusterOption = None,
    benchmark: BenchmarkOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Follow results as they are written, and tell when a ranking is decided.

    Everything new is read exactly once, however often the monitor is stopped and started again. Nothing is decided before an order policy
    is declared: give the item count with --items, or assert with --order trusted that arrival does not depend on outcomes.

    Example: rankwatch watch results/ --items 12032
    """
    from monitor.cli.errors import end_at_once

    if not once:
        end_at_once()
    from monitor.cli.watch import run

    flags = {"data_dir": data_dir, "host": host, "port": port, "max_rejected": max_rejected}
    run(
        paths or [],
        items or [],
        order.value if order else None,
        {name: value for name, value in flags.items() if value is not None},
        Logs(metric, filters, scorer, cluster, benchmark, columns),
        once=(form.value, _pairs(pairs, form).value) if once else None,
    )


@app.command(rich_help_panel="Serve")
def send(
    paths: Paths,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URL",
            help="kafka://host:port\\[,host:port]/topic, or http\\[s]://host:port",
            show_default=False,
        ),
    ],
    packed: Annotated[
        bool, typer.Option("--packed", help="up to 1,000 events of one benchmark a message of a topic, instead of one")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help="file with the bearer token  \\[default: $RANKWATCH_TOKEN]", show_default=False
        ),
    ] = None,
    items: Annotated[
        list[str] | None,
        typer.Option(
            "--items",
            metavar="N | NAME=N",
            help="item count to declare for every new benchmark, or for one; declares the order policy completion",
        ),
    ] = None,
    order: Annotated[Order | None, typer.Option("--order", help="order policy to declare for new benchmarks")] = None,
    again: Annotated[bool, typer.Option("--again", help="send everything, as if nothing had been sent before")] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            help="where to remember what was sent  \\[default: $XDG_STATE_HOME/rankwatch]",
            show_default=False,
        ),
    ] = None,
    max_rejected: Annotated[
        float | None, typer.Option("--max-rejected", min=0, max=1, help="largest share of lines that may be unreadable")
    ] = None,
    metric: MetricOption = None,
    filters: FilterOption = None,
    scorer: ScorerOption = None,
    cluster: ClusterOption = None,
    benchmark: BenchmarkOption = None,
    columns: ColumnsOption = None,
) -> None:
    """Send results to the topic that the service reads, or to a monitor over HTTP.

    Remembers how far each file was sent to each destination, so that a second run sends only what is new. After a crash some events may be
    sent twice, which changes nothing: the first score counts.

    Example: rankwatch send results/ --to kafka://localhost:9092/rankwatch.events --items 12032
    """
    from monitor.cli.send import run

    flags = {"data_dir": data_dir, "max_rejected": max_rejected}
    run(
        paths,
        to,
        items or [],
        order.value if order else None,
        {name: value for name, value in flags.items() if value is not None},
        Logs(metric, filters, scorer, cluster, benchmark, columns),
        packed=packed,
        again=again,
        token_file=token_file,
    )


@app.command(rich_help_panel="Serve")
def doctor(
    broker: Annotated[
        str | None,
        typer.Option(
            "--broker",
            metavar="HOST:PORT,...",
            help="Kafka, also as kafka://...  \\[default: the setting broker_url]",
            show_default=False,
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", help="topic of the events  \\[default: rankwatch.events]", show_default=False),
    ] = None,
    redis_url: Annotated[
        str | None,
        typer.Option("--redis-url", help="Redis or Valkey  \\[default: the setting redis_url]", show_default=False),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="data directory  \\[default: rankwatch-data]", show_default=False)
    ] = None,
) -> None:
    """Look at the brokers, the topic, Redis, the clock and the data directory, and say what to mend.

    Exits with 1 if anything would keep the service from working.

    Example: rankwatch doctor --broker localhost:9092 --redis-url redis://localhost:6379
    """
    from monitor.cli.doctor import run

    flags = {"broker_url": broker, "topic": topic, "redis_url": redis_url, "data_dir": data_dir}
    run({name: value for name, value in flags.items() if value is not None})


@app.command(rich_help_panel="Serve")
def run(
    broker: Annotated[
        str | None,
        typer.Option("--broker", metavar="URL", help="kafka://host:port\\[,host:port]\\[/topic]", show_default=False),
    ] = None,
    redis_url: Annotated[
        str | None,
        typer.Option("--redis-url", metavar="URL", help="redis://host:port of the state", show_default=False),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", help="topic of the events  \\[default: rankwatch.events]", show_default=False),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", help="consumer group of the workers  \\[default: rankwatch]", show_default=False),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="address to serve on  \\[default: 127.0.0.1]", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="port to serve on  \\[default: 8642]", show_default=False),
    ] = None,
) -> None:
    """Run one worker of the service: events from Kafka, state in Redis, verdicts to a topic.

    Any number of workers share the partitions of the topic; each benchmark lives in one partition. Every setting can be given as an
    environment variable RANKWATCH_*.

    Example: rankwatch run --broker kafka://localhost:9092 --redis-url redis://localhost:6379
    """
    from monitor.cli.errors import end_at_once

    end_at_once()
    from monitor.cli.run import run as run_service

    flags = {"broker_url": broker, "redis_url": redis_url, "topic": topic, "group": group, "host": host, "port": port}
    run_service({name: value for name, value in flags.items() if value is not None})


@app.command(rich_help_panel="Start here")
def demo(
    null: Annotated[bool, typer.Option("--null", help="ten equal models instead: every call is a false alarm")] = False,
    seconds: Annotated[float, typer.Option("--seconds", min=0, help="how long the replay takes")] = 20.0,
    seed: Annotated[int, typer.Option("--seed", help="seed of the simulated order and joint table")] = 3,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="port to serve on; 0 takes a free one")] = 0,
) -> None:
    """Replay the paper's MMLU-Pro top ten through the real path.

    Example: rankwatch demo --null
    """
    from monitor.cli.demo import run

    run(null=null, seconds=seconds, seed=seed, port=port)


@app.command(rich_help_panel="Understand")
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


@app.command(rich_help_panel="Understand")
def reproduce(
    full: Annotated[bool, typer.Option("--full", help="run the simulations too (minutes)")] = False,
    form: ListingOption = Listing.table,
) -> None:
    """Recompute every number of the paper that can be recomputed, beside the published one.

    Example: rankwatch reproduce --full
    """
    from monitor.cli.reproduce import run

    run(full=full, form=form.value)


@app.command(rich_help_panel="Understand")
def config(form: ListingOption = Listing.table) -> None:
    """Show every setting: its value, where that comes from, and what it means.

    A flag beats an environment variable RANKWATCH_*, that beats the TOML file that RANKWATCH_CONFIG names. Secrets are never shown.

    Example: RANKWATCH_PORT=9000 rankwatch config
    """
    from monitor.cli.config import config as show_settings

    show_settings(form.value)


@app.command(rich_help_panel="Understand")
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


class OrderFormat(StrEnum):
    """How an order is written."""

    list = "list"
    json = "json"


@app.command(rich_help_panel="Plan")
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

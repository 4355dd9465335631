"""The commands, their arguments and their help."""

import os
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
from monitor.cli.options import (
    DetailOption,
    Format,
    FormatOption,
    GateFormat,
    HostOption,
    OrderOption,
    Pairs,
    PairsOption,
    Paths,
    PortOption,
    RejectedOption,
    RejectedSetting,
    TopicOption,
    data_option,
    items_option,
)
from monitor.cli.state_commands import app as state
from monitor.cli.study_commands import config, order, plan, reproduce, schema

app = typer.Typer(
    name="rankwatch",
    help="Tells you when a leaderboard ranking is real: paired, anytime-valid monitoring of evaluation results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(state, name="state", rich_help_panel="Serve")


def _pairs(pairs: Pairs | None, form: Format) -> Pairs:
    return pairs or (Pairs.all if form in {Format.json, Format.csv} else Pairs.adjacent)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"rankwatch {version('rankwatch')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[  # noqa: ARG001 - its callback acts
        bool, typer.Option("--version", callback=_version, is_eager=True, help="show the version and exit")
    ] = False,
) -> None:
    """Tell when a leaderboard ranking is real."""
    # Products of matrices stay in their thread: they are small, and threads that wait for more of them double what a worker costs.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


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
        items_option("item count of every new benchmark, or of one; declares the order policy completion"),
    ] = None,
    order: OrderOption = None,
    once: Annotated[bool, typer.Option("--once", help="read everything, print the report, exit")] = False,
    form: FormatOption = Format.table,
    pairs: PairsOption = None,
    data_dir: Annotated[Path | None, data_option("log and state  \\[default: rankwatch-data]")] = None,
    host: HostOption = None,
    port: PortOption = None,
    max_rejected: RejectedSetting = None,
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
        items_option("item count to declare for every new benchmark, or for one; declares the order policy completion"),
    ] = None,
    order: OrderOption = None,
    again: Annotated[bool, typer.Option("--again", help="send everything, as if nothing had been sent before")] = False,
    data_dir: Annotated[
        Path | None, data_option("where to remember what was sent  \\[default: $XDG_STATE_HOME/rankwatch]")
    ] = None,
    max_rejected: RejectedSetting = None,
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
    topic: TopicOption = None,
    redis_url: Annotated[
        str | None,
        typer.Option("--redis-url", help="Redis or Valkey  \\[default: the setting redis_url]", show_default=False),
    ] = None,
    data_dir: Annotated[Path | None, data_option("data directory  \\[default: rankwatch-data]")] = None,
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
    topic: TopicOption = None,
    group: Annotated[
        str | None,
        typer.Option("--group", help="consumer group of the workers  \\[default: rankwatch]", show_default=False),
    ] = None,
    host: HostOption = None,
    port: PortOption = None,
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


for command in (plan, reproduce, config, schema):
    app.command(rich_help_panel="Understand")(command)
app.command(rich_help_panel="Plan")(order)

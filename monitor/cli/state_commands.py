"""`rankwatch state ...`: the stored state, its move to another server, and to another number of partitions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from monitor.cli.options import Listing, ListingOption, data_option

app = typer.Typer(
    no_args_is_help=True, help="Show the stored state, or move it to another server or number of partitions."
)

TopicOption = Annotated[
    str | None, typer.Option("--topic", help="whose state  \\[default: rankwatch.events]", show_default=False)
]
RedisOption = Annotated[
    str | None,
    typer.Option(
        "--redis-url",
        help="server of the state  \\[default: that of the data directory]",
        show_default=False,
        metavar="URL",
    ),
]
DataOption = Annotated[Path | None, data_option("data directory of `watch`  \\[default: rankwatch-data]")]
FileArgument = Annotated[
    str, typer.Argument(metavar="FILE|-", help="the file, or - for the terminal", show_default=False)
]


def _flags(topic: str | None, redis_url: str | None, data_dir: Path | None) -> dict[str, Any]:
    flags = {"topic": topic, "redis_url": redis_url, "data_dir": data_dir}
    return {name: value for name, value in flags.items() if value is not None}


@app.command()
def show(
    topic: TopicOption = None,
    redis_url: RedisOption = None,
    data_dir: DataOption = None,
    form: ListingOption = Listing.table,
) -> None:
    """Show each partition: how far its log is folded, what it holds, and how large it is.

    Example: rankwatch state show --redis-url redis://localhost:6379
    """
    from monitor.cli.state import show as run

    run(_flags(topic, redis_url, data_dir), form.value)


@app.command()
def export(
    file: FileArgument, topic: TopicOption = None, redis_url: RedisOption = None, data_dir: DataOption = None
) -> None:
    """Write the whole state to a file, while no worker runs.

    Example: rankwatch state export state.jsonl --redis-url redis://localhost:6379
    """
    from monitor.cli.state import export as run

    run(file, _flags(topic, redis_url, data_dir))


@app.command("import")
def import_(
    file: FileArgument,
    topic: TopicOption = None,
    redis_url: RedisOption = None,
    data_dir: DataOption = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            help="the new log has so many: each benchmark goes to its owner  \\[default: as exported]",
            show_default=False,
        ),
    ] = None,
    new_log: Annotated[
        bool,
        typer.Option(
            "--new-log", help="go on with another log, from its beginning (so with another topic or --partitions)"
        ),
    ] = False,
    offset: Annotated[
        list[str] | None,
        typer.Option(
            "--offset", metavar="P=N", help="begin to read partition P of the new log at offset N", show_default=False
        ),
    ] = None,
) -> None:
    """Make the state that a file holds, where there is none yet.

    Example: rankwatch state import state.jsonl --redis-url redis://other:6379 --topic events.v2 --partitions 16
    """
    from monitor.cli.state import import_ as run

    run(file, _flags(topic, redis_url, data_dir), partitions=partitions, new_log=new_log, offset=offset or [])

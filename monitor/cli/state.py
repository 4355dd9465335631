"""`rankwatch state`: show the stored state, move it to another server or partition count, salvage a damaged log."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from pydantic import SecretStr

from monitor.cli.shared.commands import Group, add_command, given
from monitor.cli.shared.errors import FAULT, USAGE, file_error, stop
from monitor.cli.shared.options import DataDirOption, TableFormat, TableFormatOption, TopicOption, option
from monitor.cli.shared.running.process import log_to_terminal
from monitor.cli.shared.settings import read_settings
from monitor.files.streams.paths import show as show_path
from monitor.log.errors import LogError
from monitor.log.file.salvage import salvage as salvage_log
from monitor.render.terminal.state_comparison import as_json, as_text
from monitor.retries import RetryPolicy
from monitor.settings import LOG_NAME
from monitor.store.errors import StoreError
from monitor.store.server.embedded import EmbeddedValkey
from monitor.store.transfer.transfer import Transfer
from monitor.words.counts import counted

if TYPE_CHECKING:
    from monitor.settings import Settings
    from monitor.store.transfer.comparison import BoardComparison
    from monitor.store.transfer.summary import PartitionSummary


T = TypeVar("T")

_STDIO: Final = "-"
_DIFFERS: Final = 3  # exit code of a comparison that finds a difference

_COLUMNS: Final = "partition off benchmarks rows models events duplicates conflicts rejected latches waiting".split()  # noqa: SIM905

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE|-", help="the file, or - for standard output or input", show_default=False)
]


@dataclass(frozen=True)
class StateOptions:
    """Which state."""

    topic: TopicOption = None
    redis_url: Annotated[
        str | None,
        option("--redis-url", "server of the state  \\[default: the one of the data directory]", metavar="URL"),
    ] = None
    data_dir: DataDirOption = None


def show(options: StateOptions, form: TableFormatOption = TableFormat.table) -> None:
    """Show each partition: how far its log is folded, what it holds and its size.

    Example: rankwatch state show --redis-url redis://localhost:6379
    """
    partitions = _run(options, lambda transfer: transfer.summarize())
    if form is TableFormat.json:
        print(json.dumps({"partitions": [asdict(each) for each in partitions]}, indent=2))
    elif partitions:
        _print_table(partitions)
    else:
        print("no state")


def export(file: FileArgument, options: StateOptions) -> None:
    """Write the whole state to a file, while no worker runs.

    Example: rankwatch state export state.jsonl --redis-url redis://localhost:6379
    """

    async def write(transfer: "Transfer") -> int:
        with _open_to_write(file) as lines:
            return await transfer.write(lines)

    print(f"exported {counted(_run(options, write), 'benchmark')}", file=sys.stderr)


def import_(
    file: FileArgument,
    options: StateOptions,
    partitions: Annotated[
        int | None,
        option(
            "--partitions",
            "partition count of the new log; each benchmark goes to its owner  \\[default: as exported]",
            min=1,
        ),
    ] = None,
    new_log: Annotated[
        bool,
        typer.Option("--new-log", help="go on with another log from its start (with another --topic or --partitions)"),
    ] = False,
    offset: Annotated[
        list[str] | None, option("--offset", "start to read partition P of the new log at offset N", metavar="P=N")
    ] = None,
) -> None:
    """Read a state from a file, where there is none yet.

    Example: rankwatch state import state.jsonl --redis-url redis://other:6379 --topic events.v2 --partitions 16
    """
    offsets = dict(_offset(text) for text in offset or ())

    async def read(transfer: "Transfer") -> tuple[int, set[str]]:
        with _open_to_read(file) as lines:
            count = await transfer.read(lines, partitions=partitions, offsets=offsets, new_log=new_log)
        return count, {each.log for each in await transfer.summarize() if each.log}

    count, logs = _run(options, read, must_exist=False)
    print(f"imported {counted(count, 'benchmark')}", file=sys.stderr)
    settings = _settings(options)
    if logs and settings.redis_url is None and not (settings.data_dir / LOG_NAME).exists():
        folder = show_path(str(settings.data_dir))
        print(
            f"The log of this state is not here yet: copy its {LOG_NAME} into {folder} before you start `watch`. To go on with a new log "
            f"instead, delete {folder} and import again with --new-log",
            file=sys.stderr,
        )


def salvage(data_dir: DataDirOption = None) -> None:
    """Keep the intact rest of a damaged log of `watch`, which then reports permanently what is lost.

    Example: rankwatch state salvage --data-dir rankwatch-data
    """
    settings = _settings(StateOptions(data_dir=data_dir))
    path = settings.data_dir / LOG_NAME
    try:
        done = salvage_log(path)
    except OSError as error:
        stop(file_error(error))
    except LogError as error:
        stop(str(error))
    if done.kept is None:
        print(f"{show_path(str(path))}: nothing is damaged; {counted(done.records, 'record')}", file=sys.stderr)
        return
    for start, end in done.lost:
        print(f"lost: bytes {start:,} to {end - 1:,} of the log", file=sys.stderr)
    parts = counted(len(done.lost), "damaged part")
    print(
        f"{counted(done.records, 'record')} intact, {parts} given up; the damaged log is {show_path(str(done.kept))}\n"
        "Start `watch` again. Where the state is folded again, every benchmark reports permanently that it may be partial, and watched "
        "files are read again from their start. Send posted events again that you have elsewhere: what is there counts as duplicates.",
        file=sys.stderr,
    )


OtherArgument = Annotated[
    str, typer.Argument(metavar="URL", help="server of the other state, as --redis-url takes it", show_default=False)
]


def prepare(other: OtherArgument, options: StateOptions) -> None:
    """Prepare an empty place for a second state of a topic, ahead of its first worker: it takes the signing key of the other state.

    The workers of both then recognize the copies and the producers that the others have signed.

    Example: rankwatch state prepare redis://localhost:6379/0 --redis-url redis://localhost:6379/1
    """

    async def take(transfer: "Transfer") -> bool:
        async with _open_other(other, options) as another:
            return await transfer.take_signing_key(another)

    if not _run(options, take):
        print(
            "The other state has no signing key: the version of its workers signs nothing. The first worker of this state draws a key.\n"
            "Start no newer worker on the other state; it would draw another one.",
            file=sys.stderr,
        )
    print("Start its workers with a RANKWATCH_GROUP and a RANKWATCH_VERDICT_TOPIC of their own.", file=sys.stderr)


def compare(
    other: OtherArgument,
    options: StateOptions,
    keep_times: Annotated[
        bool,
        typer.Option("--keep-times", help="give verdicts with the same id the times that they have in the other state"),
    ] = False,
    form: TableFormatOption = TableFormat.table,
) -> None:
    """Compare the verdicts of a state with those of another state of the same topic; exit 3 if any differs.

    Workers may run meanwhile: verdicts of records that only one state has folded are counted as later, and not compared.

    Example: rankwatch state compare redis://localhost:6379/0 --redis-url redis://localhost:6379/1
    """

    async def work(transfer: "Transfer") -> "list[BoardComparison]":
        async with _open_other(other, options) as another:
            return await transfer.compare(another, keep_times=keep_times)

    compared = _run(options, work)
    if form is TableFormat.json:
        print(json.dumps(as_json(compared), indent=2))
    else:
        print(as_text(compared))
    if any(each.differs for each in compared):
        raise SystemExit(_DIFFERS)


@asynccontextmanager
async def _open_other(url: str, options: StateOptions) -> "AsyncIterator[Transfer]":
    settings = _settings(options).model_copy(update={"redis_url": SecretStr(url)})
    async with _open_state(settings, must_exist=False) as transfer:
        yield transfer


def _offset(text: str) -> tuple[int, int]:
    partition, _, number = text.partition("=")
    if not (partition.isdecimal() and number.isdecimal()):
        stop(f"--offset {text}: give P=N, as in --offset 0=1500", USAGE)
    return int(partition), int(number)


def _settings(options: StateOptions) -> "Settings":
    if options.data_dir is not None and options.redis_url is not None:
        stop("--data-dir and --redis-url name two places of the state; give one of them", USAGE)
    settings = read_settings(**given(options))
    return settings if options.data_dir is None else settings.model_copy(update={"redis_url": None})


def _run(options: StateOptions, work: "Callable[[Transfer], Awaitable[T]]", *, must_exist: bool = True) -> T:
    settings = _settings(options)
    log_to_terminal()

    async def run() -> T:
        async with _open_state(settings, must_exist=must_exist) as transfer:
            return await work(transfer)

    try:
        return asyncio.run(run())
    except BrokenPipeError:
        raise SystemExit(FAULT) from None  # a part of an export is no export
    except OSError as error:
        stop(file_error(error))
    except (StoreError, ValueError) as error:
        stop(str(error))


@asynccontextmanager
async def _open_state(settings: "Settings", *, must_exist: bool) -> "AsyncIterator[Transfer]":
    async with AsyncExitStack() as stack:
        target: Any
        if settings.redis_url is not None:
            target = settings.redis_url.get_secret_value()
        else:
            if must_exist and not (settings.data_dir / "valkey").is_dir():
                stop(
                    f"{settings.data_dir} has no state; give the data directory of `watch` with --data-dir, or --redis-url"
                )
            valkey = await stack.enter_async_context(EmbeddedValkey(settings.data_dir.absolute()))
            target = valkey.options
        retries = RetryPolicy(timeout=settings.start_seconds)
        yield await stack.enter_async_context(Transfer.open(target, settings.topic, retries))


@contextmanager
def _open_to_write(file: str) -> Iterator[IO[bytes]]:
    """Open a file that gets its name once it is complete, readable by its owner only: it holds the questions of an evaluation."""
    if file == _STDIO:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    draft = Path(f"{file}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as lines:
            yield lines
            lines.flush()
            os.fsync(lines.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _open_to_read(file: str) -> Iterator[IO[bytes]]:
    if file == _STDIO:
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as lines:
        yield lines


def _print_table(partitions: "Sequence[PartitionSummary]") -> None:
    rows = [
        [*_COLUMNS, "KiB"],
        *(
            [*(f"{getattr(each, name):,}" for name in _COLUMNS), f"{each.stored_bytes / 1024:,.0f}"]
            for each in partitions
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    for log in sorted({each.log for each in partitions if each.log}):
        print(f"log: {log}")


state = typer.Typer(cls=Group, no_args_is_help=True)
add_command(state, show, "show")
add_command(state, export, "export")
add_command(state, import_, "import")
add_command(state, salvage, "salvage")
add_command(state, prepare, "prepare")
add_command(state, compare, "compare")

"""`rankwatch state show|export|import`: see `monitor.store.transfer.transfer`."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from monitor.cli.errors import FAULT, USAGE, stop
from monitor.cli.settings import quiet_logs, read_settings
from monitor.ingest.files.paths import show as show_path
from monitor.report.sentences import counted
from monitor.settings import LOG_NAME, Settings

if TYPE_CHECKING:
    from monitor.store.transfer.summary import PartitionSummary
    from monitor.store.transfer.transfer import Transfer

T = TypeVar("T")
_STDIO = "-"


def show(flags: dict[str, Any], form: str) -> None:
    """Print a line for each partition."""
    found = _run(flags, lambda transfer: transfer.summarize())
    if form == "json":
        print(json.dumps({"partitions": [asdict(each) for each in found]}, indent=2))
    elif found:
        _print_table(found)
    else:
        print("no state")


def export(file: str, flags: dict[str, Any]) -> None:
    """Write a file whole, or not at all."""

    async def work(transfer: "Transfer") -> int:
        with _written(file) as out:
            return await transfer.write(out)

    count = _run(flags, work)
    print(f"exported {counted(count, 'benchmark')}", file=sys.stderr)


def import_(file: str, flags: dict[str, Any], *, partitions: int | None, new_log: bool, offset: Sequence[str]) -> None:
    """Read a file whole, or leave nothing behind."""
    offsets = dict(_offset(each) for each in offset)

    async def work(transfer: "Transfer") -> tuple[int, set[str]]:
        with _read(file) as lines:
            count = await transfer.read(lines, partitions=partitions, offsets=offsets, new_log=new_log)
        return count, {each.log for each in await transfer.summarize() if each.log}

    count, logs = _run(flags, work, must_exist=False)
    print(f"imported {counted(count, 'benchmark')}", file=sys.stderr)
    settings = _settings(flags)
    if logs and settings.redis_url is None and not (settings.data_dir / LOG_NAME).exists():
        folder = show_path(str(settings.data_dir))
        print(
            f"It goes on with the log that it was folded from, which is not here yet: copy that {LOG_NAME} into {folder} before you start "
            f"`watch`; or, to go on with a new log, delete {folder} and import again with --new-log",
            file=sys.stderr,
        )


def _offset(text: str) -> tuple[int, int]:
    partition, _, number = text.partition("=")
    if not (partition.isdecimal() and number.isdecimal()):
        stop(f"--offset {text}: give P=N, as in --offset 0=1500", USAGE)
    return int(partition), int(number)


def _settings(flags: dict[str, Any]) -> Settings:
    if "data_dir" in flags and "redis_url" in flags:
        stop("--data-dir and --redis-url are two places of a state: give one of them", USAGE)
    settings = read_settings(flags)
    return settings.model_copy(update={"redis_url": None}) if "data_dir" in flags else settings


def _run(flags: dict[str, Any], work: "Callable[[Transfer], Awaitable[T]]", *, must_exist: bool = True) -> T:
    settings = _settings(flags)
    quiet_logs()
    from monitor.store.errors import StoreError

    async def opened() -> T:
        async with _transfer(settings, must_exist=must_exist) as transfer:
            return await work(transfer)

    try:
        return asyncio.run(opened())
    except BrokenPipeError:
        raise  # whoever read our output has had enough; the command line ends quietly
    except (StoreError, OSError, ValueError) as error:
        stop(str(error), FAULT)


@contextlib.asynccontextmanager
async def _transfer(settings: Settings, *, must_exist: bool) -> "AsyncIterator[Transfer]":
    from monitor.store.server.connection import Retries
    from monitor.store.server.embedded import EmbeddedValkey
    from monitor.store.transfer.transfer import Transfer

    async with contextlib.AsyncExitStack() as stack:
        url = settings.redis_url
        if url is not None:
            target: Any = url.get_secret_value()
        else:
            if must_exist and not (settings.data_dir / "valkey").is_dir():
                raise FileNotFoundError(
                    f"there is no state in {settings.data_dir}: name the data directory of `watch`, or --redis-url"
                )
            valkey = await stack.enter_async_context(EmbeddedValkey(settings.data_dir.absolute()))
            target = valkey.options
        retries = Retries(deadline=settings.start_seconds)
        yield await stack.enter_async_context(Transfer.open(target, settings.topic, retries))


@contextlib.contextmanager
def _written(file: str) -> "Iterator[IO[bytes]]":
    """Open a file to write that gets its name when it is whole; it holds what people were asked, and is for its owner alone."""
    if file == _STDIO:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    draft = Path(f"{file}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _read(file: str) -> "Iterator[IO[bytes]]":
    if file == _STDIO:
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as lines:
        yield lines


def _print_table(found: "Sequence[PartitionSummary]") -> None:
    columns = (
        "partition",
        "off",
        "benchmarks",
        "rows",
        "models",
        "events",
        "duplicates",
        "conflicts",
        "rejected",
        "latches",
        "waiting",
    )
    heads = [*columns, "KiB"]
    lines = [[*(f"{getattr(each, name):,}" for name in columns), f"{each.stored_bytes / 1024:,.0f}"] for each in found]
    widths = [max(len(cell) for cell in column) for column in zip(heads, *lines, strict=True)]
    for line in (heads, *lines):
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    for log in sorted({each.log for each in found if each.log}):
        print(f"log: {log}")

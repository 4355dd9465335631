"""`rankwatch send`: files of results into a topic, or to a server over HTTP."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from monitor.cli.errors import FAULT, USAGE, stop
from monitor.cli.importing import Logs, importer
from monitor.cli.settings import quiet_logs, read_settings
from monitor.cli.watch import declarations
from monitor.engine.ownership import owner
from monitor.ingest.files.blocks import Open
from monitor.ingest.files.paths import PathError, show
from monitor.ingest.reject_limit import RejectLimit, TooManyRejected
from monitor.send.send_record import Sent, default_folder
from monitor.send.sender import Deliver, Progress, Sender
from monitor.settings import Settings

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from monitor.send.messages import Outgoing
    from schemas.packed import Reject

_PATIENCE_SECONDS = 60.0
_SHOWN_REJECTS = 20


def run(
    paths: Sequence[Path],
    to: str,
    items: Sequence[str],
    order: str | None,
    flags: dict[str, Any],
    logs: Logs,
    *,
    packed: bool,
    again: bool,
    token_file: Path | None,
) -> None:
    """Send the files, and say what was sent."""
    settings = read_settings(flags)
    declare = declarations(items, order, paths)
    destination = _destination(to, settings, token_file, packed=packed)
    reader = importer(logs, declare)
    try:
        files = reader.find(paths)
    except PathError as error:
        stop(str(error), USAGE)
    quiet_logs()
    folder = settings.data_dir.absolute() / "sent" if "data_dir" in flags else default_folder()
    try:
        sent = Sent.to(destination.url, folder, forget=again)
        _check_begun(sent, declare)
        asyncio.run(_send(files, reader.open, destination, settings, sent, declare, packed=packed))
    except (ValueError, OSError) as error:
        stop(_told(error), FAULT)
    except KeyboardInterrupt:
        print("rankwatch: stopped; the same command goes on where this one was", file=sys.stderr)
        raise SystemExit(130) from None


class _Destination(NamedTuple):
    """Where things are sent: as it is told and remembered, and how to open it."""

    url: str
    open: Callable[[], AbstractAsyncContextManager[Deliver]]


def _destination(to: str, settings: Settings, token_file: Path | None, *, packed: bool) -> _Destination:
    from monitor.logs.kafka_settings import split_url
    from monitor.send.http import checked_url

    try:
        if urlsplit(to).scheme in {"http", "https"}:
            if packed:
                stop(
                    "--packed is about messages of a topic: over HTTP, events are sent many a request as they are",
                    USAGE,
                )
            url = checked_url(to)
            token = _token(settings, token_file)
            return _Destination(url, lambda: _http(url, token))
        addresses, named = split_url(to)
    except ValueError as error:
        stop(f"--to: {error}, or http(s)://host:port of a monitor", USAGE)
    topic = named or settings.topic
    return _Destination(f"kafka://{addresses}/{topic}", lambda: _kafka(addresses, topic, settings))


def _token(settings: Settings, file: Path | None) -> str | None:
    if file is None:
        return settings.token.get_secret_value() if settings.token else None
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        stop(f"--token-file {show(file)}: {getattr(error, 'strerror', None) or 'is no text'}", USAGE)


@asynccontextmanager
async def _http(url: str, token: str | None) -> AsyncIterator[Deliver]:
    from monitor.send.http import HttpDelivery

    delivery = HttpDelivery(url, token, patience=_PATIENCE_SECONDS)
    try:
        yield delivery
    finally:
        delivery.close()


@asynccontextmanager
async def _kafka(addresses: str, topic: str, settings: Settings) -> AsyncIterator[Deliver]:
    from monitor.cli.kafka import kafka_settings, quiet_kafka
    from monitor.publish.kafka_producer import KafkaProducer, Message
    from monitor.publish.topics import Topics

    quiet_kafka()
    options = kafka_settings(addresses, settings).client_options()
    async with Topics(options) as topics:
        partitions = (await topics.require(topic)).partitions
    packing = None if settings.kafka_compression == "none" else settings.kafka_compression
    async with KafkaProducer(options, compression=packing, patience=_PATIENCE_SECONDS) as producer:

        async def deliver(messages: "Sequence[Outgoing]") -> None:
            await producer.deliver(
                topic,
                (Message(owner(name, partitions), name.encode(), value) for name, value in messages),
            )

        yield deliver


def _check_begun(sent: Sent, declare: Callable[[str], dict[str, Any] | None]) -> None:
    """Refuse flags that contradict what was declared when a benchmark's first event was sent."""
    import msgspec

    for name, then in sent.benchmarks.items():
        wanted = declare(name)
        if wanted is not None and then is not None and msgspec.json.decode(then) != wanted:
            stop(
                f"{name}: its first events were sent with the declaration {then}, and --items and --order now say "
                f"{msgspec.json.encode(wanted).decode()}: what verdicts rest on cannot change after scores; drop the flags, or use another "
                "benchmark name",
                USAGE,
            )


async def _send(
    files: Sequence[Path],
    opener: Open,
    destination: _Destination,
    settings: Settings,
    sent: Sent,
    declare: Callable[[str], dict[str, Any] | None],
    *,
    packed: bool,
) -> None:
    async with destination.open() as deliver:
        with _Sending() as on_progress:
            sender = Sender(
                files,
                deliver,
                sent,
                declare=declare,
                limit=RejectLimit(settings.max_rejected),
                packed=packed,
                on_reject=_Names(),
                on_progress=on_progress,
                opener=opener,
            )
            try:
                await sender.run()
            except BaseException:
                print(f"rankwatch: {_what(sender.progress)} until it was stopped", file=sys.stderr)
                raise
    _tell(sender.progress, destination.url)


class _Names:
    """Names the first lines that could not be read."""

    def __init__(self) -> None:
        self._named = 0

    def __call__(self, reject: "Reject") -> None:
        self._named += 1
        if self._named <= _SHOWN_REJECTS:
            where = f"{show(reject['source'])}:{reject['line']}"
            print(
                f"rankwatch: {where}: {reject['field']}: found {reject['found']}: {reject['reason']}", file=sys.stderr
            )


def _tell(progress: Progress, destination: str) -> None:
    for path in progress.changed:
        print(f"rankwatch: {show(path)} has changed since it was sent: it was sent from its beginning", file=sys.stderr)
    if progress.rejected:
        print(f"rankwatch: lines that could not be read, and were not sent: {progress.rejected:,}", file=sys.stderr)
    print(f"{_what(progress)} to {destination}")


def _what(progress: Progress) -> str:
    if not progress.events:
        return "nothing new sent"
    events, benchmarks = progress.events, len(progress.benchmarks)
    return f"{events:,} event{'s' * (events != 1)} of {benchmarks:,} benchmark{'s' * (benchmarks != 1)} sent"


def _told(error: Exception) -> str:
    if isinstance(error, TooManyRejected) or not isinstance(error, OSError) or error.errno is None:
        return str(error)
    return f"{show(error.filename or 'a file')}: {error.strerror or error}"


class _Sending:
    """A progress bar on standard error where that is a terminal."""

    def __init__(self) -> None:
        self._bar: Bar | None = None

    def __enter__(self) -> Callable[[Progress], None] | None:
        if not sys.stderr.isatty():
            return None
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("sending"),
            BarColumn(),
            DownloadColumn(),
            TextColumn("{task.fields[rate]:,.0f} events/s"),
            TimeRemainingColumn(),
        )
        bar = self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        bar.start()
        task, start = bar.add_task("sending", total=None, rate=0.0), monotonic()

        def show_progress(progress: Progress) -> None:
            rate = progress.events / max(monotonic() - start, 1e-9)
            bar.update(task, completed=progress.bytes_done, total=progress.bytes_total, rate=rate)

        return show_progress

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

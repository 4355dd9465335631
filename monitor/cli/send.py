"""`rankwatch send`: send files of results to a topic, or to a monitor over HTTP."""

import asyncio
import json
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from monitor.cli.shared.declared.declarations import make_declarations
from monitor.cli.shared.errors import USAGE, file_error, note, stop
from monitor.cli.shared.files import (
    RejectedLines,
    benchmarks_in,
    find_files,
    inherited,
    make_importer,
    not_ending,
    note_read_before,
    parse_epoch,
    unmatched_choices,
)
from monitor.cli.shared.options import (
    DeclareOptions,
    EndedOption,
    EpochOption,
    InheritOption,
    LogOptions,
    MaxRejectedSetting,
    Paths,
    option,
)
from monitor.cli.shared.progress import progress_bar
from monitor.cli.shared.remote.kafka import kafka_settings, silence_kafka
from monitor.cli.shared.remote.places import bearer_token
from monitor.cli.shared.running.process import log_to_terminal
from monitor.cli.shared.settings import read_settings
from monitor.files.batches import BatchReader
from monitor.files.declaration_file import benchmarks_of
from monitor.files.epochs import NEXT, EpochRecord, Epochs
from monitor.files.importer import show_argument
from monitor.files.reject_limit import RejectedLine, RejectLimit, TooManyRejected
from monitor.files.runs import ends_of_runs
from monitor.files.streams.paths import is_copy
from monitor.files.streams.paths import show as show_path
from monitor.log.kafka.settings import split_url
from monitor.publish.kafka_producer import KafkaProducer, Message
from monitor.publish.topics import Topics
from monitor.send.http import HttpDelivery, checked_url, declared_spec, newest_epochs
from monitor.send.messages import Outgoing
from monitor.send.send_record import SendRecord, default_folder
from monitor.send.sender import Delivery, Sender
from monitor.words.counts import counted
from schemas.records.ownership import owner
from schemas.records.text import mask_url, shorten

if TYPE_CHECKING:
    from monitor.cli.shared.declared.declarations import Declarations
    from monitor.files.epochs import Newest
    from monitor.files.importer import Importer
    from monitor.send.sender import Deliver
    from monitor.settings import Settings
    from schemas.records.declaration import Spec
    from schemas.records.events import Ended


_BLOCKS = 16  # blocks of lines in a delivery


def send(
    paths: Paths,
    to: Annotated[
        str, option("--to", "kafka://host:port\\[,host:port]/topic, or http\\[s]://host:port", metavar="URL")
    ],
    declared: DeclareOptions,
    logs: LogOptions,
    packed: Annotated[
        bool,
        typer.Option(
            "--packed",
            help="send up to 1,000 events of a benchmark in one message of a topic, as columns where one run has them",
        ),
    ] = False,
    token_file: Annotated[
        Path | None, option("--token-file", "file with the bearer token  \\[default: $RANKWATCH_TOKEN]")
    ] = None,
    epoch: EpochOption = None,
    inherit: InheritOption = False,
    ended: EndedOption = False,
    announce: Annotated[
        bool,
        typer.Option("--announce", help="notify people of decisions also where a benchmark is sent for the first time"),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="send everything, including what was sent before")] = False,
    data_dir: Annotated[
        Path | None, option("--data-dir", "where to record what was sent  \\[default: $XDG_STATE_HOME/rankwatch]")
    ] = None,
    max_rejected: MaxRejectedSetting = None,
) -> None:
    """Send results to the topic of the service, or to a monitor over HTTP.

    The first time a benchmark is sent to a destination is an import: nobody is notified of what its results decide (--announce: they are).

    Records how far each file was sent to each destination, so a second run sends only what is new. After a crash some events may be sent
    twice; this changes nothing, because the first score counts.

    Example: rankwatch send results/ --to kafka://localhost:9092/rankwatch.events --items 12032
    """
    settings = read_settings(data_dir=data_dir, max_rejected=max_rejected)
    command = shlex.join(["rankwatch", "send", *map(show_argument, paths), "--to", mask_url(to)])
    declare = make_declarations(declared, paths, live=command)
    destination = _destination(to, settings, token_file, packed=packed)
    declare.stored = destination.stored
    parsed = _parse_epoch(epoch, destination, inherit=inherit)
    importer = make_importer(logs)
    declare.chooses_scores = lambda: importer.chooses_scores
    files = find_files(importer, paths)
    declare.note_present(files)
    log_to_terminal()
    try:
        folder = data_dir.absolute() / "sent" if data_dir else default_folder()
        record = SendRecord.load(destination.url, folder, forget=again)
        importer.resume(record.chosen)
        epochs = Epochs(
            parsed, newest=destination.newest or (lambda _: {}), record=EpochRecord(record.epochs_path, forget=again)
        )
        sent_before = frozenset(record.benchmarks)
        changed = declare.resume(record.specs(), lambda: benchmarks_in(files, importer))
        asyncio.run(
            _send(
                files,
                importer,
                destination,
                settings.max_rejected,
                record,
                declare,
                changed,
                epochs,
                packed=packed,
                imported=lambda name: not announce and name not in sent_before,
                ended=ended,
                inherit=inherit,
            )
        )
        for text in unmatched_choices(importer):
            note(text)
    except TooManyRejected as error:
        stop(error.problem)
    except ValueError as error:
        stop(str(error))
    except OSError as error:
        stop(file_error(error))
    except KeyboardInterrupt:
        note("stopped; run the same command again to go on")
        raise SystemExit(130) from None


class _Destination(NamedTuple):
    """Where events go: the URL to print and to record, and how to open it."""

    url: str
    open: "Callable[[], AbstractAsyncContextManager[Deliver]]"
    stored: "Callable[[str], Spec | None]" = lambda _: None
    """Returns what a server has declared of a benchmark; a topic is not asked."""
    newest: "Newest | None" = None  # asks a server for the newest epochs of a benchmark; None for a topic
    refused: "dict[str, int] | None" = None
    """How many records a server has read and refused, by reason; None for a topic, which refuses none."""


def _parse_epoch(text: str | None, destination: _Destination, *, inherit: bool) -> int | str | None:
    epoch = parse_epoch(text, inherit=inherit)
    if epoch == NEXT and destination.newest is None:
        stop("--epoch next: a topic does not report the newest epoch of a model; give the number, --epoch N", USAGE)
    return epoch


def _destination(to: str, settings: "Settings", token_file: Path | None, *, packed: bool) -> _Destination:
    scheme = to.partition("://")[0].lower()
    try:
        if scheme in {"http", "https"}:
            if packed:
                stop("--packed is for topics; over HTTP each request carries many events already", USAGE)
            url, token = checked_url(to), bearer_token(settings, token_file)
            refused: dict[str, int] = {}
            return _Destination(
                url,
                lambda: _http(url, token, refused),
                lambda name: declared_spec(url, token, name),
                lambda name: newest_epochs(url, token, name),
                refused,
            )
        addresses, url_topic = split_url(to)
    except ValueError as error:
        if scheme in {"kafka", "http", "https"}:
            stop(f"--to: {error}", USAGE)
        stop(
            f"--to {shorten(mask_url(to))}: use kafka://host:port[,host:port]/topic, or http[s]://host:port of a monitor",
            USAGE,
        )
    topic = url_topic or settings.topic
    return _Destination(f"kafka://{addresses}/{topic}", lambda: _kafka(addresses, topic, settings))


@asynccontextmanager
async def _http(url: str, token: str | None, refused: dict[str, int]) -> "AsyncIterator[Deliver]":
    def count(reason: str) -> None:
        refused[reason] = refused.get(reason, 0) + 1

    delivery = HttpDelivery(url, token, on_note=note, on_refused=count)
    try:
        yield delivery
    finally:
        delivery.close()


@asynccontextmanager
async def _kafka(addresses: str, topic: str, settings: "Settings") -> "AsyncIterator[Deliver]":
    silence_kafka()
    options = kafka_settings(addresses, settings).client_options()
    async with Topics(options) as topics:
        partitions = (await topics.require(topic)).partitions
    compression = None if settings.kafka_compression == "none" else settings.kafka_compression
    async with KafkaProducer(options, compression=compression) as producer:

        async def deliver(messages: "Sequence[Outgoing]") -> None:
            await producer.deliver(
                topic,
                (Message(owner(each.benchmark, partitions), each.benchmark.encode(), each.marked) for each in messages),
            )

        yield deliver


async def _send(
    files: Sequence[Path],
    importer: "Importer",
    destination: _Destination,
    max_rejected: float,
    record: "SendRecord",
    declare: "Declarations",
    changed: Sequence[dict[str, Any]],
    epochs: "Epochs",
    *,
    packed: bool,
    imported: Callable[[str], bool],
    ended: bool,
    inherit: bool,
) -> None:
    start, lines, limit = monotonic(), RejectedLines(), RejectLimit(max_rejected)
    fresh: list[Ended] = []
    refusals: list[str] = []
    reader = BatchReader(
        record.sources, declare=declare, known=record.benchmarks, epochs=epochs, blocks=_BLOCKS, opener=importer.open
    )

    async def deliveries() -> "AsyncGenerator[Delivery, None]":
        async with aclosing(reader.read(files, final=True)) as batches:
            async for batch in batches:
                importer.keep_direction(set().union(*(benchmarks_of(part.segment.events) for part in batch.parts)))
                yield Delivery(batch.path, batch.source, [part.segment for part in batch.parts], batch.place)

    async with destination.open() as deliver:
        with lines, progress_bar("sending") as update:

            def delivered(delivery: "Delivery") -> None:
                rejects = [reject for segment in delivery.segments for reject in segment.rejects]
                for reject in rejects:
                    lines.print(RejectedLine.of(reject))
                if update is not None:
                    rate = sender.events / max(monotonic() - start, 1e-9)
                    progress = reader.progress
                    description = f"sending, {rate:,.0f} events/s"
                    update(description=description, completed=progress.bytes_done, total=progress.bytes_total)
                limit.add(sum(segment.line_count for segment in delivery.segments), rejects)

            sender = Sender(
                deliver, record, packed=packed, imported=imported, on_delivered=delivered, chosen=importer.chosen
            )
            try:
                await _redeclare(deliver, record, changed)
                await sender.run(deliveries())
                limit.finish()
                if ended or inherit:
                    fresh, refusals = await _end_runs(
                        files, importer, reader, sender, record, epochs, ended=ended, inherit=inherit
                    )
            except BaseException:
                note(f"{_summary(sender)} before the stop")
                raise
            finally:
                reader.close()
    note_read_before(epochs.epoch, reader.read_before())
    declare.note_unused(record.benchmarks)
    _note_changes(sender, destination.refused)
    if limit.rejected:
        note(f"lines not sent because they could not be read: {limit.rejected:,}")
    end = f"; {counted(len(fresh), 'run')} ended{inherited(fresh)}" if fresh else ""
    refused = sum((destination.refused or {}).values())
    print(f"{_summary(sender)} to {destination.url}{end}{f'; {refused:,} refused there' if refused else ''}")
    if refusals:
        stop("\nrankwatch: ".join(refusals))


async def _end_runs(
    files: Sequence[Path],
    importer: "Importer",
    reader: "BatchReader",
    sender: "Sender",
    record: "SendRecord",
    epochs: "Epochs",
    *,
    ended: bool,
    inherit: bool,
) -> "tuple[list[Ended], list[str]]":
    """End the runs of files; return those that had not ended before, and what to do about files that break off."""
    found = await asyncio.to_thread(ends_of_runs, files, importer.open, epochs, inherit=inherit)
    ends, refusals = await asyncio.to_thread(not_ending, found, reader.incomplete, record.benchmarks, importer)
    return await sender.end([end for end in ends if ended or end.base is not None]), refusals


def _note_changes(sender: "Sender", refused: dict[str, int] | None) -> None:
    """Print which files were sent again, what was refused, and which events came after the end of their run."""
    for path in sender.changed:
        if is_copy(path):
            continue  # it need not be the same input as the last time
        note(f"{show_path(path)} has changed since it was sent; it was sent again from the start")
    for reason, count in (refused or {}).items():
        note(f"{counted(count, 'record')} refused there: {reason}")
    for name, model, epoch in () if refused else sorted(sender.late):
        note(
            f"{shorten(name)}: the run of {shorten(model)} (epoch {epoch}) has ended there, so new scores of it are refused; send changed "
            "scores under a new epoch (--epoch)"
        )


async def _redeclare(deliver: "Deliver", record: "SendRecord", declarations: Sequence[dict[str, Any]]) -> None:
    """Deliver what is declared in addition of benchmarks that have begun."""
    if declarations:
        texts = {declaration["declare"]: json.dumps(declaration) for declaration in declarations}
        await deliver([Outgoing(name, text.encode()) for name, text in texts.items()])
        record.benchmarks.update(texts)
        record.save()


def _summary(sender: "Sender") -> str:
    if not sender.events:
        return "nothing new sent"
    return f"{counted(sender.events, 'event')} of {counted(len(sender.benchmarks), 'benchmark')} sent"

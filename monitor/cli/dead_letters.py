"""`rankwatch dead-letters`: list the records that were rejected, show them, and send them again."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from monitor.cli.shared.commands import Group, add_command
from monitor.cli.shared.errors import USAGE, file_error, stop
from monitor.cli.shared.options import TableFormat, TableFormatOption, TopicOption, option, since_seconds
from monitor.cli.shared.remote.kafka import broker_settings, silence_kafka
from monitor.cli.shared.settings import read_settings
from monitor.publish.kafka_errors import BrokerError
from monitor.service.operations.dead_letters import Choice, in_file, in_topic, kinds, replay_of, send_again
from schemas.records.text import printable, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from monitor.log.kafka.settings import KafkaSettings
    from monitor.service.operations.dead_letters import KeptLetter
    from monitor.settings import Settings


T = TypeVar("T")


@dataclass(frozen=True)
class Which:
    """Where dead letters are, and which of them are meant."""

    data_dir: Annotated[
        Path | None, option("--data-dir", "directory of a `rankwatch watch`, in place of Kafka", metavar="DIR")
    ] = None
    broker: Annotated[
        str | None, option("--broker", "Kafka  \\[default: the setting broker_url]", metavar="HOST:PORT,...")
    ] = None
    topic: TopicOption = None
    benchmark: Annotated[str | None, option("--benchmark", "only of these benchmarks", metavar="NAME|GLOB")] = None
    producer: Annotated[
        str | None, option("--producer", "only from these producers, where a server knew them", metavar="NAME|GLOB")
    ] = None
    reason: Annotated[
        str | None, option("--reason", "only with this text in field, value or reason", metavar="TEXT")
    ] = None
    since: Annotated[
        str | None, option("--since", "only kept since this time (RFC 3339); not in a file", metavar="TIME")
    ] = None


def list_(which: Which, form: TableFormatOption = TableFormat.table) -> None:
    """List the dead letters by benchmark, producer, field and reason: how many there are, and where the last one was.

    Example: rankwatch dead-letters list --broker kafka:9092
    """
    letters = _letters(which)
    counts = kinds(letters)
    if form is TableFormat.json:
        rows = [kind._asdict() | {"letters": count, "last": last.row} for kind, count, last in counts]
        print(json.dumps({"dead_letters": rows}, indent=2))
        return
    for kind, count, last in counts:
        who = "unknown benchmark" if kind.benchmark is None else shorten(kind.benchmark)
        sender = "" if kind.producer is None else f" from {shorten(kind.producer)}"
        print(f"{count:,} of {who}{sender}: {shorten(kind.field)}: {shorten(kind.reason, 300)}")
        print(f"  last: offset {last.letter.offset:,} of partition {last.partition}, {_place(last)}")
    print(f"{len(letters):,} dead letter{'' if len(letters) == 1 else 's'}")


def show(
    which: Which,
    records: Annotated[bool, typer.Option("--records", help="print the records alone, to edit and send again")] = False,
) -> None:
    """Print dead letters as JSON lines: place, benchmark, producer, field, value, reason and the record.

    To fix records: `rankwatch dead-letters show --records > fixed.jsonl`, edit the file, and `rankwatch send fixed.jsonl --to ...`. A
    record longer than 2,000 characters is cut in its dead letter: send it again from its source.

    Example: rankwatch dead-letters show --benchmark mmlu-pro --reason 'out of range'
    """
    for kept in _letters(which):
        if not records:
            print(json.dumps(kept.row))
            continue
        try:
            print(json.dumps(json.loads(kept.letter.raw)))
        except ValueError:
            print(printable(kept.letter.raw))


def replay(
    which: Which,
    every: Annotated[bool, typer.Option("--all", help="without a condition: all of them")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="count only")] = False,
) -> None:
    """Send the records of dead letters again, after what they were refused for is fixed: a board that is restored, a declared item.

    What cannot be read is omitted, and each record is sent once. What counted meanwhile is a duplicate, so a second replay changes no
    score; what is refused again becomes a dead letter again. Changes of boards are never sent again.

    Example: rankwatch dead-letters replay --benchmark mmlu-pro --reason archived
    """
    if which.data_dir is not None:
        stop(
            "replay sends to a topic; for --data-dir, write the records to a file with `rankwatch dead-letters show --records` and send it "
            "to the server with `rankwatch send FILE --to http://HOST:PORT`",
            USAGE,
        )
    if not every and not any((which.benchmark, which.producer, which.reason, which.since)):
        stop("give --benchmark, --producer, --reason or --since; or --all for all dead letters", USAGE)
    letters = _letters(which)
    again = asyncio.run(replay_of(letters))
    if not dry_run and again.messages:
        kafka, settings = _broker(which)
        _run(lambda: send_again(kafka, settings.topic, again.messages, settings.start_seconds))
    sent = "would be sent again" if dry_run else "sent again"
    print(f"{len(again.messages):,} records of {again.letters:,} dead letters {sent}")
    if again.unreadable:
        print(
            f"{again.unreadable:,} dead letters cannot be read, or are no events, declarations or ends of runs; "
            "`rankwatch dead-letters show --records` prints them"
        )


def _place(kept: "KeptLetter") -> str:
    letter = kept.letter
    where = "" if letter.line is None else f"{shorten(letter.source)}:{letter.line}, "
    at = "" if kept.row["at"] is None else f"kept {kept.row['at']}, "
    return f"{where}{at}found {shorten(letter.found)}"


def _letters(which: Which) -> "list[KeptLetter]":
    """Return the letters that are meant, in the order in which they were kept."""
    since = None
    if which.since is not None:
        if which.data_dir is not None:
            stop("the file of --data-dir has no times; leave out --since", USAGE)
        since = since_seconds(which.since)
    choice = Choice(which.benchmark, which.producer, which.reason, since)
    if which.data_dir is not None:
        path = which.data_dir / "dead-letters.jsonl"
        try:
            return [kept for kept in in_file(path) if choice.has(kept)]
        except OSError as error:
            stop(file_error(error))
        except ValueError as error:
            stop(str(error))
    kafka, settings = _broker(which)

    async def read() -> "list[KeptLetter]":
        return [kept async for kept in in_topic(kafka, settings.topic, settings.start_seconds) if choice.has(kept)]

    return _run(read)


def _run(work: "Callable[[], Coroutine[Any, Any, T]]") -> T:
    """Run what uses Kafka; a fault of it ends the command."""
    silence_kafka()
    try:
        return asyncio.run(work())
    except BrokerError as error:
        stop(str(error))


def _broker(which: Which) -> "tuple[KafkaSettings, Settings]":
    return broker_settings(read_settings(topic=which.topic, broker_url=which.broker), ", or --data-dir")


dead_letters = typer.Typer(cls=Group, no_args_is_help=True)
add_command(dead_letters, list_, "list")
add_command(dead_letters, show, "show")
add_command(dead_letters, replay, "replay")

"""Where boards are: a server, or the stored state of a service."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from monitor.cli.shared.errors import USAGE, file_error, stop
from monitor.cli.shared.options import TopicOption, option

if TYPE_CHECKING:
    from monitor.send.boards import ServedBoards
    from monitor.service.operations.boards import TopicBoards
    from monitor.settings import Settings


@dataclass(frozen=True)
class StoredPlace:
    """Where boards can be read."""

    server: Annotated[
        str | None,
        option(
            "--server", "address of a `rankwatch watch` or `serve` that has the boards", metavar="http\\[s]://HOST:PORT"
        ),
    ] = None
    token_file: Annotated[
        Path | None, option("--token-file", "file with the bearer token for --server  \\[default: $RANKWATCH_TOKEN]")
    ] = None
    redis_url: Annotated[str | None, option("--redis-url", "server of the state, without --server", metavar="URL")] = (
        None
    )
    topic: TopicOption = None


@dataclass(frozen=True)
class Place(StoredPlace):
    """Where boards can be read and changed."""

    broker: Annotated[
        str | None,
        option("--broker", "Kafka, without --server  \\[default: the setting broker_url]", metavar="HOST:PORT,..."),
    ] = None


@contextmanager
def open_boards(place: StoredPlace, *, writes: bool = False) -> "Iterator[ServedBoards | TopicBoards]":
    """Open the boards; what goes wrong with them ends the command."""
    from monitor.cli.shared.settings import read_settings
    from monitor.publish.kafka_errors import BrokerError
    from monitor.service.operations.undo import BoardError
    from monitor.store.errors import StoreError

    broker = place.broker if isinstance(place, Place) else None
    settings = read_settings(redis_url=place.redis_url, topic=place.topic, broker_url=broker)
    try:
        yield _opened(place, settings, writes=writes)
    except (BoardError, BrokerError, StoreError, ValueError) as error:
        stop(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:  # a server that refuses, or a file
        stop(str(error) if error.strerror is None else file_error(error))


def _opened(place: StoredPlace, settings: "Settings", *, writes: bool) -> "ServedBoards | TopicBoards":
    from monitor.cli.shared.remote.kafka import broker_settings, silence_kafka
    from monitor.send.boards import ServedBoards
    from monitor.service.operations.boards import TopicBoards

    if place.server is not None:
        return ServedBoards(place.server, bearer_token(settings, place.token_file))
    if settings.redis_url is None:
        stop("give --server http://host:port, or --redis-url and --broker of the service", USAGE)
    kafka = None
    if writes:
        silence_kafka()
        kafka, settings = broker_settings(settings, ", or --server")
    return TopicBoards(settings, kafka)


def bearer_token(settings: "Settings", file: Path | None) -> str | None:
    """Return the token of a file, or that of the settings; a file that cannot be read ends the command."""
    if file is None:
        return settings.token.get_secret_value() if settings.token else None
    try:
        return file.read_text().strip()
    except OSError as error:
        stop(f"--token-file: {file_error(error, file)}", USAGE)
    except UnicodeDecodeError:
        stop(f"--token-file: {file} is not a text file", USAGE)

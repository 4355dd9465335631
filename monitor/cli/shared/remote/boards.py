"""Open the boards of a server, or of the stored state of a service."""

from collections.abc import Iterator
from contextlib import contextmanager

from monitor.cli.shared.errors import USAGE, file_error, stop
from monitor.cli.shared.remote.kafka import broker_settings, silence_kafka
from monitor.cli.shared.remote.places import Place, StoredPlace, bearer_token
from monitor.cli.shared.settings import read_settings
from monitor.publish.kafka_errors import BrokerError
from monitor.send.boards import ServedBoards
from monitor.service.operations.boards import TopicBoards
from monitor.service.operations.undo import BoardError
from monitor.settings import Settings
from monitor.store.errors import StoreError


@contextmanager
def open_boards(place: StoredPlace, *, writes: bool = False) -> Iterator[ServedBoards | TopicBoards]:
    """Open the boards; what goes wrong with them ends the command."""
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


def _opened(place: StoredPlace, settings: Settings, *, writes: bool) -> ServedBoards | TopicBoards:
    if place.server is not None:
        return ServedBoards(place.server, bearer_token(settings, place.token_file))
    if settings.redis_url is None:
        stop("give --server http://host:port, or --redis-url and --broker of the service", USAGE)
    kafka = None
    if writes:
        silence_kafka()
        kafka, settings = broker_settings(settings, ", or --server")
    return TopicBoards(settings, kafka)

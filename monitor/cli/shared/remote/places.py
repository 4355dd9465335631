"""Where boards are: a server, or the stored state of a service."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from monitor.cli.shared.errors import USAGE, file_error, stop
from monitor.cli.shared.options import TopicOption, option

if TYPE_CHECKING:
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

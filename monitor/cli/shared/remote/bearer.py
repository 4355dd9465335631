"""The bearer token that a command sends to a server."""

from pathlib import Path

from monitor.cli.shared.errors import USAGE, file_error, stop
from monitor.settings import Settings


def bearer_token(settings: Settings, file: Path | None) -> str | None:
    """Return the token of a file, or that of the settings; a file that cannot be read ends the command."""
    if file is None:
        return settings.token.get_secret_value() if settings.token else None
    try:
        return file.read_text().strip()
    except OSError as error:
        stop(f"--token-file: {file_error(error, file)}", USAGE)
    except UnicodeDecodeError:
        stop(f"--token-file: {file} is not a text file", USAGE)

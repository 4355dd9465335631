"""What a command does with the settings before it does anything else."""

import sys
from typing import Any

from pydantic import ValidationError

from monitor.cli.errors import USAGE, stop
from monitor.settings import ConfigFileError, Settings


def read_settings(flags: dict[str, Any]) -> Settings:
    """Return the settings; a wrong one ends the command with its name, what was found, and the rule."""
    try:
        return Settings(**flags)
    except ConfigFileError as error:
        stop(str(error), USAGE)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            stop(f"setting {name}: there is no such setting: `rankwatch config` lists those that there are", USAGE)
        what = first["msg"].removeprefix("Value error, ")
        stop(f"setting {name}: {what}" if name else what, USAGE)


def quiet_logs() -> None:
    """Send structured logs to standard error, and keep the libraries' own quiet."""
    import logging

    import structlog

    logging.basicConfig(level=logging.ERROR, stream=sys.stderr, format="%(name)s: %(message)s")
    # What Faust logs as an error (some of it in the name of our subclasses) it raises too, and then it is told in our own words.
    for name in ("faust", "mode", "monitor.logs"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )

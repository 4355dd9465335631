"""The settings of a command."""

from typing import Any

from pydantic import ValidationError

from monitor.cli.shared.errors import USAGE, stop
from monitor.settings import ConfigFileError, Settings


def read_settings(**flags: Any) -> Settings:  # noqa: ANN401 - the values of flags, None where one is not given
    """Return the settings; a wrong one ends the command with its name and the rule it breaks."""
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})
    except ConfigFileError as error:
        stop(str(error), USAGE)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            stop(f"setting {name} does not exist; `rankwatch config` lists all settings", USAGE)
        stop(f"setting {name}: {reason(error)}" if name else reason(error), USAGE)


def reason(error: ValidationError) -> str:
    """Return the first message of a validation error, in our own words where the model has some."""
    return str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")

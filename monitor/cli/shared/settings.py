"""The settings of a command."""

from typing import Any, Final

from pydantic import ValidationError

from monitor.cli.shared.errors import USAGE, stop
from monitor.settings import ConfigFileError, Settings

_ADVICE: Final = {
    "greater_than": "use a number above {gt:g}",
    "greater_than_equal": "use {ge:g} or more",
    "less_than": "use a number below {lt:g}",
    "less_than_equal": "use {le:g} or less",
    "literal_error": "use {expected}",
    "string_pattern_mismatch": "use a name that matches {pattern}",
    "int_parsing": "use a whole number",
    "int_from_float": "use a whole number",
    "float_parsing": "use a number",
    "bool_parsing": "use true or false",
}
"""What to use instead, by the type of pydantic's error."""


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
    """Return what is wrong with the first invalid field, and what to use instead."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] in _ADVICE:
        return _ADVICE[first["type"]].format(**first.get("ctx", {}))
    return str(first["msg"]).removeprefix("Value error, ")

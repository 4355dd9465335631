"""Wrong calls of the command line, in rankwatch's own words."""

import re
from typing import Any, Final

import typer

from monitor.cli.shared.errors import USAGE, note

# typer brings its own copy of click from 0.26 on; both derive their errors in the same way.
WrongCall: Final[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")

_CHOICES: Final = re.compile(r"(?P<value>'.*') is not one of (?P<choices>.*?)\.?$", re.DOTALL)


def stop_wrong_call(error: Any) -> None:  # noqa: ANN401 - typer's error
    """Print what is wrong with a call and how to call it; exit with 2. A group without a command prints its help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        if error.message:  # with rich, typer has printed the help already
            error.show()
    else:
        message = describe_wrong_call(error)
        command = error.ctx.command_path if error.ctx is not None else "rankwatch"
        note(f"{message}{' See' if message.endswith('?') else '; see'} `{command} --help`")
    raise SystemExit(USAGE)


def describe_wrong_call(error: Any) -> str:  # noqa: ANN401 - typer's error
    """Return the option, its value and what to use instead."""
    from pydantic import ValidationError

    from monitor.cli.shared.settings import reason

    cause = error.__cause__
    flag = "/".join(getattr(getattr(error, "param", None), "opts", ()))
    if choices := _CHOICES.search(error.message):
        names = [name.strip().strip("'\"") for name in choices["choices"].split(",")]
        return f"{flag} {choices['value'][1:-1]}: use {', '.join(names[:-1])} or {names[-1]}"
    if isinstance(cause, ValidationError):
        return f"{flag} {cause.errors()[0]['input']}: {reason(cause)}"
    message = re.sub(r" \(Possible options: (.*)\)", r"; did you mean \1?", error.format_message())
    return message[0].lower() + message[1:].removesuffix(".").replace(". Did you", "; did you")

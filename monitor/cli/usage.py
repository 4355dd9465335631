"""Wrong calls of the command line, in rankwatch's own words."""

import re
import sys
from collections.abc import Mapping
from typing import Any, Final

import typer

from monitor.cli.shared.errors import USAGE, note
from schemas.records.text import shorten

# typer brings its own copy of click from 0.26 on; both derive their errors in the same way.
WrongCall: Final[Any] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")

_RULES: Final = {  # the values of an option, by the type of pydantic's error
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "{le:g} or less",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_parsing": "a number",
}

_CHOICES: Final = re.compile(r"(?P<value>'.*') is not one of (?P<choices>.*?)\.?$", re.DOTALL)
_NEEDED: Final = re.compile(r"^Option '(?P<option>[^']+)' requires (?P<count>\w+)")


def stop_wrong_call(error: Any) -> None:  # noqa: ANN401 - typer's error
    """Print what is wrong with a call and how to call it; exit with 2. A group without a command prints its help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.message)
    else:
        message = describe_wrong_call(error)
        command = error.ctx.command_path.rstrip() if error.ctx is not None else _called_command()
        note(f"{message}{' See' if message.endswith('?') else '; see'} `{command} --help`")
    raise SystemExit(USAGE)


def describe_wrong_call(error: Any) -> str:  # noqa: ANN401 - typer's error
    """Return the option, its value and what to use instead."""
    flag = "/".join(getattr(getattr(error, "param", None), "opts", ()))
    if choices := _CHOICES.search(error.message):
        names = [name.strip().strip("'\"") for name in choices["choices"].split(",")]
        return f"{flag} {choices['value'][1:-1]}: use {', '.join(names[:-1])} or {names[-1]}"
    if type(error.__cause__).__name__ == "ValidationError":  # pydantic's, which few calls load
        first = error.__cause__.errors(include_url=False)[0]
        return f"{flag} {shorten(first['input'])}: {_rule(first)}"
    if needed := _NEEDED.search(error.message):
        values = {"an": "a value", "argument": "a value"}.get(needed["count"], f"{needed['count']} values")
        return f"{needed['option']} needs {values}"
    message = re.sub(r" \(Possible options: (.*)\)", r". Did you mean \1?", error.format_message())
    problem, ask, commands = message.removesuffix("?").partition(". Did you mean ")
    problem = problem[0].lower() + problem[1:].removesuffix(".")
    problem = re.sub(r"^(missing \w+|no such \w+:?) '(.*)'$", r"\1 \2", problem)
    if not ask:
        return problem
    from monitor.cli.shared.declared.values import by_similarity

    names = by_similarity(problem.rpartition(" ")[2], [name.strip("'") for name in commands.split(", ")])
    return f"{problem}; did you mean {' or '.join(names)}?"


def _rule(error: Mapping[str, Any]) -> str:
    rule = _RULES.get(error["type"])
    return "not valid" if rule is None else f"use {rule.format_map(error.get('ctx', {}))}"


def _called_command() -> str:
    """Return the command that was called, for the errors of which typer does not name it."""
    from monitor.cli.app import app

    command: Any = typer.main.get_command(app)
    path = ["rankwatch"]
    for word in sys.argv[1:]:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path.append(word)
    return " ".join(path)

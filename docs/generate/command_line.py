"""Write the reference of the command line from the commands themselves."""

import re
from collections.abc import Iterator
from typing import Any

import typer.main

_SHARED = {"help", "install_completion", "show_completion"}
_DECLARING = ("items", "order", "alpha", "scores", "repeats", "units", "missing", "models", "family", "goal")


def render() -> str:
    """Return a section for each command: usage, description, arguments and options."""
    from monitor.cli.app import app

    return "\n\n".join(_section(name, command) for name, command in _commands("rankwatch", typer.main.get_command(app)))


def declaring() -> str:
    """Return a table of the options that declare a benchmark."""
    from monitor.cli.app import app

    options = {
        option: each
        for name, command in _commands("rankwatch", typer.main.get_command(app))
        if name == "rankwatch watch"
        for each in command.params
        for option in each.opts
    }
    return _table("flag", [(_option(options[f"--{name}"]), options[f"--{name}"]) for name in _DECLARING])


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if children := getattr(command, "commands", None):
        for child in sorted(children):
            default = child == getattr(command, "default", None)
            yield from _commands(name if default else f"{name} {child}", children[child])
    else:
        yield name, command


def _section(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [
        each
        for each in command.params
        if each.param_type_name == "option" and each.name not in _SHARED and not each.hidden
    ]
    usage = " ".join((name, "[OPTIONS]", *(_argument(each) for each in arguments)))
    parts = [f"## {name}", f"```text\n{usage}\n```", _prose(command.help or "")]
    if arguments:
        parts.append(_table("argument", [(_argument(each), each) for each in arguments]))
    if options:
        parts.append(_table("option", [(_option(each), each) for each in options]))
    return "\n\n".join(parts)


def _prose(text: str) -> str:
    """Return the paragraphs of the help, examples as code."""
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    shown = (re.sub(r"^(Example: )?(rankwatch .*|RANKWATCH_.*)$", r"Example: `\2`", each) for each in paragraphs)
    return "\n\n".join(each for each in shown if each)


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    shown = name if argument.required else f"[{name}]"
    return f"{shown}..." if argument.nargs == -1 else shown


def _option(option: Any) -> str:
    names = ", ".join((*option.opts, *option.secondary_opts))
    if option.is_flag:
        return names
    return f"{names} {option.metavar}"


def _table(kind: str, rows: list[tuple[str, Any]]) -> str:
    lines = (
        "| `{}` | {} |".format(_cell(name), _cell(_meaning(each)).replace("\\[", "[").replace("[", r"\["))
        for name, each in rows
    )
    return "\n".join((f"| {kind} | meaning |", "|---|---|", *lines))


def _meaning(parameter: Any) -> str:
    text = re.sub(r" \\\[default: (.*)\]$", r" (default: \1)", " ".join((parameter.help or "").split()))
    if not parameter.show_default or parameter.default in (None, False, ()):
        return text
    return f"{text} (default: {getattr(parameter.default, 'value', parameter.default)})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

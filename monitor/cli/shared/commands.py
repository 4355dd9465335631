"""Commands that take dataclasses of options, and show values as the documentation does."""

import inspect
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from enum import Enum
from functools import partial, wraps
from pathlib import Path
from types import NoneType
from typing import Any, Final, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from monitor.cli.shared.errors import ReaderGone


class _PlainValues:
    """Shows what a value is as the documentation does, where typer prints a Python type: `<bool>`, `<list[str]>`, `[0<=x<=1]`."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - the signature is typer's
        """Return the parameters, `--help` among them."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the typer class next to this one
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
            each._get_number_range_help_str = partial(_range, each)  # noqa: SLF001 - typer has no setting for it
            each.process_value = partial(_process, each)
        return params

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - the signature is typer's
        """Write the help."""
        formatter.write(help_text(self, ctx))


def _process(option: Any, ctx: Any, value: Any) -> Any:  # noqa: ANN401 - typer's
    """Process the value of an option; typer would load pydantic, and build a validator for text and for each option that is not given."""
    if value is None and not option.required:
        value = () if option.multiple or option.nargs == -1 else None
    elif option.type_descriptor.annotation == list[str] and value:
        value = list(value)
    elif value is not option.default or option.required:
        return type(option).process_value(option, ctx, value)
    elif type(value) is int and option.type_descriptor.annotation is float:
        value = float(value)  # seeds depend on how it is written
    return value if option.callback is None else option.callback(ctx, option, value)


def _range(option: Any) -> str | None:  # noqa: ANN401 - typer's option
    """Describe the range of a number, without a largest value that nobody reaches."""
    least, most = getattr(option, "min", None), getattr(option, "max", None)
    if least is None:
        return None
    return f"at least {least}" if most is None or most >= _UNMET else f"{least} to {most}"


_UNMET: Final = 10**9
_VALUES: Final = {Path: "PATH", int: "N", float: "X"}


def _name_value(parameter: inspect.Parameter) -> None:
    """Give an option without a metavar one: its choices, the kind of its value, or the last word of its own name."""
    kind, *more = get_args(parameter.annotation)
    kinds = [each for each in get_args(kind) or (kind,) if each is not NoneType]
    for info in more:
        if isinstance(info, OptionInfo) and info.metavar is None and kinds != [bool] and len(kinds) == 1:
            name = parameter.name.rpartition("_")[2].upper()
            choices = [str(each.value) for each in kinds[0]] if issubclass(kinds[0], Enum) else []
            info.metavar = " | ".join(choices) or _VALUES.get(kinds[0], name)


class _Command(_PlainValues, TyperCommand):
    """A command."""


class Group(_PlainValues, TyperGroup):
    """A command with subcommands."""

    def summaries(self, ctx: Any) -> Iterator[tuple[str, str, str]]:  # noqa: ANN401 - the signature is like typer's
        """Return the panel, name and help of each subcommand."""
        for name in self.list_commands(ctx):
            yield "Commands", name, getattr(self.get_command(ctx, name), "help", None) or ""


def add_command(app: typer.Typer, command: Callable[..., None], name: str, panel: str | None = None) -> None:
    """Add a command; a parameter that is a dataclass of options becomes one option a field."""
    parameters = inspect.signature(command).parameters
    groups = {
        key: each.annotation for key, each in parameters.items() if hasattr(each.annotation, "__dataclass_fields__")
    }
    fields = {key: inspect.signature(group).parameters for key, group in groups.items()}

    @wraps(command)
    def call(**values: Any) -> None:  # noqa: ANN401 - the values of the options
        for key, group in groups.items():
            values[key] = group(**{field: values.pop(field) for field in fields[key]})
        try:
            command(**values)
        except BrokenPipeError as error:  # typer would end with a fault
            raise ReaderGone from error

    flat = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for key, parameter in parameters.items()
        for each in (fields[key].values() if key in groups else [parameter])
    ]
    for each in flat:
        _name_value(each)
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__doc__ = "\n\n".join(
        " ".join(paragraph.split()) for paragraph in inspect.cleandoc(command.__doc__ or "").split("\n\n")
    )
    call.__annotations__ = {each.name: each.annotation for each in flat}
    app.command(name, cls=_Command, rich_help_panel=panel)(call)


def given(options: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass of options
    """Return the options that were given, without those left at None."""
    return {name: value for name, value in asdict(options).items() if value is not None}


_NARROWEST: Final = 40
_WIDEST: Final = 120
_NAMES: Final = 30  # columns of the names; a longer one has its text on the next line

_PANELS_FIRST: Final = ("Arguments", "Options")


def help_text(command: Any, ctx: Any) -> str:  # noqa: ANN401 - typer's command and context
    """Return the help of a command, or of a command with subcommands."""
    width = max(_NARROWEST, min(shutil.get_terminal_size((100, 24)).columns, _WIDEST))
    # Arguments are in capitals, as in the panel below; required ones come without braces.
    pieces = [
        part.upper() if part.islower() else part.replace("{", "").replace("}", "")
        for part in command.collect_usage_pieces(ctx)
        if part
    ]
    parts = [textwrap.fill(f"Usage: {ctx.command_path.rstrip()} {' '.join(pieces)}", width)]
    parts += [
        textwrap.fill(" ".join(each.split()), width, break_long_words=False, break_on_hyphens=False)
        for each in (command.help or "").split("\n\n")
    ]
    panels = _panels(command, ctx)
    short = [len(name) for rows in panels.values() for name, _ in rows if len(name) + 2 <= _NAMES]
    column = min(max(short, default=_NAMES - 2) + 2, width // 3)
    for title, rows in panels.items():
        lines = (line for name, text in rows for line in _row(name, text, column, width))
        parts.append("\n".join((_bold(f"{title}:"), *lines)))
    return "\n\n".join(parts) + "\n"


def _panels(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:  # noqa: ANN401
    """Return the rows of each panel: commands as they are listed, then arguments and options, then the named groups of options."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for panel, name, text in command.summaries(ctx) if hasattr(command, "summaries") else ():
        panels.setdefault(panel, []).append((name, " ".join(text.partition("\n\n")[0].split())))
    own: dict[str, list[tuple[str, str]]] = {title: [] for title in _PANELS_FIRST}
    for each in command.get_params(ctx):
        record = each.get_help_record(ctx)
        if record is not None:
            kind = "Arguments" if each.param_type_name == "argument" else "Options"
            name, text = record
            if kind == "Arguments":
                name = each.metavar or each.name.upper()
            own.setdefault(getattr(each, "rich_help_panel", None) or kind, []).append((name, text.replace("\\[", "[")))
    return panels | {title: rows for title, rows in own.items() if rows}


def _row(name: str, text: str, column: int, width: int) -> Iterable[str]:
    indent = " " * (2 + column)
    lines = textwrap.wrap(text, max(20, width - len(indent)), break_on_hyphens=False) or [""]
    if len(name) + 2 <= column:
        yield f"  {name:{column}}{lines.pop(0)}".rstrip()
    else:
        yield from (f"  {line}" if k == 0 else f"      {line}" for k, line in enumerate(textwrap.wrap(name, width - 6)))
    yield from (f"{indent}{line}" for line in lines)


def _bold(text: str) -> str:
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\033[1m{text}\033[0m" if colour else text

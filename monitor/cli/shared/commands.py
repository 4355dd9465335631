"""Commands that take dataclasses of options, and show values as the documentation does."""

import inspect
from collections.abc import Callable, Iterator
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
            if not each.required and each.callback is None:
                each.process_value = partial(_process, each)
        return params

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - the signature is typer's
        """Write the help."""
        from monitor.cli.shared.help import help_text

        formatter.write(help_text(self, ctx))


def _process(option: Any, ctx: Any, value: Any) -> Any:  # noqa: ANN401 - typer's
    """Process the value of an option that was given; typer would build a validator for each of the others too, for 20 ms of `report`."""
    if value is None:
        return () if option.multiple or option.nargs == -1 else None
    return type(option).process_value(option, ctx, value)


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
    call.__doc__ = _unwrap(command.__doc__ or "")
    call.__annotations__ = {each.name: each.annotation for each in flat}
    app.command(name, cls=_Command, rich_help_panel=panel)(call)


def _unwrap(text: str) -> str:
    """Join the lines of each paragraph: the terminal wraps them to its own width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


def given(options: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass of options
    """Return the options that were given, without those left at None."""
    return {name: value for name, value in asdict(options).items() if value is not None}

"""All commands, in the order in which `rankwatch --help` lists them."""

import builtins
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from monitor.cli.shared.commands import Group, add_command

PANELS: Final = {
    "Start here": ("demo", "report", "watch", "gate", "drift", "export"),
    "Plan": ("plan", "order", "next"),
    "Read": ("map",),
    "Serve": (
        "run",
        "serve",
        "send",
        "doctor",
        "board",
        "notify",
        "quarantine",
        "dead-letters",
        "state",
        "token",
    ),
    "Reference": ("config", "schema", "reproduce"),
}
_PANEL_OF: Final = {name: panel for panel, names in PANELS.items() for name in names}


def _imported(name: str) -> Any:  # noqa: ANN401 - a function, or a Typer with subcommands
    """Import a command from its module; where its name is one of Python's functions, an underscore follows."""
    word = name.replace("-", "_")
    return getattr(import_module(f"monitor.cli.{word}"), f"{word}_" if hasattr(builtins, word) else word)


class _Commands(Mapping[str, Any]):
    """Makes each command when it is looked up: to make all 22 takes as long as a report on a small file."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's command
        if name not in self._made:
            panel, command = _PANEL_OF[name], _imported(name)
            parent = typer.Typer(add_completion=False, rich_markup_mode=None, callback=common)
            if isinstance(command, typer.Typer):
                parent.add_typer(command, name=name, rich_help_panel=panel)
            else:
                add_command(parent, command, name, panel)
            made: Any = typer.main.get_command(parent)
            self._made[name] = made.commands[name]
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PANEL_OF)

    def __len__(self) -> int:
        return len(_PANEL_OF)


class _AllCommands(Group):
    """Lists the commands by panel."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - what typer passes
        super().__init__(**attributes)
        self.commands = _Commands()  # type: ignore[assignment]  # typer never writes to it

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - the signature is typer's
        return list(self.commands)

    def summaries(self, ctx: Any) -> Iterator[tuple[str, str, str]]:  # noqa: ANN401, ARG002
        """Return the panel, name and help of each command, without the options that a command has."""
        for name, panel in _PANEL_OF.items():
            command = _imported(name)
            yield panel, name, (command.info.help if isinstance(command, typer.Typer) else command.__doc__) or ""


app = typer.Typer(
    name="rankwatch",
    cls=_AllCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # loading rich's would double the time of --help
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print(f"rankwatch {version('rankwatch')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[  # noqa: ARG001 - its callback acts
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    """Find out when a leaderboard ranking is real: paired, anytime-valid monitoring of evaluation results."""
    # Matrix products are small here: more threads only wait for each other and double the processor time of a worker.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

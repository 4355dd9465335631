"""All commands, in the order in which `rankwatch --help` lists them."""

import os
from typing import Annotated, Any, Final

import typer

from monitor.cli.board import board
from monitor.cli.config import config
from monitor.cli.dead_letters import dead_letters
from monitor.cli.demo import demo
from monitor.cli.doctor import doctor
from monitor.cli.export import export
from monitor.cli.gate import gate
from monitor.cli.map import map_file
from monitor.cli.next import next_
from monitor.cli.notify import notify
from monitor.cli.order import order
from monitor.cli.plan import plan
from monitor.cli.quarantine import quarantine
from monitor.cli.report import report
from monitor.cli.reproduce import reproduce
from monitor.cli.run import run
from monitor.cli.schema import schema
from monitor.cli.send import send
from monitor.cli.serve import serve
from monitor.cli.shared.options import Group, add_command
from monitor.cli.state import state
from monitor.cli.token import token
from monitor.cli.watch import watch

PANELS: Final[dict[str, dict[str, Any]]] = {
    "Start here": {"demo": demo, "report": report, "watch": watch, "gate": gate, "export": export},
    "Plan": {"plan": plan, "order": order, "next": next_},
    "Read": {"map": map_file},
    "Serve": {
        "run": run,
        "serve": serve,
        "send": send,
        "doctor": doctor,
        "board": board,
        "notify": notify,
        "quarantine": quarantine,
        "dead-letters": dead_letters,
        "state": state,
        "token": token,
    },
    "Reference": {"config": config, "schema": schema, "reproduce": reproduce},
}


class _ListedInOrder(Group):
    """Lists `state` in its place; typer lists commands with subcommands first."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - the signature is typer's
        return [name for commands in PANELS.values() for name in commands]


app = typer.Typer(
    name="rankwatch",
    cls=_ListedInOrder,
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


for panel, commands in PANELS.items():
    for name, command in commands.items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, rich_help_panel=panel)
        else:
            add_command(app, command, name, panel)

"""All commands, in the order in which `rankwatch --help` lists them."""

import builtins
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from monitor.cli.shared.commands import Group, add_command

PANELS: Final[Mapping[str, Mapping[str, str]]] = {
    "Start here": {
        "demo": "Replay the paper's MMLU-Pro top ten, or a year of one model, as a live stream, looked at in three ways.",
        "report": "Report on results that are complete.",
        "watch": "Follow results as they are written; report each ranking that is decided.",
        "gate": "Compare models; the exit code is the verdict.",
        "drift": "Find out whether a model has got worse than it was.",
        "export": (
            "Write a site of files: reports, tables with ties, badges, and what to quote; "
            "or another shape; or the scores as one file."
        ),
    },
    "Plan": {
        "plan": "Plan how many items a gap or a goal needs, or which gap an item count detects.",
        "order": "Print the committed order in which to evaluate a benchmark's items.",
        "admit": "Place a newcomer among the models of a board that are complete, from a part of the items.",
        "next": "Print which models run next on which items, until a goal is met. Run them, add their scores, and call it again.",
    },
    "Read": {
        "verify": "Recompute every number of a certificate from its scores, without any other file.",
        "map": "Propose a mapping for a file of any shape, show the first events it gives, and write it.",
    },
    "Serve": {
        "run": "Run one worker: events from Kafka, state in Redis, verdicts to a topic.",
        "serve": "Serve the page, API and metrics of all benchmarks that the workers fold.",
        "send": "Send results to the topic of the service, or to a monitor over HTTP.",
        "doctor": "Check brokers, topic, Redis, clock and data directory; print what to fix.",
        "board": "List the boards, archive, restore, delete, reopen and rename them, undo what a producer has sent, and export scores.",
        "notify": "Send a trial notification to every target that is set, or print it.",
        "quarantine": "List the benchmarks that workers have set aside, and release them.",
        "dead-letters": "List the records that were rejected, show them, and send them again.",
        "state": "Show the stored state, move it, or keep the rest of a damaged log.",
        "token": "Create, list, rotate and revoke the tokens of a server.",
    },
    "Reference": {
        "config": "Print every setting: its value, its source and its meaning.",
        "schema": "Print a JSON Schema: of events, run messages, declarations, ends of runs, verdict changes, reports, gates or drift.",
        "reproduce": "Recompute the paper's numbers and compare them with the published ones.",
    },
}
"""What each command does, by panel: `--help` lists them without a look into a command's module, which loads all that it needs."""
_PANEL_OF: Final = {name: panel for panel, names in PANELS.items() for name in names}


def _imported(name: str) -> Any:  # noqa: ANN401 - a function, or a Typer with subcommands
    """Import a command from its module; where its name is one of Python's functions, an underscore follows."""
    word = name.replace("-", "_")
    return getattr(import_module(f"monitor.cli.{word}"), f"{word}_" if hasattr(builtins, word) else word)


class _Commands(Mapping[str, Any]):
    """Makes each command when it is looked up: to make them all takes as long as a report on a small file."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's command
        if name not in self._made:
            panel, command = _PANEL_OF[name], _imported(name)
            parent = typer.Typer(add_completion=False, rich_markup_mode=None, callback=common)
            if isinstance(command, typer.Typer):
                parent.add_typer(command, name=name, help=PANELS[panel][name], rich_help_panel=panel)
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
        """Return the panel, name and summary of each command."""
        for panel, names in PANELS.items():
            for name, summary in names.items():
                yield panel, name, summary


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
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    """Find out when a leaderboard ranking is real: paired, anytime-valid monitoring of evaluation results."""

"""`rankwatch drift`: find out whether a model has got worse, and plan how to watch it."""

import typer

from monitor.cli.drift.change import change
from monitor.cli.drift.plan import plan
from monitor.cli.drift.runs import runs
from monitor.cli.shared.commands import Group, add_command


class _Drift(Group):
    """Reads runs unless a subcommand is named."""

    default = "runs"

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - the signature is typer's
        """Take what is no subcommand as paths and options of the default."""
        named = args and args[0] in self.commands and args[0] != self.default
        return super().parse_args(ctx, args if named else [self.default, *args])

    def resolve_command(self, ctx, args):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - the signature is typer's
        """Return the command, the default without a name of its own."""
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == self.default else name, command, rest


drift = typer.Typer(cls=_Drift)
add_command(drift, runs, "runs")
add_command(drift, plan, "plan")
add_command(drift, change, "change")

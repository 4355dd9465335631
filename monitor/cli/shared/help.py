"""The text of `--help`: panels of options in two columns, without rich, whose help takes as long to load as everything else."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Any, Final

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
    parts += [_paragraph(each, width) for each in (command.help or "").split("\n\n")]
    panels = _panels(command, ctx)
    short = [len(name) for rows in panels.values() for name, _ in rows if len(name) + 2 <= _NAMES]
    column = min(max(short, default=_NAMES - 2) + 2, width // 3)
    for title, rows in panels.items():
        lines = (line for name, text in rows for line in _row(name, text, column, width))
        parts.append("\n".join((_bold(f"{title}:"), *lines)))
    return "\n\n".join(parts) + "\n"


def _paragraph(text: str, width: int) -> str:
    """Wrap a paragraph; an example stays in one piece where it fits."""
    return textwrap.fill(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)


def _panels(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:  # noqa: ANN401
    """Return the rows of each panel: commands as they are listed, then arguments and options, then the named groups of options."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for panel, name, text in command.summaries(ctx) if hasattr(command, "summaries") else ():
        panels.setdefault(panel, []).append((name, _first_paragraph(text)))
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


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


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

"""What runs next, on a terminal."""

from rich.text import Text

from monitor.render.document import Column, Table, numbers, texts
from monitor.render.terminal.layout import output_console, shorten
from monitor.render.terminal.tables import group
from monitor.words.header import cost_sentence
from monitor.words.numbers import safe
from schemas.results.api import Next, NextRun

_ITEM_ROOM = 60  # cells for the first items of a block
_NAME_ROOM = 40


def print_next(answer: Next) -> None:
    """Print the goal, what each model does next, and how much of a full run has been run."""
    console, goal = output_console(), answer.goal
    console.print(Text(f"{safe(answer.benchmark)}  {safe(goal.goal)}: {goal.state}. {safe(goal.reason)}"))
    runs = answer.models
    columns = {
        "model": Column("model", texts(shorten(run.model, _NAME_ROOM) for run in runs)),
        "step": Column("step", texts(run.step for run in runs)),
        "scores": numbers("scores", (f"{run.items_run:,}" for run in runs)),
        "items": Column("next items", texts(_first_items(run) for run in runs)),
    }
    if runs:
        console.print(group([Table(columns)]))
    if goal.items_full:
        saved = f"; {100 * (goal.saved_ratio or 0):.1f} % saved" if answer.over else ""
        console.print(Text(f"{goal.items_run:,} of {goal.items_full:,} scores run{saved}"))
    if cost := cost_sentence(goal):
        console.print(Text(safe(cost)))


def _first_items(run: NextRun) -> str:
    """List the first items of a block, and count the others."""
    shown, room = [], _ITEM_ROOM
    for item in run.items:
        name = shorten(item, _ITEM_ROOM)
        if len(name) + 1 > room:
            break
        shown.append(name)
        room -= len(name) + 1
    rest = len(run.items) - len(shown)
    return " ".join(shown) + (f" and {rest:,} more" if rest else "")

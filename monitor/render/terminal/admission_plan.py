"""The plan of an admission on a terminal."""

from rich.text import Text

from monitor.render.document import Column, Table, numbers, texts
from monitor.render.terminal.layout import output_console, shorten
from monitor.render.terminal.tables import group
from monitor.view.admission_plan import AdmissionPlan
from monitor.words import admission as words
from monitor.words.numbers import safe

_NAME_ROOM = 40


def print_admission_plan(plan: AdmissionPlan) -> None:
    """Print what a newcomer needs, and what each model of the board would have needed."""
    console, rows = output_console(), plan.newcomers
    console.print(Text(safe(words.planned(plan.goal, plan.items, plan.median, plan.nine_of_ten))))
    console.print(Text(safe(words.replays(plan.benchmark, len(rows), plan.orders))))
    columns = {
        "rank": numbers("rank", (f"{row.rank:,}" for row in rows)),
        "model": Column("model", texts(shorten(row.model, _NAME_ROOM) for row in rows)),
        "items": numbers("items", (f"{row.items:,}" for row in rows)),
        "share": numbers("of all", (words.share(row.items, plan.items) for row in rows)),
    }
    console.print(group([Table(columns)]))

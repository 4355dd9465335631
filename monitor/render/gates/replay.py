"""A gate on past runs: one page for the terminal, as Markdown and as HTML."""

from collections.abc import Iterator

from monitor.render import html
from monitor.render.document import Column, Element, Heading, Table, numbers, plain, texts
from monitor.words import gate_replays as words
from monitor.words.numbers import points
from schemas.results.gate_replay import Replay


def as_html(found: Replay) -> str:
    """Write a replay as a page that loads nothing."""
    return html.page(words.headline(found), f"<main>{html.write(document(found))}</main>")


def document(found: Replay) -> Iterator[Element]:
    """Yield the agreement, what would be saved, the flips, then a row for each run."""
    yield Heading(words.headline(found))
    yield plain(words.title(found), *words.savings(found), words.flips(found))
    rows = found.runs
    yield plain(words.TABLE)
    yield Table(
        {
            "run": Column("run", texts(each.run for each in rows), "name"),
            "candidate": Column("candidate", texts(each.candidate for each in rows)),
            "gap": numbers("gap, points", (points(each.gap) for each in rows)),
            "full": Column("full run", texts(each.full for each in rows)),
            "items": numbers("items", (f"{each.items:,}" for each in rows)),
            "exact": numbers("exact", (f"{each.exact_items:,.0f}" for each in rows)),
            "bets": numbers("in order", (f"{each.statistical_items:,.0f}" for each in rows)),
            "verdicts": numbers(words.VERDICTS, ("/".join(f"{count}" for count in each.statistical) for each in rows)),
        }
    )

"""What a gate can know before it runs: for the terminal, and as Markdown."""

from collections.abc import Iterator
from typing import Final

from monitor.render.document import Column, Element, Heading, Table, numbers, plain, texts
from monitor.words import gate_checks as words
from monitor.words.numbers import percent
from schemas.results.gate_check import GateCheck

_SHOWN_CASES: Final = 10


def document(check: GateCheck) -> Iterator[Element]:
    """Yield the verdict, what would change it, then the evidence."""
    yield Heading(f"{words.SIGN[check.attainable]} {words.headline(check)}")
    yield plain(*words.remedies(check))
    yield Table(
        {
            "margin": Column("margin, points", texts(f"{100 * each.margin:g}" for each in check.margins), "number"),
            "items": numbers("items at which equal answers pass", (f"{each.items:,}" for each in check.margins)),
        }
    )
    yield plain(words.source(check), *words.flips(check))
    if check.shown:
        yield plain(words.shown(check))
        yield _rates(check)
    if check.flips is not None:
        yield plain(words.flaky(check))
    if check.flaky:
        yield _cases(check)
        yield plain(words.FLAKY)


def _rates(check: GateCheck) -> Table:
    rows = check.shown
    undecided = (max(0.0, 1 - each.equal_passed - each.equal_failed) for each in rows)
    return Table(
        {
            "items": numbers("items", (f"{each.items:,}" for each in rows)),
            "discordance": numbers("differ", (f"{100 * each.discordance:.3g} %" for each in rows)),
            "passed": numbers("equal: pass %", (percent(each.equal_passed) for each in rows)),
            "failed": numbers("fail %", (percent(each.equal_failed) for each in rows)),
            "undecided": numbers("undecided %", map(percent, undecided)),
            "false": numbers("worse: pass %", (percent(each.worse_passed) for each in rows)),
            "found": numbers("fail %", (percent(each.worse_failed) for each in rows)),
        }
    )


def _cases(check: GateCheck) -> Table:
    rows = check.flaky[:_SHOWN_CASES]
    return Table(
        {
            "case": Column("flaky case", texts(each.case for each in rows), "name"),
            "right": numbers("right", (f"{each.right:g} of {each.of:,}" for each in rows)),
            "flakiness": numbers("flaky", (f"{each.flakiness:.2f}" for each in rows)),
            "share": numbers("share of the noise", (f"{100 * each.share:.0f} %" for each in rows)),
        }
    )

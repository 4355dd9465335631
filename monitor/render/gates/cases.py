"""Each case of a gate against a floor: for the terminal, as Markdown, HTML, JSON, a JUnit file or a GitHub annotation."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from monitor.render import html, markdown
from monitor.render.document import Column, Element, Heading, Table, numbers, plain, texts
from monitor.render.gates.gate import Case, annotation, junit
from monitor.words import gate_cases as words
from schemas.results.gate_cases import GateCases, JudgedCase

_SIGNS: Final = {"pass": "●", "fail": "▼", "undecided": "○"}
_LEVELS: Final = {"pass": "notice", "fail": "error", "undecided": "warning"}
_SHOWN: Final = 20


def document(found: GateCases) -> Iterator[Element]:
    """Yield the verdict, the wrong cases, then what to know of them."""
    yield Heading(f"{_SIGNS[found.verdict]} {found.headline[:1].upper()}{found.headline[1:]}.")
    wrong = [each for each in found.cases if each.right < each.of or not each.of]
    order = {"below": 0, "open": 1, "reaches": 2}
    wrong.sort(key=lambda each: (order[each.state], -each.share, each.right / max(each.of, 1)))
    if wrong:
        yield _table(wrong[:_SHOWN], found)
    if len(wrong) > _SHOWN:
        yield plain(words.more(_SHOWN, len(wrong)))
    yield plain(*words.remarks(found))


def _table(rows: list[JudgedCase], found: GateCases) -> Table:
    columns = {
        "case": Column("case", texts(each.case for each in rows), "name"),
        "right": numbers("right", (words.right(each) for each in rows)),
        "was": numbers("was", (words.was(each) for each in rows)),
        "low": numbers("at least", (words.bounds(each, found)[0] for each in rows)),
        "high": numbers("at most", (words.bounds(each, found)[1] for each in rows)),
        "state": Column(f"floor {found.floor:g}", texts(words.STATES[each.state] for each in rows)),
        "share": numbers("share of the noise", (f"{100 * each.share:.0f} %" for each in rows)),
    }
    return Table({key: column for key, column in columns.items() if any(cell.text for cell in column.cells)})


def _as_markdown(found: GateCases) -> str:
    return markdown.write(document(found))


def _as_html(found: GateCases) -> str:
    return html.page(found.headline, f"<main>{html.write(document(found))}</main>")


def _as_json(found: GateCases) -> str:
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def _as_junit(found: GateCases) -> str:
    """Write a test a case: one below the floor fails, an open one too unless the gate passes."""
    opens = "undecided" if found.exit_code else ""
    below = {*found.below}
    cases = []
    for each in found.cases:
        low, high = words.bounds(each, found)
        text = f"right in {words.right(each)}: at least {low}, at most {high}, floor {words.floor(found)}"
        kind = "fail" if each.case in below else "" if each.state == "reaches" else opens
        cases.append(Case(f"{found.benchmark}.{found.candidate}", each.case, text, kind, f"{each.state}: {text}"))
    return junit(f"rankwatch gate --per-case {found.floor:g}", cases)


def _as_github(found: GateCases) -> str:
    text = "\n".join([found.headline, *words.remarks(found)])
    return annotation(_LEVELS[found.verdict], "rankwatch gate", text)


RENDERERS: Final[Mapping[str, Callable[[GateCases], str]]] = {  # by format; the terminal lays out `document`
    "markdown": _as_markdown,
    "html": _as_html,
    "json": _as_json,
    "junit": _as_junit,
    "github": _as_github,
}

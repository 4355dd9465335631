"""A site of files: the report, the tables and the badges of every benchmark, read without a server and without scripts."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import Final

from monitor.render import html
from monitor.render.board import badges, tables
from monitor.render.board.exporters import MANIFEST, Context, Exporter, File
from monitor.render.board.standings import Board, Standing
from monitor.render.report import render_html
from monitor.words.columns import ranks
from monitor.words.counts import counted
from monitor.words.numbers import safe
from monitor.words.page import QUOTE_THE_RANGE, SITE_ASSUMES, rankings
from monitor.words.results import halves
from schemas.results.report import BenchmarkReport, PairReport, ResultLine

_TABLES: Final[dict[str, Callable[[Board], str]]] = {
    "ties.csv": tables.as_csv,
    "ties.json": tables.as_json,
    "ties.md": tables.as_markdown,
    "table.tex": tables.as_latex,
}
_EMBEDDED: Final = "embed.html"
_OF_BOARD: Final = {"board": badges.board_badge, "settled": badges.settled_badge, "resolved": badges.resolved_badge}
_LABELS: Final = ("page", "CSV", "JSON", "Markdown", "LaTeX", "embed")
_LINKS: Final = dict(zip(_LABELS, ("index.html", *_TABLES, _EMBEDDED), strict=True))
_TOP: Final = 3
_MOST_TICKS: Final = 200
_MARK: Final = (
    '<svg width="20" height="16" viewBox="0 0 20 16" fill="none" stroke-width="3" stroke-linecap="round" aria-hidden="true">'
    '<path class="yes" d="M2 3h10"/><path class="tie" d="M5 8h10"/><path class="turned" d="M8 13h10"/></svg>'
)
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 80
_TAKEN: Final = ("index.html", MANIFEST)


def file_name(name: str) -> str:
    """Return a name of a file or folder for any name; two names never share one, also where upper and lower case are alike.

    >>> file_name("mmlu-pro"), file_name("../a")[:2], file_name("A") != file_name("a")
    ('mmlu-pro', 'a-', True)
    """
    plain = _UNSAFE.sub("-", name).strip(".-")[:_LONGEST].lower()
    return (
        plain
        if plain and plain == name and plain not in _TAKEN
        else f"{plain or 'x'}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    )


def site(boards: Iterable[Board], context: Context) -> Iterator[File]:
    """Return the files of a site."""
    entries: list[str] = []
    decided = steps = 0
    for board in boards:
        report = board.report
        folder = file_name(report.benchmark)
        yield f"{folder}/index.html", render_html([board.document])
        for name, write in _TABLES.items():
            yield f"{folder}/{name}", write(board)
        yield f"{folder}/{_EMBEDDED}", tables.as_html(board)
        for name, draw in _OF_BOARD.items():
            yield f"{folder}/badges/{name}.svg", draw(report)
        for pair in _claims(report):
            yield _claim(folder, pair), badges.claim_badge(report, pair)
        for each in board.standings:
            model = file_name(each.model.model)
            yield f"{folder}/badges/{model}.rank.svg", badges.rank_badge(report, each)
            yield f"{folder}/badges/{model}.ties.svg", badges.tie_badge(report, each)
        entries.append(_entry(board, folder))
        adjacent = [pair.step for pair in report.pairs if pair.adjacent]
        decided, steps = decided + adjacent.count("decided"), steps + len(adjacent)
    yield "index.html", _front(rankings(len(entries), decided, steps), entries, context.at)


def _front(result: str, entries: Iterable[str], at: float) -> str:
    """Build the first page: one result line over all boards, and a card for each."""
    style = files("monitor.render").joinpath("site.css").read_text(encoding="utf-8")
    made = datetime.fromtimestamp(at, UTC).strftime("%-d %B %Y") if at else "at an unknown time"
    body = (
        f'<div class="top"><div class="wide"><span class="brand">{_MARK}rankwatch</span>'
        f'<span class="soft">static files, made {made}</span></div></div>'
        f'<main class="wide"><h1>{escape(result)}</h1><p class="soft">{escape(QUOTE_THE_RANGE)}</p>{"".join(entries)}'
        f'<p class="foot">{escape(SITE_ASSUMES)}</p></main>'
    )
    return html.page("Which ranks are real", f"<style>{style}</style>{body}", f"{html.POLICY}; img-src 'self'")


def _entry(board: Board, folder: str) -> str:
    """Build the card of a benchmark: the result, the steps, the first rows, links, and what to quote with each model's badges."""
    report = board.report
    found = report.result
    best = "" if found is None else f'<p class="best">{_strong(found.best)}</p>'
    real = "" if found is None or found.steps is None else f"<p>{_strong(found.steps)}</p>{_strip(report)}"
    scores = board.document.ranking().columns["score"].cells
    links = "".join(f'<a href="{folder}/{name}">{label}</a>' for label, name in _LINKS.items())
    top = "".join(
        f'<tr><td class="rk">{ranks(each.model)}</td><td>{escape(safe(each.model.model))}</td>'
        f'<td class="sc">{escape(score.text.strip())}</td></tr>'
        for each, score in zip(board.standings[:_TOP], scores, strict=False)
    )
    leader = "".join(f"<p>{_image(folder, each, 'rank')}</p>" for each in board.standings[:1])
    others = " ".join(_picture(f"{folder}/badges/{name}.svg", name) for name in _OF_BOARD if name != "board")
    drawn = f"<p>{_picture(f'{folder}/badges/board.svg', 'board')}</p>{leader}"
    rows = "".join(
        f"<tr><td>{_image(folder, each, 'rank')}</td><td>{_image(folder, each, 'ties')}</td><td>{escape(each.sentence)}</td></tr>"
        for each in board.standings
    )
    claims = "".join(
        f"<p>{_picture(_claim(folder, pair), f'{safe(pair.model_a)} > {safe(pair.model_b)}')}</p>"
        for pair in _claims(report)
    )
    size = f"{counted(len(report.models), 'model')} · {counted(report.items, 'item')}"
    return (
        f'<section class="card"><div><h2><a href="{folder}/index.html">{escape(safe(report.benchmark))}</a> '
        f'<span class="soft">{size}</span></h2>'
        f'{best}{real}<p class="links">{links}</p></div><table><tbody>{top}</tbody></table><div class="badges">{drawn}</div>'
        f"<details><summary>Badges, and what to quote</summary><p>{others}</p><table><tbody>{rows}</tbody></table>{claims}</details>"
        "</section>"
    )


def _strong(line: ResultLine) -> str:
    strong, rest = map(escape, map(safe, halves(line.facts)))
    return f"<b>{strong}</b> {rest}"


_STEPS: Final = {"decided": ("yes", 10), "against": ("turned", 10), "open": ("open", 7)}


def _strip(report: BenchmarkReport) -> str:
    """Draw a tick for each step of the ranking: tall where it is decided, hollow where items are missing."""
    steps = [_STEPS.get(pair.step, ("tie", 2)) for pair in report.pairs if pair.adjacent]
    if not steps or len(steps) > _MOST_TICKS:
        return ""
    wide = 100 / len(steps)
    ticks = "".join(
        f'<rect class="{kind}" x="{k * wide + 0.1 * wide:.2f}%" y="{(12 - height) / 2:g}" width="{0.8 * wide:.2f}%" height="{height}"/>'
        for k, (kind, height) in enumerate(steps)
    )
    return f'<svg class="strip" height="12" aria-hidden="true">{ticks}</svg>'


def _claims(report: BenchmarkReport) -> list[PairReport]:
    return [pair for pair in report.pairs if pair.status != "superseded"]


def _claim(folder: str, pair: PairReport) -> str:
    return f"{folder}/badges/{file_name(pair.model_a)}.over.{file_name(pair.model_b)}.svg"


def _image(folder: str, ranked: Standing, kind: str) -> str:
    text = f"{safe(ranked.model.model)}: {ranked.place if kind == 'rank' else ranked.tie}"
    return _picture(f"{folder}/badges/{file_name(ranked.model.model)}.{kind}.svg", text)


def _picture(path: str, text: str) -> str:
    return f'<a href="{path}"><img src="{path}" alt="{escape(text)}" height="22"></a>'


SITE: Final = Exporter("site", site)

"""A site of files: the report, the tables and the badges of every benchmark, read without a server and without scripts."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Final

from monitor.render import html
from monitor.render.board import badges, tables
from monitor.render.board.exporters import MANIFEST, Context, Exporter, File
from monitor.render.board.standings import Board, Standing
from monitor.render.report import render_html, result
from monitor.words.numbers import safe
from schemas.results.report import BenchmarkReport, PairReport

_TABLES: Final[dict[str, Callable[[Board], str]]] = {
    "ties.csv": tables.as_csv,
    "ties.json": tables.as_json,
    "ties.md": tables.as_markdown,
    "table.tex": tables.as_latex,
}
_EMBEDDED: Final = "embed.html"
_OF_BOARD: Final = {
    "board": badges.board_badge,
    "settled": badges.settled_badge,
    "resolved": badges.resolved_badge,
}
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


def site(boards: Iterable[Board], _: Context) -> Iterator[File]:
    """Return the files of a site."""
    entries = []
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
    body = f"<header><h1>Which ranks are real</h1></header><main>{''.join(entries)}</main>"
    yield "index.html", html.page("Which ranks are real", body, f"{html.POLICY}; img-src 'self'")


def _entry(board: Board, folder: str) -> str:
    """Build the part of a benchmark on the first page: the result, links, and what to quote with each model's badges."""
    report = board.report
    found = result(report)
    lines = "" if found is None else html.notes(found)
    links = " · ".join(f'<a href="{folder}/{name}">{name}</a>' for name in ("index.html", *_TABLES, _EMBEDDED))
    drawn = "".join(f"{_picture(f'{folder}/badges/{name}.svg', name)} " for name in _OF_BOARD)
    rows = "".join(
        f"<tr><td>{_image(folder, each, 'rank')}</td><td>{_image(folder, each, 'ties')}</td><td>{escape(each.sentence)}</td></tr>"
        for each in board.standings
    )
    claims = "".join(
        f"<p>{_picture(_claim(folder, pair), f'{safe(pair.model_a)} > {safe(pair.model_b)}')}</p>"
        for pair in _claims(report)
    )
    return (
        f'<section><h2><a href="{folder}/index.html">{escape(safe(report.benchmark))}</a></h2>{lines}'
        f"<p>{drawn}</p><p>{links}</p>"
        f"<details><summary>Badges, and what to quote</summary><table><tbody>{rows}</tbody></table>{claims}</details></section>"
    )


def _claims(report: BenchmarkReport) -> list[PairReport]:
    return [pair for pair in report.pairs if pair.status != "superseded"]


def _claim(folder: str, pair: PairReport) -> str:
    return f"{folder}/badges/{file_name(pair.model_a)}.over.{file_name(pair.model_b)}.svg"


def _image(folder: str, ranked: Standing, kind: str) -> str:
    path = f"{folder}/badges/{file_name(ranked.model.model)}.{kind}.svg"
    text = ranked.place if kind == "rank" else ranked.tie
    return _picture(path, f"{safe(ranked.model.model)}: {text}")


def _picture(path: str, text: str) -> str:
    return f'<a href="{path}"><img src="{path}" alt="{escape(text)}" height="22"></a>'


SITE: Final = Exporter("site", site)

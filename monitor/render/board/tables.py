"""The ranking with a column of ties, as CSV, JSON, Markdown, LaTeX and an HTML page to embed."""

import csv
import json
from collections.abc import Iterable, Sequence
from html import escape as html
from io import StringIO
from typing import Any, Final

from monitor.render.board.standings import Standing
from monitor.render.csv import cell
from monitor.render.html.charts import tie_lanes
from monitor.render.markdown import escape as markdown
from monitor.render.signs import UNICODE, result_sign
from monitor.view.ranking.tie_bands import TieBands
from monitor.words import header
from monitor.words.numbers import percent, ranks, safe
from schemas.results.report import BenchmarkReport

_TITLES: Final = ("rank", "ranks", "model", "score %", "ties")
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",  # \textquotedbl is not known to LaTeX's default font encoding
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "[": r"{[}",
    "]": r"{]}",
    "-": r"{-}",
    "*": r"{*}",
    "\u2013": "--",
}
"""Characters that mean something to LaTeX, also at the start of a row, ligatures such as `--`, and the dash that one of them is."""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:14px system-ui,sans-serif;margin:8px}table{border-collapse:collapse}"
    "th,td{padding:3px 10px;text-align:left}.n{text-align:right;font-variant-numeric:tabular-nums}"
    "@media(max-width:30rem){th,td{padding:3px 4px}}"
    ".rule td{border-bottom:2px solid var(--decided)}p{max-width:46em}.result{list-style:none;padding:0}"
    ":root{--decided:#0a56ad;--open:#868f9a;--lacks:#99440a}"
    "@media(prefers-color-scheme:dark){:root{--decided:#7db9ff;--open:#6f7d8f;--lacks:#ffb26b}}"
    ".ties{position:relative;padding:0}.ties svg+svg{position:absolute;inset:0 auto auto 4px;height:100%}"
    ".ties line{stroke-width:3}.ties .passes,.ties .thread{stroke-width:1.5;stroke-dasharray:2 3}"
    ".band{stroke:var(--open)}circle.band{fill:var(--open)}"
    ".thread{stroke:var(--lacks);fill:Canvas}.ties circle.thread{stroke-dasharray:none}"
    ".ties .own{fill:var(--lacks)}.ties .ring{fill:none;stroke:var(--decided);stroke-width:1.8}"
)


def latex(text: str) -> str:
    r"""Escape text so that LaTeX prints it unchanged.

    >>> latex("a_b & \\input{x}")
    'a\\_b \\& \\textbackslash{}input\\{x\\}'
    """
    return "".join(_LATEX.get(character, character) for character in safe(text))


def as_csv(report: BenchmarkReport, standings: Sequence[Standing]) -> str:
    """Write a row a model; names in `ties` are separated by a line feed, which no name has."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["benchmark", "rank", "rank_low", "rank_high", "model", "score", "ties_with", "ties", "sentence"])
    for each in standings:
        m = each.model
        ties = "\n".join(safe(name) for name in each.ties)
        row = [report.benchmark, m.rank, m.rank_low, m.rank_high, m.model, m.mean, len(each.ties), ties, each.sentence]
        writer.writerow([cell(value) for value in row])
    return text.getvalue()


def as_json(report: BenchmarkReport, standings: Sequence[Standing]) -> str:
    """Write the models with the names that they are tied with, and the result in three lines."""
    rows: list[dict[str, Any]] = [
        {
            "rank": each.model.rank,
            "rank_low": each.model.rank_low,
            "rank_high": each.model.rank_high,
            "model": each.model.model,
            "score": each.model.mean,
            "ties": list(each.ties),
            "sentence": each.sentence,
        }
        for each in standings
    ]
    result = {word: line.text for word, line in header.result(report)}
    return (
        json.dumps({"benchmark": report.benchmark, "result": result, "models": rows}, ensure_ascii=True, indent=1)
        + "\n"
    )


def as_markdown(report: BenchmarkReport, standings: Sequence[Standing], *, several: bool = False) -> str:
    """Write a table with the result above it; `several` as in `board_of`."""
    lines = [
        f"- {result_sign(word, line, UNICODE)[0]} **{word}**: {markdown(line.text)}"
        for word, line in header.result(report)
    ]
    table = [f"| {' | '.join(_TITLES)} |", "|---:|---:|---|---:|---|"]
    table += [f"| {' | '.join(markdown(value) for value in row)} |" for row in _rows(standings)]
    assumed = markdown(header.assumed(report, several=several))
    return "\n\n".join(part for part in ("\n".join(lines), "\n".join(table), assumed) if part) + "\n"


def as_latex(report: BenchmarkReport, standings: Sequence[Standing], *, several: bool = False) -> str:
    """Write a `tabular`, with a line where no tie crosses; it needs the package textcomp, which LaTeX loads since 2020."""
    lines = [r"\begin{tabular}{rrlrl}", r"\hline", " & ".join(latex(title) for title in _TITLES) + r" \\", r"\hline"]
    for each, row in zip(standings, _rows(standings), strict=True):
        lines.append(" & ".join(latex(value) for value in row) + r" \\")
        if each.ruled:
            lines.append(r"\hline")
    caption = safe(f"{report.benchmark}. {_rule_note(standings)} {header.assumed(report, several=several)}")
    return "\n".join([f"% {caption}", *lines, r"\hline", r"\end{tabular}"]) + "\n"


def result_list(report: BenchmarkReport) -> str:
    """Write the lines of the result, each with its sign, as a list of a page."""
    lines = "".join(
        f'<li><span aria-hidden="true">{result_sign(word, line, UNICODE)[0]}</span> <b>{word}</b>: {html(safe(line.text))}</li>'
        for word, line in header.result(report)
    )
    return f'<ul class="result">{lines}</ul>'


def as_html(report: BenchmarkReport, standings: Sequence[Standing], bands: TieBands, *, several: bool = False) -> str:
    """Write a page to embed in a frame, with the tie bands in lanes: it loads nothing and runs no script."""
    name = html(safe(report.benchmark))
    drawn = bool(bands.lanes or bands.lacking)
    head = "".join(f'<th scope="col"{_number(k)}>{title}</th>' for k, title in enumerate(_TITLES))
    body = ""
    for place, (each, row) in enumerate(zip(standings, _rows(standings), strict=True)):
        lanes = f'<td class="ties">{tie_lanes(bands, place)}</td>' if drawn else ""
        cells = "".join(f"<td{_number(k)}>{html(value)}</td>" for k, value in enumerate(row))
        body += f"<tr{' class=rule' if each.ruled else ''}>{lanes}{cells}</tr>"
    note = f"{'Models on one vertical line are tied. ' if drawn else ''}{html(_rule_note(standings))}"
    return page(
        safe(report.benchmark),
        f"<h1>{name}</h1>{result_list(report)}<table><caption>{note}</caption>"
        f"<thead><tr>{'<td></td>' if drawn else ''}{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p>{html(safe(header.assumed(report, several=several)))}</p>",
    )


def _rule_note(standings: Sequence[Standing]) -> str:
    """Return what a line between two rows means; empty without one."""
    if not any(each.ruled for each in standings):
        return ""
    lacking = [
        f"{safe(each.model.model)} ({each.model.coverage:.0%} of the items)" for each in standings if each.lacks_items
    ]
    but = (
        f", but those of {', '.join(lacking[:3])}{f' and {len(lacking) - 3:,} more' if len(lacking) > 3 else ''}"
        if lacking
        else ""
    )
    return f"No tie crosses a line between two rows{but}."


def page(title: str, body: str) -> str:
    """Write an HTML page that loads nothing and runs no script; `body` is HTML."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}; img-src \'self\'"><title>{html(title)}</title>'
        f"<style>{_STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _rows(standings: Iterable[Standing]) -> Iterable[list[str]]:
    """Return the cells of each row; only names come from outside."""
    for each in standings:
        m = each.model
        yield [str(m.rank), ranks(m), safe(m.model), percent(m.mean), each.tie]


def _number(column: int) -> str:
    return ' class="n"' if column in {0, 1, 3} else ""

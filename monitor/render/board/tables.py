"""The ranking with its ties to copy: as CSV, JSON, Markdown, LaTeX and an HTML page to embed."""

import csv
import json
from collections.abc import Iterator
from io import StringIO
from typing import Any, Final

from monitor.render import html, markdown
from monitor.render.board.standings import Board
from monitor.render.csv import cell
from monitor.render.document import Element, Heading, plain
from monitor.render.report import ReportDocument, result
from monitor.words import header
from monitor.words.numbers import safe

_KEYS: Final = ("ties", "rank", "ranks", "model", "score", "interval", "step")
"""The columns of a table to copy; the report has all."""

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
    "\u2212": "$-$",
}
"""Characters that mean something to LaTeX, also at the start of a row, ligatures such as `--`, and the dash that one of them is."""


def latex(text: str) -> str:
    r"""Escape text so that LaTeX prints it unchanged.

    >>> latex("a_b & \\input{x}")
    'a\\_b \\& \\textbackslash{}input\\{x\\}'
    """
    return "".join(_LATEX.get(character, character) for character in safe(text))


def as_csv(board: Board) -> str:
    """Write a row a model; names in `ties` are separated by a line feed, which no name has."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["benchmark", "rank", "rank_low", "rank_high", "model", "score", "ties_with", "ties", "sentence"])
    for each in board.standings:
        m, ties = each.model, "\n".join(safe(name) for name in each.ties)
        row = [m.rank, m.rank_low, m.rank_high, m.model, m.mean, len(each.ties), ties, each.sentence]
        writer.writerow([cell(value) for value in (board.report.benchmark, *row)])
    return text.getvalue()


def as_json(board: Board) -> str:
    """Write the models with the names that they are tied with, and the lines of the result."""
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
        for each in board.standings
    ]
    lines = {word: line.text for word, line in header.result(board.report)}
    answer = {"benchmark": board.report.benchmark, "result": lines, "models": rows}
    return json.dumps(answer, ensure_ascii=True, indent=1) + "\n"


def as_markdown(board: Board) -> str:
    """Write the ranking with the result above it."""
    return markdown.write(_parts(board))


def as_html(board: Board) -> str:
    """Write a page to embed in a frame, with the ties drawn."""
    parts = html.write([Heading(board.report.benchmark, 1), *_parts(board, drawn=True)])
    return html.page(board.report.benchmark, f"<main>{parts}</main>")


def _parts(board: Board, *, drawn: bool = False) -> Iterator[Element]:
    found, assumed = result(board.report), header.assumed(board.report, several=board.document.several)
    yield from [] if found is None else [found]
    yield board.document.ranking(drawn=drawn).of(_KEYS)
    notes = [text for text in (_rule_note(board.document), assumed) if text]
    yield from [plain(*notes)] if notes else []


def as_latex(board: Board) -> str:
    """Write a `tabular`, with a line where no tie crosses; it needs the package textcomp, which LaTeX loads since 2020."""
    ranking = board.document.ranking().of(_KEYS)
    columns = list(ranking.columns.values())
    kinds = "".join("r" if column.kind == "number" else "l" for column in columns)
    heads = " & ".join(latex(column.head) for column in columns)
    lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\hline", rf"{heads} \\", r"\hline"]
    for k, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        lines.append(
            " & ".join(latex(", ".join(filter(None, (each.text.strip(), each.more.strip())))) for each in row) + r" \\"
        )
        lines += [r"\hline"] if k in ranking.rules else []
    assumed = header.assumed(board.report, several=board.document.several)
    caption = safe(f"{board.report.benchmark}. {_rule_note(board.document)} {assumed}")
    return "\n".join([f"% {caption}", *lines, r"\hline", r"\end{tabular}"]) + "\n"


def _rule_note(document: ReportDocument) -> str:
    """Return what a line between two rows means; empty without one."""
    ties, models = document.ties, document.report.models
    if not ties.rules:
        return ""
    lacking = [f"{safe(models[k].model)} ({models[k].coverage:.0%} of the items)" for k in sorted(ties.lacking)]
    more = f" and {len(lacking) - 3:,} more" if len(lacking) > 3 else ""
    but = f", but those of {', '.join(lacking[:3])}{more}" if lacking else ""
    return f"No tie crosses a line between two rows{but}."

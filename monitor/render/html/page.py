"""The report as one HTML file that loads nothing and runs no script."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Final

from monitor.render.document import (
    ReportDocument,
    checklist,
    facts,
    notes,
)
from monitor.render.html import charts
from monitor.render.html.tables import goal_runs, kind_of, matrix, ranking, sizes, summary, text, verdicts
from monitor.render.second_opinions import cluster_opinions, second_opinions
from monitor.render.signs import PROCEDURES, UNICODE, relation, result_sign
from monitor.words import header
from monitor.words import numbers as form
from monitor.words.header import NO_PAIR, NO_RESULTS, PATH_ORDER, PLANNED, TWO_WORDS, log_thresholds
from monitor.words.reading import first
from schemas.results.report import BenchmarkReport, ResultLine

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def render_html(documents: Sequence[ReportDocument]) -> str:
    """Write the page."""
    style = files("monitor.render").joinpath("report.css").read_text(encoding="utf-8")
    names = ", ".join(document.report.benchmark for document in documents[:3]) + (", ..." if len(documents) > 3 else "")
    body = "".join(_benchmark(document, k) for k, document in enumerate(documents))
    links_of = ""
    if len(documents) > 1:
        links = "".join(f'<li><a href="#b{k}">{text(s.report.benchmark)}</a></li>' for k, s in enumerate(documents))
        links_of = f'<nav aria-label="Benchmarks"><ul>{links}</ul></nav>'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>Which ranks are real: {text(names) or "no results"}</title>'
        f"<style>{style}</style></head><body><header><h1>rankwatch: which ranks are real</h1>{links_of}</header>"
        f"<main>{body or f'<p>{NO_RESULTS}</p>'}</main>{_footer()}</body></html>\n"
    )


def _footer() -> str:
    procedures = "; ".join(f"{short}: {escape(name)}" for short, name in PROCEDURES.values())
    return (
        f"<footer><p>{TWO_WORDS}</p><p>{procedures}. {PLANNED} The headline is the anytime family: "
        f"its error rate is over all pairs of a benchmark together.</p><p>{PATH_ORDER}</p></footer>"
    )


def _benchmark(document: ReportDocument, k: int) -> str:
    b = document.report
    entries = "".join(f"<dt>{escape(name)}</dt><dd>{text(value)}</dd>" for name, value in facts(document))
    ahead = "".join(f"<li>{text(note)}</li>" for note in first(b))
    warnings = "".join(f"<li>{text(note)}</li>" for note in notes(document))
    warnings = f'<ul class="notes">{warnings}</ul>' if warnings else ""
    parts = [
        f'<section class="benchmark" id="b{k}" aria-labelledby="h{k}"><h2 id="h{k}">{text(b.benchmark)}</h2>',
        f'<ul class="notes">{ahead}</ul>' if ahead else "",
        _result(b),
        "" if b.goal is None else goal_runs(b.goal),
        ranking(document),
        f'{warnings}<dl class="facts">{entries}</dl>',
    ]
    neighbours, others = document.neighbours, document.others
    if neighbours:
        parts.append(
            verdicts(document, neighbours, "Neighbouring ranks", "Every pair of models with consecutive ranks.")
        )
        parts += [sizes(document), matrix(document), summary(document), _cards(document)]
    if others:
        parts.append(
            verdicts(document, others, "Other pairs", "Pairs that are not neighbours, and superseded verdicts.")
        )
    return "".join([*parts, "</section>"])


def _result(b: BenchmarkReport) -> str:
    lines = "".join(_line(word, line) for word, line in header.result(b))
    return f'<dl class="lede">{lines}</dl>' if lines else f'<p class="lede">{NO_PAIR}</p>'


def _line(word: str, line: ResultLine) -> str:
    kind = "yes" if line.yes else "turned" if line.held else "no"
    sign, _ = result_sign(word, line, UNICODE)
    return f'<dt class="t-{kind}"><span aria-hidden="true">{sign}</span> {word}</dt><dd>{text(line.text)}</dd>'


def _cards(document: ReportDocument) -> str:
    cards = "".join(_card(document, k) for k in range(len(document.neighbours)))
    return (
        "<h3>Pair by pair</h3><p class='soft'>Each chart shows the evidence ln e by shared items, and the thresholds for the pair on its "
        f"own (pair) and in its family (family). The reporting checklist follows. {PATH_ORDER}</p><div class='cards'>{cards}</div>"
    )


def _card(document: ReportDocument, k: int) -> str:
    pair, chart = document.neighbours[k], document.charts.pairs[k]
    names = f"{text(pair.model_a)} {escape(relation(pair))} {text(pair.model_b)}"
    drawing = "<p class='soft'>No path: there are no shared items scored 0 or 1.</p>"
    if chart is not None:
        log_e = form.decimal(pair.log_e, header.log_e_digits(document.report))
        title = f"ln e of {text(pair.model_a)} against {text(pair.model_b)}, {log_e} at the end"
        drawing = charts.path_chart(chart, log_thresholds(document.report)[0], kind_of(pair), title)
    entries = _entries(checklist(document, k))
    more = ""
    if document.detail is not None:
        detail = document.detail.pairs[k]
        opinions = second_opinions(detail) + (cluster_opinions(detail.cluster) if detail.cluster is not None else [])
        more = f"<details><summary>Second opinions</summary>{_entries(opinions)}</details>"
    return f'<article class="card"><h4>{names}</h4>{drawing}{entries}{more}</article>'


def _entries(entries: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{text(value)}</dd></div>" for name, value in entries)
    return f"<dl>{rows}</dl>"

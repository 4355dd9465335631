"""The report as one HTML file: nothing is loaded from anywhere, no script runs."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Final

from monitor.render import charts
from monitor.render import numbers as form
from monitor.render.document import (
    PATH_ORDER,
    PLANNED,
    RESOLUTIONS,
    TWO_WORDS,
    ReportDocument,
    checklist,
    facts,
    headline,
    needed,
    notes,
)
from monitor.render.numbers import DECIDED, HELD, PROCEDURES, UNICODE
from monitor.render.second_opinions import second_opinions
from monitor.report.sentences import counted
from schemas.report import ModelReport, PairReport

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_KINDS: Final = {DECIDED: "yes", HELD: "turned"}


def text(value: str) -> str:
    """Escape for HTML what cannot be trusted."""
    return escape(form.safe(value))


def render_html(benchmarks: Sequence[ReportDocument]) -> str:
    """Write the page."""
    style = files("monitor.render").joinpath("report.css").read_text(encoding="utf-8")
    names = ", ".join(shown.report.benchmark for shown in benchmarks[:3]) + (", ..." if len(benchmarks) > 3 else "")
    body = "".join(_benchmark(shown, k) for k, shown in enumerate(benchmarks))
    contents = ""
    if len(benchmarks) > 1:
        links = "".join(f'<li><a href="#b{k}">{text(s.report.benchmark)}</a></li>' for k, s in enumerate(benchmarks))
        contents = f'<nav aria-label="Benchmarks"><ul>{links}</ul></nav>'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>Which ranks are real: {text(names) or "no results"}</title>'
        f"<style>{style}</style></head><body><header><h1>rankwatch: which ranks are real</h1>{contents}</header>"
        f"<main>{body or '<p>No results: nothing was read that holds a score.</p>'}</main>{_footer()}</body></html>\n"
    )


def _footer() -> str:
    procedures = "; ".join(f"{short}: {escape(name)}" for short, name in PROCEDURES.values())
    return (
        f"<footer><p>{TWO_WORDS}</p><p>{procedures}. {PLANNED[0].upper()}{PLANNED[1:]}. The headline is the anytime family: "
        f"its verdicts hold however often one looks, over all pairs together.</p><p>{PATH_ORDER}</p></footer>"
    )


def _benchmark(shown: ReportDocument, k: int) -> str:
    b = shown.report
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{text(value)}</dd>" for name, value in facts(shown))
    warnings = "".join(f"<li>{text(note)}</li>" for note in notes(shown))
    warnings = f'<ul class="notes">{warnings}</ul>' if warnings else ""
    parts = [
        f'<section class="benchmark" id="b{k}" aria-labelledby="h{k}"><h2 id="h{k}">{text(b.benchmark)}</h2>',
        f'<p class="lede">{escape(headline(shown))}</p><dl class="facts">{listed}</dl>{warnings}',
        _ranking(shown),
    ]
    if shown.neighbours:
        parts += [
            _verdicts(
                shown, shown.neighbours, "Neighbouring ranks", "Every pair of models that stand next to each other."
            )
        ]
        parts += [_sizes(shown), _matrix(shown), _summary(shown), _cards(shown)]
    if shown.others:
        parts.append(
            _verdicts(shown, shown.others, "Other pairs", "Pairs that are not neighbours, and superseded verdicts.")
        )
    return "".join([*parts, "</section>"])


def _table(title: str, head: str, body: str) -> str:
    return (
        f'<p class="soft">{title}</p><div class="scroll" role="region" tabindex="0" aria-label="{title}">'
        f"<table><thead>{head}</thead>{body}</table></div>"
    )


def _body(rows: Sequence[str]) -> str:
    return f"<tbody>{''.join(rows)}</tbody>"


# --- ranking ----------------------------------------------------------------------------------------------------------------------------


def _ranking(shown: ReportDocument) -> str:
    models = shown.report.models
    lows = [m.mean_low for m in models if m.mean_low is not None]
    highs = [m.mean_high for m in models if m.mean_high is not None]
    scale = (min(lows, default=0.0), max(highs, default=1.0))
    skipped = dict(zip((m.model for m in models), shown.figures.skipped, strict=True))
    groups = groupby(models, key=lambda m: m.tie_group)
    bodies = "".join(
        f'<tbody class="tie">{"".join(_model(shown, m, skipped[m.model], scale) for m in members)}</tbody>'
        for _, members in groups
    )
    head = (
        '<tr><th scope="col" class="num">Rank</th><th scope="col" class="num">Could be</th><th scope="col">Model</th>'
        '<th scope="col" class="num">Mean, %</th><th scope="col">Mean and interval</th><th scope="col" class="num">Items</th>'
        '<th scope="col" class="num">Skipped</th><th scope="col" class="num">Coverage</th></tr>'
    )
    title = (
        "Ranks by mean score. “Could be” is every rank that the family-wise verdicts leave open; models on one shaded band are not decided "
        "from one another."
    )
    return f"<h3>Ranking</h3>{_table(title, head, bodies)}"


def _model(shown: ReportDocument, m: ModelReport, skipped: int, scale: tuple[float, float]) -> str:
    ranks = f"{m.rank_low}" if m.rank_low == m.rank_high else f"{m.rank_low}–{m.rank_high}"
    coverage = f"{m.coverage:.1%}"
    if shown.covers_little(m):
        coverage = f'<span class="low">{coverage} low</span>'
    interval = f"{form.percent(m.mean_low)} to {form.percent(m.mean_high)}" if m.mean_low is not None else form.MISSING
    bar = charts.mean_bar(m.mean_low, m.mean_high, m.mean, least=scale[0], most=scale[1])
    return (
        f'<tr><td class="num">{m.rank}</td><td class="num">{ranks}</td><th scope="row">{text(m.model)}</th>'
        f'<td class="num">{form.percent(m.mean)}</td><td>{bar}<span class="soft">{interval}</span></td>'
        f'<td class="num">{m.items:,}</td><td class="num">{skipped:,}</td><td class="num">{coverage}</td></tr>'
    )


# --- verdicts ---------------------------------------------------------------------------------------------------------------------------


def _verdicts(shown: ReportDocument, pairs: Sequence[PairReport], heading: str, title: str) -> str:
    reach = max(
        (abs(bound) for p in shown.neighbours or pairs for bound in (p.gap_low, p.gap_high) if bound is not None),
        default=1.0,
    )
    rows = [_verdict(p, reach or 1.0) for p in pairs]
    decided = "".join(_column(PROCEDURES[key], first=k == 0) for k, key in enumerate(PROCEDURES))
    resolved = "".join(_column(PROCEDURES[key], first=k == 0) for k, key in enumerate(RESOLUTIONS))
    head = (
        '<tr><th scope="col" rowspan="2">Pair</th><th scope="col" rowspan="2">Status</th>'
        '<th scope="col" rowspan="2">Gap in points, with its interval at alpha</th>'
        f'<th scope="colgroup" colspan="{len(PROCEDURES)}" class="head">Decided: who is better?</th>'
        f'<th scope="colgroup" colspan="{len(RESOLUTIONS)}" class="head">Resolved: enough items?</th></tr><tr>{decided}{resolved}</tr>'
    )
    key = (
        f'<ul class="key"><li><span class="sign yes">{UNICODE.decided}</span> yes, the first-named</li>'
        f'<li><span class="sign turned">{UNICODE.reversed}</span> yes, the second-named</li>'
        f'<li><span class="sign no">{UNICODE.undecided}</span> no</li><li><span class="sign no">{UNICODE.missing}</span> '
        "not computed, or not in the family</li></ul>"
    )
    return f"<h3>{escape(heading)}</h3>{key}{_table(escape(title), head, _body(rows))}"


def _column(names: tuple[str, str], *, first: bool) -> str:
    short, long = names
    edge = " head" if first else ""
    return f'<th scope="col" class="centre{edge}"><abbr title="{escape(long)}">{short}</abbr></th>'


def kind_of(pair: PairReport) -> str:
    """Name the colour of a pair's family-wise verdict."""
    return {"a": "yes", "b": "turned"}.get(pair.decided.anytime_family or "", "no")


def _verdict(pair: PairReport, reach: float) -> str:
    glyph, word, colour = form.status_glyph(pair, UNICODE)
    chip = {"yes": "decided", "turned": "turned"}.get(_KINDS.get(colour, "no"), "")
    gap = (
        f"{form.points(pair.gap)} {form.interval(pair.gap_low, pair.gap_high)}"
        if pair.gap_low is not None
        else form.points(pair.gap)
    )
    bar = charts.interval_bar(pair.gap_low, pair.gap_high, pair.gap, reach, kind_of(pair))
    decided = "".join(
        _sign(*form.decision_glyph(pair, key, UNICODE), first=k == 0, said=_said(pair, key))
        for k, key in enumerate(PROCEDURES)
    )
    resolved = "".join(
        _sign(
            *form.resolution_glyph(pair, key, UNICODE),
            first=k == 0,
            said={True: "resolved", False: "not resolved", None: "not computed"}[getattr(pair.resolved, key)],
        )
        for k, key in enumerate(RESOLUTIONS)
    )
    width = 3 + len(PROCEDURES) + len(RESOLUTIONS)
    # Thousands of pairs that are no neighbours would make the page too long to read: their sentences are in csv and json.
    said = pair.adjacent or pair.status == "superseded"
    why = f'<tr class="why"><td colspan="{width}"><p>{text(pair.reason)}</p></td></tr>' if said else ""
    return (
        f'<tr><th scope="row">{text(pair.model_a)} {escape(form.relation(pair))} {text(pair.model_b)}</th>'
        f'<td><span class="chip {chip}">{glyph} {word}</span></td>'
        f'<td>{bar}<span class="soft">{gap}</span></td>{decided}{resolved}</tr>{why}'
    )


def _said(pair: PairReport, procedure: str) -> str:
    glyph, _ = form.decision_glyph(pair, procedure, UNICODE)
    if glyph == UNICODE.missing:
        return "not computed"
    side = getattr(pair.decided, procedure)
    return {"a": "decided for the first", "b": "decided for the second"}.get(side, "not decided")


def _sign(glyph: str, colour: str, *, first: bool, said: str) -> str:
    edge = " head" if first else ""
    return (
        f'<td class="centre{edge}"><span class="sign {_KINDS.get(colour, "no")}" aria-hidden="true">{glyph}</span>'
        f'<span class="hidden">{said}</span></td>'
    )


# --- size, matrix, summary --------------------------------------------------------------------------------------------------------------


def _sizes(shown: ReportDocument) -> str:
    rows = []
    for pair, drawn in zip(shown.neighbours, shown.figures.pairs, strict=True):
        ratio = pair.required_n / pair.n if pair.required_n is not None and pair.n else None
        anytime = drawn.anytime_required_n / pair.n if drawn is not None and pair.n else None
        spread = (
            f"{needed(drawn.required_n_low)} to {needed(drawn.required_n_high)}" if drawn is not None else form.MISSING
        )
        rows.append(
            f'<tr><th scope="row">{text(pair.model_a)} v {text(pair.model_b)}</th><td class="num">{pair.n:,}</td>'
            f'<td class="num">{needed(pair.required_n)}</td><td class="num">{spread}</td>'
            f'<td class="num">{form.ratio(pair.resolution_ratio)}</td><td>{charts.needed_bar(ratio, anytime)}</td></tr>'
        )
    head = (
        '<tr><th scope="col">Pair</th><th scope="col" class="num">N, shared</th><th scope="col" class="num">N*, needed</th>'
        '<th scope="col" class="num">N*, 95 % bootstrap</th><th scope="col" class="num">q = N/N*</th>'
        '<th scope="col">N*/N, from 1/100 to 100</th></tr>'
    )
    title = (
        "The bar is N*/N on a logarithmic scale, the dashed line is 1: a bar that ends before it is resolved at a planned n, one that "
        "passes it is not. The tick is N*/N when one looks all along (anytime)."
    )
    return f"<h3>Is the benchmark large enough?</h3>{_table(title, head, _body(rows))}"


def _matrix(shown: ReportDocument) -> str:
    matrix, models = shown.figures.matrix, shown.report.models
    size = len(models)
    decided = int((matrix > 0).sum())
    pairs = size * (size - 1) // 2
    title = f"{decided:,} of {counted(pairs, 'pair')} decided family-wise; rows and columns by rank"
    rows = []
    for k, model in enumerate(models):
        better, worse = int((matrix[k] > 0).sum()), int((matrix[k] < 0).sum())
        rows.append(
            f'<tr><td class="num">{k + 1}</td><th scope="row">{text(model.model)}</th><td class="num">{better:,}</td>'
            f'<td class="num">{worse:,}</td><td class="num">{size - 1 - better - worse:,}</td></tr>'
        )
    head = (
        '<tr><th scope="col" class="num">Rank</th><th scope="col">Model</th><th scope="col" class="num">Better than</th>'
        '<th scope="col" class="num">Worse than</th><th scope="col" class="num">Undecided with</th></tr>'
    )
    return (
        f'<h3>Who is decided over whom</h3><p class="soft">{title}.</p><ul class="key">'
        '<li><span class="swatch b-yes"></span>the row’s model is better</li><li><span class="swatch b-turned"></span>'
        'the column’s model is better</li><li><span class="swatch b-no"></span>undecided</li></ul>'
        f'<figure class="matrix">{charts.matrix_chart(matrix, title)}</figure>'
        f"<details><summary>The same as a table</summary>"
        f"{_table('How many models each is decided to be better and worse than.', head, _body(rows))}</details>"
    )


def _summary(shown: ReportDocument) -> str:
    summary = shown.report.summary
    names = {key: name for key, (_, name) in PROCEDURES.items()} | form.SUMMARY_ONLY
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td class="num">{summary.undecided.get(key, form.MISSING)}</td>'
        f'<td class="num">{summary.unresolved.get(key, form.MISSING)}</td></tr>'
        for key, name in names.items()
        if key in summary.undecided or key in summary.unresolved
    ]
    head = (
        '<tr><th scope="col">Procedure</th><th scope="col" class="num">Undecided (evidence)</th>'
        '<th scope="col" class="num">Unresolved (q &lt; 1)</th></tr>'
    )
    title = f"What each procedure leaves open, of the {counted(summary.pairs, 'pair')} listed."
    return f"<h3>Procedures side by side</h3>{_table(title, head, _body(rows))}"


# --- pair by pair -----------------------------------------------------------------------------------------------------------------------


def _cards(shown: ReportDocument) -> str:
    cards = "".join(_card(shown, k) for k in range(len(shown.neighbours)))
    return (
        "<h3>Pair by pair</h3><p class='soft'>The evidence ln e as the items come in, against what decides a pair by itself (alone) and in "
        f"its family; below it the reporting checklist. {PATH_ORDER}</p><div class='cards'>{cards}</div>"
    )


def _card(shown: ReportDocument, k: int) -> str:
    pair, drawn = shown.neighbours[k], shown.figures.pairs[k]
    names = f"{text(pair.model_a)} {escape(form.relation(pair))} {text(pair.model_b)}"
    chart = "<p class='soft'>No path: there are no shared items scored 0 or 1.</p>"
    if drawn is not None:
        title = f"ln e of {text(pair.model_a)} against {text(pair.model_b)}, {form.decimal(pair.log_e)} at the end"
        chart = charts.path_chart(drawn, form.log_thresholds(shown.report)[0], kind_of(pair), title)
    entries = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{text(value)}</dd></div>" for name, value in checklist(shown, k)
    )
    more = second_opinions(shown.detail.pairs[k]) if shown.detail is not None else ""
    return f'<article class="card"><h4>{names}</h4>{chart}<dl>{entries}</dl>{more}</article>'

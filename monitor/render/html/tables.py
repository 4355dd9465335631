"""The tables of the HTML report: ranking, verdicts, sizes, decisions by model, procedures."""

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from monitor.render.document import ReportDocument, summary_rows
from monitor.render.html import charts
from monitor.render.signs import (
    DECIDED,
    HELD,
    PROCEDURES,
    RESOLUTIONS,
    SETTLED_WORDS,
    UNICODE,
    decision_glyph,
    pair_signs,
    relation,
    resolution_glyph,
    settled_glyph,
    status_glyph,
)
from monitor.words import battles
from monitor.words import numbers as form
from monitor.words.counts import counted
from monitor.words.header import goal_table
from monitor.words.numbers import needed, needed_range
from schemas.results.report import GoalReport, ModelReport, PairReport

_KINDS: Final = {DECIDED: "yes", HELD: "turned"}


def text(value: str) -> str:
    """Escape a name or a sentence for HTML."""
    return escape(form.safe(value))


def _table(title: str, head: str, body: str) -> str:
    return (
        f'<p class="soft">{title}</p><div class="scroll" role="region" tabindex="0" aria-label="{title}">'
        f"<table><thead>{head}</thead>{body}</table></div>"
    )


def _head(titles: Sequence[str], *, numbers: Sequence[int]) -> str:
    kinds = (' class="num"' if k in numbers else "" for k in range(len(titles)))
    cells = (f'<th scope="col"{kind}>{escape(title)}</th>' for kind, title in zip(kinds, titles, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _body(rows: Sequence[str]) -> str:
    return f"<tbody>{''.join(rows)}</tbody>"


def goal_runs(goal: GoalReport) -> str:
    """Write what each model ran for a goal."""
    columns, lines = goal_table(goal)
    numbers = range(1, len(columns) - 1)
    kinds = [' class="num"' if k in numbers else "" for k in range(len(columns))]
    rows = [
        f"<tr>{''.join(f'<td{kind}>{text(cell)}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>"
        for row in lines
    ]
    head = _head([title.capitalize() for title in columns], numbers=numbers)
    title = "Scores and skips that each model ran, and the share of a full run that was not needed so far."
    race = "" if goal.committed is None else f"<p>{text(goal.committed.text)}</p>"
    return f"<h3>Run for the goal</h3>{_table(title, head, _body(rows))}{race}"


# --- ranking ----------------------------------------------------------------------------------------------------------------------------


class _Measure(NamedTuple):
    """What a model is ranked by: the value and its interval, as numbers and as text."""

    numbers: tuple[float | None, float | None, float | None]
    value: str
    interval: str


def _measures(document: ReportDocument) -> dict[str, _Measure]:
    """Return what each model is ranked by: the mean, or for battles the rating."""
    if document.report.battles is None:
        return {
            m.model: _Measure(
                (m.mean_low, m.mean_high, m.mean), form.percent(m.mean), form.percent_range(m.mean_low, m.mean_high)
            )
            for m in document.report.models
        }
    return {
        r.model: _Measure((r.rating_low, r.rating_high, r.rating), battles.rating(r), battles.rating_range(r))
        for r in document.report.battles.ratings
    }


def ranking(document: ReportDocument) -> str:
    """Write the models by rank with their tie bands, and a line that no tie crosses."""
    models, rated = document.report.models, document.report.battles is not None
    measures = _measures(document)
    lows = [low for low, _, _ in (measure.numbers for measure in measures.values()) if low is not None]
    highs = [high for _, high, _ in (measure.numbers for measure in measures.values()) if high is not None]
    scale = (min(lows, default=0.0), max(highs, default=1.0))
    extras = form.extra_columns(models)
    # Numbers after the interval, as text.
    cells = {
        m.model: (f"{m.items:,}", *(() if rated else (f"{skipped:,}", _coverage(document, m))), *own)
        for m, skipped, *own in zip(models, document.charts.skipped, *extras.values(), strict=True)
    }
    rules = frozenset(document.ties.rules)
    rows = [
        _model(m, measures[m.model], _ties(document, k), cells[m.model], scale, ruled=k in rules)
        for k, m in enumerate(models)
    ]
    shown = (
        ["Rating", "Rating and interval", "Prompts"]
        if rated
        else ["Mean, %", "Mean and interval", "Items", "Skipped", "Coverage"]
    )
    titles = ["Ties", "Rank", "Could be", "Model", *shown]
    titles += map(str.capitalize, extras)
    head = _head(titles, numbers=(1, 2, 4, *range(6, len(titles))))
    title = (
        f"Ranks by {'rating' if rated else 'mean score'}. “Could be” lists the ranks that the family-wise verdicts leave open. Two models "
        "share a tie band exactly when no verdict separates them."
    )
    threads = any(document.ties.lacking.values())
    if any(len(band.members) == 1 for band in document.ties.bands or ()):
        title += " A ring is in no band with another model." if threads else " A ring is tied with none."
    if rules:
        title += " No band crosses a blue line: every model above is decided to be better than every one below."
    if threads:
        title += " A model that lacks items is in no band: an orange thread marks those that it may be tied with."
    if document.ties.bands is None:
        title += " The bands are too many to draw: the ranks that each model is tied with are listed instead."
    return f'<h3>Ranking</h3><div class="ranked">{_table(title, head, _body(rows))}</div>'


def _ties(document: ReportDocument, k: int) -> str:
    """Draw the tie bands at a model, with the ranks it is tied with as text for those who do not see them."""
    ties, tied = document.ties, form.rank_list(document.tied[k])
    if ties.bands is None:
        return f'<td class="soft">{tied}</td>'
    return f'<td class="ties">{charts.tie_lanes(ties, k)}<span class="hidden">tied with ranks: {tied}</span></td>'


def _coverage(document: ReportDocument, m: ModelReport) -> str:
    coverage = f"{m.coverage:.1%}"
    return f'<span class="low">{coverage} low</span>' if document.is_low(m) else coverage


def _model(
    m: ModelReport, measure: _Measure, ties: str, cells: Sequence[str], scale: tuple[float, float], *, ruled: bool
) -> str:
    bar = charts.mean_bar(*measure.numbers, least=scale[0], most=scale[1])
    numbers = "".join(f'<td class="num">{cell}</td>' for cell in cells)
    return (
        f'<tr{" class=ruled" if ruled else ""}>{ties}<td class="num">{m.rank}</td><td class="num">{form.ranks(m)}</td>'
        f'<th scope="row">{text(m.shown)}</th>'
        f'<td class="num">{measure.value}</td><td>{bar}<span class="soft">{measure.interval}</span></td>{numbers}</tr>'
    )


# --- verdicts ---------------------------------------------------------------------------------------------------------------------------


def verdicts(document: ReportDocument, pairs: Sequence[PairReport], heading: str, title: str) -> str:
    """Write the status, gap and verdicts of some pairs."""
    reach = max(
        (abs(bound) for p in document.neighbours or pairs for bound in (p.gap_low, p.gap_high) if bound is not None),
        default=1.0,
    )
    rows = [_verdict(p, reach or 1.0) for p in pairs]
    decided = "".join(_column(PROCEDURES[key], first=k == 0) for k, key in enumerate(PROCEDURES))
    resolved = "".join(_column(PROCEDURES[key], first=k == 0) for k, key in enumerate(RESOLUTIONS))
    head = (
        '<tr><th scope="col" rowspan="2">Pair</th><th scope="col" rowspan="2">Status</th>'
        '<th scope="col" rowspan="2">Gap in points, with its interval at alpha</th>'
        '<th scope="col" rowspan="2"><abbr title="who leads on the items of the benchmark">Settled</abbr></th>'
        f'<th scope="colgroup" colspan="{len(PROCEDURES)}" class="head">Decided: who is better?</th>'
        f'<th scope="colgroup" colspan="{len(RESOLUTIONS)}" class="head">Resolved: q ≥ 1</th></tr><tr>{decided}{resolved}</tr>'
    )
    signs = "".join(
        f'<li><span class="sign {_KINDS.get(colour, "no")}">{sign}</span> {words}</li>'
        for sign, colour, words in pair_signs(pairs, UNICODE)
    )
    legend = f'<ul class="key">{signs}</ul>'
    return f"<h3>{escape(heading)}</h3>{legend}{_table(escape(title), head, _body(rows))}"


def _column(names: tuple[str, str], *, first: bool) -> str:
    short, long = names
    edge = " head" if first else ""
    return f'<th scope="col" class="centre{edge}"><abbr title="{escape(long)}">{short}</abbr></th>'


def kind_of(pair: PairReport) -> str:
    """Return the style class of a pair's family-wise verdict."""
    return {"a": "yes", "b": "turned"}.get(pair.decided.anytime_family or "", "no")


def _verdict(pair: PairReport, reach: float) -> str:
    glyph, word, colour = status_glyph(pair, UNICODE)
    chip = {"yes": "decided", "turned": "turned"}.get(_KINDS.get(colour, "no"), "")
    gap = (
        f"{form.points(pair.gap)} {form.interval(pair.gap_low, pair.gap_high)}"
        if pair.gap_low is not None
        else form.points(pair.gap)
    )
    bar = charts.interval_bar(pair.gap_low, pair.gap_high, pair.gap, reach, kind_of(pair))
    decided = "".join(
        _sign(*decision_glyph(pair, key, UNICODE), first=k == 0, label=_label(pair, key))
        for k, key in enumerate(PROCEDURES)
    )
    resolved = "".join(
        _sign(
            *resolution_glyph(pair, key, UNICODE),
            first=k == 0,
            label={True: "resolved", False: "not resolved", None: "not computed"}[getattr(pair.resolved, key)],
        )
        for k, key in enumerate(RESOLUTIONS)
    )
    settled = _sign(
        *settled_glyph(pair, UNICODE), first=True, label=SETTLED_WORDS.get(pair.settled or "", "not settled")
    )
    width = 4 + len(PROCEDURES) + len(RESOLUTIONS)
    # Thousands of pairs that are not neighbours would make the page too long; csv and json have their reasons.
    has_reason = pair.adjacent or pair.status == "superseded"
    why = f'<tr class="why"><td colspan="{width}"><p>{text(pair.reason)}</p></td></tr>' if has_reason else ""
    return (
        f'<tr><th scope="row">{text(pair.model_a)} {escape(relation(pair))} {text(pair.model_b)}</th>'
        f'<td><span class="chip {chip}">{glyph} {word}</span></td>'
        f'<td>{bar}<span class="soft">{gap}</span></td>{settled}{decided}{resolved}</tr>{why}'
    )


def _label(pair: PairReport, procedure: str) -> str:
    glyph, _ = decision_glyph(pair, procedure, UNICODE)
    if glyph == UNICODE.missing:
        return "not computed"
    side = getattr(pair.decided, procedure)
    return {"a": "decided for the first", "b": "decided for the second"}.get(side, "not decided")


def _sign(glyph: str, colour: str, *, first: bool, label: str) -> str:
    edge = " head" if first else ""
    return (
        f'<td class="centre{edge}"><span class="sign {_KINDS.get(colour, "no")}" aria-hidden="true">{glyph}</span>'
        f'<span class="hidden">{label}</span></td>'
    )


# --- size, matrix, summary --------------------------------------------------------------------------------------------------------------


def sizes(document: ReportDocument) -> str:
    """Write N* of each neighbouring pair against its N."""
    rows = []
    for pair, chart in zip(document.neighbours, document.charts.pairs, strict=True):
        ratio = pair.required_n / pair.n if pair.required_n is not None and pair.n else None
        anytime = chart.anytime_required_n / pair.n if chart is not None and pair.n else None
        spread = form.MISSING if chart is None else needed_range(chart.required_n_low, chart.required_n_high)
        rows.append(
            f'<tr><th scope="row">{text(pair.model_a)} ~ {text(pair.model_b)}</th><td class="num">{pair.n:,}</td>'
            f'<td class="num">{needed(pair.required_n)}</td><td class="num">{spread}</td>'
            f'<td class="num">{form.ratio(pair.resolution_ratio)}</td><td>{charts.needed_bar(ratio, anytime)}</td></tr>'
        )
    titles = ("Pair", "N, shared", "N*, needed", "N*, 95 % bootstrap", "q = N/N*", "N*/N, from 1/100 to 100")
    head = _head(titles, numbers=(1, 2, 3, 4))
    title = (
        "The bar is N*/N on a logarithmic scale; the dashed line is 1. A bar that ends left of the line is resolved at a planned n. "
        f"The tick is N*/N if you look at every item (anytime). {form.Q_IS_NO_EVIDENCE}."
    )
    return f"<h3>Items that a gap of this size needs</h3>{_table(title, head, _body(rows))}"


def matrix(document: ReportDocument) -> str:
    """Write which model of each pair is better, as a chart and as a table."""
    sides, models = document.charts.matrix, document.report.models
    size = len(models)
    decided = int((sides > 0).sum())
    pairs = size * (size - 1) // 2
    title = f"{decided:,} of {counted(pairs, 'pair')} decided family-wise; rows and columns by rank"
    rows = []
    for k, model in enumerate(models):
        better, worse = int((sides[k] > 0).sum()), int((sides[k] < 0).sum())
        rows.append(
            f'<tr><td class="num">{k + 1}</td><th scope="row">{text(model.model)}</th><td class="num">{better:,}</td>'
            f'<td class="num">{worse:,}</td><td class="num">{size - 1 - better - worse:,}</td></tr>'
        )
    head = _head(("Rank", "Model", "Better than", "Worse than", "Undecided with"), numbers=(0, 2, 3, 4))
    return (
        f'<h3>Which model is better, pair by pair</h3><p class="soft">{title}.</p><ul class="key">'
        '<li><span class="swatch b-yes"></span>the row’s model is better</li><li><span class="swatch b-below"></span>'
        'the column’s model is better</li><li><span class="swatch b-no"></span>undecided</li>'
        '<li><span class="swatch b-turned"></span>decided against the ranking</li></ul>'
        f'<figure class="matrix">{charts.matrix_chart(sides, title)}</figure>'
        f"<details><summary>Show as a table</summary>"
        f"{_table('Models that each model is decided to be better and worse than.', head, _body(rows))}</details>"
    )


def summary(document: ReportDocument) -> str:
    """Write how many pairs each procedure leaves open."""
    rows = [
        f'<tr><th scope="row">{escape(name)}</th><td class="num">{undecided}</td><td class="num">{unresolved}</td></tr>'
        for name, undecided, unresolved in summary_rows(document, form.MISSING)
    ]
    head = _head(("Procedure", "Undecided (evidence)", "Unresolved (q < 1)"), numbers=(1, 2))
    title = f"Pairs that each procedure leaves open, of the {counted(document.report.summary.pairs, 'pair')} in this report."
    return f"<h3>Procedures side by side</h3>{_table(title, head, _body(rows))}"

"""The report as Markdown: tables for an issue, a pull request or a README."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from monitor.render.document import (
    ReportDocument,
    checklist,
    facts,
    notes,
    summary_rows,
)
from monitor.render.second_opinions import cluster_opinions, second_opinions
from monitor.render.signs import (
    PROCEDURES,
    RESOLUTIONS,
    UNICODE,
    decision_glyph,
    pair_signs,
    relation,
    resolution_glyph,
    result_sign,
    settled_glyph,
    status_glyph,
)
from monitor.words import battles, header
from monitor.words import numbers as form
from monitor.words.counts import counted
from monitor.words.header import NO_PAIR, NO_RESULTS, PLANNED, TWO_WORDS
from monitor.words.reading import first
from schemas.results.battles import BattlesReport
from schemas.results.report import ModelReport, PairReport

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>|~#&!])")
_MENTION: Final = re.compile(r"(?<!\w)@(?=\w)")
_LINK: Final = re.compile(r"(?<=[A-Za-z]):(?=//)|(?<=\b[wW]{3})\.")


def escape(text: str) -> str:
    r"""Escape text so that Markdown shows it unchanged: no markup, no table cell, no link, no notification.

    >>> escape("a|b*c")
    'a\\|b\\*c'
    >>> escape("see https://x and @you")
    'see https&#58;//x and @&#8203;you'
    """
    text = _MARKUP.sub(r"\\\1", form.safe(text))
    text = _MENTION.sub("@&#8203;", text)
    return _LINK.sub(lambda match: f"&#{ord(match.group())};", text)


def render_markdown(documents: Sequence[ReportDocument]) -> str:
    """Write every benchmark under its own heading."""
    if not documents:
        return f"{NO_RESULTS}\n"
    parts = [part for document in documents for part in _benchmark(document)]
    pairs = [pair for document in documents for pair in (*document.neighbours, *document.others)]
    return "\n\n".join([*parts, _legend(pairs)]) + "\n"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    rule = ["---:" if k in right else "---" for k in range(len(titles))]
    lines = [titles, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _benchmark(document: ReportDocument) -> list[str]:
    result = [
        f"- {result_sign(word, line, UNICODE)[0]} **{word}**: {escape(line.text)}"
        for word, line in header.result(document.report)
    ]
    ahead = "\n".join(f"> - {escape(text)}" for text in first(document.report))
    parts = [f"## {escape(document.report.benchmark)}", *([ahead] if ahead else []), "\n".join(result) or NO_PAIR]
    goal = document.report.goal
    if goal is not None:
        columns, rows = header.goal_table(goal)
        cells = ([escape(cell) for cell in row] for row in rows)
        parts += ["### Run for the goal", _table(columns, cells, right=range(1, len(columns) - 1))]
        parts += [] if goal.committed is None else [escape(goal.committed.text)]
    parts += ["### Ranking", _ranking(document)]
    if warnings := notes(document):
        parts.append("\n".join(f"> - {escape(note)}" for note in warnings))
    parts.append("\n".join(f"- {name}: {escape(value)}" for name, value in facts(document)))
    pairs = document.neighbours
    if not pairs:
        return parts
    digits = header.log_e_digits(document.report)
    parts += ["### Neighbouring ranks", _pairs(pairs, digits), _reasons(pairs)]
    if document.others:
        parts += ["### Other pairs", _pairs(document.others, digits)]
    parts += ["### Procedures", _summary(document)]
    parts += ["### Reporting checklist", _by_pair(pairs, [checklist(document, k) for k in range(len(pairs))])]
    if document.detail is not None:
        details = document.detail.pairs
        parts += ["### Second opinions", _by_pair(pairs, [second_opinions(detail) for detail in details])]
        clustered = [(p, cluster_opinions(d.cluster)) for p, d in zip(pairs, details, strict=True) if d.cluster]
        if clustered:
            parts.append(_by_pair(*zip(*clustered, strict=True)))
    return parts


def _ranking(document: ReportDocument) -> str:
    if document.report.battles is not None:
        return _ratings(document.report.battles, document.report.models)
    models = document.report.models
    extras = form.extra_columns(models)

    def row(model: ModelReport, tied: Sequence[int], skipped: int, *cells: str) -> list[str]:
        low = " **low**" if document.is_low(model) else ""
        means = [form.percent(model.mean), form.percent_range(model.mean_low, model.mean_high)]
        counts = [f"{model.items:,}", f"{skipped:,}", f"{model.coverage:.1%}{low}"]
        return [str(model.rank), form.ranks(model), form.rank_list(tied), escape(model.shown), *means, *counts, *cells]

    titles = [
        "rank",
        "could be",
        "tied with ranks",
        "model",
        "mean %",
        "interval",
        "items",
        "skipped",
        "coverage",
        *extras,
    ]
    rows = (row(*cells) for cells in zip(models, document.tied, document.charts.skipped, *extras.values(), strict=True))
    return _table(titles, rows, right=(0, 1, *range(4, len(titles))))


def _ratings(found: BattlesReport, models: Sequence[ModelReport]) -> str:
    titles = ["rank", "could be", "tie group", "model", "rating", "interval", "won %", "prompts", "island"]
    rows = (
        [
            str(model.rank),
            form.ranks(model),
            str(model.tie_group),
            escape(model.model),
            battles.rating(rated),
            battles.rating_range(rated),
            form.percent(rated.win_share),
            f"{rated.prompts:,}",
            str(rated.island),
        ]
        for model, rated in zip(models, found.ratings, strict=True)
    )
    ranking = _table(titles, rows, right=(0, 1, 2, *range(4, len(titles))))
    if not found.judges:
        return ranking
    judges = (
        [
            escape(judge.judge),
            f"{judge.votes:,}",
            form.MISSING if judge.agrees is None else f"{judge.agrees:.0%} of {judge.shared:,}",
            form.MISSING if judge.ranking is None else ", ".join(map(escape, judge.ranking[:5])),
        ]
        for judge in found.judges
    )
    return f"{ranking}\n\n### Judges\n\n{_table(['judge', 'votes', 'agrees with others', 'its first five'], judges, right=(1,))}"


def _pairs(pairs: Sequence[PairReport], digits: int) -> str:
    shorts = [short for short, _ in PROCEDURES.values()]
    resolved = [f"q≥1 {PROCEDURES[key][0]}" for key in RESOLUTIONS]
    titles = [
        "pair",
        "status",
        "n",
        "b/c",
        "gap, points",
        "interval at alpha",
        "ln e",
        "N\\*",
        "q",
        "settled",
        *shorts,
        *resolved,
    ]
    return _table(titles, (_pair(pair, digits) for pair in pairs), right=(2, 3, 4, 5, 6, 7, 8))


def _names(pair: PairReport, sign: str) -> str:
    return f"{escape(pair.model_a)} {escape(sign)} {escape(pair.model_b)}"


def _pair(pair: PairReport, digits: int) -> list[str]:
    return [
        _names(pair, relation(pair)),
        status_glyph(pair, UNICODE)[1],
        f"{pair.n:,}",
        form.discordant(pair),
        form.points(pair.gap),
        escape(form.interval(pair.gap_low, pair.gap_high)),
        form.decimal(pair.log_e, digits),
        escape(form.needed(pair.required_n)),
        form.ratio(pair.resolution_ratio),
        settled_glyph(pair, UNICODE)[0],
        *(decision_glyph(pair, key, UNICODE)[0] for key in PROCEDURES),
        *(resolution_glyph(pair, key, UNICODE)[0] for key in RESOLUTIONS),
    ]


def _reasons(pairs: Sequence[PairReport]) -> str:
    return "\n".join(f"- **{_names(p, relation(p))}**: {escape(p.reason)}" for p in pairs)


def _summary(document: ReportDocument) -> str:
    title = f"of {counted(document.report.summary.pairs, 'pair')}"
    return _table([title, "undecided (evidence)", "unresolved (q < 1)"], summary_rows(document, ""), right=(1, 2))


def _by_pair(pairs: Sequence[PairReport], entries: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Write a table with a row for each pair and a column for each name."""
    titles = ["pair", *(escape(name) for name, _ in entries[0])]
    rows = ([_names(p, "v"), *(escape(value) for _, value in values)] for p, values in zip(pairs, entries, strict=True))
    return _table(titles, rows)


def _legend(pairs: Sequence[PairReport]) -> str:
    names = ", ".join(f"{short} {name}" for short, name in PROCEDURES.values())
    signs = "; ".join(f"{sign} {words}" for sign, _, words in pair_signs(pairs, UNICODE))
    return f"---\n\n{TWO_WORDS} {f'{signs}. ' if signs else ''}{names}. {PLANNED}"

"""The report as Markdown: tables for an issue, a pull request or a README."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from monitor.render import numbers as form
from monitor.render.document import (
    PLANNED,
    RESOLUTIONS,
    TWO_WORDS,
    ReportDocument,
    checklist,
    facts,
    headline,
    needed,
    notes,
    p_value,
)
from monitor.render.numbers import PROCEDURES, UNICODE
from monitor.report.sentences import counted
from schemas.detail import CURRENT, PLANNED_N, ClusterDetail
from schemas.report import ModelReport, PairReport

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>|~#&!])")
_MENTION: Final = re.compile(r"(?<!\w)@(?=\w)")
_LINK: Final = re.compile(r"(?<=[A-Za-z]):(?=//)|(?<=\b[wW]{3})\.")


def escape(text: str) -> str:
    r"""Show text as it is: no markup, no table cell, no link, and nobody is notified.

    Examples
    --------
    >>> escape("a|b*c")
    'a\\|b\\*c'
    >>> escape("see https://x and @you")
    'see https&#58;//x and @&#8203;you'
    """
    text = _MARKUP.sub(r"\\\1", form.safe(text))
    text = _MENTION.sub("@&#8203;", text)
    return _LINK.sub(lambda found: f"&#{ord(found.group())};", text)


def render_markdown(benchmarks: Sequence[ReportDocument]) -> str:
    """Write every benchmark under a heading of its own."""
    if not benchmarks:
        return "No results: nothing was read that holds a score.\n"
    parts = [part for shown in benchmarks for part in _benchmark(shown)]
    return "\n\n".join([*parts, _legend()]) + "\n"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    rule = ["---:" if k in right else "---" for k in range(len(titles))]
    lines = [titles, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _benchmark(shown: ReportDocument) -> list[str]:
    b = shown.report
    parts = [f"## {escape(b.benchmark)}", f"**{headline(shown)}**"]
    parts.append("\n".join(f"- {name}: {escape(value)}" for name, value in facts(shown)))
    warnings = notes(shown)
    if warnings:
        parts.append("\n".join(f"> - {escape(note)}" for note in warnings))
    parts += ["### Ranking", _ranking(shown)]
    if not shown.neighbours:
        return parts
    parts += ["### Neighbouring ranks", _pairs(shown.neighbours), _reasons(shown.neighbours)]
    if shown.others:
        parts += ["### Other pairs", _pairs(shown.others)]
    parts += ["### Procedures", _summary(shown)]
    parts += ["### Reporting checklist", _checklists(shown)]
    if shown.detail is not None:
        parts += ["### Second opinions", *_detail(shown)]
    return parts


def _ranking(shown: ReportDocument) -> str:
    def row(model: ModelReport, skipped: int) -> list[str]:
        ranks = f"{model.rank_low}" if model.rank_low == model.rank_high else f"{model.rank_low}–{model.rank_high}"
        mean = form.percent(model.mean)
        interval = (
            f"{form.percent(model.mean_low)} to {form.percent(model.mean_high)}"
            if model.mean_low is not None
            else form.MISSING
        )
        low = " **low**" if shown.covers_little(model) else ""
        group = str(model.tie_group)
        counts = [f"{model.items:,}", f"{skipped:,}", f"{model.coverage:.1%}{low}"]
        return [str(model.rank), ranks, group, escape(model.model), mean, interval, *counts]

    titles = ["rank", "could be", "tie group", "model", "mean %", "interval", "items", "skipped", "coverage"]
    rows = (row(model, skipped) for model, skipped in zip(shown.report.models, shown.figures.skipped, strict=True))
    return _table(titles, rows, right=(0, 1, 2, 4, 5, 6, 7, 8))


def _pairs(pairs: Sequence[PairReport]) -> str:
    shorts = [short for short, _ in PROCEDURES.values()]
    resolved = [f"q≥1 {PROCEDURES[key][0]}" for key in RESOLUTIONS]
    titles = ["pair", "status", "n", "b/c", "gap, points", "interval at alpha", "ln e", "N\\*", "q", *shorts, *resolved]
    return _table(titles, (_pair(pair) for pair in pairs), right=(2, 3, 4, 5, 6, 7, 8))


def _pair(pair: PairReport) -> list[str]:
    counts = f"{pair.b:,}/{pair.c:,}" if pair.b is not None and pair.c is not None else form.MISSING
    return [
        f"{escape(pair.model_a)} {escape(form.relation(pair))} {escape(pair.model_b)}",
        form.status_glyph(pair, UNICODE)[1],
        f"{pair.n:,}",
        counts,
        form.points(pair.gap),
        escape(form.interval(pair.gap_low, pair.gap_high)),
        form.decimal(pair.log_e),
        escape(needed(pair.required_n)),
        form.ratio(pair.resolution_ratio),
        *(form.decision_glyph(pair, key, UNICODE)[0] for key in PROCEDURES),
        *(form.resolution_glyph(pair, key, UNICODE)[0] for key in RESOLUTIONS),
    ]


def _reasons(pairs: Sequence[PairReport]) -> str:
    return "\n".join(
        f"- **{escape(p.model_a)} {escape(form.relation(p))} {escape(p.model_b)}**: {escape(p.reason)}" for p in pairs
    )


def _summary(shown: ReportDocument) -> str:
    summary = shown.report.summary
    names = {key: name for key, (_, name) in PROCEDURES.items()} | form.SUMMARY_ONLY
    keys = [key for key in names if key in summary.undecided or key in summary.unresolved]
    rows = (
        [names[key], *(str(counts.get(key, "")) for counts in (summary.undecided, summary.unresolved))] for key in keys
    )
    return _table(
        [f"of {counted(summary.pairs, 'pair')}", "undecided (evidence)", "unresolved (q < 1)"], rows, right=(1, 2)
    )


def _checklists(shown: ReportDocument) -> str:
    lists = [checklist(shown, k) for k in range(len(shown.neighbours))]
    titles = ["pair", *(escape(quantity) for quantity, _ in lists[0])]
    rows = (
        [f"{escape(pair.model_a)} v {escape(pair.model_b)}", *(escape(value) for _, value in values)]
        for pair, values in zip(shown.neighbours, lists, strict=True)
    )
    return _table(titles, rows)


def _detail(shown: ReportDocument) -> list[str]:
    assert shown.detail is not None
    rows, cluster_rows = [], []
    for d in shown.detail.pairs:
        name = f"{escape(d.model_a)} v {escape(d.model_b)}"
        families = [
            p_value(getattr(family, key)) if family else form.MISSING
            for family in (d.adjacent_family, d.all_family)
            for key in ("sidak", "holm", "benjamini_hochberg", "benjamini_yekutieli")
        ]
        current = [{"a": "first", "b": "second"}.get(side or "", "no") for side in (d.e_holm, d.e_bh)]
        boot = escape(form.interval(d.bootstrap_low, d.bootstrap_high))
        rho = f"{form.decimal(d.rho_low)} to {form.decimal(d.rho_high)}"
        paper = form.ratio(d.paper_anytime_resolution_ratio)
        rows.append([name, *families, *current, p_value(d.p_corrected), boot, rho, paper])
        if d.cluster is not None:
            cluster_rows.append([name, *_cluster(d.cluster)])
    four = ["Sidak", "Holm", "BH", "BY"]
    titles = ["pair", *(f"{name}, neighbours" for name in four), *(f"{name}, all" for name in four), "e-Holm", "e-BH"]
    titles += ["p, corrected", "bootstrap gap", "rho can be", "q, paper's 2.15"]
    parts = [f"Adjusted p-values are {PLANNED_N}; e-Holm and e-BH are {CURRENT}.", _table(titles, rows)]
    if cluster_rows:
        definitions = ["q, random", "q, difficulty", "q, halves"]
        titles = [
            "pair",
            "ICC, resampled",
            "N\\*, resampled",
            "unresolved in",
            "q, one left out",
            *definitions,
            "clusters needed",
        ]
        parts.append(_table(titles, cluster_rows))
    return parts


def _cluster(cluster: ClusterDetail) -> list[str]:
    low, high = cluster.bootstrap_icc
    least, most = cluster.bootstrap_required_n
    left = escape(
        f"{form.ratio(cluster.leave_one_out_low)} to {form.ratio(cluster.leave_one_out_high)} ({cluster.leave_one_out_cluster})"
    )
    clusters = f"{cluster.clusters_needed:,}" if cluster.clusters_needed is not None else form.MISSING
    ratios = [form.ratio(d.resolution_ratio) for d in cluster.definitions]
    return [
        f"{form.decimal(low, 4)} to {form.decimal(high, 4)}",
        escape(f"{needed(least)} to {needed(most)}"),
        f"{cluster.bootstrap_unresolved:.0%}",
        left,
        *ratios,
        clusters,
    ]


def _legend() -> str:
    names = ", ".join(f"{short} {name}" for short, name in PROCEDURES.values())
    signs = (
        f"{UNICODE.decided} yes, for the first-named; {UNICODE.reversed} yes, for the second; {UNICODE.undecided} no; "
    )
    signs += f"{UNICODE.missing} not computed"
    return f"---\n\n{TWO_WORDS} {signs}. {names}; {PLANNED}."

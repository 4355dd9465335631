"""What a report holds on pairs of models, declared once: verdicts, procedures, sizes, and a checklist a pair."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import chain
from typing import NamedTuple

from monitor.render import charts
from monitor.render.document import Cell, Column, Figure, Table, numbers, texts
from monitor.render.signs import (
    SETTLED_WORDS,
    SUMMARY_ONLY,
    UNICODE,
    Glyphs,
    decision_glyph,
    in_name_order,
    relation,
    resolution_glyph,
    settled_glyph,
    status_glyph,
)
from monitor.view.values import ChartData, PairChart
from monitor.words import header
from monitor.words import numbers as form
from monitor.words.columns import PROCEDURES, discordant
from monitor.words.counts import counted
from monitor.words.numbers import needed, needed_range, p_value
from schemas.results.detail import CURRENT, PLANNED_N, AdjustedP, ClusterDetail, PairDetail
from schemas.results.report import BenchmarkReport, PairReport

_OMIT = (
    *("settled", "resolved.clustered", "decided.holm", "decided.e_bh", "resolved.bonferroni", "required_n", "bc"),
    *("decided.clustered", "decided.benjamini_hochberg", "n", "interval", "decided.bonferroni", "resolved.anytime"),
    *("decided.anytime", "resolved.fixed_n", "decided.fixed_n", "status", "q", "log_e", "extra", "gap"),
)


def kind_of(pair: PairReport) -> str:
    """Return the style class of a pair's family-wise verdict."""
    return {"a": "yes", "b": "turned"}.get(pair.decided.anytime_family or "", "no")


def _names(pairs: Iterable[PairReport], sign: str | None = None) -> Column:
    return Column("pair", [Cell(p.model_a, second=p.model_b, relation=sign or relation(p)) for p in pairs], "name")


class Extra(NamedTuple):
    """A further column of pairs: its head, and a cell for each pair in name order."""

    head: str
    cells: Mapping[tuple[str, str], Cell]


def verdicts(
    b: BenchmarkReport,
    pairs: Sequence[PairReport],
    glyphs: Glyphs = UNICODE,
    extra: Extra | None = None,
    reach: float | None = None,
) -> Table:
    """Build the table of pairs with the verdict of each procedure; up to `reach` their intervals are drawn."""
    own, family = header.log_thresholds(b)
    at_n = header.tests_at_n(b)
    digits = 2 if at_n else header.log_e_digits(b)
    limit = "" if at_n else f"\n>={form.decimal(own if family is None else family, digits)}"
    status = [status_glyph(p, glyphs) for p in pairs]
    bars = [
        "" if reach is None else charts.interval_bar(p.gap_low, p.gap_high, p.gap, reach, kind_of(p)) for p in pairs
    ]
    columns = {
        "pair": _names(pairs),
        "status": Column("status", [Cell(f"{sign} {word}", tone) for sign, word, tone in status]),
        "n": numbers("n", (f"{p.n:,}" for p in pairs)),
        "bc": numbers("b/c", (discordant(p) for p in pairs)),
        "gap": numbers("gap,\npoints", (form.points(p.gap) for p in pairs)),
        "interval": Column(
            "interval\nat alpha",
            [Cell(form.interval(p.gap_low, p.gap_high), svg=bar) for p, bar in zip(pairs, bars, strict=True)],
            "number" if reach is None else "text",
        ),
        "log_e": numbers(f"ln e{limit}", (form.decimal(p.log_e, digits) for p in pairs)),
        "required_n": numbers("N*,\nfixed n", (form.items(p.required_n) for p in pairs)),
        "q": numbers("q,\nfixed n", (form.ratio(p.resolution_ratio) for p in pairs)),
        "settled": Column(
            "settled",
            [Cell(*settled_glyph(p, glyphs), words=SETTLED_WORDS.get(p.settled or "", "not settled")) for p in pairs],
            "sign",
            about="who leads on the items of the benchmark",
        ),
    }
    for key, procedure in PROCEDURES.items():
        cells = [Cell(*decision_glyph(p, key, glyphs), words=_decided(p, key)) for p in pairs]
        columns[f"decided.{key}"] = Column(procedure.short, cells, "sign", "decided", procedure.name)
    for key, procedure in PROCEDURES.items():
        if not procedure.resolves:
            continue
        cells = [Cell(*resolution_glyph(p, key, glyphs), words=_RESOLVED[getattr(p.resolved, key)]) for p in pairs]
        columns[f"resolved.{key}"] = Column(procedure.short, cells, "sign", "resolved", procedure.name)
    if extra is not None:
        cells = [extra.cells.get(in_name_order(p), Cell(form.MISSING)) for p in pairs]
        columns["extra"] = Column(extra.head, cells)
    # Thousands of pairs that are not neighbours would make a document too long; csv and json have their reasons.
    reasons = {k: p.reason for k, p in enumerate(pairs) if p.adjacent or p.status == "superseded"}
    return Table(columns, below=reasons, omit=_OMIT)


_RESOLVED = {True: "resolved", False: "not resolved", None: "not computed"}


def _decided(pair: PairReport, procedure: str) -> str:
    if decision_glyph(pair, procedure, UNICODE)[0] == UNICODE.missing:
        return "not computed"
    side = getattr(pair.decided, procedure)
    return {"a": "decided for the first", "b": "decided for the second"}.get(side, "not decided")


def procedures(b: BenchmarkReport) -> Table:
    """Count the pairs that each procedure leaves undecided and unresolved."""
    summary = b.summary
    names = {key: each.name for key, each in PROCEDURES.items()} | SUMMARY_ONLY
    shown = {key: name for key, name in names.items() if key in summary.undecided or key in summary.unresolved}
    columns = {
        "procedure": Column("procedure", texts(shown.values()), "name"),
        "undecided": numbers("undecided (evidence)", (str(summary.undecided.get(k, form.MISSING)) for k in shown)),
        "unresolved": numbers("unresolved (q < 1)", (str(summary.unresolved.get(k, form.MISSING)) for k in shown)),
    }
    title = f"Pairs that each procedure leaves open, of the {counted(summary.pairs, 'pair')} in this report."
    return Table(columns, title)


def sizes(pairs: Sequence[PairReport], drawn: Sequence[PairChart | None]) -> Table:
    """Set N* of each neighbouring pair against its N."""
    both = list(zip(pairs, drawn, strict=True))
    ratios = [p.required_n / p.n if p.required_n is not None and p.n else None for p in pairs]
    anytime = [chart.anytime_required_n / p.n if chart is not None and p.n else None for p, chart in both]
    ranges = [form.MISSING if c is None else needed_range(c.required_n_low, c.required_n_high) for c in drawn]
    bars = [Cell("", svg=charts.needed_bar(*each)) for each in zip(ratios, anytime, strict=True)]
    columns = {
        "pair": _names(pairs, "~"),
        "n": numbers("N, shared", (f"{p.n:,}" for p in pairs)),
        "required_n": numbers("N*, needed", (needed(p.required_n) for p in pairs)),
        "bootstrap": numbers("N*, 95 % bootstrap", ranges),
        "q": numbers("q = N/N*", (form.ratio(p.resolution_ratio) for p in pairs)),
        "bar": Column("N*/N, from 1/100 to 100", bars),
    }
    return Table(
        columns,
        "The bar is N*/N on a logarithmic scale; the dashed line is 1. A bar that ends left of the line is resolved at a planned n. "
        f"The tick is N*/N if you look at every item (anytime). {form.Q_IS_NO_EVIDENCE}.",
    )


def matrix(b: BenchmarkReport, data: ChartData) -> Figure:
    """Draw which model of each pair is better, with the counts of each model."""
    sides, models = data.matrix, b.models
    size = len(models)
    better, worse = (sides > 0).sum(axis=1).tolist(), (sides < 0).sum(axis=1).tolist()
    title = (
        f"{sum(better):,} of {counted(size * (size - 1) // 2, 'pair')} decided family-wise; rows and columns by rank"
    )
    columns = {
        "rank": numbers("rank", (str(k + 1) for k in range(size))),
        "model": Column("model", texts(m.model for m in models), "name"),
        "better": numbers("better than", (f"{n:,}" for n in better)),
        "worse": numbers("worse than", (f"{n:,}" for n in worse)),
        "open": numbers(
            "undecided with", (f"{size - 1 - up - down:,}" for up, down in zip(better, worse, strict=True))
        ),
    }
    key = [
        ("b-yes", "the row’s model is better"),
        ("b-below", "the column’s model is better"),
        ("b-no", "undecided"),
        ("b-turned", "decided against the ranking"),
    ]
    counts = Table(columns, "Models that each model is decided to be better and worse than.")
    return Figure(charts.matrix_chart(sides, title), f"{title}.", key=key, table=counts)


# --- a pair on its own -------------------------------------------------------------------------------------------------------------------


def cards(
    b: BenchmarkReport,
    pairs: Sequence[PairReport],
    data: ChartData,
    details: Sequence[PairDetail] | None,
    *,
    drawn: bool,
) -> Table:
    """Fill in the reporting checklist of paired leaderboard claims (the paper) for each pair, and add second opinions."""
    rows = [_checklist(b, p, chart) for p, chart in zip(pairs, data.pairs, strict=True)]
    columns = {"pair": _names(pairs)}
    if drawn:  # a path takes .04 s
        paths = [_path(b, p, chart) for p, chart in zip(pairs, data.pairs, strict=True)]
        columns["path"] = Column("", paths, "drawing")
    columns |= _columns(rows, "Reporting checklist")
    if details is not None:
        columns |= _columns([_opinions(each) for each in details], "Second opinions")
        columns |= _columns([_of_clusters(each.cluster) for each in details], "Second opinions by cluster")
    return Table(columns, cards=True)


def _columns(rows: Sequence[Mapping[str, str]], group: str) -> dict[str, Column]:
    names = dict.fromkeys(chain.from_iterable(rows))
    return {f"{group}.{name}": Column(name, texts(row.get(name, "") for row in rows), group=group) for name in names}


def _path(b: BenchmarkReport, pair: PairReport, chart: PairChart | None) -> Cell:
    if chart is None:
        return Cell("No path: there are no shared items scored 0 or 1.")
    log_e = form.decimal(pair.log_e, header.log_e_digits(b))
    title = escape(f"ln e of {form.safe(pair.model_a)} against {form.safe(pair.model_b)}, {log_e} at the end")
    return Cell("", svg=charts.path_chart(chart, header.log_thresholds(b)[0], kind_of(pair), title))


def _side(names: tuple[str, str], side: str | None) -> str:
    """Return the better of two models, or "undecided"."""
    return {"a": names[0], "b": names[1]}.get(side or "", "undecided")


def _checklist(b: BenchmarkReport, pair: PairReport, chart: PairChart | None) -> dict[str, str]:
    size = b.family.size
    interval = form.MISSING
    if chart is not None and chart.required_n_high > 0:
        interval = needed_range(chart.required_n_low, chart.required_n_high)
        if chart.required_n_low <= pair.n <= chart.required_n_high:
            interval += "; it contains N, so it is uncertain whether N is enough"
    decided = pair.decided
    sides = {"anytime family": decided.anytime_family, "Bonferroni": decided.bonferroni}
    sides["Benjamini-Hochberg"] = decided.benjamini_hochberg
    names = (pair.model_a, pair.model_b)
    found = "; ".join(
        f"{name}: {_side(names, side)}{'' if side is None else ' is better'}" for name, side in sides.items()
    )
    counts = counted(pair.n, "item")
    if pair.b is not None and pair.c is not None:
        counts += f"; only the first model is right on {pair.b:,}, only the second on {pair.c:,}"
    q = form.ratio(pair.resolution_ratio)
    enough = ": without a gap no number of items is enough" if pair.gap == 0 else f", N*: {needed(pair.required_n)}"
    return {
        "Observed gap": f"{form.points(pair.gap)} points, {form.interval(pair.gap_low, pair.gap_high)} at alpha",
        "Paired test": form.MISSING if pair.p_exact is None else f"exact McNemar, p = {p_value(pair.p_exact)}",
        "N, paired items": f"{pair.n:,}",
        "Smallest gap that N detects": form.MISSING if pair.mde is None else f"{form.percent(pair.mde)} points",
        "q = N/N*": f"{q}{enough}",
        "N* interval (95 %, bootstrap)": interval,
        "Multiplicity": f"{'all pairs' if size is None else counted(size, 'pair')}. {found}",
        "Per-item raw": counts,
    }


def _opinions(detail: PairDetail) -> dict[str, str]:
    names = (detail.model_a, detail.model_b)
    rho = f"{form.decimal(detail.rho_low)} to {form.decimal(detail.rho_high)} at these accuracies"
    return {
        "Adjusted p, neighbours": _adjusted(detail.adjacent_family),
        "Adjusted p, all pairs": _adjusted(detail.all_family),
        "e-Holm, e-BH": f"{_side(names, detail.e_holm)}; {_side(names, detail.e_bh)} ({CURRENT})",
        "p, continuity-corrected": p_value(detail.p_corrected),
        "Bootstrap gap": form.interval(detail.bootstrap_low, detail.bootstrap_high),
        "Possible rho (phi)": rho,
        "Anytime N*": needed(detail.anytime_required_n),
        "q with the paper's 2.15": form.ratio(detail.paper_anytime_resolution_ratio),
    }


def _of_clusters(cluster: ClusterDetail | None) -> dict[str, str]:
    if cluster is None:
        return {}
    low, high = cluster.bootstrap_icc
    omitted = form.MISSING
    if cluster.leave_one_out_cluster is not None:
        least, most = form.ratio(cluster.leave_one_out_low), form.ratio(cluster.leave_one_out_high)
        omitted = f"q {least} to {most}; lowest without {cluster.leave_one_out_cluster}"
    clusters = "an unknown number of" if cluster.clusters_needed is None else f"about {cluster.clusters_needed:,}"
    icc = f"ICC {form.decimal(low, 4)} to {form.decimal(high, 4)}"
    return {
        "Clusters resampled": f"{icc}, N* {needed_range(*cluster.bootstrap_required_n)}",
        "Unresolved in": f"{cluster.bootstrap_unresolved:.0%} of the resamples",
        "One cluster omitted": omitted,
        "Other clusters, q": ", ".join(f"{d.definition} {form.ratio(d.resolution_ratio)}" for d in cluster.definitions),
        "For new categories": f"{clusters} clusters like these until evidence at alpha; ln e is now {form.decimal(cluster.log_e)}",
    }


def _adjusted(family: AdjustedP | None) -> str:
    if family is None:
        return form.MISSING
    names = {"sidak": "Sidak", "holm": "Holm", "benjamini_hochberg": "BH", "benjamini_yekutieli": "BY"}
    values = ", ".join(f"{name} {p_value(getattr(family, key))}" for key, name in names.items())
    return f"{values} ({counted(family.pairs, 'pair')}; {PLANNED_N})"

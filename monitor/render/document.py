"""One benchmark as a document, and the sentences that Markdown and HTML share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.render.signs import PROCEDURES, SUMMARY_ONLY
from monitor.view.pairs.evidence_path import ChartData
from monitor.view.ranking.tie_bands import TieBands, bands_of, tied_models
from monitor.words import header
from monitor.words import numbers as form
from monitor.words.counts import counted
from monitor.words.numbers import needed, needed_range
from schemas.results.assumptions import assumes
from schemas.results.detail import BenchmarkDetail
from schemas.results.report import BenchmarkReport, ModelReport, PairReport


@dataclass(frozen=True)
class ReportDocument:
    """The report of one benchmark with the data of its charts."""

    report: BenchmarkReport
    charts: ChartData
    low_coverage: float
    """Share of the items below which a model is marked."""
    detail: BenchmarkDetail | None = None
    several: bool = False
    """Whether other benchmarks are reported too, each with an alpha of its own."""

    @property
    def neighbours(self) -> list[PairReport]:
        """Adjacent pairs, by rank."""
        return [pair for pair in self.report.pairs if pair.adjacent]

    @property
    def others(self) -> list[PairReport]:
        """The other pairs of the report, superseded ones last."""
        return [pair for pair in self.report.pairs if not pair.adjacent]

    @cached_property
    def ties(self) -> TieBands:
        """The tie bands of the ranking; where missing items are ignored, no model lacks any."""
        ignored = assumes(self.report, "ignored")
        lacking = np.array([self.is_low(model) and not ignored for model in self.report.models], bool)
        return bands_of(self.charts.matrix > 0, lacking)

    @cached_property
    def tied(self) -> list[tuple[int, ...]]:
        """Ranks of the models that each model is not decided against."""
        return [tuple(k + 1 for k in others) for others in tied_models(self.charts.matrix > 0)]

    def is_low(self, model: ModelReport) -> bool:
        """Return whether a model has scores on too few of the items."""
        return model.coverage < self.low_coverage


def facts(document: ReportDocument) -> list[tuple[str, str]]:
    """Return what was read, what is assumed and at which levels, as (name, value)."""
    b = document.report
    return [
        ("Read", header.counts(b)),
        ("Not counted", f"{b.duplicates:,} duplicates, {b.conflicts:,} conflicts, {b.rejected:,} rejected"),
        ("Skipped", f"{counted(sum(document.charts.skipped), 'item')} without a score, over all models"),
        ("Order", f"{b.order.policy}: {header.order_sentence(b)}"),
        ("Family", header.family(b) if (why := header.registration(b)) is None else f"{header.family(b)}. {why}"),
        ("Levels", header.levels(b)),
        ("Decided at", header.thresholds(b)),
        *(
            []
            if b.order.policy == "none" or header.is_held(b)
            else [("Error rate", header.error_rate(b, several=document.several))]
        ),
        *([("Clusters", clusters)] if (clusters := header.clusters(b)) is not None else []),
        *([("Weights", weights)] if (weights := header.weights(b)) is not None else []),
        *([("Suite", " ".join(members))] if (members := header.members(b)) else []),
        *([("Epochs", epochs)] if (epochs := header.epochs(b)) is not None else []),
        *([("Titles", titles)] if (titles := header.titles(b)) is not None else []),
        *([("Aliases", aliases)] if (aliases := header.aliases(b)) is not None else []),
    ]


def notes(document: ReportDocument) -> list[str]:
    """Return what a reader needs to know before trusting a rank."""
    low = [model for model in document.report.models if document.is_low(model)]
    return header.notes(document.report, low, document.low_coverage)


def summary_rows(document: ReportDocument, missing: str) -> list[tuple[str, str, str]]:
    """Return the pairs that each procedure leaves undecided and unresolved, as (procedure, count, count)."""
    summary = document.report.summary
    names = {key: name for key, (_, name) in PROCEDURES.items()} | SUMMARY_ONLY
    return [
        (name, str(summary.undecided.get(key, missing)), str(summary.unresolved.get(key, missing)))
        for key, name in names.items()
        if key in summary.undecided or key in summary.unresolved
    ]


def side_name(names: tuple[str, str], side: str | None) -> str:
    """Return the better of two models, or "undecided"."""
    return {"a": names[0], "b": names[1]}.get(side or "", "undecided")


def _resolution(pair: PairReport) -> str:
    """Format q with N*."""
    q = form.ratio(pair.resolution_ratio)
    if pair.gap == 0:
        return f"{q}: without a gap no number of items is enough"
    return f"{q}, N*: {needed(pair.required_n)}"


def checklist(document: ReportDocument, position: int) -> list[tuple[str, str]]:
    """Fill in the reporting checklist of paired leaderboard claims for a neighbouring pair, as (quantity, value)."""
    pair, chart = document.neighbours[position], document.charts.pairs[position]
    size = document.report.family.size
    test = form.MISSING if pair.p_exact is None else f"exact McNemar, p = {form.p_value(pair.p_exact)}"
    interval = form.MISSING
    if chart is not None and chart.required_n_high > 0:
        interval = needed_range(chart.required_n_low, chart.required_n_high)
        if chart.required_n_low <= pair.n <= chart.required_n_high:
            interval += "; it contains N, so it is uncertain whether N is enough"
    decided = pair.decided
    procedures = {"anytime family": decided.anytime_family, "Bonferroni": decided.bonferroni}
    procedures["Benjamini-Hochberg"] = decided.benjamini_hochberg
    better = {name: side_name((pair.model_a, pair.model_b), side) for name, side in procedures.items()}
    verdicts = "; ".join(f"{name}: {text + ' is better' * (text != 'undecided')}" for name, text in better.items())
    counts = counted(pair.n, "item")
    if pair.b is not None and pair.c is not None:
        counts += f"; only the first model is right on {pair.b:,}, only the second on {pair.c:,}"
    return [
        (
            "Observed gap",
            f"{form.points(pair.gap)} points, {form.interval(pair.gap_low, pair.gap_high)} at alpha",
        ),
        ("Paired test", test),
        ("N, paired items", f"{pair.n:,}"),
        ("Smallest gap that N detects", form.MISSING if pair.mde is None else f"{form.percent(pair.mde)} points"),
        ("q = N/N*", _resolution(pair)),
        ("N* interval (95 %, bootstrap)", interval),
        ("Multiplicity", f"{'all pairs' if size is None else counted(size, 'pair')}. {verdicts}"),
        ("Per-item raw", counts),
    ]

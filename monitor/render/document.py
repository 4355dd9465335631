"""What a document shows of one benchmark, and the words that its formats share."""

from dataclasses import dataclass
from typing import Final

from monitor.render import numbers as form
from monitor.report.evidence_path import ChartData
from monitor.report.sentences import counted
from schemas.detail import BenchmarkDetail
from schemas.report import RESOLUTION_PROCEDURES, BenchmarkReport, ModelReport, PairReport

RESOLUTIONS: Final = tuple(key for key in form.PROCEDURES if key in RESOLUTION_PROCEDURES)

PATH_ORDER: Final = (
    "The path follows the items in the order in which they were first seen, or, where an order was committed to, in that order. Another "
    "order takes another way to the same end; only a committed one is the way that its verdict took."
)
TWO_WORDS: Final = (
    "Decided: there is evidence which model is better. Resolved: the benchmark is large enough to detect a gap of this size (q = N/N* of 1 "
    "or more). These are two questions, and either may be answered without the other."
)
PLANNED: Final = "fixed n, Bonferroni, Holm, Benjamini-Hochberg and clustered are valid at a planned n only"


@dataclass(frozen=True)
class ReportDocument:
    """One benchmark, with what its figures are drawn from."""

    report: BenchmarkReport
    figures: ChartData
    low_coverage: float
    """Share of the items below which a model is marked."""
    detail: BenchmarkDetail | None = None

    @property
    def neighbours(self) -> list[PairReport]:
        """Pairs of neighbouring ranks, in the order of ranks."""
        return [pair for pair in self.report.pairs if pair.adjacent]

    @property
    def others(self) -> list[PairReport]:
        """The other pairs that the report lists, superseded ones last."""
        return [pair for pair in self.report.pairs if not pair.adjacent]

    def covers_little(self, model: ModelReport) -> bool:
        """Whether a model has scores on less of the benchmark than is asked for."""
        return model.coverage < self.low_coverage


def headline(shown: ReportDocument) -> str:
    """Return how many neighbouring pairs are decided."""
    pairs = shown.neighbours
    if not pairs:
        return "There is no pair to compare."
    decided = sum(pair.decided.anytime_family is not None for pair in pairs)
    return (
        f"{decided:,} of {counted(len(pairs), 'neighbouring pair')} decided family-wise, valid however often you look. "
        "Undecided neighbours may be ties."
    )


def facts(shown: ReportDocument) -> list[tuple[str, str]]:
    """List what was read, what is asserted and at which levels, as (name, value)."""
    b = shown.report
    size = "size not fixed" if b.family.size is None else counted(b.family.size, "pair")
    alone, family = form.log_thresholds(b)
    needed = f"ln e of {alone:.2f} for a pair by itself"
    needed += (
        f", {family:.2f} in the family"
        if family is not None
        else ", a threshold of its own for each pair in the family"
    )
    return [
        ("Read", form.read(b)),
        ("Put aside", f"{b.duplicates:,} duplicates, {b.conflicts:,} conflicts, {b.rejected:,} rejected"),
        ("Skipped", f"{sum(shown.figures.skipped):,} items without a score, over all models"),
        ("Order", f"{b.order.policy}: {form.order_sentence(b)}"),
        ("Family", f"{b.family.policy}, {size}"),
        ("Levels", f"alpha {b.alpha:g}, power {b.power:g}, mixture {b.mixture}"),
        ("Needed", needed),
    ]


def notes(shown: ReportDocument) -> list[str]:
    """List what a reader should know before trusting a rank."""
    b = shown.report
    found = []
    trouble = form.order_trouble(b)
    if trouble is not None:
        found.append(f"Order of arrival: {trouble}.")
    if b.conflicts:
        found.append(
            f"{b.conflicts:,} scores contradict an earlier score of the same model on the same item. The first score counts."
        )
    if b.rejected:
        found.append(f"{b.rejected:,} records could not be read and count for nothing.")
    low = [model for model in b.models if shown.covers_little(model)]
    if low:
        names = ", ".join(f"{m.model} ({m.coverage:.1%})" for m in low[:5]) + (", ..." if len(low) > 5 else "")
        found.append(
            f"{len(low):,} model{'s' if len(low) > 1 else ''} with scores on less than {shown.low_coverage:.0%} of the items: {names}. "
            "A mean over other items may not compare; pairs are compared on the items they share."
        )
    return found


def needed(items: float | None) -> str:
    """Write a number of items needed.

    Examples
    --------
    >>> needed(5786.2), needed(float("inf"))
    ('5,787', '≥ 1,000,000')
    """
    return form.items(items).replace(">= 10^6", "≥ 1,000,000")


def p_value(p: float | None) -> str:
    """Write a p-value.

    Examples
    --------
    >>> p_value(0.04858), p_value(5.8e-05), p_value(0.0), p_value(None)
    ('0.0486', '5.8e-05', '< 1e-300', '-')
    """
    if p is None:
        return form.MISSING
    if p < 1e-300:
        return "< 1e-300"
    return f"{p:.1e}" if p < 1e-3 else f"{p:.3g}"


def side_name(pair: PairReport, side: str | None) -> str:
    """Name the better model, or say that there is none."""
    better = {"a": pair.model_a, "b": pair.model_b}.get(side or "")
    return "undecided" if better is None else f"{better} is better"


def checklist(shown: ReportDocument, position: int) -> list[tuple[str, str]]:
    """Fill in the reporting checklist of paired leaderboard claims for a neighbouring pair, as (quantity, value).

    Parameters
    ----------
    shown : ReportDocument
    position : int
        Which pair of `shown.neighbours`.

    References
    ----------
    The paper, "Reporting checklist".
    """
    pair, drawn = shown.neighbours[position], shown.figures.pairs[position]
    b = shown.report
    test = f"exact McNemar, p = {p_value(pair.p_exact)}" if pair.p_exact is not None else form.MISSING
    star = form.MISSING
    if drawn is not None:
        star = f"{needed(drawn.required_n_low)} to {needed(drawn.required_n_high)}"
        if drawn.required_n_low <= pair.n <= drawn.required_n_high:
            star += ": N lies within, so whether N is enough is itself uncertain"
    family = "all pairs" if b.family.size is None else counted(b.family.size, "pair")
    decided = pair.decided
    families = {"anytime family": decided.anytime_family, "Bonferroni": decided.bonferroni}
    families["Benjamini-Hochberg"] = decided.benjamini_hochberg
    verdicts = "; ".join(f"{name}: {side_name(pair, side)}" for name, side in families.items())
    counts = (
        ""
        if pair.b is None or pair.c is None
        else f", {pair.b:,} right in the first alone, {pair.c:,} in the second alone"
    )
    return [
        (
            "Observed gap",
            f"{form.points(pair.gap)} points, {form.interval(pair.gap_low, pair.gap_high)} at alpha, anytime",
        ),
        ("Paired test", test),
        ("N, paired items", f"{pair.n:,}"),
        ("Smallest gap that N detects", f"{form.points(pair.mde).removeprefix('+')} points"),
        ("q = N/N*", f"{form.ratio(pair.resolution_ratio)}, N*: {needed(pair.required_n)}"),
        ("N* interval (95 %, bootstrap)", star),
        ("Multiplicity", f"{family}. {verdicts}"),
        ("Per-item raw", f"{pair.n:,} items{counts}"),
    ]

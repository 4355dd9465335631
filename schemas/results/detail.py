"""The second opinions that `rankwatch report --detail` adds to a benchmark, and when each is valid."""

from typing import Literal

from schemas.results.answer import Answer, Field
from schemas.results.reasons import Side
from schemas.results.report import BenchmarkReport

Interval = tuple[float | None, float | None]
Definition = Literal["random", "difficulty quartiles", "split halves"]

PLANNED_N = "valid at a planned n only"
CURRENT = "current view; the next look may revoke it"


class AdjustedP(Answer):
    """Adjusted p-values of the exact test within one family of pairs; valid at a planned n only."""

    pairs: int = Field("pairs in the family")
    bonferroni: float
    sidak: float
    holm: float
    benjamini_hochberg: float
    benjamini_yekutieli: float


class ClusterDefinition(Answer):
    """The pair under another definition of the clusters."""

    definition: Definition
    clusters: int
    icc: float | None
    design_effect: float | None
    required_n: float | None
    resolution_ratio: float | None


class ClusterDetail(Answer):
    """How much the cluster-aware result depends on the given clusters."""

    bootstrap_icc: Interval = Field("percentile interval (5 %, 95 %) when clusters are resampled")
    bootstrap_design_effect: Interval
    bootstrap_required_n: Interval
    bootstrap_unresolved: float = Field("share of the resamples in which the pair is not resolved")
    leave_one_out_low: float | None = Field("smallest resolution ratio with one cluster omitted")
    leave_one_out_high: float | None = Field("largest resolution ratio with one cluster omitted")
    leave_one_out_cluster: str | None = Field("the omitted cluster that makes it smallest")
    definitions: list[ClusterDefinition]
    log_e: float = Field("ln e of the cluster e-process: evidence about new categories")
    clusters_needed: int | None = Field(
        "clusters until that evidence reaches 1/alpha if each has the current mean gap; null where no number is enough"
    )


class PairDetail(Answer):
    """One neighbouring pair."""

    model_a: str
    model_b: str
    adjacent_family: AdjustedP | None = Field("family: the neighbours by observed rank")
    all_family: AdjustedP | None = Field("family: all pairs (or those declared)")
    e_holm: Side | None = Field(CURRENT)
    e_bh: Side | None = Field(CURRENT)
    rho_low: float | None = Field("smallest correlation that two models of these accuracies can have")
    rho_high: float | None = Field("largest correlation that two models of these accuracies can have")
    p_corrected: float | None = Field("McNemar's chi-square with continuity correction")
    bootstrap_low: float | None = Field("percentile bootstrap interval of the gap; valid at a planned n")
    bootstrap_high: float | None
    required_n_low: float | None = Field("percentile bootstrap interval of N*")
    required_n_high: float | None
    anytime_required_n: float | None = Field("N* under the anytime boundary of the declared mixture")
    paper_anytime_required_n: float | None = Field("N* times the paper's constant 2.15, for comparison")
    paper_anytime_resolution_ratio: float | None
    cluster: ClusterDetail | None


class ModelDetail(Answer):
    """One model."""

    model: str
    skipped: int = Field("items without a score")


class BenchmarkDetail(Answer):
    """The second opinions on the neighbouring pairs, and when they are valid."""

    fixed_n_families: str = PLANNED_N
    e_families: str = CURRENT
    models: list[ModelDetail]
    pairs: list[PairDetail]


class DetailedBenchmarkReport(BenchmarkReport):
    """One benchmark with its detail."""

    detail: BenchmarkDetail


class DetailedReport(Answer):
    """Every benchmark that was read, with its detail."""

    benchmarks: list[DetailedBenchmarkReport]

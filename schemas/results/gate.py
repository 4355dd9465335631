"""The answer of `rankwatch gate --margin`: is a candidate not worse than the baseline by more than a margin."""

from typing import Literal

from schemas.records.text import Sentence
from schemas.results.answer import Answer, Field
from schemas.results.labels import LabelsReport
from schemas.results.reasons import Fact
from schemas.results.report import Looks

ConflictRule = Literal["worst", "first", "last"]
"""Which of several scores of an item counts: the worst for all models but the baseline, and the best for it; or the first or last one."""
GateVerdict = Literal["pass", "fail", "undecided", "held"]
Rule = Literal["exact test", "bets", "labels", "none"]  # what a claim rests on


class GateComparison(Answer):
    """One candidate against the baseline on one benchmark; gaps are candidate minus baseline, in score units."""

    benchmark: str
    metric: str | None = Field("where a gate compares several metrics of a benchmark", default=None)
    candidate: str
    baseline: str
    verdict: GateVerdict = Field("on this benchmark only, before the family is counted")
    n: int = Field("shared items; along a committed order, items of its prefix")
    only_candidate: int | None = Field("items that only the candidate has right; null for graded scores")
    only_baseline: int | None
    first_lost: list[str] = Field(
        "where the candidate is worse: items that only the baseline has right, largest losses first; at most 5",
        default=[],
    )
    missing: int | None = Field("items of the benchmark that are missing; null where N is not known")
    mean_candidate: float | None
    mean_baseline: float | None
    gap: float | None
    gap_low: float | None = Field(
        "the gap is above it, one-sided at alpha; null for a relative margin or without items"
    )
    gap_high: float | None = Field(
        "the gap is below it, at alpha / 2: below 0 where the candidate is worse on this benchmark", default=None
    )
    margin: float
    relative: bool = Field("whether the margin is a share of the baseline's score")
    alpha: float
    looks: Looks = Field(
        "one: alpha is the error rate of this one look at complete results; several: the gate ran the evaluation along a "
        "committed order, and looked as often as it liked"
    )
    policy: Literal["completion", "committed", "trusted", "none"]
    rule: Rule = Field(
        "exact test: unconditional, at one look, missing items at their worst unless ignored; bets and labels: p is 1 / largest e-value"
    )
    p_not_worse: float = Field("of the claim that the candidate is not worse by more than the margin")
    p_worse: float = Field("of the claim that the candidate is worse: the pair's own anytime verdict")
    decided_at_n: int | None = Field("committed order: the item at which the claim first held")
    items_needed: float | None = Field(
        "items in all that an undecided comparison takes if the scores go on like this; null: no number of items, or decided"
    )
    assumption: Sentence | None
    assumptions: list[dict[str, str | int | list[str]]] = Field(
        "the same for programs: a code each, with the number that its wording states"
    )
    noise: Sentence | None = Field(
        "of repeats: what share of the variance comes from them, and what would help", default=None
    )
    conflicts: Sentence | None = Field(
        "which of the two models have scores that contradict earlier ones, and which of them counts", default=None
    )
    conflict_rule: ConflictRule = Field(
        "which score counts where an item has several: the worst for the candidate, or the first or last",
        default="worst",
    )
    reason: Sentence
    facts: list[Fact] = Field("the reason for programs: a code for each sentence, with its numbers", default=[])
    labels: LabelsReport | None = Field(
        "what people prefer, by `--labels`: then the verdict and p are theirs, and means and gap the judge's",
        default=None,
    )
    judge_verdict: GateVerdict | None = Field("the verdict of the judge alone, where `labels` are given", default=None)
    notes: list[Sentence] = Field(
        "what to know first of the files: names that are alike, files that were refused", default=[]
    )

    @property
    def where(self) -> str:
        """The benchmark, with the metric if the gate compares several."""
        return self.benchmark if self.metric is None else f"{self.benchmark} ({self.metric})"

    @property
    def allowed(self) -> float:
        """The gap at the margin; of a relative one, at the baseline's mean on these items."""
        return -self.margin * ((self.mean_baseline or 0.0) if self.relative else 1)


class GateCandidate(Answer):
    """A candidate over all its benchmarks."""

    model: str
    verdict: GateVerdict
    price: float | None
    p_not_worse: float = Field("the largest of its benchmarks, adjusted over the candidates (Holm)")
    p_worse: float = Field("the smallest of its benchmarks, adjusted over all comparisons (Holm)")


class GateReport(Answer):
    """The answer of a gate."""

    verdict: Literal["pass", "fail", "undecided", "not_run"] = Field(
        "not_run: the gate would have run an evaluation that cannot pass, or that equal answers cannot; exit code 2"
    )
    exit_code: int
    headline: Sentence
    risk: Sentence | None = Field("how often a verdict like this one is wrong; null if undecided", default=None)
    family: Sentence
    baseline: str
    margin: float
    relative: bool
    on_undecided: Literal["pass", "fail", "wait"]
    cheapest: str | None = Field("the cheapest candidate that passed, where prices are given")
    candidates: list[GateCandidate]
    comparisons: list[GateComparison]
    evaluation: Sentence | None = Field(
        "how many items were evaluated and saved, where the gate ran the evaluation itself", default=None
    )

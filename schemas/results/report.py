"""The report that `rankwatch report --format json` prints and the API serves."""

from typing import Literal

from schemas.records.text import Sentence
from schemas.results.answer import Answer, Field
from schemas.results.battles import BattlesReport
from schemas.results.labels import LabelsReport
from schemas.results.reasons import Fact, Outcome, Side

Looks = Literal["one", "several"]
"""Whether an error rate holds at one look at complete results, or however often somebody looks."""

Status = Literal["superseded", "invalidated", "decided", "equivalent", "held", "exhausted", "collecting"]

Step = Literal["decided", "against", "tie", "open", "equivalent", "held", "invalidated"]

DECISION_PROCEDURES = (
    "fixed_n",
    "bonferroni",
    "holm",
    "benjamini_hochberg",
    "clustered",
    "anytime",
    "anytime_family",
    "e_bh",
)
RESOLUTION_PROCEDURES = ("fixed_n", "bonferroni", "anytime", "clustered")


class OrderReport(Answer):
    """The order policy in force, and the result of the arrival-order diagnostic."""

    policy: Literal["completion", "committed", "trusted", "none"]
    suspect: bool
    reason: Sentence | None
    facts: list[Fact] = Field("the reason for programs: a code each, with its numbers", default=[])


class FamilyReport(Answer):
    """The family over which `anytime_family` controls the error rate."""

    policy: Literal["spending", "capacity"]
    size: int | None = Field(
        "pairs that share alpha (capacity), in the largest family if there are several, or the current pairs registered so far (spending)"
    )
    families: int = Field(
        "families of the current pairs, each with its own alpha: one, or one for each generation of scores", default=1
    )


class RepeatsReport(Answer):
    """Scored repeats an item of a model, over its scored items."""

    min: int
    mean: float
    max: int


class ModelReport(Answer):
    """One model of the ranking; its mean is over its own items."""

    model: str
    title: str | None = Field("the name to show, if an operator has given one; pairs, verdicts and URLs have `model`")
    aliases: list[str] = Field("other names whose events count as this model's, as declared")
    epoch: int = Field("newest epoch, whose scores are ranked")
    items: int
    coverage: float
    mean: float | None
    mean_low: float | None
    mean_high: float | None
    shared_mean: float | None = Field(
        "mean score over the items that all ranked models share (`shared_items`); null where they have the same items"
    )
    shared_rank: int | None = Field("rank by `shared_mean`, ties by name")
    unweighted_mean: float | None = Field(
        "mean over all items, each counting the same; null unless clusters are weighted, when `mean` is the weighted mean"
    )
    unweighted_rank: int | None = Field("rank by `unweighted_mean`, ties by name; null unless clusters are weighted")
    rank: int
    rank_low: int
    rank_high: int
    tie_group: int
    repeats: RepeatsReport | None = Field("scored repeats an item; null without a score")
    run_ended: bool = Field("nothing more of this run will come")

    @property
    def shown(self) -> str:
        """The name to show."""
        return self.title or self.model


class Conflict(Answer):
    """A score that contradicts the first one of its key; the first one counts."""

    item_id: str
    repeat: int
    model: str
    epoch: int
    old_score: float | None = Field("the score that counts; null for a skipped item")
    new_score: float | None = Field("the score that was refused; null for a skipped item")


class Decided(Answer):
    """The better model by the evidence of each procedure, or null."""

    fixed_n: Side | None
    bonferroni: Side | None
    holm: Side | None
    benjamini_hochberg: Side | None
    clustered: Side | None
    anytime: Side | None
    anytime_family: Side | None
    e_bh: Side | None


class Resolved(Answer):
    """Whether q is at least 1 by each procedure; null where it is not computed. q is computed from the observed gap: no evidence."""

    fixed_n: bool | None
    bonferroni: bool | None
    anytime: bool | None
    clustered: bool | None


class ClusterReport(Answer):
    """The pair under one-way clustering of its items; items without a cluster are omitted."""

    clusters: int
    icc: float
    design_effect: float
    required_n: float | None = Field("items needed, of which the same share carries a cluster")
    resolution_ratio: float | None
    effective_clusters: float = Field(
        "(sum n)^2 / sum n^2 of the clusters of the shared items; below 10 `p_clustered` uses the CR3 standard error"
    )
    unlabelled: int = Field("shared items without a cluster")


class ClustersReport(Answer):
    """The clusters of a benchmark's items, and what to know before using a clustered result."""

    clusters: int
    effective_clusters: float = Field("(sum n)^2 / sum n^2 of the items of each cluster")
    largest_share: float = Field("share of the labelled items that the largest cluster holds")
    unlabelled: int = Field("items without a cluster, omitted from clustered results")
    warning: Sentence | None = Field("why to read clustered results with care, or why there are none")
    facts: list[Fact] = Field("the warning for programs: a code each, with its numbers", default=[])


class WeightedCluster(Answer):
    """What one cluster counts."""

    cluster: str
    weight: float = Field("share of the score; the weights add up to 1")
    items: int = Field("items of the complete benchmark: declared, or those read")


class WeightsReport(Answer):
    """The weights of the clusters; with them `mean`, `gap` and every verdict are about the weighted mean."""

    equal: bool = Field("every cluster counts the same")
    clusters: list[WeightedCluster]
    largest_item_weight: float = Field(
        "how much more than the average item the heaviest one counts: the larger, the less power anytime verdicts have"
    )
    unranked: int = Field("models without a score in some cluster: they have no weighted mean, and come last")
    places_differ: int = Field("ranks that another model has in the unweighted ranking")


SuiteMemberState = Literal["counts", "archived", "absent", "battles"]


class SuiteMember(Answer):
    """One benchmark of a suite."""

    benchmark: str
    weight: float = Field("share of the score; the weights add up to 1")
    baseline: float = Field(
        "score x of the member that counts as 0: x counts as (x - baseline) / (1 - baseline); 0 if x counts unchanged"
    )
    state: SuiteMemberState = Field(
        "counts; archived: counts, and gets no new scores; absent: no such benchmark, or it is deleted; battles: it has no "
        "scores. Without scores in it, no model is ranked"
    )
    weighted: bool = Field(
        "whether it declares weights of its own clusters: the suite takes the plain mean over its items"
    )
    items: int = Field("item count of the member: declared, or the items it has")
    models: int = Field("models with a score in it")
    means: dict[str, float] = Field("mean score in it by model")


class SuiteGap(Answer):
    """What each member of a suite adds to the gap of two neighbours in rank; the parts add up to the gap."""

    model_a: str
    model_b: str
    parts: dict[str, float] = Field("by member, its weight times the gap in it")
    driver: str | None = Field("the member with the largest part, of either sign; null if all are 0")


class SuiteReport(Answer):
    """The members of a suite."""

    members: list[SuiteMember]
    lacking: dict[str, list[str]] = Field(
        "by model without a score in some member, these members: it is not ranked, or they count 0 (see missing)"
    )
    missing: Literal["unranked", "worst"] = Field(
        "unranked: a model without a score in some member is not ranked; worst: it is ranked, and the member counts 0"
    )
    gaps: list[SuiteGap] = Field("neighbours in rank that share items of every member")
    hides: bool = Field("whether a benchmark of the same name has events; the suite is shown in its place")


class PairReport(Answer):
    """One pair; model_a is the better-ranked of the two (ties by name)."""

    model_a: str
    model_b: str
    epoch_a: int = Field("epoch of model_a whose scores are compared")
    epoch_b: int
    adjacent: bool
    n: int
    b: int | None
    c: int | None
    gap: float | None
    p_a: float | None
    p_b: float | None
    rho: float | None = Field("phi coefficient of the two 0/1 scores over the shared items")
    sd: float | None
    p_chi2: float | None
    p_exact: float | None
    p_mid: float | None
    p_clustered: float | None
    required_n: float | None
    resolution_ratio: float | None = Field(
        "q = n / required_n, which comes from the observed gap: a transform of the p-value, and no evidence of its own"
    )
    mde: float | None
    log_e: float | None = Field(
        "ln of the e-value of the shared items; verdicts on 0/1 scores under policy completion rest on `p_anytime`"
    )
    log_e_a: float | None
    log_e_b: float | None
    p_anytime: float | None = Field(
        "what the anytime verdicts rest on: the exact p with missing items at their worst, or ignored (policy completion), or 1 "
        "/ e, of the largest e so far where that is at least 1 / alpha and of the present one elsewhere. With a `look` the "
        "smaller of 1 / e / (1 - look) and the exact p at worst / look"
    )
    family_threshold: float | None = Field(
        "alpha_j, with which `p_anytime` is compared in the family; it rises as pairs are decided. Null outside the family"
    )
    settled: Outcome | None = Field(
        "who leads on the items of the benchmark once all of them are scored; `tie`: all are scored and the sums are equal"
    )
    settled_log_e: float | None = Field(
        "ln of the e-value of sampling without replacement, under policy committed; null once it is settled, and elsewhere"
    )
    gap_low: float | None
    gap_high: float | None
    gap_family_low: float | None
    gap_family_high: float | None
    status: Status
    reason: Sentence
    facts: list[Fact] = Field("the reason for programs: a code for each sentence, with its numbers", default=[])
    decided_at_n: int | None
    items_to_decision: float | None
    needs_items: float | None = Field(
        "items in all of a test that finds a gap of this size in 4 of 5 runs, at `family_threshold`; null for a decided pair, a "
        "gap of 0, and without a place in the family"
    )
    decision_probability: float | None = Field(
        "probability of a family-wise decision by the last item, at the present `family_threshold`; null unless the pair is "
        "collecting, has 0/1 scores, and the item count is known"
    )
    decided: Decided
    resolved: Resolved
    cluster: ClusterReport | None

    @property
    def step(self) -> Step:
        """What a step of the ranking is, if the two are neighbours in rank."""
        if self.status == "decided":
            return "decided" if self.decided.anytime_family == "a" else "against"
        if self.status in {"held", "invalidated", "equivalent"}:
            return self.status
        return "open" if self.status == "collecting" or not self.n or self.missing else "tie"

    @property
    def missing(self) -> int:
        """Items whose absence keeps the pair open."""
        return max((each.get("missing") or 0 for each in self.facts), default=0)


class Summary(Answer):
    """How many pairs of the report each procedure leaves undecided, and unresolved."""

    pairs: int
    undecided: dict[str, int]
    unresolved: dict[str, int]


class ResultLine(Answer):
    """The answer to one question."""

    yes: bool = Field("whether it is known, or holds for some pair of neighbours in rank")
    held: bool = Field("whether verdicts are held; the text gives the reason, and what to declare", default=False)
    text: Sentence
    facts: list[Fact] = Field("the text for programs: a code for each sentence, with its numbers", default=[])


class ResultReport(Answer):
    """The result in one line, and the three questions, over all models and pairs of the benchmark."""

    best: ResultLine = Field("who is best, and is it decided?")
    steps: ResultLine | None = Field("how many steps of the ranking are real? null for two models")
    change: ResultLine | None = Field("what would change the result? null where nothing is known of it")

    settled: ResultLine = Field("who leads on these items, once all of them are scored?")
    decided: ResultLine = Field("is there evidence beyond these items?")
    resolved: ResultLine = Field("has the benchmark enough items for gaps of this size?")


GoalState = Literal["met", "open", "impossible"]


class GoalRun(Answer):
    """What one model ran for a goal."""

    model: str
    items_run: int = Field("scores and skips of the model")
    items_full: int | None = Field("items of a full run; null unless the item count is known")
    saved_ratio: float | None = Field("share of `items_full` that was not run, from 0 to 1")
    left: bool = Field("whether no further result of the model can change the answer")
    cost_run: float | None = Field("price of `items_run`; null without a price of the model")
    cost_saved: float | None = Field("price of the items not run; null without a price or item count")


class CommittedRace(Answer):
    """What races over the same scores take, each along a random order of the items. A comparison, and no verdict."""

    shuffles: int = Field("orders; their number depends on the size of the board")
    met: int = Field("races that met the goal; in the others no item was left that could decide it")
    items: float = Field("median over the orders of the items of the model that ran most")
    scores: float = Field("median over the orders of the scores of all models")
    items_shared: int = Field("items that all models have: the races are over these")
    text: Sentence


class Verified(ResultLine):
    """Whether one look at complete results verifies the best models: one question, fixed in advance, at the full alpha."""

    models: list[str] = Field("the best K by their scores; none where they were not looked at", default=[])
    p: float | None = Field(
        "largest exact p of one of them and another model; verified if it is at most alpha", default=None
    )


class GoalReport(Answer):
    """The goal of a benchmark, and what is open of it."""

    goal: str = Field("as in a declaration: ranking, best, top:K, pair:A,B or model:M, with options")
    state: GoalState = Field("met: the decisions answer the question; impossible: no result that may still come can")
    reason: Sentence
    facts: list[Fact] = Field("the reason for programs: a code for each sentence, with its numbers", default=[])
    models: list[str] = Field(
        "the answer so far, best first: all models, the best K, the leader of a pair, or the model"
    )
    open_pairs: int = Field("pairs that the goal rests on and that are undecided")
    needed: list[str] = Field("models whose further results can change the answer")
    items_run: int = Field("scores and skips of all models")
    items_full: int | None = Field("scores of all models on all items; null unless the item count is known")
    saved_ratio: float | None = Field("share of `items_full` that was not run, from 0 to 1")
    # An earlier server answers `rankwatch next` without the fields below.
    by_model: list[GoalRun] = Field("what each model ran, by rank; models without a score last", default=[])
    cost_run: float | None = Field("price of `items_run`; null without a price of each model", default=None)
    cost_saved: float | None = Field(
        "price of the items not run; null without a price of each model, or item count", default=None
    )
    committed: CommittedRace | None = Field(
        "what a committed order would have taken; in reports on files, where the scores follow none", default=None
    )
    verified: Verified | None = Field(
        "of the goals best and top:K without a margin; in reports on complete files whose verdicts are not held",
        default=None,
    )


class BoardReport(Answer):
    """What an operator has done with the board of a benchmark."""

    state: Literal["open", "archived"]
    since: int = Field(
        "offset of the record that archived it; if open, of the record that began it (0: the first event)"
    )
    generation: int = Field("how often the name was begun: 2 or more after a deletion")
    title: str | None = Field("the name to show; null for that of the benchmark")
    note: Sentence | None = Field("what a reader has to know; null where it has only another title")


Rule = Literal["case", "surrounding space", "leading zeros", "decimal point", "Unicode form"]


class Apart(Answer):
    """Two models that share fewer items than they would if alike ids were one item."""

    model_a: str
    model_b: str
    shared: int = Field("items that both have")
    would_share: int


class AlikeNames(Answer):
    """Names that may be meant to be one: nothing is joined, they count as different names."""

    kind: Literal["item", "model"]
    groups: int = Field("groups of names that are alike")
    rules: list[Rule] = Field("by what the names of a group differ; decimal point: 1 and 1.0")
    names: list[list[str]] = Field("the first groups")
    apart: Apart | None = Field(
        "of items: the models that would share the most items more; null where alike ids keep no models apart"
    )


class RefusedFile(Answer):
    """A file of results that was not read, or not to its end."""

    path: str
    reason: Sentence
    remedy: Sentence


class RefusedDeclaration(Answer):
    """A declaration that does not count, because it came too late or does not fit."""

    where: str = Field("its offset in the log, or its line in a file")
    field: str
    reason: str = Field("what is wrong, and what to do")


class BenchmarkReport(Answer):
    """One benchmark."""

    benchmark: str
    # An earlier server answers without the fields that have a default.
    alike: list[AlikeNames] = Field(
        "names that differ by case, space, zeros, a decimal point or Unicode form alone", default=[]
    )
    differing: Sentence | None = Field(
        "why scores of one item id are not of one item, or the runs have other items: no verdict is given; null where nothing shows it",
        default=None,
    )
    off_scale: str | None = Field(
        "why the scores that count may be on another scale: no verdict is given; null where nothing shows it",
        default=None,
    )
    refused: list[RefusedFile] = Field(
        "files of this benchmark, or of one that is not known, that were refused: what was read is not taken for the whole",
        default=[],
    )
    refused_elsewhere: list[RefusedFile] = Field("refused files of benchmarks without any result", default=[])
    skipped: dict[str, int] = Field(
        "results without a score, by reason: `blank`, or why the run of the item failed", default={}
    )
    skipped_by_model: dict[str, int] = Field("results without a score, most first", default={})
    unread_items: int = Field("items whose every line was rejected: they are missing for all models", default=0)
    refused_declarations: list[RefusedDeclaration] = Field(
        "declarations that do not count; each is one of `rejected`", default=[]
    )
    reading: list[Sentence] = Field("what was chosen, or found, in the files that were read", default=[])
    items: int
    unit_items: int | None = Field(
        "items of the units that `items` counts, where units are declared or the files name them; else null",
        default=None,
    )
    declared_items: int | None = Field("item count of the complete benchmark; null where none is declared")
    events: int
    duplicates: int
    conflicts: int
    filled: int = Field("scores that filled a null of the same item")
    rejected: int
    conflicts_by_model: dict[str, int] = Field("scores that contradict an earlier one, most first")
    duplicates_by_model: dict[str, int] = Field("scores that came again, most first")
    epochs: list[int] = Field("epochs that were read; a model is ranked by its newest")
    unranked: int = Field("scores on items that only an earlier epoch of a model has")
    incomplete: Sentence | None = Field(
        "which file breaks off and how: its end is not taken for the end of any run; null for complete files"
    )
    partial: Sentence | None = Field(
        "which records of the log were lost before they were folded, so that scores or declarations may be missing; permanent, "
        "and null where there are none"
    )
    board: BoardReport | None = Field(
        "what an operator has done with the board, by `rankwatch board`; null while it is as it began"
    )
    order: OrderReport
    alpha: float
    looks: Looks = Field(
        "one: alpha is the error rate of this one look at complete results, as of files; several: it holds however often "
        "somebody looks while results arrive"
    )
    power: float
    mixture: str = Field("the mixture of the e-values: the declared one, or `graded grid` for graded scores")
    look: float | None = Field(
        "the share of alpha for the exact test of all items, at the end of a committed order; the bets have the rest. Null without one",
        default=None,
    )
    family: FamilyReport
    family_outside: int = Field(
        "pairs with shared items that get no family-wise verdict: not declared, or beyond the capacity"
    )
    family_assumption: Sentence | None = Field(
        "what family-wise verdicts assume of the models that join; null where they assume nothing of it"
    )
    assumption: Sentence | None = Field(
        "what the other verdicts assume, and family-wise ones besides; null without an order policy"
    )
    assumptions: list[dict[str, str | int | list[str]]] = Field(
        "the same, and that of the family, for programs: a code each, with the number that its wording states"
    )
    heads: dict[str, str] = Field(
        "the head of each column of the ranking, in order, as every surface shows it", default={}
    )
    models: list[ModelReport]
    shared_items: int | None = Field(
        "items that every model with a score has, where the models have different items; else null"
    )
    clusters: ClustersReport | None = Field("null where no item carries a cluster")
    weights: WeightsReport | None = Field("null where every item counts the same")
    suite: SuiteReport | None = Field("the members of a suite, which `weights` has as clusters; else null")
    result: ResultReport | None = Field("the result in three lines; null where no models share an item")
    goal: GoalReport | None = Field("null where no goal is declared")
    battles: BattlesReport | None = Field("ratings, judges and positions; null for scores of items")
    labels: LabelsReport | None = Field("what people prefer, by `report --labels`; null without labels", default=None)
    summary: Summary
    pairs: list[PairReport]


class Report(Answer):
    """Every benchmark that was read."""

    benchmarks: list[BenchmarkReport]

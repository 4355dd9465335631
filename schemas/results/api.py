"""Responses of the HTTP API besides the report: summaries, pages, paths, matrices and problems."""

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from schemas.records.declaration import Spec
from schemas.records.names import Name
from schemas.records.operations import AskedAction
from schemas.records.text import Sentence
from schemas.results.changes import DriftChange, VerdictChange
from schemas.results.report import (
    BenchmarkReport,
    BoardReport,
    Conflict,
    GoalReport,
    OrderReport,
    PairReport,
    Status,
    Step,
)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null", defer_build=True)


class Problem(_Answer):
    """Why a request failed (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: Sentence
    errors: list["RecordError"] | None = Field(None, description="the wrong records or parameters")
    errors_total: int | None = Field(None, description="number of errors, if `errors` omits some")


class RecordError(_Answer):
    """A wrong record of a body, or a wrong parameter."""

    line: int | None = Field(
        None, description="line of the body, or position in the array, from 1; null for a parameter"
    )
    field: str
    found: str
    reason: Sentence


class BenchmarkSummary(_Answer):
    """Summary of a benchmark."""

    benchmark: str
    items: int
    events: int
    models: int
    pairs: int
    decided: int = Field(description="pairs with a family-wise decision that counts")
    order: OrderReport
    rejected: int
    conflicts: int
    partial: Sentence | None = Field(description="why records may be missing from the benchmark; null if none are")
    board: BoardReport | None = Field(
        description="what an operator has done with the board; null while it is as it began"
    )
    members: list[str] | None = Field(description="of a suite, its benchmarks; null for a benchmark")
    battles: bool = Field(description="whether it has battles, and not scores of items")
    newcomers: int = Field(0, description="newcomers that are admitted to it: GET /api/v1/admissions")
    sentinel: bool = Field(description="whether it watches the runs of each model: GET /api/v1/drift")


class BoardSummary(_Answer):
    """What operators have done with a board, and what it holds."""

    benchmark: str
    title: str | None = Field(description="the name to show; null for that of the benchmark")
    state: Literal["open", "archived", "deleted"]
    since: int = Field(
        description="offset of the record that archived or deleted it; if open, of the record that began it (0: the first event)"
    )
    generation: int = Field(description="how often the name was begun: 2 or more after a deletion")
    note: Sentence | None = Field(description="what a reader of its report has to know")
    partition: int
    models: int
    events: int
    rejected: int
    set_aside: str | None = Field(
        description="since when its records are set aside, and why; null while they are folded"
    )


class BoardDetail(BoardSummary):
    """A board with its declaration."""

    spec: Spec | None = Field(description="null for a board without a declaration, and for a deleted one")


class BoardPage(_Answer):
    """One page of the boards, by name."""

    boards: list[BoardSummary]
    total: int
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last page")


class BoardAsked(_Answer):
    """What to do with a board."""

    board: AskedAction
    benchmark: Name
    title: Name | None = Field(None, description="rename: the name to show; null: the name itself")
    producer: Name | None = Field(None, description="undo: whose events are withdrawn, by the name of the token")
    since: AwareDatetime | None = Field(None, description="undo: from which time on; null: all events of the producer")
    model: Name | None = Field(
        None,
        description="undo: the model whose events are withdrawn; rename: the model that is renamed, in place of the board",
    )


class BoardTaken(_Answer):
    """A change of a board, in the log."""

    benchmark: str
    place: str = Field(description="position in the log")
    in_force: bool = Field(description="whether the log is folded to it, and the board is as asked")
    withdrawn: int | None = Field(None, description="undo: the events that are withdrawn")
    kept: int | None = Field(None, description="undo: the events that stay")
    board: BoardDetail | None


class PairPage(_Answer):
    """One page of the pairs of a benchmark."""

    pairs: list[PairReport]
    need_notes: list[Sentence | None] = Field(description="how many items each pair needs in all, or lacks")
    total: int = Field(description="number of pairs that match the filters")
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last page")


class ConflictPage(_Answer):
    """One page of the scores that contradict an earlier one, in log order; the first 10,000 of a benchmark are kept."""

    benchmark: str
    conflicts: list[Conflict]
    total: int = Field(description="conflicts of the benchmark, or of the model asked for")
    listed: int = Field(description="those that are kept one by one")
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last page")


class PairRow(_Answer):
    """One line of the page of a pair, which already shows its answer."""

    key: Literal["gap", "alone", "clusters", "size", "procedures", "evidence", "why", "quote"]
    head: str
    answer: str | None
    detail: Sentence


class PairWords(_Answer):
    """What the page writes about a pair: it has no sentence of a verdict of its own. Programs read the facts of the pair."""

    step: Step
    headline: Sentence = Field(description="the verdict in one sentence")
    number: str | None = Field(
        description="what the number is that decides under the order policy; null while verdicts are held"
    )
    turned_note: Sentence | None = Field(description="items won and lost, and how many turned ones change the verdict")
    rows: list[PairRow]
    why: list[Sentence] = Field(description="the reason of the pair, a sentence for each fact")
    assumes: list[Sentence] = Field(description="what the verdict assumes, one clause each")
    policy_note: Sentence


class PathReport(_Answer):
    """The e-process of a pair along its shared items, and the interval of the gap; null where graded scores have none."""

    benchmark: str
    model_a: str
    model_b: str
    order: str = Field(
        description="order of the items; only for a committed order is it the order that the verdict used"
    )
    n: list[int] = Field(
        description="shared items so far; for a committed order, items of the prefix including skipped ones"
    )
    log_e: list[float] | None
    log_e_a: list[float] | None
    log_e_b: list[float] | None
    gap: list[float]
    gap_low: list[float] | None
    gap_high: list[float] | None
    log_threshold: float = Field(description="ln 1/alpha, of the share of alpha that the bets have")
    log_family_threshold: float | None = Field(description="the same of alpha_j; null for a pair outside its family")
    stretches: list[tuple[str, int]] | None = Field(description="categories along the path, each with its last item")
    missing: int | None = Field(description="items missing at the end of the path; null without an item count")
    lead_needed: int | None = Field(
        description="items won minus items lost at which the exact test decides, if as many differ as now; null where it does not decide"
    )
    words: PairWords


class Matrix(_Answer):
    """Every pair of a benchmark, with the models in rank order."""

    benchmark: str
    models: list[str]
    decided: list[list[int]] = Field(
        description="family-wise decision: 1 for the model of the row, -1 for the model of the column, 0 undecided"
    )
    statuses: list[Status] = Field(description="meaning of the codes in `status`")
    status: list[list[int]] = Field(description="index into `statuses`; -1 on the diagonal")
    prompts: list[list[int]] | None = Field(
        None, description="of battles: prompts on which the two models met; null for scores"
    )
    wins: list[list[int]] | None = Field(
        None, description="of battles: those of them that the model of the row won; what neither won is a tie"
    )


class Band(_Answer):
    """A largest set of models none of which is decided against another."""

    members: list[int] = Field(description="ranks")
    lane: int = Field(description="lane from the left, from 0, in which no two bands overlap")


class LackingModel(_Answer):
    """A model with low coverage: it is in no band."""

    rank: int
    tied: list[int] = Field(
        description="ranks of the models that it may be tied with; empty where all are too many to list"
    )


class Ties(_Answer):
    """The ties of a ranking by the family-wise decisions and what follows from them. Ties overlap, so they are no tiers."""

    bands: list[Band] | None = Field(
        description="two models share a band exactly when they are undecided; null where the ties are too many to draw"
    )
    lanes: int
    rules: list[int] = Field(
        description="ranks below which no tie crosses: all models down to this rank are decided over all below it"
    )
    lacking: list[LackingModel]


class BoardWords(_Answer):
    """What the page writes about a board: it has no sentence of a verdict of its own. Programs read the facts of the report."""

    result: list[tuple[Sentence, Sentence]] = Field(description="lines: what to read first, and the rest")
    held_note: Sentence | None = Field(description="that verdicts are held, and why")
    order_note: Sentence | None = Field(description="what is wrong with the arrival order, where verdicts are given")
    partial_note: Sentence | None
    reading_notes: list[Sentence] = Field(
        description="what of the files was not read, and which declarations do not count"
    )
    board_note: Sentence | None = Field(description="what was done with the board that a reader has to know")
    policy_note: Sentence
    assumption_note: Sentence = Field(description="how verdicts are given, and what they assume")
    coverage_note: Sentence | None = Field(description="what different items do to the ranks")
    weights_note: Sentence | None
    goal_note: Sentence | None
    assumed_note: Sentence | None = Field(description="what most verdicts of the pairs assume")
    need_note: Sentence | None = Field(description="what it means that a pair needs items, where one does")
    need_notes: list[Sentence | None] = Field(description="how many items each pair needs in all, or lacks")
    reasons: list[Sentence] = Field(description="the reason of each pair, without `assumed_note`")


class Board(_Answer):
    """The report of a benchmark with its neighbours in rank, and the ties, of one moment."""

    report: BenchmarkReport
    ties: Ties
    words: BoardWords


class Moment(_Answer):
    """A record of the log at which verdicts fell or ended, with how many had by then."""

    offset: int
    decided: int = Field(description="pairs decided family-wise up to here, ended ones too")
    steps: int = Field(description="those of them that are neighbours in rank now")
    settled: int = Field(description="pairs settled up to here, ended ones too")
    ended: int = Field(description="verdicts that were withdrawn, replaced or reversed up to here")


class EarlierBoard(_Answer):
    """The verdicts in force after a record of the log. Models have their present ranks: scores and ranks of then are not kept."""

    benchmark: str
    models: list[str] = Field(description="by present rank, as the lists below")
    at: int = Field(description="offset of the record")
    time: datetime | None = Field(description="when its verdicts were committed; null if that is not recorded")
    first_time: datetime | None = Field(description="the same of the first of the moments")
    last_time: datetime | None = Field(description="the same of the last one")
    pairs: int
    decided: int = Field(description="pairs with a family-wise decision in force")
    settled: int = Field(description="pairs that were settled")
    rank_low: list[int] = Field(description="best of the ranks that the decisions left open")
    rank_high: list[int]
    ties: Ties
    steps_decided: list[int] = Field(
        description="for each rank but the last, against the next: 1 decided, -1 decided for the lower one, 0 undecided"
    )
    steps_settled: list[int] = Field(description="the same for settled; 2: settled as equal")
    moments: list[Moment] = Field(
        description="in log order; of more than 400 some at equal distances, and those at which verdicts ended"
    )
    moments_total: int
    changes: list[VerdictChange] = Field(description="the first 20 changes of this record")
    changes_total: int
    omitted: int = Field(
        description="changes of scores, or under a declaration, that were replaced since: they are not in this board"
    )
    kept: bool = Field(
        description="false for a suite: it has no verdict changes of its own, those of its members are on their boards"
    )


class ItemRow(_Answer):
    """One item, over all models."""

    item_id: str
    cluster: str | None
    scored: int = Field(description="models with a score")
    right: int = Field(description="models with the full score")
    mean: float | None
    correlation: float | None = Field(
        description="correlation of the scores with the mean scores of the models; null for fewer than 8 models or equal scores"
    )
    suspicious: bool = Field(
        description="the correlation is below -0.3, or every model has the full score except the best one: a reason to check the item, "
        "no finding"
    )
    scores: list[float | None] = Field(description="by rank")


class Group(_Answer):
    """Items on which one of two models scores higher than the other, by a property of the item."""

    name: str
    items: int = Field(description="items that both models have")
    only_a: int
    only_b: int


class TwoModelItems(_Answer):
    """Where two models differ."""

    model_a: str
    model_b: str
    both_right: int
    only_a: int = Field(description="items on which model_a scores higher")
    only_b: int
    both_wrong: int
    equal: int = Field(description="items with equal scores between 0 and 1")
    by_cluster: list[Group] = Field(description="largest net difference first; empty without clusters")
    by_right: list[Group] = Field(
        description="by the number of other models with the full score, 0 first; at most 15 groups"
    )


class ItemPage(_Answer):
    """One page of the items of a benchmark."""

    benchmark: str
    models: list[str] = Field(description="by rank, as in `scores`")
    counts: dict[str, int] = Field(description="items of each filter")
    clusters: list[str]
    two: TwoModelItems | None
    items: list[ItemRow]
    total: int = Field(description="items that match the filters")
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last page")


class Surprises(_Answer):
    """Items on which the score of a model is most unlike those of the others: a description, chosen after a look at the scores."""

    benchmark: str
    model: str
    models: list[str] = Field(description="by rank, as in `scores`")
    higher: list[ItemRow] = Field(description="it has the item right and most others wrong, the most unlike first")
    lower: list[ItemRow] = Field(description="it has the item wrong and most others right")


class Category(_Answer):
    """A category of items: those with one `cluster`."""

    name: str
    items: int = Field(description="items that carry it so far")


class CategoryVerdicts(_Answer):
    """Every model against one, in each category."""

    model: str = Field(description="the model that the others are compared with")
    n: list[list[int]] = Field(description="shared items: a row a model, by rank, a column a category")
    gap: list[list[float | None]] = Field(
        description="mean score minus that of `model` on the shared items; null without any"
    )
    side: list[list[int]] | None = Field(
        description="1: decided to be better than `model` in this category; -1: worse; 0: undecided; null: see `why`"
    )
    why: Sentence | None = Field(description="why `side` is not computed")
    comparisons: int = Field(
        description="pairs of models times categories: they share `alpha`, so both may be chosen after a look at the results"
    )


class CategoryPage(_Answer):
    """The scores of every model by category."""

    benchmark: str
    alpha: float
    models: list[str] = Field(description="by rank, as the rows below")
    mean: list[float | None] = Field(description="mean score over all items, by rank")
    categories: list[Category] = Field(description="the largest first, as the columns below")
    total: int = Field(description="number of categories; `categories` may have fewer")
    scored: list[list[int]] = Field(description="items with a score: a row a model, a column a category")
    means: list[list[float | None]] = Field(description="mean scores; null without one")
    baseline: CategoryVerdicts | None


class ChangeWords(_Answer):
    """What the page writes above verdict changes, and for each of them."""

    assumed_note: Sentence | None = Field(description="what most of them assume")
    sentences: list[Sentence] = Field(description="the sentence of each, without that")


class ChangePage(_Answer):
    """One page of verdict changes, in log order."""

    changes: list[VerdictChange | DriftChange]
    words: ChangeWords | None = Field(None, description="with `words=true`, for a page that shows them")
    next: str | None = Field(
        description="`after` of the next page: the id of the last change, of several partitions one of each; or the given `after` if the "
        "page is empty"
    )


class Update(_Answer):
    """A benchmark has new events."""

    benchmark: str
    events: int


class Accepted(_Answer):
    """Everything that is counted here is durable in the log."""

    accepted: int = Field(description="events")
    declarations: int
    ended: int = Field(description="ends of runs")
    rejected: list[RecordError] = Field(
        description="records that can be read and are refused, and not stored; one that cannot be read refuses the whole request"
    )
    converted: list[str] = Field(
        description="for each kind of value that was converted, such as a number as an item id: what it was and is read as"
    )
    set_aside: list[str] = Field(
        description="benchmarks of the request whose records are set aside: they are in the log, and count once an operator releases them"
    )


class FileAccepted(Accepted):
    """What a posted file holds and is durable in the log; a result that is rejected is named by its number in the file, from 1."""

    benchmarks: list[str] = Field(description="benchmarks of the results")
    notes: list[Sentence] = Field(description="what was chosen of the file: its format, metric or filter")


class DeclarationTaken(_Answer):
    """A declaration is durable in the log."""

    benchmark: str
    place: str = Field(description="position in the log")
    in_force: bool = Field(description="whether the declaration is in force; if false, poll it with GET")
    spec: Spec


class RunName(_Answer):
    """A run: one evaluation of a model."""

    model: str
    epoch: int


class EndTaken(_Answer):
    """The end of runs is durable in the log."""

    benchmark: str
    place: str = Field(description="position in the log")
    in_force: bool = Field(description="whether the runs have ended; if false, poll `run_ended` of the report")
    runs: list[RunName] = Field(description="the runs that end; one that has ended before is unchanged")


class OpenPair(_Answer):
    """A pair of the model that is not decided family-wise."""

    other: str
    status: Status
    items_to_decision: float | None
    decision_probability: float | None
    reason: Sentence


class EarlyStop(_Answer):
    """Whether the run of a model may stop, and which pairs are undecided."""

    benchmark: str
    model: str
    may_stop: bool = Field(
        description="true if every pair of the model is decided family-wise, equivalent or exhausted"
    )
    reason: Sentence
    decided: list[str] = Field(description="the other models of its pairs that are decided family-wise")
    undecided: list[OpenPair] = Field(description="every other pair, with its status")


class NextRun(_Answer):
    """What a model does next in a race."""

    model: str
    step: Literal["run", "wait", "stop"] = Field(
        description="run `items`; wait, since results of other models come first or the answer is known; stop: no result of the model can "
        "change the answer any more, also if models join"
    )
    items_run: int = Field(description="scores and skips of the model so far")
    items: list[str] = Field(description="ids of the items to run, in order")


class Next(_Answer):
    """Which models run next on which items, for a goal."""

    benchmark: str
    goal: GoalReport
    over: bool = Field(description="true if the goal is met, or no item that is left can change the answer")
    models: list[NextRun] = Field(description="by rank; models without a score come last")


Problem.model_rebuild()


class CallerReport(_Answer):
    """Who sent a request, and what it may do."""

    name: str = Field(
        description="name of the token; user:NAME behind a proxy; `local` without access rules, `anonymous` without a token"
    )
    scopes: list[str] = Field(description="read, read:GLOB, write:GLOB, declare:GLOB or admin")
    expires: datetime | None = Field(description="when the token expires")
    signed_in: bool = Field(description="whether the request carried a token")
    tokens: bool = Field(description="whether a token gives rights that callers without one lack")
    watched: list[str] = Field(
        description="paths that `watch` follows, as it was given them; only for callers who may do everything"
    )
    topic: str | None = Field(description="topic that `serve` reads; only for callers who may do everything")

"""Responses of the HTTP API besides the report: summaries, pages, paths, matrices and problems."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
import pydantic

from schemas.records.declaration import Spec
from schemas.records.names import Name
from schemas.records.operations import AskedAction
from schemas.records.text import Sentence
from schemas.results.answer import Answer, Field
from schemas.results.changes import VerdictChange
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


class _Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Problem(Answer, omit_defaults=True):
    """Why a request failed (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: Sentence
    errors: list["RecordError"] | None = Field("the wrong records or parameters", default=None)
    errors_total: int | None = Field("number of errors, if `errors` omits some", default=None)


class RecordError(Answer, omit_defaults=True):
    """A wrong record of a body, or a wrong parameter."""

    line: int | None = Field("line of the body, or position in the array, from 1; null for a parameter", default=None)
    field: str
    found: str
    reason: Sentence


class BenchmarkSummary(Answer):
    """Summary of a benchmark."""

    benchmark: str
    items: int
    events: int
    models: int
    pairs: int
    decided: int = Field("pairs with a family-wise decision that counts")
    order: OrderReport
    rejected: int
    conflicts: int
    partial: Sentence | None = Field("why records may be missing from the benchmark; null if none are")
    board: BoardReport | None = Field("what an operator has done with the board; null while it is as it began")
    members: list[str] | None = Field("of a suite, its benchmarks; null for a benchmark")
    battles: bool = Field("whether it has battles, and not scores of items")
    newcomers: int = Field("newcomers that are admitted to it: GET /api/v1/admissions", default=0)
    sentinel: bool = Field("whether it watches the runs of each model: GET /api/v1/drift")


class BoardSummary(_Model):
    """What operators have done with a board, and what it holds."""

    benchmark: str
    title: str | None = pydantic.Field(description="the name to show; null for that of the benchmark")
    state: Literal["open", "archived", "deleted"]
    since: int = pydantic.Field(
        description="offset of the record that archived or deleted it; if open, of the record that began it (0: the first event)"
    )
    generation: int = pydantic.Field(description="how often the name was begun: 2 or more after a deletion")
    note: Sentence | None = pydantic.Field(description="what a reader of its report has to know")
    partition: int
    models: int
    events: int
    rejected: int
    set_aside: str | None = pydantic.Field(
        description="since when its records are set aside, and why; null while they are folded"
    )


class BoardDetail(BoardSummary):
    """A board with its declaration."""

    spec: Spec | None = pydantic.Field(description="null for a board without a declaration, and for a deleted one")


class BoardPage(_Model):
    """One page of the boards, by name."""

    boards: list[BoardSummary]
    total: int
    next_cursor: str | None = pydantic.Field(description="`cursor` of the next page; null on the last page")


class BoardAsked(_Model):
    """What to do with a board."""

    board: AskedAction
    benchmark: Name
    title: Name | None = pydantic.Field(None, description="rename: the name to show; null: the name itself")
    producer: Name | None = pydantic.Field(
        None, description="undo: whose events are withdrawn, by the name of the token"
    )
    since: pydantic.AwareDatetime | None = pydantic.Field(
        None, description="undo: from which time on; null: all events of the producer"
    )
    model: Name | None = pydantic.Field(
        None,
        description="undo: the model whose events are withdrawn; rename: the model that is renamed, in place of the board",
    )


class BoardTaken(_Model):
    """A change of a board, in the log."""

    benchmark: str
    place: str = pydantic.Field(description="position in the log")
    in_force: bool = pydantic.Field(description="whether the log is folded to it, and the board is as asked")
    withdrawn: int | None = pydantic.Field(None, description="undo: the events that are withdrawn")
    kept: int | None = pydantic.Field(None, description="undo: the events that stay")
    board: BoardDetail | None


class PairPage(Answer):
    """One page of the pairs of a benchmark."""

    pairs: list[PairReport]
    need_notes: list[Sentence | None] = Field("how many items each pair needs in all, or lacks")
    total: int = Field("number of pairs that match the filters")
    next_cursor: str | None = Field("`cursor` of the next page; null on the last page")


class ConflictPage(Answer):
    """One page of the scores that contradict an earlier one, in log order; the first 10,000 of a benchmark are kept."""

    benchmark: str
    conflicts: list[Conflict]
    total: int = Field("conflicts of the benchmark, or of the model asked for")
    listed: int = Field("those that are kept one by one")
    next_cursor: str | None = Field("`cursor` of the next page; null on the last page")


class PairRow(Answer):
    """One line of the page of a pair, which already shows its answer."""

    key: Literal["gap", "alone", "clusters", "size", "procedures", "evidence", "why", "quote"]
    head: str
    answer: str | None
    detail: Sentence


class PairWords(Answer):
    """What the page writes about a pair: it has no sentence of a verdict of its own. Programs read the facts of the pair."""

    step: Step
    headline: Sentence = Field("the verdict in one sentence")
    number: str | None = Field("what the number is that decides under the order policy; null while verdicts are held")
    turned_note: Sentence | None = Field("items won and lost, and how many turned ones change the verdict")
    rows: list[PairRow]
    why: list[Sentence] = Field("the reason of the pair, a sentence for each fact")
    assumes: list[Sentence] = Field("what the verdict assumes, one clause each")
    policy_note: Sentence


class PathReport(Answer):
    """The e-process of a pair along its shared items, and the interval of the gap; null where graded scores have none."""

    benchmark: str
    model_a: str
    model_b: str
    order: str = Field("order of the items; only for a committed order is it the order that the verdict used")
    n: list[int] = Field("shared items so far; for a committed order, items of the prefix including skipped ones")
    log_e: list[float] | None
    log_e_a: list[float] | None
    log_e_b: list[float] | None
    gap: list[float]
    gap_low: list[float] | None
    gap_high: list[float] | None
    log_threshold: float = Field("ln 1/alpha, of the share of alpha that the bets have")
    log_family_threshold: float | None = Field("the same of alpha_j; null for a pair outside its family")
    stretches: list[tuple[str, int]] | None = Field("categories along the path, each with its last item")
    missing: int | None = Field("items that count as missing at the end of the path; null without an item count")
    lead_needed: int | None = Field(
        "items won minus items lost at which the exact test decides, if as many differ as now; null where it does not decide"
    )
    words: PairWords


class Matrix(Answer):
    """Every pair of a benchmark, with the models in rank order."""

    benchmark: str
    models: list[str]
    decided: list[list[int]] = Field(
        "family-wise decision: 1 for the model of the row, -1 for the model of the column, 0 undecided"
    )
    statuses: list[Status] = Field("meaning of the codes in `status`")
    status: list[list[int]] = Field("index into `statuses`; -1 on the diagonal")
    prompts: list[list[int]] | None = Field(
        "of battles: prompts on which the two models met; null for scores", default=None
    )
    wins: list[list[int]] | None = Field(
        "of battles: those of them that the model of the row won; what neither won is a tie", default=None
    )


class Band(Answer):
    """A largest set of models none of which is decided against another."""

    members: list[int] = Field("ranks")
    lane: int = Field("lane from the left, from 0, in which no two bands overlap")


class LackingModel(Answer):
    """A model with low coverage: it is in no band."""

    rank: int
    tied: list[int] = Field("ranks of the models that it may be tied with; empty where all are too many to list")


class Ties(Answer):
    """The ties of a ranking by the family-wise decisions and what follows from them. Ties overlap, so they are no tiers."""

    bands: list[Band] | None = Field(
        "two models share a band exactly when they are undecided; null where the ties are too many to draw"
    )
    lanes: int
    rules: list[int] = Field(
        "ranks below which no tie crosses: all models down to this rank are decided over all below it"
    )
    lacking: list[LackingModel]


class BoardWords(Answer):
    """What the page writes about a board: it has no sentence of a verdict of its own. Programs read the facts of the report."""

    result: list[tuple[Sentence, Sentence]] = Field("lines: what to read first, and the rest")
    held_note: Sentence | None = Field("that verdicts are held, and why")
    order_note: Sentence | None = Field("what is wrong with the arrival order, where verdicts are given")
    partial_note: Sentence | None
    reading_notes: list[Sentence] = Field("what of the files was not read, and which declarations do not count")
    board_note: Sentence | None = Field("what was done with the board that a reader has to know")
    policy_note: Sentence
    assumption_note: Sentence = Field("how verdicts are given, and what they assume")
    coverage_note: Sentence | None = Field("what different items do to the ranks")
    weights_note: Sentence | None
    goal_note: Sentence | None
    assumed_note: Sentence | None = Field("what most verdicts of the pairs assume")
    need_note: Sentence | None = Field("what it means that a pair needs items, where one does")
    need_notes: list[Sentence | None] = Field("how many items each pair needs in all, or lacks")
    reasons: list[Sentence] = Field("the reason of each pair, without `assumed_note`")


class Board(Answer):
    """The report of a benchmark with its neighbours in rank, and the ties, of one moment."""

    report: BenchmarkReport
    ties: Ties
    words: BoardWords


class Moment(Answer):
    """A record of the log at which verdicts fell or ended, with how many had by then."""

    offset: int
    decided: int = Field("pairs decided family-wise up to here, ended ones too")
    steps: int = Field("those of them that are neighbours in rank now")
    settled: int = Field("pairs settled up to here, ended ones too")
    ended: int = Field("verdicts that were withdrawn, replaced or reversed up to here")


class EarlierBoard(Answer):
    """The verdicts in force after a record of the log. Models have their present ranks: scores and ranks of then are not kept."""

    benchmark: str
    models: list[str] = Field("by present rank, as the lists below")
    at: int = Field("offset of the record")
    time: datetime | None = Field("when its verdicts were committed; null if that is not recorded")
    first_time: datetime | None = Field("the same of the first of the moments")
    last_time: datetime | None = Field("the same of the last one")
    pairs: int
    decided: int = Field("pairs with a family-wise decision in force")
    settled: int = Field("pairs that were settled")
    rank_low: list[int] = Field("best of the ranks that the decisions left open")
    rank_high: list[int]
    ties: Ties
    steps_decided: list[int] = Field(
        "for each rank but the last, against the next: 1 decided, -1 decided for the lower one, 0 undecided"
    )
    steps_settled: list[int] = Field("the same for settled; 2: settled as equal")
    moments: list[Moment] = Field(
        "in log order; of more than 400 some at equal distances, and those at which verdicts ended"
    )
    moments_total: int
    changes: list[VerdictChange] = Field("the first 20 changes of this record")
    changes_total: int
    omitted: int = Field(
        "changes of scores, or under a declaration, that were replaced since: they are not in this board"
    )
    kept: bool = Field(
        "false for a suite: it has no verdict changes of its own, those of its members are on their boards"
    )


class ItemRow(Answer):
    """One item, over all models."""

    item_id: str
    cluster: str | None
    scored: int = Field("models with a score")
    right: int = Field("models with the full score")
    mean: float | None
    correlation: float | None = Field(
        "correlation of the scores with the mean scores of the models; null for fewer than 8 models or equal scores"
    )
    suspicious: bool = Field(
        "the correlation is below -0.3, or every model has the full score except the best one: a reason to check the item, no finding"
    )
    scores: list[float | None] = Field("by rank")


class Group(Answer):
    """Items on which one of two models scores higher than the other, by a property of the item."""

    name: str
    items: int = Field("items that both models have")
    only_a: int
    only_b: int


class TwoModelItems(Answer):
    """Where two models differ."""

    model_a: str
    model_b: str
    both_right: int
    only_a: int = Field("items on which model_a scores higher")
    only_b: int
    both_wrong: int
    equal: int = Field("items with equal scores between 0 and 1")
    by_cluster: list[Group] = Field("largest net difference first; empty without clusters")
    by_right: list[Group] = Field("by the number of other models with the full score, 0 first; at most 15 groups")


class ItemPage(Answer):
    """One page of the items of a benchmark."""

    benchmark: str
    models: list[str] = Field("by rank, as in `scores`")
    counts: dict[str, int] = Field("items of each filter")
    clusters: list[str]
    two: TwoModelItems | None
    items: list[ItemRow]
    total: int = Field("items that match the filters")
    next_cursor: str | None = Field("`cursor` of the next page; null on the last page")


class Surprises(Answer):
    """Items on which the score of a model is most unlike those of the others: a description, chosen after a look at the scores."""

    benchmark: str
    model: str
    models: list[str] = Field("by rank, as in `scores`")
    higher: list[ItemRow] = Field("it has the item right and most others wrong, the most unlike first")
    lower: list[ItemRow] = Field("it has the item wrong and most others right")


class Category(Answer):
    """A category of items: those with one `cluster`."""

    name: str
    items: int = Field("items that carry it so far")


class CategoryVerdicts(Answer):
    """Every model against one, in each category."""

    model: str = Field("the model that the others are compared with")
    n: list[list[int]] = Field("shared items: a row a model, by rank, a column a category")
    gap: list[list[float | None]] = Field("mean score minus that of `model` on the shared items; null without any")
    side: list[list[int]] | None = Field(
        "1: decided to be better than `model` in this category; -1: worse; 0: undecided; null: see `why`"
    )
    why: Sentence | None = Field("why `side` is not computed")
    comparisons: int = Field(
        "pairs of models times categories: they share `alpha`, so both may be chosen after a look at the results"
    )


class CategoryPage(Answer):
    """The scores of every model by category."""

    benchmark: str
    alpha: float
    models: list[str] = Field("by rank, as the rows below")
    mean: list[float | None] = Field("mean score over all items, by rank")
    categories: list[Category] = Field("the largest first, as the columns below")
    total: int = Field("number of categories; `categories` may have fewer")
    scored: list[list[int]] = Field("items with a score: a row a model, a column a category")
    means: list[list[float | None]] = Field("mean scores; null without one")
    baseline: CategoryVerdicts | None


class ChangeWords(Answer):
    """What the page writes above verdict changes, and for each of them."""

    assumed_note: Sentence | None = Field("what most of them assume")
    sentences: list[Sentence] = Field("the sentence of each, without that")


_CHANGES: Final = {
    "items": {"anyOf": [{"$ref": f"#/components/schemas/{name}Change"} for name in ("Verdict", "Drift")]}
}


class ChangePage(Answer):
    """One page of verdict changes, in log order."""

    changes: Annotated[list[Any], msgspec.Meta(extra_json_schema=_CHANGES)]  # msgspec has no schema of `AnyChange`
    words: ChangeWords | None = Field("with `words=true`, for a page that shows them", default=None)
    next: str | None = Field(
        "`after` of the next page: the id of the last change, of several partitions one of each; or the given `after` if the page is empty"
    )


class Update(Answer):
    """A benchmark has new events."""

    benchmark: str
    events: int


class Accepted(Answer):
    """Everything that is counted here is durable in the log."""

    accepted: int = Field("events")
    declarations: int
    ended: int = Field("ends of runs")
    rejected: list[RecordError] = Field(
        "records that can be read and are refused, and not stored; one that cannot be read refuses the whole request"
    )
    converted: list[str] = Field(
        "for each kind of value that was converted, such as a number as an item id: what it was and is read as"
    )
    set_aside: list[str] = Field(
        "benchmarks of the request whose records are set aside: they are in the log, and count once an operator releases them"
    )


class FileAccepted(Accepted):
    """What a posted file holds and is durable in the log; a result that is rejected is named by its number in the file, from 1."""

    benchmarks: list[str] = Field("benchmarks of the results")
    notes: list[Sentence] = Field("what was chosen of the file: its format, metric or filter")


class DeclarationTaken(_Model):
    """A declaration is durable in the log."""

    benchmark: str
    place: str = pydantic.Field(description="position in the log")
    in_force: bool = pydantic.Field(description="whether the declaration is in force; if false, poll it with GET")
    spec: Spec


class RunName(Answer):
    """A run: one evaluation of a model."""

    model: str
    epoch: int


class EndTaken(Answer):
    """The end of runs is durable in the log."""

    benchmark: str
    place: str = Field("position in the log")
    in_force: bool = Field("whether the runs have ended; if false, poll `run_ended` of the report")
    runs: list[RunName] = Field("the runs that end; one that has ended before is unchanged")


class OpenPair(Answer):
    """A pair of the model that is not decided family-wise."""

    other: str
    status: Status
    items_to_decision: float | None
    decision_probability: float | None
    reason: Sentence


class EarlyStop(Answer):
    """Whether the run of a model may stop, and which pairs are undecided."""

    benchmark: str
    model: str
    may_stop: bool = Field("true if every pair of the model is decided family-wise, equivalent or exhausted")
    reason: Sentence
    decided: list[str] = Field("the other models of its pairs that are decided family-wise")
    undecided: list[OpenPair] = Field("every other pair, with its status")


class NextRun(Answer):
    """What a model does next in a race."""

    model: str
    step: Literal["run", "wait", "stop"] = Field(
        "run `items`; wait, since results of other models come first or the answer is known; stop: no result of the model can "
        "change the answer any more, also if models join"
    )
    items_run: int = Field("scores and skips of the model so far")
    items: list[str] = Field("ids of the items to run, in order")


class Next(Answer):
    """Which models run next on which items, for a goal."""

    benchmark: str
    goal: GoalReport
    over: bool = Field("true if the goal is met, or no item that is left can change the answer")
    models: list[NextRun] = Field("by rank; models without a score come last")


class CallerReport(Answer):
    """Who sent a request, and what it may do."""

    name: str = Field(
        "name of the token; user:NAME behind a proxy; `local` without access rules, `anonymous` without a token"
    )
    scopes: list[str] = Field("read, read:GLOB, write:GLOB, declare:GLOB or admin")
    expires: datetime | None = Field("when the token expires")
    signed_in: bool = Field("whether the request carried a token")
    tokens: bool = Field("whether a token gives rights that callers without one lack")
    watched: list[str] = Field(
        "paths that `watch` follows, as it was given them; only for callers who may do everything"
    )
    topic: str | None = Field("topic that `serve` reads; only for callers who may do everything")

"""A board as facts: what reports, pages, metrics, gates and exports compute from. `monitor.view.from_state` makes it of a state."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from monitor.engine.kinds.repeats import SingleRows
from monitor.engine.state.battles import Units, Votes, units_of
from monitor.engine.state.codes import Codes, ScoreTable
from monitor.engine.state.graded import Weighting
from monitor.engine.state.pairs import families
from monitor.engine.state.pairs.counts import sums_of_items
from monitor.engine.state.pairs.settling import Settling
from monitor.engine.state.rows import Rows
from monitor.engine.state.rules import Rules
from schemas.records.boards import BoardEntry, Suspect
from schemas.records.chunks import Gap
from schemas.records.declaration import Spec
from schemas.records.reading import Reading
from schemas.records.scores import SCORE_UNIT, Contestant, RowKey
from schemas.records.suites import Suite
from schemas.records.text import Sentence
from schemas.results.assumptions import Seed
from schemas.results.changes import CLAIMS, PROCEDURES, Claim, Procedure
from schemas.results.drift import DriftReport
from schemas.results.reasons import Fact
from schemas.results.verdict_changes import VerdictChanges, change_field
from stats.families.error_control import WHOLE
from stats.numerics.pairs import Index, pair_index, ranked_pairs
from stats.order import OrderFinding

_Flags = NDArray[np.bool_]
_T = TypeVar("_T")


@dataclass(frozen=True)
class PairSums:
    """Shared items of each pair, and those that only its first or only its second model has right, shape (pairs,)."""

    n: NDArray[np.int32]
    b: NDArray[np.int32]
    c: NDArray[np.int32]


@dataclass(frozen=True)
class Latch:
    """What is latched of a claim: the side of each pair, its largest evidence, and the open weight of each family."""

    side: NDArray[np.int8]
    peak: NDArray[np.float64]
    open_weight: Callable[[int], int] = lambda _: WHOLE


@dataclass(frozen=True)
class GradedSums:
    """Capital of each pair, shape (pairs, 2, L), its lead in units and, of weighted ones, its shared items by cluster."""

    capital: NDArray[np.int64]
    lead: NDArray[np.int64]
    shared: NDArray[np.int32] | None = None


@dataclass(frozen=True)
class Prefixes:
    """The prefixes of a committed order."""

    size: int
    reached: Index
    item_at: Index
    names: Callable[[int, int], list[str]]
    sums: Mapping[str, NDArray[np.int32]]

    def prefix(self, i: Index, j: Index) -> Index:
        """Return the prefix length of pairs."""
        return np.minimum(self.reached[i], self.reached[j])

    def items(self, one: int, other: int) -> Index:
        """Return the items of the prefix of a pair, in the committed order."""
        return self.item_at[: int(np.minimum(self.reached[one], self.reached[other]))]


@dataclass(frozen=True)
class BattleFacts:
    """The votes on a benchmark of battles, shape (votes, columns), their judges, and how many votes each unit has."""

    votes: Votes
    judges: Sequence[str]
    counts: NDArray[np.int32]

    @property
    def size(self) -> int:
        """How many votes there are."""
        return len(self.votes)

    def units(self) -> Units:
        """Return every unit, whether it has bet or not."""
        return units_of(self.votes)


@dataclass(frozen=True)
class Cells:
    """The score matrix as it arrived: a row for each repeat of an item, shape (rows, contestants), and the score of each code."""

    codes: Codes
    values: NDArray[np.int64]


@dataclass(frozen=True)
class ItemScores:
    """The scores that count, shape (items, contestants), the score of each code, and the first row of each item."""

    codes: Codes
    values: NDArray[np.int64]
    keys: Sequence[RowKey]


@dataclass(frozen=True)
class United:
    """What the members of a suite add to their union, besides their items."""

    suite: Suite
    held: list[Fact] = field(default_factory=list)
    shares_items: bool = False
    no_family: list[Fact] = field(default_factory=list)
    rescored: bool = False
    unit_items: int | None = None
    has_choice: bool = False
    walked: tuple[NDArray[np.float64], NDArray[np.int8]] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class BoardView(Rules):
    """One benchmark, or the union of the members of a suite, at one moment."""

    # What is as large as all pairs or all scores is not copied: it is read where it is asked for, while the state does not change, and
    # nobody can write to it. A contestant is an epoch of a model; pairs of contestants are in the order of `stats.numerics.pairs`.
    origin: object
    version: tuple[object, ...] = ()
    name: str
    key: str
    off: int = 0
    spec: Spec
    kind_of: Callable[["BoardView"], Any]  # chooses the kind of its scores: `monitor.view.kinds.battles.kind_of`
    declared: bool = True
    generation: int = 1
    seed: Seed | None = None
    board: BoardEntry | None = None
    quarantine: Suspect | None = None
    gaps: Sequence[Gap] = ()

    contestants: Sequence[Contestant]
    epochs: Mapping[str, Sequence[int]]
    latest_epoch: Mapping[str, int]
    epoch_contestant_of: Mapping[tuple[str, int], int]
    superseded: Sequence[bool]
    ended: frozenset[int]
    assumed_ended: frozenset[int] = frozenset()

    items: int
    rows: int
    met: int = 0
    counters: Mapping[str, int]
    change_counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    changes: VerdictChanges = field(default_factory=VerdictChanges)
    reading: Reading = field(default_factory=Reading)
    unread: int = 0
    incomplete: str = ""
    complete_files: bool = False
    found_units: bool = False

    finding: OrderFinding | None = None
    too_many_items: bool = False
    exceeded: bool = False
    undeclared: Sentence = ""
    mixed: bool = False
    unknown_units: bool = False
    has_choice: bool = False
    united: United | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)  # of a suite: the score that counts as 0, by member
    least_scored: int = (
        0  # items that count in each cluster at least: 1 where a member of a suite that a model lacks counts 0
    )
    members: Sequence[str] | None = None  # of a suite
    suite_report: Callable[[Any], Any] = lambda _: None  # makes the report of the members from the table of pairs
    drift: Callable[[], DriftReport] | None = None  # what the runs of a sentinel show; None for what is none

    scored: Index
    skipped: Index
    total: Index
    conflicts: NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 4), np.uint32))
    again: Callable[[], Index]

    sums: Callable[[], PairSums]
    family_index: Callable[[], NDArray[np.int32]]
    claims: Mapping[Claim, Callable[[], Latch]]
    graded_sums: Callable[[], GradedSums] | None = None
    settling: Settling
    weighting: Weighting | None = None
    committed: Prefixes | None = None
    battles: BattleFacts | None = None
    by_item: SingleRows = field(default_factory=lambda: SingleRows((), ScoreTable(), {}))
    row_keys: Rows
    cells: Callable[[], Cells]
    scores: Callable[[], ItemScores]
    means: "Callable[[], BoardView] | None" = None
    """The board whose items, or prompts, are means of all their repeats, if an undeclared one holds it: for its figures."""
    _once: dict[Callable[..., Any], Any] = field(init=False, repr=False, default_factory=dict)

    def once(self, compute: Callable[["BoardView"], _T]) -> _T:
        """Return what a function computes of the board: once, for a board never changes."""
        if compute not in self._once:
            self._once[compute] = compute(self)
        result: _T = self._once[compute]
        return result

    def described(self) -> "BoardView":
        """Return the board for its figures: itself, or one whose items or prompts are means if an undeclared repeat holds it."""
        return self if self.means is None else self.means()

    # --- what holds ---

    @property
    def suite(self) -> Suite | None:
        """The suite whose members this unites, or None."""
        return None if self.united is None else self.united.suite

    @property
    def single_scores(self) -> bool:
        """Whether each model has one score of an item, and all items count alike."""
        more = (self.battles, self.united, self.weighting, self.means, self.spec.units)
        return self.by_item.are_rows and all(each is None for each in more)

    # --- models ---

    def current(self) -> _Flags:
        """Return for each contestant whether it is the latest epoch of its model."""
        return np.array([c.epoch == self.latest_epoch[c.model] for c in self.contestants], bool)

    def newest(self, model: str) -> int:
        """Return the contestant of the newest epoch of a model."""
        return self.epoch_contestant_of[model, self.latest_epoch[model]]

    def ended_flags(self) -> _Flags:
        """Return for each contestant whether its run has ended."""
        flags = np.zeros(len(self.contestants), bool)
        flags[sorted(self.ended)] = True
        return flags

    def shown_titles(self) -> dict[str, str]:
        """Return the titles of models, without one that a model which came later has as its name."""
        if self.board is None or not self.board.titles:
            return {}
        names = {each.model for each in self.contestants} | self.spec.aliases.keys()
        return {model: title for model, title in self.board.titles.items() if title not in names}

    # --- items ---

    def item_codes(self) -> Codes:
        """Return the scores that count, shape (items, contestants)."""
        return self.scores().codes

    @property
    def item_values(self) -> NDArray[np.int64]:
        """Score of each code of `item_codes`, in units; 0 for absent and skipped."""
        return self.scores().values

    @property
    def item_keys(self) -> Sequence[RowKey]:
        """The first row of each item, in the order of `item_codes`."""
        return self.scores().keys

    def item_clusters(self) -> list[str | None]:
        """Return the cluster of each item, in the order of `item_codes`."""
        return [key.cluster for key in self.item_keys]

    def present(self, contestant: int) -> _Flags:
        """Return for each item whether a contestant has a score or a skip of it."""
        return self.by_item.present(self.item_codes(), contestant)[: len(self.item_keys)]

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row of each item, of repeat 0."""
        return {key.item: row for row, key in enumerate(self.row_keys) if not key.repeat}

    def waits(self, ended: _Flags) -> bool:
        """Return whether items wait for repeats that would come if the runs of some contestants had not ended."""
        return self.by_item.waits(ended)

    def betting_units(self) -> Units:
        """Return the units of battles that have bet."""
        assert self.battles is not None
        return self.battles.units().betting(self.spec.needed_repeats, self.ended_flags())

    # --- families ---

    @property
    def latched(self) -> dict[Procedure, NDArray[np.int8]]:
        """The side of each decision by procedure; see `claims`."""
        return {procedure: self.claims[procedure]().side for procedure in PROCEDURES}

    def comparable(self, pair: Index) -> _Flags:
        """Return for each pair whether its members are different models: two epochs of one model are no hypothesis."""
        return families.comparable(self.contestants, list(self.latest_epoch), pair)

    def in_family(self, pair: Index) -> _Flags:
        """Return for each pair whether it is in the declared family: all are, unless models or pairs were declared."""
        return families.in_family(self.spec.family, self.contestants, self.epochs, pair)

    def by_family(self, pair: Index) -> Iterator[tuple[int, Index]]:
        """Yield each family of some pairs, ascending, and their places among the pairs."""
        return families.by_family(self.contestants, pair)

    def family_weights(self, pair: Index) -> NDArray[np.int64]:
        """Return the weight of each pair in its family, out of `stats.families.error_control.WHOLE`; 0 for a pair without a place."""
        return families.weights_of(self.family_index()[pair], self.spec.family.capacity)

    def family_thresholds(self, pair: Index) -> NDArray[np.float64]:
        """Return ln 1/alpha_j of pairs given the decisions of their family; infinite where a pair has no place in it."""
        weight, latch = self.family_weights(pair), self.claims["anytime_family"]()
        decided = np.where(latch.side[pair] != 0, weight, 0)
        return families.thresholds_of(self.by_family(pair), weight, decided, latch.open_weight, self.spec.alpha)

    def change_field(self, pair: int, procedure: str, kind: str) -> str:
        """Return the field of a change under the present version of the declaration."""
        return change_field(pair, procedure, kind, self.spec.version)


def model_maps(contestants: Iterable[Contestant]) -> dict[str, Any]:
    """Return the fields of a view that relate contestants to models and epochs."""
    listed = list(contestants)
    epochs: dict[str, list[int]] = {}
    for k, each in enumerate(listed):
        epochs.setdefault(each.model, []).append(k)
    return {
        "contestants": listed,
        "epochs": epochs,
        "latest_epoch": {model: max(listed[k].epoch for k in places) for model, places in epochs.items()},
        "epoch_contestant_of": {(each.model, each.epoch): k for k, each in enumerate(listed)},
        "superseded": [False] * len(listed),
    }


def no_latches(pairs: int) -> dict[Claim, Callable[[], Latch]]:
    """Return claims without any latch."""
    nothing = Latch(np.zeros(pairs, np.int8), np.zeros(pairs))
    return dict.fromkeys(CLAIMS, lambda: nothing)


Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Sides = NDArray[np.int8]  # +1: model_a is decided to be better; -1: model_b; 0: undecided

ALL = slice(None)


@dataclass
class PairCounts:
    """Counts of every pair of the models of a ranking, or of the older epochs of two models; a is the better-ranked of the two."""

    drawn: BoardView  # the board that is shown; `benchmark` is the one whose items describe it
    ranking: Index
    assumed_items: int | None = None
    superseded: tuple[Index, Index] | None = None
    a: Index = field(init=False)
    b: Index = field(init=False)
    adjacent: Flags = field(init=False)
    listed = 0
    """Pairs of the list that is made part by part: what is not computed for a long list is not computed for its parts."""

    def __post_init__(self) -> None:
        self.benchmark = self.drawn.described()
        if self.superseded is not None:
            self.a, self.b = self.superseded
            self.adjacent = np.zeros(self.a.size, bool)
            return
        first, second = ranked_pairs(self.ranking.size)
        self.a, self.b = self.ranking[first], self.ranking[second]
        self.adjacent = second == first + 1

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return self.a.size

    @property
    def asserted(self) -> bool:
        """Whether the items read are taken as the whole benchmark."""
        return self.assumed_items is not None

    @cached_property
    def pair(self) -> Index:
        """Index of each pair in the state."""
        return pair_index(np.minimum(self.a, self.b), np.maximum(self.a, self.b))

    @cached_property
    def flip(self) -> Flags:
        """Whether a is the second contestant of the pair in the state."""
        return np.asarray(self.a > self.b)

    @cached_property
    def n(self) -> Index:
        """Shared items."""
        return self.benchmark.sums().n[self.pair].astype(np.int64)

    @cached_property
    def wins(self) -> Index:
        """Items that only a has right."""
        return np.where(self.flip, self.benchmark.sums().c[self.pair], self.benchmark.sums().b[self.pair]).astype(
            np.int64
        )

    @cached_property
    def losses(self) -> Index:
        """Items that only b has right."""
        return np.where(self.flip, self.benchmark.sums().b[self.pair], self.benchmark.sums().c[self.pair]).astype(
            np.int64
        )

    @property
    def completes(self) -> bool:
        """Whether verdicts are about all items of the benchmark, in any order: policy completion, or complete files."""
        return self.asserted or self.benchmark.spec.order.policy == "completion"

    @cached_property
    def missing(self) -> Index | None:
        """Items that a pair does not share yet; of a committed order, items after its prefix. None where their number is not known."""
        if self.benchmark.committed is not None:
            return self.benchmark.committed.size - self.benchmark.committed.prefix(self.a, self.b)
        items = self.assumed_items if self.assumed_items is not None else self.benchmark.spec.items
        if not self.asserted and self.benchmark.order_trusted and self.benchmark.too_many_items:
            return None
        return None if items is None else np.maximum(items - self.n, 0)

    @cached_property
    def ended(self) -> Flags:
        """Whether the runs of both models have ended; files that are taken as complete hold whole runs."""
        if self.asserted:
            return np.ones(self.size, bool)
        flags = self.benchmark.ended_flags()
        return flags[self.a] & flags[self.b]

    @cached_property
    def ignored(self) -> Index:
        """Missing items of pairs of ended runs that the declaration ignores; 0 elsewhere."""
        spec = self.benchmark.spec
        if self.missing is None or spec.missing == "worst" or (spec.order.policy == "trusted" and not self.asserted):
            return np.zeros(self.size, np.int64)
        lacking = self.missing if spec.items is None else np.maximum(spec.items - self.n, 0)
        return np.where(self.ended, lacking, 0)

    @cached_property
    def counted_missing(self) -> Index | None:
        """Missing items that are not ignored."""
        return None if self.missing is None else np.where(self.ignored > 0, 0, self.missing)

    @property
    def known(self) -> bool:
        """Whether what one model scored bounds what the pair lacks of the other: where 0/1 scores of all items decide; see `Spec.known`."""
        whole = self.completes and self.benchmark.committed is None and self.benchmark.battles is None
        return whole and self.benchmark.binary and (self.asserted or self.benchmark.spec.known)

    @cached_property
    def threats(self) -> tuple[Index, Index]:
        """Missing items that may still go against a, and those that may go against b, ignored ones among them."""
        assert self.missing is not None
        if not self.known:
            return self.missing, self.missing
        wrong, right = self.benchmark.scored - (total := self.benchmark.total // SCORE_UNIT), total
        items, lead = self.n + self.missing, self.wins - self.losses
        against_a = items - right[self.a] - wrong[self.b] + lead
        against_b = items - right[self.b] - wrong[self.a] - lead
        return np.clip(against_a, 0, self.missing), np.clip(against_b, 0, self.missing)

    @cached_property
    def exposed(self) -> Index:
        """Missing items that may still go against the leader, ignored ones among them."""
        (for_a, for_b), lead = self.threats, self.wins - self.losses
        return np.where(lead > 0, for_a, np.where(lead < 0, for_b, np.maximum(for_a, for_b)))

    @cached_property
    def at_risk(self) -> Index:
        """Missing items that verdicts count against the leader."""
        return np.where(self.ignored > 0, 0, self.exposed)

    @cached_property
    def left(self) -> Index | None:
        """Items that may still come."""
        return None if self.missing is None else np.where(self.ended, 0, self.missing)

    @cached_property
    def complete(self) -> Flags:
        """Whether no item is missing."""
        return np.zeros(self.size, bool) if self.missing is None else self.missing == 0

    def matrix(self, upper: NDArray[Any], lower: NDArray[Any]) -> NDArray[Any]:
        """Arrange values of the pairs by rank, shape (models, models): `upper` at (a, b), `lower` at (b, a), 0 on the diagonal."""
        models, start = self.ranking.size, 0
        matrix = np.zeros((models, models), upper.dtype)
        for rank in range(models - 1):
            end = start + models - 1 - rank
            matrix[rank, rank + 1 :] = upper[start:end]
            matrix[rank + 1 :, rank] = lower[start:end]
            start = end
        return matrix


def json_numbers(values: NDArray[Any]) -> list[float | None]:
    """Return numbers as JSON has them: None where there is no finite number."""
    finite = np.isfinite(values)
    listed: list[float | None] = values.tolist()
    for place in np.flatnonzero(~finite).tolist():
        listed[place] = None
    return listed


def unweighted_ranking(benchmark: BoardView, contestants: Index) -> Index:
    """Return contestants by their mean over all of their items, ties by name; one without a score comes last."""
    total, scored = benchmark.total, benchmark.scored

    def place(k: int) -> tuple[float, str]:
        return (-total[k] / scored[k] if scored[k] else 1.0, benchmark.contestants[k].model)

    return np.array(sorted(contestants.tolist(), key=place), np.int64)


def of_scores(scores: ItemScores) -> dict[str, Any]:
    """Return the fields of a view that follow from the scores that count."""
    sums = sums_of_items(scores.codes, scores.values)
    n, b, c = (sums.pop(name) for name in ("n", "b", "c"))
    return {**sums, "sums": lambda: PairSums(n, b, c), "scores": lambda: scores}

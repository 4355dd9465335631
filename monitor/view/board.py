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
from monitor.engine.state.pairs.settling import Settling
from monitor.engine.state.rows import Rows
from monitor.engine.state.rules import Rules
from schemas.records.boards import BoardEntry, Suspect
from schemas.records.chunks import Gap
from schemas.records.declaration import Spec
from schemas.records.reading import Reading
from schemas.records.scores import Contestant, RowKey
from schemas.records.suites import Suite
from schemas.records.text import Sentence
from schemas.results.assumptions import Seed
from schemas.results.changes import CLAIMS, PROCEDURES, Claim, Procedure
from schemas.results.drift import DriftReport
from schemas.results.reasons import Fact
from schemas.results.verdict_changes import VerdictChanges, change_field
from stats.families.error_control import WHOLE
from stats.numerics.pairs import Index
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

"""The state of one benchmark: its score matrix, and what the pairs, the arrival order and the order policy add to it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.engine.kinds.repeats import Prompts, Repeats, Undeclared, rows_of
from monitor.engine.kinds.sentinel import Sentinel
from monitor.engine.state.arrival import Arrival
from monitor.engine.state.battles import Battles, Units, Votes
from monitor.engine.state.changes import BenchmarkDelta, Conflicts, benchmark_key
from monitor.engine.state.codes import NARROW, Codes, ScoreTable, grown
from monitor.engine.state.committed import Committed
from monitor.engine.state.graded import GradedPairs, WeightedPairs, Weighting
from monitor.engine.state.pairs.pair_state import PairState
from monitor.engine.state.pairs.settling import Settling
from monitor.engine.state.rows import Rows
from monitor.engine.state.stored import PairSnapshot
from monitor.words.order import suspicion, too_many_items, too_many_of_cluster, too_many_repeats, too_many_votes
from schemas.records.boards import BoardEntry, Suspect
from schemas.records.chunks import Gap
from schemas.records.declaration import Spec
from schemas.records.reading import Reading
from schemas.records.scores import SCORE_UNIT, RowKey
from schemas.records.text import Sentence, shorten
from stats.numerics.pairs import pair_members
from stats.order import OrderFinding, item_places

COUNTERS = ("events", "duplicates", "conflicts", "filled", "rejected")
_PAIR_SUMS, _MODEL_SUMS = ("n", "b", "c"), ("scored", "skipped", "total")


class FoundUnits:
    """The units that events of files name: these are read whole, so their units need not be declared in advance."""

    def __init__(self) -> None:
        self.of_item: dict[str, str] = {}
        self.clash = ""

    def add(self, item: str, unit: str) -> None:
        """Add the unit of an item."""
        known = self.of_item.setdefault(item, unit)
        if known != unit and not self.clash:
            both = f"unit {shorten(known)} in some results, and in unit {shorten(unit)} in others"
            self.clash = f"item {shorten(item)} is in {both}; give each item one unit"


class Benchmark(PairState):
    """Everything that the verdicts of one benchmark are made of."""

    # Rows are (item, repeat), in the order of their first event; columns are contestants. While each item has one row, rows are items; with
    # the first item of two rows, or declared repeats, `by_item` is made of `Repeats`.
    sentinel: Sentinel | None = None
    """The runs of its models, if it is a sentinel: it has no pairs then, and no contestant."""

    def __init__(self, name: str, spec: Spec | None = None) -> None:
        super().__init__(name)
        self.key = benchmark_key(name)
        self.off = 0
        self.rows = Rows()
        self.row_of: dict[str, int] = {}  # of repeat 0
        self.repeat_row_of: dict[tuple[str, int], int] = {}
        self.table = ScoreTable()
        self.width = 1
        self.scores: Codes = np.zeros((0, 0), np.uint8)  # shape (rows or more, contestants or more)
        self.scored = np.zeros(0, np.int64)  # items that count, by contestant
        self.skipped = np.zeros(0, np.int64)
        self.total = np.zeros(0, np.int64)  # sums of their scores, in units of `SCORE_UNIT`
        self.battles = Battles()
        """The votes, if it holds battles and no scores: its rows are then prompts, and its score matrix has no row."""
        self.arrival = Arrival()
        self.conflicts = Conflicts()
        self.mixed: bool = False
        """Whether a score that counts was neither 0 nor 1, although graded scores were not declared."""
        self.undeclared: str = ""
        """Which repeat or unit came that is not declared, and what to declare; empty without one. From there on only scores are kept."""
        self.found_units, self.unknown_units = FoundUnits(), False
        """Units that events have named and nobody declared, which are not stored; and whether there are any."""
        self.ended: set[int] = set()  # contestants whose runs have ended
        self.assumed_ended: set[int] = set()  # ended, but their end is not in the log: a report assumes it
        self.complete_files = False
        """Whether this was read from files that are complete, and no family was declared: all pairs found then share alpha."""
        self.reading: Reading = Reading()  # what is known of the files that were read
        self.incomplete = ""  # which of the files that a report has read breaks off; empty if none does
        self.gaps: list[Gap] = []
        """Records that may have been of this benchmark, and that the log no longer held; this is permanent."""
        self.quarantine: Suspect | None = None  # since when and why its records are set aside; None while they count
        self.board: BoardEntry | None = None  # what operators have done with the board; None while it is as it began
        self.exceeded: bool = False
        """Whether an item beyond the declared count has been folded: nothing is settled from there on."""
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.revision = 0  # grows whenever the state changes, within a chunk too; not stored
        self.reading_side: object = None  # what readers keep of its present state; not stored
        self.declared = False
        self.declare(spec or Spec.model_construct())
        self.declared = spec is not None

    def declare(self, spec: Spec) -> None:
        """Apply a declaration; the caller decides whether it is still allowed."""
        self.spec, self.declared = spec, True
        for index in range(len(self.contestants)):
            self.name_contestant(index)
        if self.counters["events"]:
            return  # what has been built from the scores stays: after them only fields on which nothing rests may change
        if self.sentinel is None or not self.sentinel.has_begun:
            self.sentinel = None if spec.drift is None else Sentinel(self.name, spec)
        self.declared_items = None if spec.item_ids is None else frozenset(spec.item_ids)
        self.unit_names = frozenset(spec.unit_sizes)  # the declared units
        self._places: dict[str, int] | None = None
        self.weighting = Weighting.of(spec)
        self.lead_scale = 1.0 if self.weighting is None else self.weighting.largest
        self.graded_pairs: GradedPairs | None = None
        if self.graded and spec.order.policy != "none":
            self.graded_pairs = GradedPairs() if self.weighting is None else WeightedPairs(self.weighting)
        self.committed = None
        if spec.order.policy == "committed":
            assert spec.order.seed is not None
            assert spec.item_ids is not None
            self.committed = Committed(spec.order.seed, spec.listed_units)
        self.by_item = rows_of(spec, (self.rows, self.table, self.row_of), self.committed)
        self.settling = Settling()

    def begin_battles(self, votes: Votes | None = None, judges: list[str] | None = None) -> None:
        """Hold battles from now on, and these votes, if it has some already."""
        self.battles, self.holds_battles = Battles(votes, judges), True
        self.by_item = Prompts(self.rows, self.table, self.row_of)

    def add_units(self, units: Units) -> None:
        """Add units of battles to the sums of pairs and models."""
        met = np.unique(units.pair)
        self.met += int(np.count_nonzero(self.n[met] == 0))
        for name, some in (("n", slice(None)), ("b", units.difference > 0), ("c", units.difference < 0)):
            np.add.at(getattr(self, name), units.pair[some], 1)
        self.add_points(units)
        if self.graded_pairs is not None:
            self.graded_pairs.add(units.pair, units.difference)

    def add_points(self, units: Units) -> None:
        """Add units of battles to the sums of models."""
        i, j = pair_members(units.pair)
        points = (SCORE_UNIT + units.difference) // 2
        for member, gained in ((i, points), (j, SCORE_UNIT - points)):
            np.add.at(self.scored, member, 1)
            np.add.at(self.total, member, gained)

    def betting_units(self) -> Units:
        """Return the units of battles that have bet."""
        return self.battles.units().betting(self.spec.needed_repeats, self.ended_flags())

    # --- what holds ---

    @property
    def items(self) -> int:
        """How many items, units or prompts there are."""
        return len(self.item_keys)

    @property
    def finding(self) -> OrderFinding | None:
        """The finding against the arrival order."""
        return self.arrival.finding

    @property
    def too_many_items(self) -> bool:
        """Whether more items have arrived than declared, so that a lead on the declared number of items means nothing."""
        beyond = self.weighting is not None and bool(self.weighting.exceeded)
        return beyond or (self.spec.items is not None and self.items > self.spec.items)

    @property
    def suspicion(self) -> Sentence | None:
        """Describe the finding against the arrival order, or return None."""
        finding = self.arrival.finding
        if finding is None:
            return None
        model = self.contestants[finding.model].model
        return suspicion(model, finding.statistic, finding.items, finding.observed, finding.expected, finding.p_value)

    @property
    def invalidation_reason(self) -> Sentence:
        """Reason why no decision counts any more, in words that later events do not change; empty without one."""
        if self.order_refuted:
            return self.suspicion or ""
        if self.undeclared or self.reading.hold:
            return self.undeclared or self.reading.hold
        return self.excess if self.completion_refuted else ""

    @property
    def excess(self) -> Sentence:
        """That more items have arrived than declared, in words that later events do not change."""
        return self.too_many_of_cluster or too_many_items(self.name, self.spec.items or 0)

    @property
    def too_many_of_cluster(self) -> Sentence:
        """That more items of a cluster have arrived than declared; empty without weights, and where none has."""
        cluster = "" if self.weighting is None else self.weighting.exceeded
        return cluster and too_many_of_cluster(shorten(cluster), (self.spec.clusters or {})[cluster])

    def skips_wait(self, contestant: Any) -> Any:  # noqa: ANN401 - a contestant, or an array of them
        """Return whether a score fills an earlier skip: under a committed order the skip has bet, also under a newcomer's order."""
        waits = self.spec.order.policy != "committed" and self.spec.nulls == "filled"
        if not waits or not self.spec.admissions:
            return np.full(np.shape(contestant), waits)
        newcomers = [k for k, each in enumerate(self.contestants) if each.model in self.spec.admissions]
        return ~np.isin(contestant, newcomers)

    @property
    def unread(self) -> int:
        """How many items have no row because their lines were rejected; each line that names none may be of one more."""
        reading, before = self.reading, self.spec.provenance.unread_items
        lost = reading.nameless + sum(item not in self.by_item for item in reading.lost)
        return before + (lost if self.by_item.has_scores else 0)

    @property
    def has_choice(self) -> bool:
        """Whether some item has several scores of a model, or may have: which one counts is a choice."""
        conflicts = self.counters["conflicts"] if self.reading.at_best is None else 0
        return super().has_choice or conflicts + self.counters["filled"] > 0

    @property
    def knows_scores(self) -> bool:
        """Whether what is declared now may be chosen because of scores: of this board, or of one of its name that was deleted."""
        return bool(self.counters["events"]) or (self.board is not None and self.board.knows_scores)

    # --- names and sizes ---

    def add_row(self, item: str, repeat: int, cluster: str | None) -> int:
        """Add a row and return its index; call `grow` before its scores are written."""
        index, key = len(self.rows), RowKey(item, repeat, cluster)
        if self.by_item.are_rows and item in self.by_item:
            self._separate_items()
        self.rows.append(key)
        if repeat == 0:
            self.row_of[item] = index
        else:
            self.repeat_row_of[item, repeat] = index
        self.by_item.add_row(key)
        if self.weighting is not None:
            self.weighting.enter(self.item_keys)
        return index

    def takes_items(self, items: Mapping[str, str | None]) -> bool:
        """Return whether `add_items` may add new items: none of them has a row yet, of any repeat, or is one more than declared."""
        beyond = self.spec.items is not None and self.items + len(items) > self.spec.items
        return not beyond and not self.by_item.has_others(items)

    def add_items(self, items: Mapping[str, str | None]) -> list[RowKey]:
        """Add the rows of new items, or prompts of battles, with their clusters, and return them; each item has one row then."""
        begin = len(self.rows)
        self.rows.add_items(items)
        self.row_of.update(zip(items, range(begin, len(self.rows)), strict=True))
        return self.rows[begin:]

    def _separate_items(self) -> None:
        """Hold the items apart from the rows: an item is about to have a second row."""
        self.grow()
        repeats = Repeats(1, skips_bet=self.committed is not None)
        for key in self.rows:
            repeats.add_row(key)
        repeats.rebuild(self.matrix(), self.table.by_code, self.ended_flags())
        self.by_item = repeats

    def undeclared_reason(self, beyond: Undeclared) -> Sentence:
        """Return why a repeat holds the benchmark, and what to do."""
        declared, model = self.spec.needed_repeats, self.contestants[beyond.contestant].model
        return too_many_repeats(model, shorten(beyond.item), int(declared))

    def votes_reason(self, prompt: int, pair: int) -> Sentence:
        """Return why a vote holds the benchmark that is beyond the declared number, and what to do."""
        i, j = (self.contestants[int(k[0])].model for k in pair_members(np.array([pair])))
        return too_many_votes(i, j, shorten(self.rows[prompt].item), int(self.spec.needed_repeats))

    def hold_repeats(self, reason: str) -> None:
        """Stop everything that bets, since a repeat was not declared: sums are 0 from here on, and readers compute them from the rows."""
        self.undeclared, self.graded_pairs, self.committed, self.loop = reason, None, None, None
        for name in (*_PAIR_SUMS, *_MODEL_SUMS):
            getattr(self, name)[:] = 0
        self.met = 0

    def ended_flags(self) -> NDArray[np.bool_]:
        """Return for each contestant whether its run has ended."""
        flags = np.zeros(len(self.contestants), bool)
        flags[sorted(self.ended)] = True
        return flags

    def add_value(self, score: int) -> int:
        """Add a distinct score, in units, and return its code."""
        code = self.table.add(score)
        if len(self.table) > NARROW and self.width == 1:
            self.width = 4
            self.scores = self.scores.astype(np.uint32)
        return code

    def grow(self) -> None:
        """Make room for all rows and contestants."""
        contestants = len(self.contestants)
        self.scores = grown(self.scores, len(self.rows) * self.by_item.has_scores, contestants)
        for name in _MODEL_SUMS:
            setattr(self, name, grown(getattr(self, name), contestants))
        self.grow_pairs()
        if not self.undeclared:
            self.by_item.grow(contestants)
        if self.graded_pairs is not None:
            self.graded_pairs.grow(contestants)

    @property
    def item_places(self) -> dict[str, int] | None:
        """Place of each declared item in the natural order of the ids, computed on first use; None without a list."""
        if self._places is None and self.spec.item_ids is not None:
            listed = self.spec.listed_units
            self._places = dict(zip(listed, item_places(listed).tolist(), strict=True))
        return self._places

    # --- scores ---

    def matrix(self) -> Codes:
        """Return the score matrix without its spare room, shape (rows, contestants)."""
        return self.scores[: len(self.rows), : len(self.contestants)]

    def item_codes(self) -> Codes:
        """Return the scores that count, shape (items, contestants)."""
        return self.by_item.matrix(self.scores)[: self.items, : len(self.contestants)]

    @property
    def item_keys(self) -> Sequence[RowKey]:
        """The first row of each item, in the order of `item_codes`."""
        return self.by_item.keys

    def present(self, contestant: int) -> NDArray[np.bool_]:
        """Return for each item whether a contestant has a score or a skip of it."""
        return self.by_item.present(self.scores, contestant)

    @property
    def item_values(self) -> NDArray[np.int64]:
        """Score of each code of `item_codes`, in units; 0 for absent and skipped."""
        return self.by_item.table.by_code

    def snapshot(self) -> PairSnapshot:
        """Copy the pair sums, so that a restart need not compute them."""
        sizes = dict.fromkeys(_PAIR_SUMS, self.pairs) | dict.fromkeys(_MODEL_SUMS, len(self.contestants))
        return PairSnapshot(self.off, {name: getattr(self, name)[:size].copy() for name, size in sizes.items()})

    def delta(self) -> BenchmarkDelta:
        """Return an empty record of the changes of a chunk."""
        return BenchmarkDelta(key=self.key, name=self.name, off=self.off)

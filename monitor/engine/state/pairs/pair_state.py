"""The pairs of one benchmark: their models, sums, family places and latches."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from monitor.engine.kinds.bets import Bets, bets_of
from monitor.engine.state.codes import grown
from monitor.engine.state.pairs import families
from monitor.engine.state.pairs.step_down import StepDown
from monitor.engine.state.rules import Rules
from schemas.records.declaration import Spec
from schemas.records.scores import Contestant
from schemas.results.assumptions import Seed
from schemas.results.changes import CLAIMS, PROCEDURES, Claim, Procedure, VerdictChange
from schemas.results.verdict_changes import Columns, VerdictChanges, change_field
from stats.numerics.pairs import Index, pair_index


class Decision(NamedTuple):
    """A pair that is decided or settled, and the field of the change in the table of latches."""

    pair: int
    claim: Claim
    field: str


class PairState(Rules):
    """Sums, family places and latches of every pair."""

    # A contestant is an epoch of a model; contestants are in the order of their first event. Pair arrays have shape (pairs or more,), in
    # the order of `stats.numerics.pairs`.

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec: Spec = Spec.model_construct()
        self.lead_scale = 1.0
        """What turns the mean of the differences that bet into the gap: not 1 only where clusters are weighted."""
        self.seed: Seed | None = None  # where the committed seed was declared first; None under another order policy
        self.generation: int = 1  # how often the name was begun: 2 or more after a deleted board of the same name
        self.contestants: list[Contestant] = []
        self.contestant_of: dict[str, int] = {}  # of epoch 0
        self.epoch_contestant_of: dict[tuple[str, int], int] = {}
        self.latest_epoch: dict[str, int] = {}
        self.epochs: dict[str, list[int]] = {}  # contestants of each model, in the order of their first event
        self.superseded: list[bool] = []  # for each contestant, whether a newer epoch of its model has begun
        self.n = np.zeros(0, np.int32)  # shared items
        self.b = np.zeros(0, np.int32)  # items that only contestant i has right
        self.c = np.zeros(0, np.int32)  # items that only contestant j has right
        self.closed = np.zeros(0, bool)  # pairs of a superseded contestant: no hypotheses any more
        self.family_index = np.zeros(0, np.int32)  # place in its family, from 1; 0 outside it
        self.met = 0  # pairs that share an item
        self.registered: Counter[int] = Counter()  # pairs registered so far in each family; see `families`
        self._joined = 0  # contestants whose pairs `grow_pairs` has seen
        self.claims = {claim: StepDown() for claim in CLAIMS}
        """What is latched. Decisions: 2 and -2 once the lead has reversed since; settled: `stats.evidence.settled.TIE` for a tie."""
        self.changes = VerdictChanges()  # by `change_field`; those of earlier versions of the declaration stay
        self.holds_battles = False  # whether pairs meet in battles, and share no items
        self.change_counts: Counter[tuple[str, str]] = Counter()
        self.loop: Any = None
        """The `Loop` that follows its 0/1 scores, if any: dropped where something else changes latches or places."""

    @property
    def latched(self) -> dict[Procedure, NDArray[np.int8]]:
        """The side of each decision by procedure; see `claims`."""
        return {procedure: self.claims[procedure].side for procedure in PROCEDURES}

    @property
    def bets(self) -> type[Bets]:
        """What pairs bet on."""
        return bets_of(differences=self.graded)

    @property
    def has_choice(self) -> bool:
        """Whether some item has several scores of a model, or may have: which one counts is a choice."""
        return bool(self.spec.aliases) or self.spec.provenance.score_choice

    def add_contestant(self, model: str, epoch: int) -> int:
        """Add a contestant and return its index; call `grow` before its scores are written."""
        index = len(self.contestants)
        self.contestants.append(Contestant(model, epoch))
        self.name_contestant(index)
        self.superseded.append(epoch < self.latest_epoch.get(model, 0))
        self.latest_epoch[model] = max(epoch, self.latest_epoch.get(model, 0))
        self.epochs.setdefault(model, []).append(index)
        return index

    def name_contestant(self, index: int) -> None:
        """Make a contestant known by the name of its model and by the aliases of that."""
        model, epoch = self.contestants[index]
        for name in (model, *self.aliases_of(model)):
            if epoch == 0:
                self.contestant_of[name] = index
            self.epoch_contestant_of[name, epoch] = index

    def model_names(self) -> set[str]:
        """Return the names of the models, and their aliases."""
        return {each.model for each in self.contestants} | self.spec.aliases.keys()

    def is_newer(self, contestant: int) -> bool:
        """Return whether a contestant is a newer epoch of a model that has an older one."""
        return not self.superseded[contestant] and len(self.epochs[self.contestants[contestant].model]) > 1

    def supersede(self, contestant: int) -> list[tuple[int, Index]]:
        """Close the pairs of the older epochs of a contestant's model; return each of these epochs, with the pairs that were open."""
        model, epoch = self.contestants[contestant]
        newly = []
        for old in self.epochs[model]:
            if self.contestants[old].epoch < epoch and not self.superseded[old]:
                self.superseded[old] = True
                pair = self._pairs_with(old, len(self.contestants))
                newly.append((old, pair[~self.closed[pair]]))
                self.closed[pair] = True
        return newly

    def _pairs_with(self, contestant: int, contestants: int) -> Index:
        """Return the pairs of a contestant with the first `contestants`."""
        others = np.delete(np.arange(contestants), contestant) if contestant < contestants else np.arange(contestants)
        return pair_index(np.minimum(others, contestant), np.maximum(others, contestant))

    def grow_pairs(self) -> None:
        """Make room for the pairs of all contestants; those of a superseded contestant are closed."""
        if self.n.size < self.pairs:
            for name in ("n", "b", "c", "family_index", "closed"):
                setattr(self, name, grown(getattr(self, name), self.pairs))
            for claim in self.claims.values():
                claim.grow(self.pairs)
        superseded = any(self.superseded)
        while self._joined < len(self.contestants):
            if superseded:
                pair = self._pairs_with(self._joined, self._joined)
                self.closed[pair] = self.superseded[self._joined] | np.array(self.superseded[: self._joined], bool)
            self._joined += 1

    def comparable(self, pair: Index) -> NDArray[np.bool_]:
        """Return for each pair whether its members are different models: two epochs of one model are no hypothesis."""
        return families.comparable(self.contestants, list(self.latest_epoch), pair)

    # --- family -----------------------------------------------------------------------------------------------------------------------

    def declared_pairs(self) -> Index:
        """Return the indices of the declared pairs, in every combination of their epochs."""
        return families.declared_pairs(self.spec.family, self.epochs)

    def in_family(self, pair: Index) -> NDArray[np.bool_]:
        """Return for each pair whether it is in the declared family: all are, unless models or pairs were declared."""
        return families.in_family(self.spec.family, self.contestants, self.epochs, pair)

    def families(self, pair: Index) -> Index:
        """Return the family of each pair; see `monitor.engine.state.pairs.families`."""
        return families.families_of(self.contestants, pair)

    def by_family(self, pair: Index) -> Iterator[tuple[int, Index]]:
        """Yield each family of some pairs, ascending, and their places among the pairs."""
        return families.by_family(self.contestants, pair)

    def eligible(self, pair: Index, *, had_place: NDArray[np.bool_] | bool = False) -> Index:
        """Return the pairs that may have a place in a family: of two models, neither of which has a newer epoch."""
        # `had_place`: which of them had a place under an earlier declaration, before a newer epoch.
        pair = pair[self.comparable(pair) & (~self.closed[pair] | had_place)]
        return pair[self.in_family(pair)]

    def register(self, pair: Index) -> None:
        """Give pairs the next places in their families, in their order."""
        self.loop = None
        for each, places in self.by_family(pair):
            some = pair[places]
            self.family_index[some] = self.registered[each] + 1 + np.arange(some.size)
            self.registered[each] += some.size

    def family_weights(self, pair: Index) -> NDArray[np.int64]:
        """Return the weight of each pair in its family, out of `stats.families.error_control.WHOLE`; 0 for a pair without a place."""
        return families.weights_of(self.family_index[pair], self.spec.family.capacity)

    def family_thresholds(self, pair: Index, later: NDArray[np.int64] | int = 0) -> NDArray[np.float64]:
        """Return ln 1/alpha_j of pairs given the decisions of their family; infinite where a pair has no place in it."""
        # It never exceeds what a decided pair has met. `later`: the weight that was decided after the event that is asked for.
        weight, latch = self.family_weights(pair), self.claims["anytime_family"]
        decided = np.where(latch.side[pair] != 0, weight, 0) + later
        return families.thresholds_of(self.by_family(pair), weight, decided, latch.open_weight, self.spec.alpha)

    def latch(self, claim: Claim, pair: Index, side: NDArray[np.integer[Any]]) -> None:
        """Latch pairs; the thresholds of the others in their families fall."""
        self.loop = None
        weights = self.family_weights(pair) if claim != "anytime" else np.zeros(pair.size, np.int64)
        self.claims[claim].latch(pair, side, self.families(pair), weights)

    def record(self, pair: int, change: VerdictChange) -> str:
        """Add a verdict change that is kept whole; return its field."""
        field = self.change_field(pair, change.procedure, change.kind)
        self.changes.add(field, change)
        self.change_counts[change.procedure, change.kind] += 1
        return field

    def keep(self, fields: list[str], latches: Columns) -> None:
        """Add latches, by their fields."""
        self.changes.extend(fields, latches)
        self.change_counts.update(latches.kinds())

    def adopt(self, changes: VerdictChanges) -> None:
        """Take over all verdict changes of a stored state."""
        self.changes = changes.copy()
        keys: Any = (tuple(field.split(":")[1:3]) for field in changes)
        self.change_counts.update(keys)

    def change_field(self, pair: int, procedure: str, kind: str) -> str:
        """Return the field of a change under the present version of the declaration."""
        return change_field(pair, procedure, kind, self.spec.version)

    def decisions(self) -> list[Decision]:
        """Return what was decided or settled under the present declaration, by pair."""
        split = ((field, field.split(":")) for field in self.changes)
        decided = [
            Decision(int(pair), cast("Claim", claim), field)
            for field, (pair, claim, kind, *_) in split
            if kind in {"decided", "settled"} and field == self.change_field(int(pair), claim, kind)
        ]
        return sorted(decided)

"""Evidence on some pairs that stays valid at every look, and the family in which it decides."""

from difflib import get_close_matches
from typing import Final

import numpy as np

from monitor.engine.state.pairs.families import joining
from monitor.view.board import BoardView, Flags, Floats, Sides
from monitor.view.kinds.kind import Bounds
from monitor.view.pairs.table import PairTable
from monitor.words.pairs import PairBoard
from schemas.records.declaration import FamilySpec
from schemas.results.assumptions import Assumption
from schemas.results.changes import PROCEDURES
from schemas.results.reasons import Fact, Reason, fact
from schemas.results.report import FamilyReport
from stats.families.error_control import WHOLE
from stats.fixed_n.mcnemar import exact_p
from stats.fixed_n.resolution import mde
from stats.numerics.pairs import Index

_FOUND: Final = 0.8  # share of the tests that find a gap, wherever a surface names the items that it needs

_NOTHING: Final = float(np.finfo(np.float64).tiny)


def evidence_columns(table: PairTable, at: Index) -> dict[str, Floats]:
    """Return the columns of the report that may be looked at while results come in, for some pairs; nan where there is no value."""
    # These are ``log_e``, ``log_e_a``, ``log_e_b``, ``gap_low``, ``gap_high``, ``gap_family_low``, ``gap_family_high`` (at alpha and at
    # `family_alpha`) and ``items_to_decision``.
    blank, kind = np.full(at.size, np.nan), table.kind
    halves = kind.log_e_halves(at) if kind.bets else (blank, blank)
    columns = {
        "log_e": kind.log_e[at] if kind.bets else blank,
        "log_e_a": halves[0],
        "log_e_b": halves[1],
        "items_to_decision": blank.copy(),
    }
    placed = table.has_place(at)
    some = at[placed]
    columns["items_to_decision"][placed] = kind.items_to_decision(some, table.log_family_threshold(some))
    alpha = np.full(at.size, table.benchmark.spec.alpha)
    single, family = ((blank, blank),) * 2
    if kind.bets:
        bounds = kind.gap_bounds(at, alpha, family_alpha(table, at))
        # Decisions that no longer count (a trusted order that proved wrong) do not move an interval away from 0.
        decided = (table.decided(name) for name in PROCEDURES)
        sides = (np.zeros(at.size, np.int8) if each is None else each[at] for each in decided)
        single, family = (_agreeing(low, high, side) for (low, high), side in zip(bounds, sides, strict=True))
    columns |= {"gap_low": single[0], "gap_high": single[1], "gap_family_low": family[0], "gap_family_high": family[1]}
    return {name: np.where(table.pairs.n[at] > 0, values, np.nan) for name, values in columns.items()}


def family_alpha(table: PairTable, at: Index) -> Floats:
    """Return the level of the interval of some pairs in the family, their share of alpha; 0 for a pair without a place there."""
    # The threshold of a decision rises as others are made, to alpha at last; at that level the intervals of a board would not hold
    # together.
    return np.asarray(table.benchmark.spec.alpha * table.family_weights(at) / WHOLE)


def _agreeing(low: Floats, high: Floats, side: Sides) -> Bounds:
    """Return bounds that leave out 0 exactly where a pair is decided."""
    # A decision stays valid while the present evidence falls, and so does an interval that ends at 0 (without it) on the decided side. Of
    # an undecided pair the larger interval with 0 is valid too: its evidence may reach a threshold that fell only later.
    low = np.where(side > 0, np.maximum(low, _NOTHING), np.where(side < 0, low, np.minimum(low, 0)))
    high = np.where(side < 0, np.minimum(high, -_NOTHING), np.where(side > 0, high, np.maximum(high, 0)))
    # The interval of a decision that the present evidence contradicts is empty.
    empty = low > high
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


def needs_items(table: PairTable, at: Index) -> Floats:
    """Return the items in all of a test that finds a gap of this size in 4 of 5 runs, at the threshold of the pair; nan without one."""
    needed = np.full(at.size, np.nan)
    placed = (table.pairs.n[at] > 0) & table.has_place(at)
    some = at[placed]
    needed[placed] = table.kind.required_n(np.exp(-table.log_family_threshold(some)), some, _FOUND)
    return np.where(needed > 0, needed, np.nan)


def found_gap(table: PairTable, pair: int) -> float | None:
    """Return the gap that a test of as many items as a pair shares finds in 4 of 5 runs; None where no gap is large enough."""
    at, sd = np.array([pair]), float(table.kind.moments[1][pair])
    if not sd > 0 or not table.has_place(at)[0]:
        return None
    gap = float(mde(table.pairs.n[pair], sd, np.exp(-table.log_family_threshold(at)[0]), _FOUND))
    return gap if gap < 1 else None


def least_wins(table: PairTable, pair: int) -> int | None:
    """Return how many of the items that differ a model has to win for the exact test to decide; None where another test does."""
    if not (table.pairs.completes or table.kind.decides_at_end):
        return None
    at = np.array([pair])
    (won,), (lost,) = table.kind.counts(at)
    if won is None or lost is None:
        return None
    more = np.arange((won + lost + 1) // 2, won + lost + 1)
    p = exact_p(more, won + lost - more)
    decides = p <= np.exp(-table.log_family_threshold(at)[0])
    return int(more[decides][0]) if decides.any() else None


def decision_probability(table: PairTable, at: Index) -> Floats:
    """Return the probability of a family-wise decision by the last item, at the present threshold; nan where no item is to come."""
    # It is nan too for graded scores, without an item count, and for more than `MOST_PAIRS` pairs.
    return table.kind.decision_probability(at, table.has_place(at), table.log_family_threshold)


def equivalent(table: PairTable, at: Index) -> Flags:
    """Return which of some pairs are closer than the declared margin, and stay so however the missing items are scored."""
    margin, spec, pairs = table.benchmark.spec.margin, table.benchmark.spec, table.pairs
    near = np.zeros(at.size, bool)
    # What holds verdicts back makes the interval worthless.
    if margin is None or table.held or not table.kind.bets:
        return near
    lasting = not table.asserted and spec.order.policy in {"committed", "trusted"}
    near = table.has_place(at) & (pairs.n[at] > 0) & (lasting | pairs.complete[at] | (pairs.ignored[at] > 0))
    near &= table.kind.near(at, margin)
    some = at[near]
    ((low, high),) = table.kind.gap_bounds(some, family_alpha(table, some))
    near[near] = (-margin < low) & (high < margin)
    return near


_COMPARISONS: Final = 20_000  # names that are compared letter by letter at most, to find the nearest declared one


def family_report(table: PairTable) -> FamilyReport:
    """Report the family of the current pairs."""
    return FamilyReport(
        policy="capacity" if table.kind.decides_at_end else table.benchmark.spec.family.policy,
        size=table.anytime_family_size,
        families=max(len(table.generation_sizes), 1),
    )


def pair_board(table: PairTable) -> PairBoard:
    """Return what the words about a pair need of its benchmark."""
    benchmark, spec = table.benchmark, table.benchmark.spec
    return PairBoard(
        benchmark.name,
        table.policy,
        spec.alpha,
        table.anytime_family_size,
        table.item_count,
        table.kind.unit,
        spec.power,
        table.kind.look,
    )


def pairs_outside(table: PairTable) -> int:
    """Return how many pairs with shared items get no family-wise verdict, where verdicts are given."""
    if not gives_verdicts(table):
        return 0
    return int(np.count_nonzero((table.pairs.n > 0) & ~table.has_place()))


def gives_verdicts(table: PairTable) -> bool:
    """Return whether family-wise verdicts are given."""
    return table.asserted or (table.in_force and not table.held)


def family_assumption(table: PairTable) -> Assumption | None:
    """Return what family-wise verdicts assume of the models that join; None where they assume nothing of it, or are not given."""
    # In complete files no order of arrival matters to pairs that share alpha equally, unless earlier ones filled a declared capacity.
    if not (table.asserted or table.in_force):
        return None
    benchmark, family = table.benchmark, table.benchmark.spec.family
    capacity = family.capacity
    full = capacity is not None and bool((benchmark.family_index() > capacity).any())
    if full:
        return Assumption("joined")
    return None if table.kind.decides_at_end else joining(family)


def unlisted(benchmark: BoardView) -> dict[str, str | None]:
    """Return the models with scores that are outside the declared family, each with a declared one of similar name that has none."""
    named = benchmark.spec.family.named
    if not named:
        return {}
    scored = dict.fromkeys(contestant.model for contestant in benchmark.contestants)
    outside = [model for model in scored if model not in named]
    return _nearest(outside, unscored(benchmark))


def unscored(benchmark: BoardView) -> list[str]:
    """Return the models that the declared family names and that have no scores, in the order of the declaration."""
    scored = {contestant.model for contestant in benchmark.contestants}
    return [model for model in _in_order(benchmark.spec.family) if model not in scored]


def _in_order(family: FamilySpec) -> list[str]:
    return list(dict.fromkeys([*(family.models or ()), *(model for pair in family.pairs or () for model in pair)]))


def _nearest(names: list[str], declared: list[str]) -> dict[str, str | None]:
    """Return for each name the declared one that differs least from it; None if all of them differ much."""
    alike = {_letters(each): each for each in declared}
    close = len(names) * len(alike) <= _COMPARISONS
    nearest: dict[str, str | None] = {}
    for name in names:
        letters = _letters(name)
        match = [letters] if letters in alike else get_close_matches(letters, alike, 1, 0.8) if close else []
        nearest[name] = alike[match[0]] if match else None
    return nearest


def _letters(name: str) -> str:
    """Return the letters and digits of a name, without their case."""
    return "".join(character for character in name.casefold() if character.isalnum())


def outside_reasons(table: PairTable, q: int, outside: dict[str, str | None]) -> list[Fact]:
    """Return why a pair has no place in the family; nothing where a reason is given elsewhere. `outside` is `unlisted` of the benchmark."""
    family, united = table.benchmark.spec.family, table.benchmark.united
    if united is not None and not table.asserted and (united.no_family or united.held):
        return united.no_family
    if not table.in_family[q]:
        names = [table.benchmark.contestants[k].model for k in (table.pairs.a[q], table.pairs.b[q])]
        strangers = [name for name in names if name in outside]
        if family.models is None or not strangers:
            return [fact(Reason.NOT_IN_FAMILY)]
        nearest = [near for name in strangers if (near := outside[name]) is not None]
        return [fact(Reason.NOT_DECLARED, models=[*strangers], declared=len(family.models), nearest=nearest)]
    if family.capacity is None or not table.benchmark.family_index()[table.pairs.pair[q]]:
        return [fact(Reason.HELD_AT_FIRST)]
    return [fact(Reason.FAMILY_FULL, capacity=family.capacity)]

"""The family of a report: what it assumes of the models that join, and which models are outside the declared list."""

from difflib import get_close_matches
from typing import Final

import numpy as np

from monitor.view.board import BoardView
from monitor.view.pairs.table import PairTable
from monitor.words.pairs import PairBoard
from schemas.records.declaration import FamilySpec
from schemas.results.assumptions import Assumption, joining
from schemas.results.reasons import Fact, Reason, fact
from schemas.results.report import FamilyReport

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

"""What verdicts assume: codes with their numbers, for programs, and the one wording of each."""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple, Protocol

from schemas.records.events import FamilySpec

BATTLES: Final = "battles"
"""In place of the order policy `trusted` where pairs meet in battles."""

TEXTS: Final[dict[str, str]] = {
    # What the order policy rests on: one of these comes first.
    "completion": "the declared number of items is the whole benchmark, with no items omitted because of their scores",
    "listed": "the declared list of items is the whole benchmark",
    "items_read": "the {number:,} items read are the whole benchmark",
    "items_rejected": "the items read, and {number:,} whose lines were rejected, are the whole benchmark",
    "units_read": "the {number:,} units read are the whole benchmark",
    "committed": "the ids of the items were fixed before the seed, and their order comes from the committed seed",
    "trusted": "neither the arrival order nor what is skipped depends on outcomes or clusters",
    BATTLES: "which models meet does not depend on the prompt or its category, which answer is shown first is drawn at random, and how "
    "many votes a prompt gets is fixed before the first of them",
    # What the items are.
    "independent": "the items are a sample of independent items",
    "units": "the items are a sample of independent units",
    "members": "which items of a unit are scored does not depend on their scores",
    # Clusters come with the scores.
    "labelled": "which cluster an item is in does not depend on the scores",
    # Settled before it is certain, along a committed order.
    "ordered": "their ids were fixed before the seed, and their order comes from the committed seed",
    # Family-wise verdicts where the order of arrival gives the pairs their shares of alpha, or leaves no room for some.
    "joined": "which models join, and when, does not depend on their scores",
    "capacity": "either at most {number:,} pairs join, or which models join, and when, does not depend on their scores",
    # Parts of the declaration that came after the first score, unless they are the published size.
    "declared_late": "{names}, declared after the first score, {verb} chosen without knowing any score",
    # A board that was begun again, after a deletion or an undo.
    "begun_again": "earlier scores and seeds of this board were not removed because of who was ahead",
    "repeated": "which repeats of an item are scored, and how many, does not depend on their scores",
    # Scores that filled nulls or came in conflict, and runs that aliases join.
    "score_choice": "which score of an item counts does not depend on the scores",
    "rescored": "scores were replaced for reasons that do not depend on who was ahead",
    "ignored": "what is missing does not depend on the scores, and that the run was not ended because of its scores",
    # Those who report a suite define it, at any time.
    "distinct": "no item is part of two members of the suite",
    "composed": "the suite, its weights and its baselines were not chosen because of the scores",
    # A gate that runs its evaluation, and evaluates a block again.
    "broken_off": "no block that was evaluated again broke off because of its scores",
}
"""The wording of each assumption, in the order in which a sentence names them; a sentence starts with "Assumes that"."""

_SINGULAR: Final = {
    "items_read": "the 1 item read is the whole benchmark",
    "items_rejected": "the items read, and 1 whose lines were rejected, are the whole benchmark",
    "units_read": "the 1 unit read is the whole benchmark",
    "capacity": "either at most 1 pair joins, or which models join, and when, does not depend on their scores",
}
_NUMBERS: Final = {"items_read": "items", "items_rejected": "items", "units_read": "units", "capacity": "pairs"}
_SEEDED: Final = frozenset({"committed", "ordered"})
"""The assumptions of a committed seed: their number is its place in the log, or the line of the file that is their name."""

PARTS: Final[dict[str, str]] = {
    "declaration": "the declaration",
    "order": "the order policy",
    "items": "the number of items",
    "item_ids": "the list of items",
    "family": "the family",
    "weights": "the weights",
    "clusters": "the sizes of the clusters",
    "scores": "the kind of scores",
    "repeats": "the number of repeats",
    "units": "the units of the items",
    "missing": "what missing items count",
    "nulls": "what a null counts",
    "mixture": "the mixture",
    "alpha": "alpha",
    "margin": "the equivalence margin",
}
"""The parts of a declaration that verdicts rest on, in the order in which a sentence names them."""

_PLURAL: Final = frozenset({"weights", "clusters", "units"})
"""The parts whose wording is plural."""

_OF_ITEMS: Final = frozenset({"declaration", "items", "item_ids", "weights", "clusters", "scores", "repeats", "units"})
"""The parts that a lead on the items of the benchmark rests on."""

_PLACES: Final = {code: place for place, code in enumerate(TEXTS)}

FAMILY: Final = frozenset({"joined", "capacity"})
"""The assumptions of family-wise verdicts alone."""


Fact = dict[str, str | int | list[str]]
"""An assumption as reports show it."""


class Assumption(NamedTuple):
    """One assumption: its code in `TEXTS`, and the number and the names that its wording states.

    Examples
    --------
    >>> Assumption("declared_late", names=("family", "alpha")).text
    'the family and alpha, declared after the first score, were chosen without knowing any score'
    >>> Assumption("ordered", 1_204).text
    'their ids were fixed before the seed, and their order comes from the committed seed (offset 1,204 of the log)'
    >>> Assumption("ordered", 3, ("runs.jsonl",)).fact()
    {'code': 'ordered', 'line': 3, 'file': 'runs.jsonl'}
    """

    code: str
    number: int | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def read(cls, code: str, number: int | None = None, names: Iterable[str] = ()) -> "Assumption":
        """Return an assumption that is stored as JSON."""
        return cls(code, number, tuple(names))

    @property
    def text(self) -> str:
        """The wording."""
        if self.code in _SEEDED:
            place = None if self.number is None else Seed(self.number, *self.names).describe()
            return TEXTS[self.code] + ("" if place is None else f" ({place})")
        if self.number == 1:
            return _SINGULAR[self.code]
        named = list(map(PARTS.__getitem__, self.names))
        listed = " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:])))
        verb = "was" if len(named) == 1 and _PLURAL.isdisjoint(self.names) else "were"
        return TEXTS[self.code].format(number=self.number, names=listed, verb=verb)

    def fact(self) -> Fact:
        """Return it as reports show it: the code, and the number by what it counts."""
        names: Fact
        if self.code in _SEEDED:
            number, names = "line" if self.names else "offset", {"file": self.names[0]} if self.names else {}
        else:
            number, names = _NUMBERS.get(self.code, ""), {"parts": list(self.names)} if self.names else {}
        return {"code": self.code, **({} if self.number is None else {number: self.number}), **names}


def say(assumptions: Iterable[Assumption]) -> str | None:
    """Return assumptions as one clause, each once; None without any."""
    return ", and that ".join(each.text for each in in_order(assumptions)) or None


def in_order(assumptions: Iterable[Assumption]) -> list[Assumption]:
    """Return assumptions in the order in which a sentence names them, each once."""
    return sorted(dict.fromkeys(assumptions), key=lambda each: _PLACES[each.code])


def facts(assumptions: Iterable[Assumption]) -> list[Fact]:
    """Return assumptions as reports show them."""
    return [each.fact() for each in in_order(assumptions)]


class _Assuming(Protocol):
    """A report that lists its assumptions."""

    @property
    def assumptions(self) -> list[Fact]: ...


def assumes(report: _Assuming, code: str) -> bool:
    """Return whether the verdicts of a report make an assumption."""
    return any(each["code"] == code for each in report.assumptions)


def without(assumptions: Iterable[Assumption], codes: Collection[str]) -> list[Assumption]:
    """Return the assumptions that have other codes."""
    return [each for each in assumptions if each.code not in codes]


def only(assumptions: Iterable[Assumption], codes: Collection[str]) -> list[Assumption]:
    """Return the assumptions that have one of some codes."""
    return [each for each in assumptions if each.code in codes]


def flagged(**holds: bool) -> list[Assumption]:
    """Return the assumptions without a number that hold.

    Examples
    --------
    >>> flagged(rescored=True, repeated=False)
    [Assumption(code='rescored', number=None, names=())]
    """
    return [Assumption(code) for code, yes in holds.items() if yes]


class Seed(NamedTuple):
    """Where a seed was committed: an offset of the log, or a line of a file."""

    place: int
    file: str | None = None

    def describe(self) -> str:
        """Return where it is.

        >>> Seed(1_204).describe(), Seed(3, "runs.jsonl").describe()
        ('offset 1,204 of the log', 'line 3 of runs.jsonl')
        """
        return f"offset {self.place:,} of the log" if self.file is None else f"line {self.place:,} of {self.file}"


def order(
    policy: str,
    items: int | None = None,
    *,
    listed: bool = False,
    units: bool = False,
    rejected: int = 0,
    seed: Seed | None = None,
) -> Assumption | None:
    """Return what an order policy rests on; None under policy `none`.

    `items` is the number of items read, or of units, if these are taken for the whole benchmark; `rejected` of how many of them all lines
    were rejected; `listed` whether the items are declared one by one; `seed` where the first seed was committed.

    Examples
    --------
    >>> order("completion", 12_032).text
    'the 12,032 items read are the whole benchmark'
    >>> order("completion", listed=True).text
    'the declared list of items is the whole benchmark'
    """
    if items is not None:
        if rejected:
            return Assumption("items_rejected", rejected)
        return Assumption("units_read" if units else "items_read", items)
    if policy == "none":
        return None
    if policy == "committed":
        return seeded("committed", seed)
    return Assumption("listed" if listed and policy == "completion" else policy)


def sampled(policy: str, *, units: bool) -> list[Assumption]:
    """Return what verdicts under an order policy assume of the items: that they, or their declared units, are independent.

    Examples
    --------
    >>> [each.code for each in sampled("completion", units=False)], [each.code for each in sampled("trusted", units=True)]
    (['independent'], ['units', 'members'])
    >>> sampled(BATTLES, units=False)
    []
    """
    given = policy not in {BATTLES, "none"}
    return flagged(independent=given and not units, units=given and units, members=given and units)


def seeded(code: str, seed: Seed | None) -> Assumption:
    """Return an assumption of a committed seed."""
    return Assumption(code) if seed is None else Assumption(code, seed.place, () if seed.file is None else (seed.file,))


def late(parts: Collection[str]) -> list[Assumption]:
    """Return what verdicts assume of the parts that were declared after the first score.

    Examples
    --------
    >>> late({"alpha", "power", "family"})
    [Assumption(code='declared_late', number=None, names=('family', 'alpha'))]
    """
    names = tuple(name for name in PARTS if name in parts)
    return [Assumption("declared_late", names=names)] if names else []


def late_of(assumptions: Iterable[Assumption], claim: str) -> list[Assumption]:
    """Return assumptions without the late parts that a claim does not rest on.

    Parameters
    ----------
    assumptions : iterable of Assumption
    claim : str
        A claim of verdict changes, or "equivalent".
    """
    kept: list[Assumption] = []
    for each in assumptions:
        if each.code != "declared_late":
            kept.append(each)
        elif claim == "settled":
            kept += late(_OF_ITEMS.intersection(each.names))
        else:
            spare = {"margin"} if claim != "equivalent" else set()
            kept += late(set(each.names) - spare - ({"family"} if claim == "anytime" else set()))
    return kept


def joining(family: FamilySpec) -> Assumption | None:
    """Return what a family-wise verdict assumes of the models that join while results arrive; None where the family is declared.

    Examples
    --------
    >>> joining(FamilySpec()).code
    'joined'
    >>> joining(FamilySpec(policy="capacity", size=45))
    Assumption(code='capacity', number=45, names=())
    >>> joining(FamilySpec(models=("ash", "birch")))
    """
    if family.policy == "spending":
        return Assumption("joined")
    if family.models is not None or family.pairs is not None:
        return None
    return Assumption("capacity", family.size)

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
    "committed": "the items are a sample, and their order comes from the committed seed",
    "trusted": "neither the arrival order nor what is skipped depends on outcomes or clusters",
    BATTLES: "which models meet does not depend on the prompt or its category, which answer is shown first is drawn at random, and how "
    "many votes a prompt gets is fixed before the first of them",
    # What the items are.
    "independent": "the items are a sample of independent items",
    "units": "the items are a sample of independent units",
    "members": "which items of a unit are scored does not depend on their scores",
    # Settled before it is certain, along a committed order.
    "ordered": "their order comes from the committed seed",
    # Family-wise verdicts where the order of arrival gives the pairs their shares of alpha, or leaves no room for some.
    "joined": "which models join, and when, does not depend on their scores",
    "capacity": "either at most {number:,} pairs join, or which models join, and when, does not depend on their scores",
    # A later version of the declaration, unless all it declares is the published size.
    "redeclared": "the new declaration was not chosen because of the scores",
    # A board that was begun again, after a deletion or an undo.
    "begun_again": "earlier scores of this board were not removed because of who was ahead",
    "repeated": "which repeats of an item are scored, and how many, does not depend on their scores",
    "rescored": "scores were replaced for reasons that do not depend on who was ahead",
    "ignored": "what is missing does not depend on the scores, and that the run was not ended because of its scores",
    # Those who report a suite define it, at any time.
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
_PLACES: Final = {code: place for place, code in enumerate(TEXTS)}

FAMILY: Final = frozenset({"joined", "capacity"})
"""The assumptions of family-wise verdicts alone."""


class Assumption(NamedTuple):
    """One assumption: its code in `TEXTS`, and the number that its wording states."""

    code: str
    number: int | None = None

    @property
    def text(self) -> str:
        """The wording."""
        if self.number == 1:
            return _SINGULAR[self.code]
        return TEXTS[self.code].format(number=self.number)

    def fact(self) -> dict[str, str | int]:
        """Return it as reports show it: the code, and the number by what it counts."""
        return {"code": self.code} | ({} if self.number is None else {_NUMBERS[self.code]: self.number})


def say(assumptions: Iterable[Assumption]) -> str | None:
    """Return assumptions as one clause, each once; None without any."""
    return ", and that ".join(each.text for each in in_order(assumptions)) or None


def in_order(assumptions: Iterable[Assumption]) -> list[Assumption]:
    """Return assumptions in the order in which a sentence names them, each once."""
    return sorted(dict.fromkeys(assumptions), key=lambda each: _PLACES[each.code])


def facts(assumptions: Iterable[Assumption]) -> list[dict[str, str | int]]:
    """Return assumptions as reports show them."""
    return [each.fact() for each in in_order(assumptions)]


class _Assuming(Protocol):
    """A report that lists its assumptions."""

    @property
    def assumptions(self) -> list[dict[str, str | int]]: ...


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
    [Assumption(code='rescored', number=None)]
    """
    return [Assumption(code) for code, yes in holds.items() if yes]


def order(
    policy: str, items: int | None = None, *, listed: bool = False, units: bool = False, rejected: int = 0
) -> Assumption | None:
    """Return what an order policy rests on; None under policy `none`.

    `items` is the number of items read, or of units, if these are taken for the whole benchmark; `rejected` of how many of them all lines
    were rejected; `listed` whether the items are declared one by one.

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


def joining(family: FamilySpec) -> Assumption | None:
    """Return what a family-wise verdict assumes of the models that join while results arrive; None where the family is declared.

    Examples
    --------
    >>> joining(FamilySpec()).code
    'joined'
    >>> joining(FamilySpec(policy="capacity", size=45))
    Assumption(code='capacity', number=45)
    >>> joining(FamilySpec(models=("ash", "birch")))
    """
    if family.policy == "spending":
        return Assumption("joined")
    if family.models is not None or family.pairs is not None:
        return None
    return Assumption("capacity", family.size)

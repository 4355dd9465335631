"""What verdicts assume: codes with their numbers."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, get_args

from schemas.records.names import Part

BATTLES: Final = "battles"  # in place of the order policy `trusted` where pairs meet in battles

CODES: Final = (  # the code of each assumption, in the order in which a sentence names them
    # What the order policy rests on: one of these comes first.
    "completion",
    "listed",
    "items_read",
    "items_rejected",
    "units_read",
    "committed",
    "trusted",
    BATTLES,
    # What the items are.
    "independent",
    "units",
    "members",
    # Clusters come with the scores.
    "labelled",
    # Settled before it is certain, along a committed order.
    "ordered",
    # Family-wise verdicts where the order of arrival gives the pairs their shares of alpha, or leaves no room for some.
    "joined",
    "capacity",
    # Parts of the declaration that came after the first score, unless they are the published size.
    "declared_late",
    # A board that was begun again, after a deletion or an undo.
    "begun_again",
    "repeated",
    # Scores that filled nulls or came in conflict, and runs that aliases join.
    "score_choice",
    "rescored",
    "ignored",
    # Those who report a suite define it, at any time.
    "distinct",
    "composed",
    # A gate that runs its evaluation on the items of its baseline, and evaluates a block again.
    "baseline_items",
    "broken_off",
)

_NUMBERS: Final = {"items_read": "items", "items_rejected": "items", "units_read": "units", "capacity": "pairs"}
SEEDED: Final = frozenset({"committed", "ordered"})
"""The assumptions of a committed seed: their number is its place in the log, or the line of the file that is their name."""

PARTS: Final[tuple[str, ...]] = get_args(Part)
"""The parts of a declaration that verdicts rest on, in the order in which a sentence names them."""

_OF_ITEMS: Final = frozenset({"declaration", "items", "item_ids", "weights", "clusters", "scores", "repeats", "units"})
"""The parts that a lead on the items of the benchmark rests on."""

_PLACES: Final = {code: place for place, code in enumerate(CODES)}

FAMILY: Final = frozenset({"joined", "capacity"})  # the assumptions of family-wise verdicts alone


Fact = dict[str, str | int | list[str]]  # an assumption as reports show it


class Assumption(NamedTuple):
    """One assumption: its code in `CODES`, and the number and the names that its wording states.

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

    @classmethod
    def of(cls, fact: Mapping[str, Any]) -> "Assumption":
        """Return the assumption that a fact is about.

        >>> [Assumption.of(each.fact()) == each for each in (Assumption("capacity", 45), Assumption("ordered", 3, ("runs.jsonl",)))]
        [True, True]
        """
        names = fact.get("parts") or ([fact["file"]] if "file" in fact else [])
        number = next((fact[name] for name in ("items", "units", "pairs", "offset", "line") if name in fact), None)
        return cls(str(fact["code"]), number, tuple(names))

    def fact(self) -> Fact:
        """Return it as reports show it: the code, and the number by what it counts."""
        names: Fact
        if self.code in SEEDED:
            number, names = "line" if self.names else "offset", {"file": self.names[0]} if self.names else {}
        else:
            number, names = _NUMBERS.get(self.code, ""), {"parts": list(self.names)} if self.names else {}
        return {"code": self.code, **({} if self.number is None else {number: self.number}), **names}


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

    >>> flagged(rescored=True, repeated=False)
    [Assumption(code='rescored', number=None, names=())]
    """
    return [Assumption(code) for code, yes in holds.items() if yes]


class Seed(NamedTuple):
    """Where a seed was committed: an offset of the log, or a line of a file."""

    place: int
    file: str | None = None


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

    >>> order("completion", 12_032)
    Assumption(code='items_read', number=12032, names=())
    >>> order("completion", listed=True).code
    'listed'
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

    >>> late({"alpha", "power", "family"})
    [Assumption(code='declared_late', number=None, names=('family', 'alpha'))]
    """
    names = tuple(name for name in PARTS if name in parts)
    return [Assumption("declared_late", names=names)] if names else []


def late_of(assumptions: Iterable[Assumption], claim: str) -> list[Assumption]:
    """Return assumptions without the late parts that a claim does not rest on."""
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

"""Latches as records of a fixed size, from which verdict changes are made when they are stored, published or read.

A record holds what distinguishes one latch from another; the `Terms` hold what many latches share. Ids and sentences are functions of both.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from monitor.engine.kinds.bets import CERTAIN, Bets, bets_of
from monitor.words import order as sentences
from schemas.records.scores import Contestant
from schemas.results.assumptions import BATTLES, FAMILY, Assumption, facts, flagged, late_of, only, without
from schemas.results.changes import CLAIMS, KINDS, Claim, Kind, VerdictChange
from schemas.results.reasons import Fact, Outcome, Reason, fact
from schemas.results.verdict_changes import Order, change_field
from stats.evidence.settled import TIE
from stats.numerics.pairs import Index, pair_members

RECORD: Final = np.dtype(  # a latch: what its verdict change does not share with others
    [
        ("offset", "<i8"),  # the id: offset, and the sequence, which holds the pair, the claim and the kind
        ("sequence", "<u8"),
        ("n", "<i4"),  # shared items
        ("missing", "<i4"),
        ("b", "<i4"),  # items that only the earlier contestant of the pair has right; 0 for graded scores
        ("lead", "<i8"),  # b - c, or the sum of D in units of graded scores
        ("evidence", "<f8"),
        ("threshold", "<f8"),
        ("terms", "<u4"),  # which of the terms
        ("side", "i1"),  # 1 or -1 for the earlier or the later contestant, `stats.evidence.settled.TIE` for a tie
    ]
)

Records = NDArray[np.void]  # a structured array of `RECORD`, shape (latches,)

Ending = tuple[str | int, ...]
"""How decisions end: `invalidated` with the reason; `superseded` with the model and its newer epoch; `redeclared` with the new version."""

_PAIR_BITS: Final = 35
_CODE_BITS: Final = 3
_OF_PAIR: Final = np.uint64((1 << _PAIR_BITS - 2) - 1)


class Terms(NamedTuple):
    """What the latches of one event on have in common: their declaration, and what else their sentences depend on."""

    version: int
    policy: str
    mixture: str
    alpha: float
    power: float
    items: int
    graded: bool
    battles: bool
    weighted: bool
    assumptions: tuple[Assumption, ...]
    lead_scale: float
    statistics_version: int
    ending: Ending | None = None

    @property
    def rule(self) -> str:
        """The code of what the order policy assumes."""
        return BATTLES if self.battles else self.policy

    @classmethod
    def read(cls, values: Sequence[Any]) -> "Terms":
        """Return the terms that a stored line has."""
        terms = cls(*values)
        return terms._replace(assumptions=tuple(Assumption.read(*each) for each in terms.assumptions))

    @property
    def bets(self) -> type[Bets]:
        """What pairs bet on."""
        return bets_of(differences=self.graded)

    def evidence_of(self, claim: Claim) -> str:
        """Return what the evidence is made of."""
        if claim == "settled":
            return self.bets.settling.get(self.policy, CERTAIN)
        return self.mixture


class LatchRecords:
    """Latches of one benchmark, as the columns of `VerdictChanges`."""

    def __init__(
        self,
        name: str,
        contestants: Sequence[Contestant] | Mapping[int, Contestant],
        terms: Sequence[Terms],
        records: Records,
    ) -> None:
        self._name, self.contestants = name, contestants
        self.terms, self.records = terms, records

    def change(self, place: int) -> VerdictChange:
        """Make one of the verdict changes."""
        (values,) = self._values(slice(place, place + 1))
        return msgspec.convert(values, VerdictChange)

    def orders(self) -> list[Order]:
        """Return the id of each."""
        return list(zip(self.records["offset"].tolist(), self.records["sequence"].tolist(), strict=True))

    def texts(self, places: Sequence[int]) -> list[bytes]:
        """Return the JSON of some of them."""
        return list(map(msgspec.json.encode, self._values(np.array(places, np.int64))))

    def changes(self) -> list[VerdictChange]:
        """Make all verdict changes."""
        return [msgspec.convert(values, VerdictChange) for values in self._values(slice(None))]

    def fields(self) -> list[str]:
        """Return the field of each in the table of latches."""
        pair, claim, kind = latch_of(self.records["sequence"])
        code = (self.records["terms"].astype(np.int64) * len(CLAIMS) + claim) * len(KINDS) + kind
        ends: dict[int, str] = {}
        for each in np.unique(code).tolist():
            rest, of_kind = divmod(each, len(KINDS))
            terms, of_claim = divmod(rest, len(CLAIMS))
            ends[each] = change_field("", CLAIMS[of_claim], KINDS[of_kind], self.terms[terms].version)
        return [f"{of_pair}{ends[of_code]}" for of_pair, of_code in zip(pair.tolist(), code.tolist(), strict=True)]

    def kinds(self) -> dict[tuple[Claim, Kind], int]:
        """Return how many there are of each claim and kind."""
        _, claim, kind = latch_of(self.records["sequence"])
        codes, counts = np.unique(claim * len(KINDS) + kind, return_counts=True)
        names = [(CLAIMS[code // len(KINDS)], KINDS[code % len(KINDS)]) for code in codes.tolist()]
        return dict(zip(names, counts.tolist(), strict=True))

    def ended(self, some: Index, offset: int, sequence: NDArray[np.uint64], ending: Ending) -> "LatchRecords":
        """Return how decisions end: their places, and the ids of the changes that end them."""
        records = self.records[some]
        records["offset"], records["sequence"] = offset, sequence
        return LatchRecords(
            self._name, self.contestants, [terms._replace(ending=ending) for terms in self.terms], records
        )

    def _values(self, some: slice | Index) -> Iterator[dict[str, Any]]:
        """Yield the fields of some of the changes."""
        records = self.records[some]
        pair, claim, kind = latch_of(records["sequence"])
        rows = zip(
            records.tolist(),
            claim.tolist(),
            kind.tolist(),
            *(x.tolist() for x in pair_members(pair.astype(np.int64))),
            self._resolution_ratios(records),
            strict=True,
        )
        for record, of_claim, of_kind, i, j, ratio in rows:
            yield self._describe(_Latch(*record), CLAIMS[of_claim], KINDS[of_kind], (i, j), ratio)

    def _resolution_ratios(self, records: Records) -> list[float | None]:
        """Return q = n / N* of each pair at its event; None where it does not exist, and for graded scores."""
        ratios: list[float | None] = [None] * records.size
        for number in np.unique(records["terms"]).tolist():
            terms = self.terms[number]
            some = np.flatnonzero(records["terms"] == number)
            n, b, lead = (records[name][some].astype(np.int64) for name in ("n", "b", "lead"))
            of_terms = terms.bets.resolution_ratios(n, b, lead, terms.alpha, terms.power)
            for place, q in zip(some.tolist(), of_terms.tolist(), strict=True):
                ratios[place] = q if q > 0 and isfinite(q) else None
        return ratios

    def _describe(
        self, latch: "_Latch", claim: Claim, kind: Kind, members: tuple[int, int], ratio: float | None
    ) -> dict[str, Any]:
        """Return the fields of a verdict change, its pair in name order."""
        terms = self.terms[latch.terms]
        first, second = self.contestants[members[0]], self.contestants[members[1]]
        swap = first > second
        a, b = (second, first) if swap else (first, second)
        b_count, c_count = latch.b, latch.b - latch.lead
        wins, losses = terms.bets.counts(*((c_count, b_count) if swap else (b_count, c_count)))
        after: Outcome = "tie" if latch.side == TIE else "a" if (latch.side > 0) != swap else "b"
        evidence = sentences.Numbers(
            n=latch.n,
            b=wins,
            c=losses,
            gap=(-1 if swap else 1) * terms.lead_scale * latch.lead / (latch.n * terms.bets.unit),
            missing=latch.missing,
            log_e=latch.evidence if isfinite(latch.evidence) else None,
            log_threshold=latch.threshold if isfinite(latch.evidence) else None,
            resolution_ratio=ratio,
        )
        before: Outcome | None = after if terms.ending else None
        if kind == "reversed":
            before = "b" if after == "a" else "a"
        return {
            "id": f"{latch.offset}-{latch.sequence}",
            "benchmark": self._name,
            "model_a": a.model,
            "model_b": b.model,
            "epoch_a": a.epoch,
            "epoch_b": b.epoch,
            "kind": kind,
            "procedure": claim,
            "before": before,
            "after": None if terms.ending else after,
            "order_policy": terms.policy,
            "alpha": terms.alpha if isfinite(latch.evidence) else None,
            "mixture": terms.evidence_of(claim),
            "statistics_version": terms.statistics_version,
            "evidence": evidence._asdict(),
            "sentence": ended_sentence((a.model, b.model, self._name, claim), terms.ending)
            if terms.ending
            else self._sentence(terms, claim, kind, (a, b), evidence, after),
            "facts": ended_facts(terms.ending) if terms.ending else _facts(kind, after, evidence, terms.items),
            "assumptions": facts(_assumed(terms, claim, evidence, rescored=max(a.epoch, b.epoch) > 0))
            if kind in {"decided", "settled"}
            else [],
        }

    def _sentence(
        self,
        terms: Terms,
        claim: Claim,
        kind: Kind,
        pair: tuple[Contestant, Contestant],
        evidence: sentences.Numbers,
        after: Outcome,
    ) -> str:
        better, worse = reversed(pair) if after == "b" else pair
        evidence = evidence.swapped() if after == "b" else evidence
        assumed = _assumed(terms, claim, evidence, rescored=max(better.epoch, worse.epoch) > 0)
        names = better.model, worse.model, self._name
        if kind == "reversed":
            return sentences.reversed_after(*names, claim, evidence, terms.rule)
        if claim == "settled":
            tie = after == "tie"
            return sentences.settled(
                *names, terms.items, evidence, assumed=assumed, alpha=terms.alpha, tie=tie, weighted=terms.weighted
            )
        return sentences.decided(
            *names, claim, terms.rule, evidence, assumed, alpha=terms.alpha, weighted=terms.weighted
        )


def _assumed(terms: Terms, claim: Claim, evidence: sentences.Numbers, *, rescored: bool) -> list[Assumption]:
    """Return what a claim assumes."""
    if claim == "settled":
        certain = evidence.log_e is None
        made = late_of(terms.assumptions, claim)
        if certain:
            return [
                *(only(made, {"listed"}) or [Assumption("completion")]),
                *only(made, {"declared_late", "score_choice"}),
            ]
        seed = [each._replace(code="ordered") for each in only(made, {"committed"})]
        besides = only(made, {*FAMILY, "begun_again", "declared_late", "score_choice"})
        return [*seed, *besides, *flagged(rescored=rescored)]
    drop = {*(FAMILY if claim == "anytime" else ()), *(("ignored",) if evidence.n >= terms.items else ())}
    drop |= set() if terms.policy == "completion" else {"listed"}  # only a lead on these items rests on the list
    return [*without(late_of(terms.assumptions, claim), drop), *flagged(rescored=rescored)]


class _Latch(NamedTuple):
    """A record, by the fields of `RECORD`."""

    offset: int
    sequence: int
    n: int
    missing: int
    b: int
    lead: int
    evidence: float
    threshold: float
    terms: int
    side: int


def ended_sentence(names: tuple[str, str, str, str], ending: Ending) -> str:
    """Return the sentence of a decision that ends: of the names of its models, of its benchmark, and of its claim."""
    if ending[0] == "invalidated":
        return sentences.invalidated(*names, str(ending[1]))
    return sentences.superseded(*names, *ended_facts(ending))


def ended_facts(ending: Ending) -> list[Fact]:
    """Return how a decision ends."""
    kind, *of = ending
    if kind == "superseded":
        return [fact(Reason.SCORED_AGAIN, model=of[0], epoch=of[1])]
    return [fact(Reason.DECLARED_AGAIN, version=of[0]) if kind == "redeclared" else fact(Reason.INVALIDATED)]


def _facts(kind: Kind, after: Outcome, evidence: sentences.Numbers, items: int) -> list[Fact]:
    """Return what a verdict is, apart from its evidence; the side that has turned leads although the other one is decided."""
    if kind == "reversed":
        return [fact(Reason.GAP_TURNED, leader=after)]
    if kind == "settled":
        return [fact(Reason.EQUAL, items=items) if after == "tie" else fact(Reason.LEADS, side=after, items=items)]
    turned = evidence.gap <= 0 if after == "a" else evidence.gap >= 0
    other = "b" if after == "a" else "a"
    return [fact(Reason.DECIDED, side=after), *([fact(Reason.GAP_TURNED, leader=other)] if turned else [])]


def id_sequence(index: Any, pair: Any, claim: Any, kind: Any, *, later: bool) -> Any:  # noqa: ANN401 - an integer, or an array of uint64
    """Return the second part of the id of a change, after the offset: index of the event in its record, then pair and kind."""
    # `claim` and `kind` are places in `CLAIMS` and `KINDS`. The two highest bits of the pair are free: there are fewer than 2^33 pairs.
    settled, code = claim >> 1, (2 * kind + (claim & 1)) & 7
    pair = pair | later << (_PAIR_BITS - 1) | settled << (_PAIR_BITS - 2)
    return index << (_PAIR_BITS + _CODE_BITS) | pair << _CODE_BITS | code


def latch_of(sequence: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int8], NDArray[np.int8]]:
    """Return the pair of each id, and the places of its claim in `CLAIMS` and of its kind in `KINDS`; see `id_sequence`.

    >>> ids = [id_sequence(9, 7, claim, kind, later=True) for claim, kind in ((0, 0), (1, 2), (2, 4), (2, 3))]
    >>> [x.tolist() for x in latch_of(np.array(ids, np.uint64))]
    [[7, 7, 7, 7], [0, 1, 2, 2], [0, 2, 4, 3]]
    """
    places = sequence >> np.uint64(_CODE_BITS)
    settled = (places >> np.uint64(_PAIR_BITS - 2) & np.uint64(1)).astype(np.int8)
    code = (sequence & np.uint64(7)).astype(np.int8)
    # The code of kind settled has a bit too many, and so is that of kind decided, which claim settled does not have.
    kind = np.where((settled == 1) & (code >> 1 == 0), np.int8(KINDS.index("settled")), code >> 1)
    return places & _OF_PAIR, np.where(settled == 1, np.int8(2), code & 1), kind

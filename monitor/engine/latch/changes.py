"""Verdict changes: closed latches as the entries that leave the engine, with ids that every replay reproduces.

Those of latches that close together stay in columns; a change is made when it is stored or read.
"""

from collections.abc import Collection, Iterator
from math import isfinite
from typing import Any, Final, NamedTuple

import numpy as np
from pydantic_core import to_json

from monitor.engine.chunk import EventBatch
from monitor.engine.latch.base import STATISTICS_VERSION, Closed, Trajectory
from monitor.engine.state.codes import SCORE_UNIT
from monitor.engine.state.delta import BenchmarkDelta
from monitor.engine.state.graded import GRADED_MIXTURE
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import pair_members
from schemas import sentences
from schemas.changes import CLAIMS, KINDS, Claim, Kind, Outcome, VerdictChange
from schemas.verdict_changes import Order
from stats.resolution import required_n, resolution_ratio
from stats.settled import TIE

EXACT_TEST: Final = "exact test at N"
"""What verdicts on 0/1 scores under policy completion rest on, in place of a mixture."""

CERTAIN: Final = "certain"
"""What settles pairs where only the missing items count."""

SETTLED_BETS: Final = "without replacement"
"""What settles pairs along a committed order: bets on items that are drawn without replacement."""

_PAIR_BITS: Final = 35
_CODE_BITS: Final = 3


class ClosedColumns:
    """The verdict changes of latches that closed together, as columns; see `VerdictChanges`."""

    def __init__(self, pairs: PairState, batch: EventBatch, closed: Closed, *, ignored: bool) -> None:
        self._closed, self._spec, self._name, self._contestants = closed, pairs.spec, pairs.name, pairs.contestants
        self._graded, self._redeclared, self._ignored = pairs.graded, pairs.redeclared, ignored
        self._lead_scale = pairs.lead_scale
        self._begun_again = pairs.generation > 1
        self._rule = sentences.BATTLES if pairs.holds_battles else pairs.spec.order.policy
        when = closed.steps.when.tolist()
        self._offset = np.array([batch.offsets[k] for k in when], np.int64)
        index = np.array([batch.indices[k] for k in when], np.uint64)
        codes = (x.astype(np.uint64) for x in (closed.steps.pair, closed.claim, closed.kind))
        self._sequence = id_sequence(index, *codes, later=batch.redeclared)
        self._joined = sentences.joining(pairs.spec.family)

    def change(self, place: int) -> VerdictChange:
        """Make one of them."""
        (values,) = self._values(slice(place, place + 1))
        return VerdictChange.model_validate(values)

    def order(self, place: int) -> Order:
        """Return the id of one of them."""
        return next(self._orders(slice(place, place + 1)))

    def entries(self) -> Iterator[tuple[Order, bytes]]:
        """Yield the id and the JSON of each."""
        return zip(self._orders(slice(None)), map(to_json, self._values(slice(None))), strict=True)

    def _orders(self, some: slice) -> Iterator[Order]:
        return zip(self._offset[some].tolist(), self._sequence[some].tolist(), strict=True)

    def _values(self, some: slice) -> Iterator[dict[str, Any]]:
        """Yield the fields of some of them."""
        closed = self._closed.rows(some)
        columns = *closed.steps, closed.threshold, *pair_members(closed.steps.pair)
        rows = zip(*(x.tolist() for x in columns), self._resolution_ratios(closed.steps), strict=True)
        for order, (claim, kind), row in zip(self._orders(some), closed.names(), rows, strict=True):
            yield self._describe(order, claim, kind, _Latch(*row))

    def _resolution_ratios(self, steps: Trajectory) -> list[float | None]:
        """Return q = n / N* of each pair at its event; None where it does not exist, and for graded scores."""
        if self._graded:
            return [None] * steps.n.size
        n, b, c = (x.astype(np.int64) for x in (steps.n, steps.b, steps.c))
        ratios = resolution_ratio(n, required_n(n, b, c, self._spec.alpha, self._spec.power))
        return [q if q > 0 and isfinite(q) else None for q in ratios.tolist()]

    def _describe(self, order: Order, claim: Claim, kind: Kind, latch: "_Latch") -> dict[str, Any]:
        """Return the fields of a verdict change, its pair in name order."""
        first, second = self._contestants[latch.i], self._contestants[latch.j]
        swap = first > second
        a, b = (second, first) if swap else (first, second)
        wins, losses = (latch.c, latch.b) if swap else (latch.b, latch.c)
        after: Outcome = "tie" if latch.side == TIE else "a" if (latch.side > 0) != swap else "b"
        evidence = sentences.Numbers(
            n=latch.n,
            b=None if self._graded else wins,
            c=None if self._graded else losses,
            gap=(-1 if swap else 1) * self._lead_scale * latch.lead / (latch.n * (SCORE_UNIT if self._graded else 1)),
            missing=latch.missing,
            log_e=latch.evidence if isfinite(latch.evidence) else None,
            log_threshold=latch.threshold if isfinite(latch.evidence) else None,
            resolution_ratio=latch.ratio,
        )
        leader, trailer = (b.model, a.model) if after == "b" else (a.model, b.model)
        rescored = max(a.epoch, b.epoch) > 0
        return {
            "id": f"{order[0]}-{order[1]}",
            "benchmark": self._name,
            "model_a": a.model,
            "model_b": b.model,
            "epoch_a": a.epoch,
            "epoch_b": b.epoch,
            "kind": kind,
            "procedure": claim,
            "before": ("b" if after == "a" else "a") if kind == "reversed" else None,
            "after": after,
            "order_policy": self._spec.order.policy,
            "mixture": self._mixture(claim),
            "statistics_version": STATISTICS_VERSION,
            "evidence": evidence._asdict(),
            "sentence": self._sentence(claim, kind, (leader, trailer, self._name), evidence, after, rescored=rescored),
        }

    def _mixture(self, claim: Claim) -> str:
        """Return what the evidence is made of."""
        policy = self._spec.order.policy
        if claim == "settled":
            return SETTLED_BETS if policy == "committed" else CERTAIN
        if self._graded:
            return GRADED_MIXTURE
        return EXACT_TEST if policy == "completion" else self._spec.mixture

    def _sentence(
        self,
        claim: Claim,
        kind: Kind,
        names: tuple[str, str, str],
        evidence: sentences.Numbers,
        after: Outcome,
        *,
        rescored: bool,
    ) -> str:
        spec = self._spec
        items, listed, weighted = spec.items or 0, spec.item_ids is not None, spec.weights is not None
        if kind == "reversed":
            return sentences.reversed_after(*names, claim, evidence, self._rule)
        if claim == "settled":
            tie = after == "tie"
            return sentences.settled(
                *names, items, evidence, listed=listed, joined=self._joined, tie=tie, weighted=weighted
            )
        assumed = sentences.assumption(
            self._rule,
            listed=listed,
            joined=None if claim == "anytime" else self._joined,
            redeclared=self._redeclared,
            begun_again=self._begun_again,
            repeated=spec.repeats != 1,
            rescored=rescored,
            ignored=self._ignored and evidence.n < items,
        )
        return sentences.decided(*names, claim, self._rule, evidence, assumed, weighted=weighted)


class _Latch(NamedTuple):
    """A closed latch: its step, threshold, contestants and q."""

    pair: int
    when: int
    n: int
    b: int
    c: int
    lead: int
    missing: int
    evidence: float
    side: int
    threshold: float
    i: int
    j: int
    ratio: float | None


def announce(
    pairs: PairState, batch: EventBatch, closed: Closed | None, delta: BenchmarkDelta, *, ignored: bool = False
) -> None:
    """Record the verdict changes of closed latches in the state and the delta; `ignored`: what is missing was ignored."""
    if closed is None or not closed.steps.pair.size:
        return
    changes = ClosedColumns(pairs, batch, closed, ignored=ignored)
    latches = zip(closed.steps.pair.tolist(), closed.names(), strict=True)
    fields = [pairs.change_field(pair, claim, kind) for pair, (claim, kind) in latches]
    pairs.change_counts.update(closed.names())
    for record in (pairs.changes, delta.changes):
        record.extend(fields, changes)


def invalidate(
    pairs: PairState,
    batch: EventBatch,
    position: int,
    reason: str,
    delta: BenchmarkDelta,
    *,
    claims: Collection[Claim] = CLAIMS,
) -> None:
    """Withdraw every verdict of a benchmark at an event."""
    for pair, decision in pairs.verdicts():
        if (
            decision.procedure not in claims
            or pairs.change_field(pair, decision.procedure, "invalidated") in pairs.changes
        ):
            continue
        names = decision.model_a, decision.model_b, pairs.name, decision.procedure
        _end(pairs, batch, position, pair, decision, "invalidated", sentences.invalidated(*names, reason), delta)


def supersede(pairs: PairState, batch: EventBatch, position: int, contestant: int, delta: BenchmarkDelta) -> None:
    """End every decision on the older epochs of a contestant's model, at the first event of the newer one."""
    for old, open_pairs in pairs.supersede(contestant):
        model, epoch = pairs.contestants[old].model, pairs.contestants[contestant].epoch
        for pair in np.sort(open_pairs).tolist():
            for procedure, latches in pairs.claims.items():
                field = pairs.change_field(pair, procedure, "settled" if procedure == "settled" else "decided")
                decision = pairs.changes.get(field) if latches.side[pair] else None
                if decision is None or not _holds(pairs, pair, procedure):
                    continue
                names = decision.model_a, decision.model_b, pairs.name, procedure
                sentence = sentences.superseded(*names, model, epoch)
                _end(pairs, batch, position, pair, decision, "superseded", sentence, delta)


def replace(pairs: PairState, batch: EventBatch, version: int, delta: BenchmarkDelta) -> None:
    """End every decision under a declaration, at the event that replaces it by another version."""
    for pair, decision in pairs.verdicts():
        if _holds(pairs, pair, decision.procedure):
            names = decision.model_a, decision.model_b, pairs.name, decision.procedure
            _end(pairs, batch, 0, pair, decision, "superseded", sentences.redeclared(*names, version), delta)


def withdraw(pairs: PairState, batch: EventBatch, delta: BenchmarkDelta) -> Iterator[int]:
    """End every decision of a benchmark, at the record that deletes its board; yield the number of family-wise ones so far."""
    family_wise = 0
    for pair, decision in pairs.verdicts():
        if _holds(pairs, pair, decision.procedure):
            family_wise += decision.procedure == "anytime_family"
            names = decision.model_a, decision.model_b, pairs.name, decision.procedure
            _end(
                pairs, batch, 0, pair, decision, "invalidated", sentences.invalidated(*names, sentences.DELETED), delta
            )
            yield family_wise


def _holds(pairs: PairState, pair: int, procedure: Claim) -> bool:
    """Return whether a decision has not ended."""
    ends = (pairs.change_field(pair, procedure, kind) for kind in ("invalidated", "superseded"))
    return not any(field in pairs.changes for field in ends)


def _end(
    pairs: PairState,
    batch: EventBatch,
    position: int,
    pair: int,
    decision: VerdictChange,
    kind: Kind,
    sentence: str,
    delta: BenchmarkDelta,
) -> None:
    """Record that a decision no longer holds, from an event on."""
    codes = CLAIMS.index(decision.procedure), KINDS.index(kind)
    sequence = id_sequence(batch.indices[position], pair, *codes, later=batch.redeclared)
    update = {
        "id": f"{batch.offsets[position]}-{sequence}",
        "kind": kind,
        "before": decision.after,
        "after": None,
        "sentence": sentence,
    }
    change = decision.model_copy(update=update)
    delta.changes.add(pairs.record(pair, change), change)


def id_sequence(index: Any, pair: Any, claim: Any, kind: Any, *, later: bool) -> Any:  # noqa: ANN401 - an integer, or an array of uint64
    """Return the second part of the id of a change, after the offset: index of the event in its record, then pair and kind.

    `claim` and `kind` are places in `CLAIMS` and `KINDS`. The two highest bits of the pair are free: there are fewer than 2^33 pairs.
    """
    settled, code = claim >> 1, (2 * kind + (claim & 1)) & 7
    pair = pair | later << (_PAIR_BITS - 1) | settled << (_PAIR_BITS - 2)
    return index << (_PAIR_BITS + _CODE_BITS) | pair << _CODE_BITS | code

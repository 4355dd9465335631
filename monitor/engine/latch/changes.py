"""Verdict changes: closed latches as the entries that leave the engine, with ids that every replay reproduces."""

from collections.abc import Collection, Sequence
from math import isfinite
from typing import Final

import numpy as np

from monitor.engine.chunk import EventBatch
from monitor.engine.latch.base import STATISTICS_VERSION, Crossing
from monitor.engine.state.codes import SCORE_UNIT
from monitor.engine.state.delta import BenchmarkDelta
from monitor.engine.state.graded import GRADED_MIXTURE
from monitor.engine.state.pair_state import CLAIMS, PROCEDURES, PairState
from schemas import sentences
from schemas.changes import Claim, Evidence, Kind, Outcome, VerdictChange
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
_KINDS: Final[tuple[Kind, ...]] = ("decided", "reversed", "invalidated", "superseded")


def announce(
    pairs: PairState, batch: EventBatch, crossings: Sequence[Crossing], delta: BenchmarkDelta, *, ignored: bool = False
) -> None:
    """Record the verdict changes of closed latches in the state and the delta; `ignored`: what is missing was ignored."""
    for crossing, ratio in zip(crossings, _resolution_ratios(pairs, crossings), strict=True):
        identity = _identity(batch, crossing.position, crossing.pair, crossing.procedure, crossing.kind)
        delta.changes.append(pairs.record(crossing.pair, _describe(pairs, crossing, ratio, identity, ignored=ignored)))


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
    update = {
        "id": _identity(batch, position, pair, decision.procedure, kind),
        "kind": kind,
        "before": decision.after,
        "after": None,
        "sentence": sentence,
    }
    delta.changes.append(pairs.record(pair, decision.model_copy(update=update)))


def _mixture(pairs: PairState, claim: Claim) -> str:
    """Return what the evidence of pairs is made of."""
    if claim == "settled":
        return SETTLED_BETS if pairs.spec.order.policy == "committed" else CERTAIN
    if pairs.graded:
        return GRADED_MIXTURE
    return EXACT_TEST if pairs.spec.order.policy == "completion" else pairs.spec.mixture


def _identity(batch: EventBatch, position: int, pair: int, procedure: Claim, kind: Kind) -> str:
    """Return the id of a change: record offset, index of the event in the record, pair and kind.

    The two highest bits of the pair are free: there are fewer than 2^33 pairs.
    """
    offset, index = batch.offsets[position], batch.indices[position]
    settled = procedure == "settled"
    code = 0 if kind == "settled" else _KINDS.index(kind) * len(PROCEDURES)
    code += 0 if settled else CLAIMS.index(procedure)
    pair |= batch.redeclared << (_PAIR_BITS - 1) | settled << (_PAIR_BITS - 2)
    return f"{offset}-{(index << (_PAIR_BITS + _CODE_BITS)) | (pair << _CODE_BITS) | code}"


def _resolution_ratios(pairs: PairState, crossings: Sequence[Crossing]) -> list[float | None]:
    """Return q = n / N* of each pair at its crossing; None where it does not exist, and for graded scores."""
    if pairs.graded or not crossings:
        return [None] * len(crossings)
    n, b, c = np.array([(x.n, x.b, x.c) for x in crossings], np.int64).reshape(-1, 3).T
    ratios = resolution_ratio(n, required_n(n, b, c, pairs.spec.alpha, pairs.spec.power))
    return [q if q > 0 and isfinite(q) else None for q in ratios.tolist()]


def _describe(
    pairs: PairState, crossing: Crossing, ratio: float | None, identity: str, *, ignored: bool
) -> VerdictChange:
    """Return a crossing as a verdict change, its pair in name order."""
    first, second = pairs.contestants[crossing.i], pairs.contestants[crossing.j]
    swap = first > second
    a, b = (second, first) if swap else (first, second)
    wins, losses = (crossing.c, crossing.b) if swap else (crossing.b, crossing.c)
    after: Outcome = "tie" if crossing.side == TIE else "a" if (crossing.side > 0) != swap else "b"
    other: Outcome = "b" if after == "a" else "a"
    graded, policy = pairs.graded, pairs.spec.order.policy
    evidence = Evidence(
        n=crossing.n,
        b=None if graded else wins,
        c=None if graded else losses,
        gap=(-1 if swap else 1) * crossing.lead / (crossing.n * (SCORE_UNIT if graded else 1)),
        missing=crossing.missing,
        log_e=crossing.log_e if isfinite(crossing.log_e) else None,
        log_threshold=crossing.log_threshold if isfinite(crossing.log_e) else None,
        resolution_ratio=ratio,
    )
    leader, trailer = (b.model, a.model) if after == "b" else (a.model, b.model)
    listed, joined = pairs.spec.item_ids is not None, sentences.joining(pairs.spec.family)
    assumed = sentences.assumption(
        policy,
        listed=listed,
        joined=None if crossing.procedure == "anytime" else joined,
        redeclared=pairs.redeclared,
        repeated=pairs.spec.repeats != 1,
        rescored=max(a.epoch, b.epoch) > 0,
        ignored=ignored and crossing.n < (pairs.spec.items or 0),
    )
    names = leader, trailer, pairs.name
    if crossing.procedure == "settled":
        sentence = sentences.settled(
            *names, pairs.spec.items or 0, evidence, listed=listed, joined=joined, tie=after == "tie"
        )
    elif crossing.kind == "decided":
        sentence = sentences.decided(*names, crossing.procedure, policy, evidence, assumed)
    else:
        sentence = sentences.reversed_after(*names, crossing.procedure, evidence)
    return VerdictChange(
        id=identity,
        benchmark=pairs.name,
        model_a=a.model,
        model_b=b.model,
        epoch_a=a.epoch,
        epoch_b=b.epoch,
        kind=crossing.kind,
        procedure=crossing.procedure,
        before=other if crossing.kind == "reversed" else None,
        after=after,
        order_policy=policy,
        mixture=_mixture(pairs, crossing.procedure),
        statistics_version=STATISTICS_VERSION,
        evidence=evidence,
        sentence=sentence,
    )

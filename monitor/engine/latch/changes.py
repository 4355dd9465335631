"""Verdict changes: closed latches as the entries that leave the engine, with ids that every replay reproduces."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Closed
from monitor.engine.latch.records import (
    RECORD,
    Ending,
    LatchRecords,
    Records,
    Terms,
    ended_facts,
    ended_sentence,
    id_sequence,
)
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.changes import BenchmarkDelta
from monitor.engine.state.pairs.families import joining
from monitor.engine.state.pairs.pair_state import Decision, PairState
from schemas.records.columns import EventBatch
from schemas.records.versions import STATISTICS_VERSION
from schemas.results.assumptions import BATTLES, Assumption, flagged, late, order, sampled
from schemas.results.changes import CLAIMS, KINDS, Claim, Kind, Proof
from schemas.results.verdict_changes import Columns
from stats.numerics.pairs import Index

EXACT_TEST: Final[Proof] = "exact test at N"
"""What verdicts on 0/1 scores under policy completion rest on, in place of a mixture."""

LOOK: Final[Proof] = "bets, or exact test at N"
"""The same along a committed order with a look at its end: the smaller p of the two, each over its share of alpha."""


def announce(
    pairs: PairState, batch: EventBatch, closed: Closed, delta: BenchmarkDelta, *, ignored: bool = False
) -> None:
    """Record the verdict changes of closed latches in the state and the delta; `ignored`: what is missing was ignored."""
    if not closed.pair.size:
        return
    when = closed.when.tolist()
    offset = np.array([batch.offsets[k] for k in when], np.int64)
    index = np.array([batch.indices[k] for k in when], np.uint64)
    codes = (x.astype(np.uint64) for x in (closed.pair, closed.claim, closed.kind))
    sequence = id_sequence(index, *codes, later=batch.redeclared)
    records = _records(closed, offset, sequence)
    terms = [_terms(pairs, flagged(ignored=ignored)), _terms(pairs, flagged(ignored=ignored, score_choice=True))]
    if pairs.has_choice:
        records["terms"] = closed.when >= (batch.choice_at or 0)
    _add(pairs, LatchRecords(pairs.name, pairs.contestants, terms, records), delta)


def _terms(pairs: PairState, besides: Iterable[Assumption]) -> Terms:
    """Return the present terms of a benchmark, with assumptions that not all of its verdicts make."""
    spec = pairs.spec
    mixture = EXACT_TEST if spec.order.policy == "completion" else LOOK if spec.look else spec.mixture
    return Terms(
        version=spec.version,
        policy=spec.order.policy,
        mixture=pairs.bets.mixture or mixture,
        alpha=spec.alpha,
        power=spec.power,
        items=spec.items or 0,
        graded=pairs.graded,
        battles=pairs.holds_battles,
        weighted=spec.weights is not None,
        assumptions=(*_assumptions(pairs), *besides),
        lead_scale=pairs.lead_scale,
        statistics_version=STATISTICS_VERSION,
    )


def _assumptions(pairs: PairState) -> list[Assumption]:
    """Return what verdicts of a benchmark assume now, those of the family included."""
    spec = pairs.spec
    policy = BATTLES if pairs.holds_battles else spec.order.policy
    listed = spec.item_ids is not None
    named = order(policy, listed=listed, seed=pairs.seed), joining(spec.family)
    holds = flagged(
        listed=listed, labelled=spec.weights is not None, begun_again=pairs.begun_again, repeated=spec.repeats != 1
    )
    items = sampled(policy, units=spec.units is not None)
    return [*(each for each in named if each is not None), *items, *late(spec.declared_late), *holds]


def _records(closed: Closed, offset: NDArray[np.int64], sequence: NDArray[np.uint64]) -> Records:
    """Return the records of latches that closed, given their ids; their terms are the first."""
    records = np.zeros(closed.claim.size, RECORD)
    records["offset"], records["sequence"] = offset, sequence
    for name in ("n", "missing", "b", "lead", "evidence", "threshold", "side"):
        records[name] = getattr(closed, name)
    return records


def _add(pairs: PairState, latches: Columns, delta: BenchmarkDelta) -> None:
    """Add latches to the state and the delta."""
    fields = latches.fields()
    pairs.keep(fields, latches)
    delta.changes.extend(fields, latches)


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
    of_claims = [
        each
        for each in pairs.decisions()
        if each.claim in claims and pairs.change_field(each.pair, each.claim, "invalidated") not in pairs.changes
    ]
    _end(pairs, batch, position, of_claims, ("invalidated", reason), delta)


def supersede(pairs: PairState, batch: EventBatch, position: int, contestant: int, delta: BenchmarkDelta) -> None:
    """End every decision on the older epochs of a contestant's model, at the first event of the newer one."""
    for old, open_pairs in pairs.supersede(contestant):
        model, epoch = pairs.contestants[old].model, pairs.contestants[contestant].epoch
        decisions = [
            Decision(pair, claim, pairs.change_field(pair, claim, "settled" if claim == "settled" else "decided"))
            for pair in np.sort(open_pairs).tolist()
            for claim, latches in pairs.claims.items()
            if latches.side[pair]
        ]
        holding = [each for each in decisions if each.field in pairs.changes and _holds(pairs, each)]
        _end(pairs, batch, position, holding, ("superseded", model, epoch), delta)


def replace(pairs: PairState, batch: EventBatch, version: int, delta: BenchmarkDelta) -> None:
    """End every decision under a declaration, at the event that replaces it by another version."""
    holding = [each for each in pairs.decisions() if _holds(pairs, each)]
    _end(pairs, batch, 0, holding, ("redeclared", version), delta)


def withdraw(pairs: PairState, batch: EventBatch, delta: BenchmarkDelta, reason: str) -> int:
    """End every decision of a benchmark, at the record that ends its generation; return the number of family-wise ones."""
    holding = [each for each in pairs.decisions() if _holds(pairs, each)]
    _end(pairs, batch, 0, holding, ("invalidated", reason), delta)
    return sum(each.claim == "anytime_family" for each in holding)


def _holds(pairs: PairState, decision: Decision) -> bool:
    """Return whether a decision has not ended."""
    ends = (pairs.change_field(decision.pair, decision.claim, kind) for kind in ("invalidated", "superseded"))
    return not any(field in pairs.changes for field in ends)


def _end(
    pairs: PairState,
    batch: EventBatch,
    position: int,
    decisions: Iterable[Decision],
    ending: Ending,
    delta: BenchmarkDelta,
) -> None:
    """Record that decisions no longer hold, from an event on."""
    kind: Kind = "invalidated" if ending[0] == "invalidated" else "superseded"
    offset, index = batch.offsets[position], batch.indices[position]
    ended: dict[Columns, list[tuple[int, int]]] = {}
    for pair, claim, field in decisions:
        sequence = id_sequence(index, pair, CLAIMS.index(claim), KINDS.index(kind), later=batch.redeclared)
        located = pairs.changes.locate(field)
        if located is not None:
            ended.setdefault(located[0], []).append((located[1], sequence))
            continue
        decision = pairs.changes.verdict(field)
        update: dict[str, Any] = {
            "id": f"{offset}-{sequence}",
            "kind": kind,
            "before": decision.after,
            "after": None,
            "facts": ended_facts(ending),
            "assumptions": [],
        }
        names = decision.model_a, decision.model_b, pairs.name, claim
        change = decision.replace(**update, sentence=ended_sentence(names, ending))
        delta.changes.add(pairs.record(pair, change), change)
    for columns, places in ended.items():
        place, sequences = zip(*places, strict=True)
        _add(pairs, columns.ended(np.array(place), offset, np.array(sequences, np.uint64), ending), delta)


if TYPE_CHECKING:
    from monitor.engine.loop.board import Loop


def loop_of(benchmark: Benchmark) -> "Loop":
    """Return the loop that follows the pairs of a benchmark."""
    if benchmark.loop is None:
        from monitor.engine.loop.board import Loop  # noqa: PLC0415 - what declares no order needs no compiled code

        benchmark.loop = Loop(benchmark)
    return cast("Loop", benchmark.loop)


def announce_closed(
    benchmark: Benchmark,
    batch: EventBatch,
    found: tuple[Closed, Index],
    delta: BenchmarkDelta,
    *,
    ignored: bool = False,
) -> None:
    """Record what a loop has found: the latches that closed, and the pairs that joined their families."""
    closed, joined = found
    if joined.size:
        delta.registered.append(joined.astype(np.uint32))
    settled = closed.claim == CLAIMS.index("settled")
    for some in (np.flatnonzero(~settled), np.flatnonzero(settled)):
        announce(benchmark, batch, closed.rows(some), delta, ignored=ignored)

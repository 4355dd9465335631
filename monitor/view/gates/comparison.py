"""Whether a model is not worse than another by more than a margin: evidence of one pair under the order policy of its board."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, inf, isfinite
from typing import Any, Final, cast

import numpy as np

from monitor.engine.state.codes import Codes
from monitor.view.board import Flags, Floats
from monitor.view.gates.margin import Margin, agreeing_bound, evidence_path, items_to_bets, items_to_margin, worse_bound
from monitor.view.gates.reasons import first_lost, of_comparison, with_facts
from monitor.view.items.conflict_rows import counts_by_model
from monitor.view.items.hardness import noise_of_pair
from monitor.view.pairs.rows import assumed_of
from monitor.view.pairs.table import PairTable
from monitor.words.assumptions import clauses
from monitor.words.gates import conflicts, noise
from schemas.records.scores import SCORE_UNIT, SKIPPED, ZERO
from schemas.results.assumptions import facts, late_of
from schemas.results.gate import ConflictRule, GateComparison, GateVerdict, Rule
from schemas.results.report import PairReport
from stats.evidence.margin import (
    excess_low_anytime,
    excess_p,
    excess_required_n,
    graded_excess_log_e,
    graded_excess_low,
)
from stats.intervals.completion_gap import excess_low

_LARGEST: Final = 700.0  # exp() of more overflows


@dataclass(frozen=True)
class _Evidence:
    """What a claim rests on, and what it would take."""

    rule: Rule
    log_p: float
    low: float | None
    needed: float  # items in all; infinite if no number of items suffices
    decided_at: int | None = None


def compare_with_margin(
    table: PairTable, pair: PairReport, candidate: str, baseline: str, margin: Margin, rule: ConflictRule = "worst"
) -> GateComparison:
    """Compare two models of a benchmark."""
    benchmark, spec = table.benchmark, table.benchmark.spec
    one, other = (
        next(int(k) for k in table.ranking if table.benchmark.contestants[k].model == model)
        for model in (candidate, baseline)
    )
    at = int(
        np.flatnonzero(
            (np.minimum(table.pairs.a, table.pairs.b) == min(one, other))
            & (np.maximum(table.pairs.a, table.pairs.b) == max(one, other))
        )[0]
    )
    x, y, skipped = _scores(table, one, other)
    missing = None if table.pairs.counted_missing is None else int(table.pairs.counted_missing[at])
    held = table.held
    policy = table.policy
    if held or x.size + int(skipped.sum()) == 0:
        evidence = _Evidence("none", 0.0, None, inf)
    elif table.pairs.completes:
        threats = table.pairs.threats[int(table.pairs.a[at] != one)]  # missing items that the candidate may lose
        lost = min(int(threats[at]), missing or 0)
        evidence = _completion(x, y, (missing or 0, lost), margin, spec.alpha, binary=benchmark.binary)
    else:
        evidence = _in_order(table, one, other, margin)
    sign = 1 if pair.model_a == candidate else -1
    side = {None: 0, "a": sign, "b": -sign}[pair.decided.anytime]
    # A pair is decided with a tolerance for the rounding of logarithms: at p = alpha too.
    p_worse = min(pair.p_anytime or 0.0, spec.alpha) if side < 0 else 1.0
    only = (pair.b, pair.c) if sign > 0 else (pair.c, pair.b)
    verdict = _verdict(evidence.log_p, p_worse, spec.alpha, held=bool(held))
    gap = None if x.size == 0 else float(x.mean() - y.mean())
    worse = [candidate] if verdict == "fail" else []
    rescored, ignored = max(pair.epoch_a, pair.epoch_b) > 0, bool(table.pairs.ignored[at] > 0)
    assumed = assumed_of(table, rescored=rescored, ignored=ignored, worse=worse)
    assumed = late_of(assumed, "anytime")
    split = None if benchmark.by_item.are_rows else noise_of_pair(benchmark, candidate, baseline)
    comparison = GateComparison(
        benchmark=benchmark.name,
        candidate=candidate,
        baseline=baseline,
        verdict=verdict,
        n=int(x.size),
        only_candidate=only[0],
        only_baseline=only[1],
        missing=missing,
        mean_candidate=None if x.size == 0 else float(x.mean()),
        mean_baseline=None if x.size == 0 else float(y.mean()),
        gap=gap,
        gap_low=None
        if evidence.low is None or not isfinite(evidence.low)
        else agreeing_bound(evidence.low, margin, verdict),
        gap_high=worse_bound(_high(pair, sign), verdict),
        first_lost=first_lost(_named_scores(table, one, other)) if verdict == "fail" else [],
        margin=margin.size,
        relative=margin.relative,
        alpha=spec.alpha,
        looks="one" if table.one_look else "several",
        policy=cast("Any", policy),  # battles are not compared
        rule=evidence.rule,
        p_not_worse=exp(min(evidence.log_p, 0.0)),
        p_worse=p_worse,
        decided_at_n=evidence.decided_at,
        items_needed=evidence.needed if verdict == "undecided" and isfinite(evidence.needed) else None,
        assumption=clauses(assumed),
        assumptions=facts(assumed),
        noise=None if split is None else noise(split.repeats, split.repeat_share, split.gain_of_repeats()),
        conflicts=conflicts(counts_by_model(benchmark)[1], (candidate, baseline), rule),
        conflict_rule=rule,
        reason="",
    )
    return with_facts(comparison, of_comparison(comparison, margin, held))


def _high(pair: PairReport, sign: int) -> float | None:
    """Return the upper end of the pair's interval, seen from the candidate."""
    if sign > 0:
        return pair.gap_high
    return None if pair.gap_low is None else -pair.gap_low


def _named_scores(table: PairTable, one: int, other: int) -> Iterator[tuple[str, float, float]]:
    """Yield the items that both have, with their scores."""
    benchmark = table.benchmark
    codes = benchmark.item_codes()[:, [one, other]]
    for row in np.flatnonzero((codes >= ZERO).all(axis=1)).tolist():
        x, y = benchmark.item_values[codes[row]].tolist()
        yield benchmark.item_keys[row].item, x, y


def _verdict(log_p: float, p_worse: float, alpha: float, *, held: bool) -> GateVerdict:
    if held:
        return "held"
    # Both claims may hold at once: worse, and by less than the margin. That is a pass.
    if log_p <= np.log(alpha):
        return "pass"
    return "fail" if p_worse <= alpha else "undecided"


# --- evidence -------------------------------------------------------------------------------------------------------------------------


def _scores(table: PairTable, one: int, other: int) -> tuple[Floats, Floats, Flags]:
    """Return the scores of the items that both have, and which items of a committed prefix either skipped."""
    codes, skipped = _codes(table, one, other)
    x, y = codes[~skipped].T
    values = table.benchmark.item_values
    return values[x] / SCORE_UNIT, values[y] / SCORE_UNIT, skipped


def _codes(table: PairTable, one: int, other: int) -> tuple[Codes, Flags]:
    """Return the scores of both on the items that count, in the order that counts, shape (items, 2), and which rows hold a skip."""
    benchmark = table.benchmark
    codes = benchmark.item_codes()
    if benchmark.committed is not None:
        codes = codes[benchmark.committed.items(one, other)][:, [one, other]]
        return codes, (codes == SKIPPED).any(axis=1)
    codes = codes[:, [one, other]]
    codes = codes[(codes >= ZERO).all(axis=1)]
    return codes, np.zeros(len(codes), bool)


def _completion(
    x: Floats, y: Floats, lacks: tuple[int, int], margin: Margin, alpha: float, *, binary: bool
) -> _Evidence:
    """Judge all items at once, missing ones at their worst: the order of arrival does not matter. `lacks`: missing, and of them losable."""
    missing, lost = lacks
    d = margin.differences(x, y)
    mean, variance = float(d.mean()) if d.size else 0.0, float(d.var()) if d.size else 0.0
    needed = excess_required_n(mean, variance, margin.bound, alpha)
    if binary and not margin.relative:
        n, b, c = x.size + missing - lost, int((x > y).sum()), int((x < y).sum())
        p = float(excess_p(n, b, c, margin.bound, lost))
        return _Evidence("exact test", _log(p), float(excess_low(n, b, c, alpha, lost)), needed)
    log_e = float(graded_excess_log_e(d, margin.bound, missing, worst=margin.worst))
    low = None if margin.relative else graded_excess_low(d, alpha, missing)
    return _Evidence("bets", -max(log_e, 0.0), low, items_to_bets(d, margin, alpha))


def _in_order(table: PairTable, one: int, other: int, margin: Margin) -> _Evidence:
    """Bet item by item: along a committed order the largest evidence counts, in a trusted one the evidence after the last item."""
    benchmark, alpha = table.benchmark, table.benchmark.spec.alpha
    codes, skipped = _codes(table, one, other)
    values = benchmark.item_values[codes] / SCORE_UNIT
    d = np.where(skipped, margin.worst, margin.differences(values[:, 0], values[:, 1]))
    path = evidence_path(d, margin, benchmark.spec.mixture, binary=benchmark.binary)
    need = -np.log(alpha)
    n, b, c = d.size, int((d == 1).sum()), int((d == -1).sum())
    if benchmark.binary and not margin.relative:
        low: float | None = float(excess_low_anytime(n, b, c, alpha, benchmark.spec.mixture))
    else:
        low = None if margin.relative else graded_excess_low(d, alpha)
    reached = np.flatnonzero(path >= need)
    if benchmark.committed is None:
        log_e, decided_at = float(path[-1]), None
    else:
        log_e, decided_at = float(path.max()), int(reached[0]) + 1 if reached.size else None
    return _Evidence(
        "bets",
        -max(log_e, 0.0),
        low,
        items_to_margin(d, margin, benchmark.spec.mixture, alpha, binary=benchmark.binary),
        decided_at,
    )


def _log(p: float) -> float:
    return float(np.log(p)) if p > 0 else -_LARGEST

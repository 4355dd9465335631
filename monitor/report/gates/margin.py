"""Whether a model is not worse than another by more than a margin: evidence of one pair under the order policy in force."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite
from typing import Final, Literal

import numpy as np

from monitor.engine.state.codes import SCORE_UNIT, SKIPPED, ZERO, Codes
from monitor.report.items.conflict_rows import counts_by_model
from monitor.report.items.noise import noise_of_pair, noise_sentence
from monitor.report.pairs.counts import Flags, Floats
from monitor.report.pairs.table import PairTable
from schemas.records.text import shorten
from schemas.results.gate import GateComparison, GateVerdict
from schemas.results.report import PairReport
from schemas.results.sentences import assumption
from stats.evidence.eprocess import log_e_halves
from stats.evidence.graded import LAMBDAS
from stats.evidence.margin import (
    excess_log_e,
    excess_low,
    excess_low_anytime,
    excess_p,
    excess_required_n,
    graded_excess_log_e,
    graded_excess_low,
    items_to_excess,
)

MIXTURE: Final = "beta(1,1)"
"""Of the bets of `gate --run`."""

_LARGEST: Final = 700.0
"""exp() of more overflows."""


@dataclass(frozen=True)
class Margin:
    """By how much a candidate may be worse.

    Attributes
    ----------
    size : float
        In (0, 1): in score units, or as a share of the baseline's score.
    relative : bool
        Whether it is such a share. The claim is then that the mean of `candidate - (1 - size) * baseline` is above 0.
    """

    size: float
    relative: bool = False

    @property
    def text(self) -> str:
        """The margin in words."""
        size = f"{100 * self.size:g}"
        return f"{size} % of its score" if self.relative else f"{size} {'point' if size == '1' else 'points'}"

    @property
    def bound(self) -> float:
        """What the mean difference has to exceed."""
        return 0.0 if self.relative else -self.size

    @property
    def worst(self) -> float:
        """The lowest difference of an item."""
        return self.size - 1 if self.relative else -1.0

    def differences(self, candidate: Floats, baseline: Floats) -> Floats:
        """Return the differences that bet."""
        return candidate - (1 - self.size) * baseline if self.relative else candidate - baseline


@dataclass(frozen=True)
class _Evidence:
    """What a claim rests on, and what it would take."""

    rule: Literal["score test", "bets", "none"]
    log_p: float
    low: float | None
    needed: float
    """Items in all; infinite if no number of items suffices."""
    decided_at: int | None = None


def compare_with_margin(
    table: PairTable, pair: PairReport, candidate: str, baseline: str, margin: Margin
) -> GateComparison:
    """Compare two models of a benchmark.

    Parameters
    ----------
    table : PairTable
    pair : PairReport
        The row of the two models, for the verdict that the candidate is worse.
    candidate, baseline : str
    margin : Margin
    """
    benchmark, spec = table.benchmark, table.benchmark.spec
    one, other = (_contestant(table, model) for model in (candidate, baseline))
    at = int(
        np.flatnonzero(
            (np.minimum(table.a, table.b) == min(one, other)) & (np.maximum(table.a, table.b) == max(one, other))
        )[0]
    )
    x, y, skipped = _scores(table, one, other)
    missing = None if table.counted_missing is None else int(table.counted_missing[at])
    held = table.hold_reason
    policy = "completion" if table.asserted else spec.order.policy
    if held is not None or x.size + int(skipped.sum()) == 0:
        evidence = _Evidence("none", 0.0, None, inf)
    elif table.completes:
        evidence = _completion(x, y, missing or 0, margin, spec.alpha, binary=benchmark.binary)
    else:
        evidence = _in_order(table, one, other, margin)
    sign = 1 if pair.model_a == candidate else -1
    side = {None: 0, "a": sign, "b": -sign}[pair.decided.anytime]
    p_worse = (pair.p_anytime or 0.0) if side < 0 else 1.0
    only = (pair.b, pair.c) if sign > 0 else (pair.c, pair.b)
    verdict = _verdict(evidence.log_p, p_worse, spec.alpha, held=held is not None)
    gap = None if x.size == 0 else float(x.mean() - y.mean())
    split = None if benchmark.repeats is None else noise_of_pair(benchmark, candidate, baseline)
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
        else _agreeing(evidence.low, margin, verdict),
        margin=margin.size,
        relative=margin.relative,
        alpha=spec.alpha,
        policy=policy,
        rule=evidence.rule,
        p_not_worse=exp(min(evidence.log_p, 0.0)),
        p_worse=p_worse,
        decided_at_n=evidence.decided_at,
        items_needed=evidence.needed if verdict == "undecided" and isfinite(evidence.needed) else None,
        assumption=assumption(
            policy,
            None if spec.items else table.assumed_items,
            listed=spec.item_ids is not None,
            redeclared=benchmark.redeclared,
            begun_again=benchmark.generation > 1,
            ignored=bool(table.ignored[at] > 0),
        ),
        noise=None if split is None else noise_sentence(split),
        conflicts=conflict_sentence(counts_by_model(benchmark)[1], (candidate, baseline)),
        reason="",
    )
    return comparison.model_copy(update={"reason": _reason(comparison, margin, held)})


def _contestant(table: PairTable, model: str) -> int:
    return next(int(k) for k in table.ranking if table.benchmark.contestants[k].model == model)


def _verdict(log_p: float, p_worse: float, alpha: float, *, held: bool) -> GateVerdict:
    if held:
        return "held"
    # Both claims may hold at once: worse, and by less than the margin. That is a pass.
    if log_p <= np.log(alpha):
        return "pass"
    return "fail" if p_worse <= alpha else "undecided"


def _agreeing(low: float, margin: Margin, verdict: GateVerdict) -> float | None:
    """Return a bound that is above the margin exactly where the claim holds: it may have held at an earlier item."""
    if margin.relative:
        return None
    return max(low, -margin.size) if verdict == "pass" else min(low, -margin.size)


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


def _completion(x: Floats, y: Floats, missing: int, margin: Margin, alpha: float, *, binary: bool) -> _Evidence:
    """Judge all items at once, missing ones at their worst: the order of arrival does not matter."""
    d = margin.differences(x, y)
    mean, variance = float(d.mean()) if d.size else 0.0, float(d.var()) if d.size else 0.0
    needed = excess_required_n(mean, variance, margin.bound, alpha)
    if binary and not margin.relative:
        n, b, c = x.size, int((x > y).sum()), int((x < y).sum())
        p = float(excess_p(n, b, c, margin.bound, missing))
        return _Evidence("score test", _log(p), float(excess_low(n, b, c, alpha, missing)), needed)
    log_e = float(graded_excess_log_e(d, margin.bound, missing, worst=margin.worst))
    low = None if margin.relative else graded_excess_low(d, alpha, missing)
    return _Evidence("bets", -max(log_e, 0.0), low, _items_to_bets(d, margin, alpha))


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


@dataclass(frozen=True)
class Question:
    """What `gate --run` asks.

    Attributes
    ----------
    benchmark, candidate, baseline : str
    margin : Margin
    alpha : float
    """

    benchmark: str
    candidate: str
    baseline: str
    margin: Margin
    alpha: float = 0.05


def first_decision(
    candidate: Floats, baseline: Floats, question: Question, since: int = 0
) -> tuple[GateVerdict, int] | None:
    """Return the first claim that holds along a committed order, and the number of items at which it does; None if none holds.

    Parameters
    ----------
    candidate, baseline : ndarray
        Scores of the items in the committed order; nan where there is none, which counts as the worst.
    question : Question
    since : int
        Items at which no claim held: only those after them are judged.
    """
    need = -np.log(question.alpha)
    passed = _first(_not_worse_path(candidate, baseline, question.margin, since) >= need)
    worse = _first(_worse_path(candidate, baseline, since) >= need)
    if passed is None and worse is None:
        return None
    if worse is None or (passed is not None and passed <= worse):
        assert passed is not None
        return "pass", since + passed
    return "fail", since + worse


def _first(reached: Flags) -> int | None:
    return int(reached.argmax()) + 1 if reached.any() else None


def _not_worse_path(candidate: Floats, baseline: Floats, margin: Margin, since: int = 0) -> Floats:
    d = np.nan_to_num(margin.differences(candidate, baseline), nan=margin.worst)
    return evidence_path(d, margin, MIXTURE, binary=_binary(candidate, baseline), since=since)


def _worse_path(candidate: Floats, baseline: Floats, since: int = 0) -> Floats:
    """Return the two-sided evidence after each item, where it is against the candidate; minus infinity elsewhere.

    An item without a score counts for the candidate here: either claim takes it at its worst.
    """
    d = np.nan_to_num(baseline - candidate, nan=-1.0)
    if _binary(candidate, baseline):
        log_e = log_e_halves(np.cumsum(d > 0)[since:], np.cumsum(d < 0)[since:], MIXTURE)[0]
    else:
        log_e = graded_excess_log_e(d, 0.0, path=True)[since:]
    # Half of the two-sided evidence: the other half only adds to it.
    return np.where(np.cumsum(d)[since:] > 0, log_e - np.log(2), -np.inf)


def _binary(candidate: Floats, baseline: Floats) -> bool:
    return all(bool((np.isnan(x) | (x == 0) | (x == 1)).all()) for x in (candidate, baseline))


def compare_along_order(candidate: Floats, baseline: Floats, items: int, question: Question) -> GateComparison:
    """Compare two models along the committed order of `gate --run`; the first claim that holds is the verdict.

    Parameters
    ----------
    candidate, baseline : ndarray
        As for `first_decision`: of the items evaluated so far.
    items : int
        All items of the order.
    question : Question
    """
    margin, alpha = question.margin, question.alpha
    decision = first_decision(candidate, baseline, question)
    shared = ~(np.isnan(candidate) | np.isnan(baseline))
    x, y, n = candidate[shared], baseline[shared], candidate.size
    binary = _binary(candidate, baseline)
    d = np.nan_to_num(margin.differences(candidate, baseline), nan=margin.worst)
    path, against = _not_worse_path(candidate, baseline, margin), _worse_path(candidate, baseline)
    low = None
    if n and not margin.relative:
        b, c = int((d == 1).sum()), int((d == -1).sum())
        low = float(excess_low_anytime(n, b, c, alpha)) if binary else graded_excess_low(d, alpha)
    verdict: GateVerdict = "undecided" if decision is None else decision[0]
    needed = items_to_margin(d, margin, MIXTURE, alpha, binary=binary) if verdict == "undecided" else inf
    comparison = GateComparison(
        benchmark=question.benchmark,
        candidate=question.candidate,
        baseline=question.baseline,
        verdict=verdict,
        n=n,
        only_candidate=int((x > y).sum()) if binary else None,
        only_baseline=int((x < y).sum()) if binary else None,
        missing=items - n,
        mean_candidate=float(x.mean()) if x.size else None,
        mean_baseline=float(y.mean()) if x.size else None,
        gap=float(x.mean() - y.mean()) if x.size else None,
        gap_low=None if low is None else _agreeing(low, margin, verdict),
        margin=margin.size,
        relative=margin.relative,
        alpha=alpha,
        policy="committed",
        rule="bets",
        p_not_worse=exp(-max(float(path.max(initial=0)), 0.0)),
        p_worse=exp(-max(float(against.max(initial=0)), 0.0)),
        decided_at_n=None if decision is None else decision[1],
        items_needed=needed if isfinite(needed) else None,
        assumption=assumption("committed"),
        reason="",
    )
    return comparison.model_copy(update={"reason": _reason(comparison, margin, None)})


def evidence_path(differences: Floats, margin: Margin, mixture: str, *, binary: bool, since: int = 0) -> Floats:
    """Return ln e of the claim "not worse by more than the margin" after each item, the first `since` omitted.

    Parameters
    ----------
    differences : ndarray
        `Margin.differences` of each item in order, a skipped item at `Margin.worst`.
    margin : Margin
    mixture : str
        Of 0/1 scores with an absolute margin; other scores use the fixed grid.
    binary : bool
    since : int
    """
    if not binary or margin.relative:
        return graded_excess_log_e(differences, margin.bound, path=True)[since:]
    n = np.arange(since + 1, differences.size + 1)
    b, c = (np.cumsum(differences * sign > 0)[since:] for sign in (1, -1))
    return excess_log_e(n, b, c, margin.bound, mixture)


def items_to_margin(differences: Floats, margin: Margin, mixture: str, alpha: float, *, binary: bool) -> float:
    """Return how many items the claim takes in all if they go on like these; infinite where no number of items suffices."""
    if not binary or margin.relative:
        return _items_to_bets(differences, margin, alpha)
    n, b, c = differences.size, int((differences > 0).sum()), int((differences < 0).sum())

    def grown(factor: float) -> float:
        return float(excess_log_e(factor * n, factor * b, factor * c, margin.bound, mixture))

    return items_to_excess(grown, n, -np.log(alpha))


def _items_to_bets(differences: Floats, margin: Margin, alpha: float) -> float:
    values, counts = np.unique(differences, return_counts=True)
    gained = counts @ np.log1p(np.multiply.outer((values - margin.bound) / (1 + margin.bound), np.array(LAMBDAS)))

    def grown(factor: float) -> float:
        peak = factor * float(gained.max())
        return peak + float(np.log(np.exp(factor * gained - peak).mean()))

    return items_to_excess(grown, differences.size, -np.log(alpha))


def _log(p: float) -> float:
    return float(np.log(p)) if p > 0 else -_LARGEST


# --- sentences ------------------------------------------------------------------------------------------------------------------------


def conflict_sentence(counts: Mapping[str, int], models: Sequence[str]) -> str | None:
    """Return which of two models have scores that contradict earlier ones, and what to do; None without any.

    Parameters
    ----------
    counts : mapping of str to int
        Contradicting scores by model.
    models : sequence of str
    """
    mine = {model: counts[model] for model in models if model in counts}
    if not mine:
        return None
    total = sum(mine.values())
    scores = "1 score contradicts" if total == 1 else f"{total:,} scores contradict"
    names = ", ".join(f"{shorten(model)} ({count:,})" for model, count in mine.items())
    return (
        f"{scores} an earlier score of the same model and item: {names}. The earlier score counts. If these are two runs, name each one "
        "(NAME=PATH): --margin with --rerun checks their noise."
    )


def _reason(c: GateComparison, margin: Margin, held: str | None) -> str:
    """Return what the verdict on this benchmark means, or what it would take."""
    if held is not None:
        return f"Held: {held}."
    if c.gap is None:
        return "The models share no items."
    if c.verdict == "pass":
        at = f", decided at item {c.decided_at_n:,}" if c.decided_at_n else ""
        also = "; it is worse, by less than the margin" if c.p_worse <= c.alpha else ""
        return f"Not worse by more than {margin.text}{at}{also}."
    if c.verdict == "fail":
        beyond = _points(c, margin)
        return f"Worse than the baseline{beyond}."
    return f"Undecided: {what_it_takes(c, margin)}"


def _points(c: GateComparison, margin: Margin) -> str:
    """Return whether the observed gap is beyond the margin."""
    assert c.gap is not None
    assert c.mean_baseline is not None
    allowed = margin.size * (c.mean_baseline if margin.relative else 1)
    return (
        ", and the observed gap is beyond the margin" if c.gap < -allowed else "; the observed gap is within the margin"
    )


def what_it_takes(c: GateComparison, margin: Margin) -> str:
    """Return what would decide a comparison that is undecided."""
    assert c.gap is not None
    assert c.mean_baseline is not None
    allowed = margin.size * (c.mean_baseline if margin.relative else 1)
    if c.gap <= -allowed:
        return f"the observed gap, {100 * c.gap:+.2f} points, is not inside the margin, so more items like these would not make it pass."
    lost = (
        f"{c.missing:,} missing items count against the candidate; " if c.missing and c.policy == "completion" else ""
    )
    if c.items_needed is None:
        return f"{lost}more items like these would not make it pass."
    if lost and c.items_needed <= c.n + (c.missing or 0):
        return f"{lost}score them too."
    room = (
        "a test of this many has a power of .8"
        if c.policy == "completion"
        else "the expected path reaches the threshold there"
    )
    return f"{lost}it takes about {int(np.ceil(c.items_needed)):,} items in all ({room}), or a larger margin; {c.n:,} are shared."

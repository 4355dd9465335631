"""Whether a model is not worse than another by more than a margin, item by item along the committed order of `gate --run`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, inf, isfinite
from typing import Final

import numpy as np

from monitor.view.board import Flags, Floats
from monitor.view.gates.margin import Margin, agreeing_bound, evidence_path, items_to_margin, worse_bound
from monitor.view.gates.reasons import of_comparison, with_facts
from monitor.words.assumptions import clauses
from schemas.results.assumptions import Assumption, facts, sampled
from schemas.results.gate import GateComparison, GateVerdict
from schemas.results.gate_check import Attainable, Attained
from stats.evidence.eprocess import log_e_halves
from stats.evidence.margin import excess_low_anytime, graded_excess_log_e, graded_excess_low

MIXTURE: Final = "beta(1,1)"  # of the bets of `gate --run`

_ASSUMED: Final = [Assumption("committed"), *sampled("committed", units=False)]
"""What the answers of `gate --run` assume, besides what the scores of the baseline do."""


@dataclass(frozen=True)
class Question:
    """What `gate --run` asks."""

    benchmark: str
    candidate: str
    baseline: str
    margin: Margin
    alpha: float = 0.05
    history: tuple[Assumption, ...] = ()

    @property
    def assumed(self) -> list[Assumption]:
        """What the answer assumes."""
        return [*_ASSUMED, *self.history]

    def decided(self, candidate: Floats, baseline: Floats, since: int = 0) -> bool:
        """Return whether a claim holds along the items so far; the first `since` were judged, and the baseline has all items."""
        return first_decision(candidate, baseline[: candidate.size], self, since) is not None

    def compare(self, candidate: Floats, baseline: Floats, items: int) -> GateComparison:
        """Compare two models on the items so far; the baseline is of all items."""
        return compare_along_order(candidate, baseline[: candidate.size], items, self)

    def attainable(self, baseline: Floats) -> Attained:
        """Return whether equal answers can pass, or a candidate that is right everywhere, and from how many items on equal answers do."""
        return _attainable(baseline, self)

    def of(self, size: float) -> "Question":
        """Return the same question with another margin, in score units."""
        return replace(self, margin=Margin(size))

    def items_to_pass(self, baseline: Floats) -> int | None:
        """Return at which item of the order equal answers pass; None where they do not."""
        claim = first_decision(baseline, baseline, self)
        return claim[1] if claim is not None and claim[0] == "pass" else None


def questions_of(
    benchmark: str,
    candidates: Sequence[str],
    baseline: str,
    margin: Margin,
    alpha: float,
    history: Sequence[Assumption] = (),
    kind: type[Question] = Question,
) -> list[Question]:
    """Return the question of each candidate, which is decided at an equal share of alpha."""
    # The shares are fixed in advance: when a candidate stops changes nothing for the others.
    share = alpha / len(candidates)
    return [kind(benchmark, candidate, baseline, margin, share, tuple(history)) for candidate in candidates]


def first_decision(
    candidate: Floats, baseline: Floats, question: Question, since: int = 0
) -> tuple[GateVerdict, int] | None:
    """Return the first claim that holds along a committed order, and the number of items at which it does; None if none holds."""
    return first_claim(*evidence_along_order(candidate, baseline, question.margin, since), question.alpha, since)


def evidence_along_order(candidate: Floats, baseline: Floats, margin: Margin, since: int = 0) -> tuple[Floats, Floats]:
    """Return ln e of "not worse by more than the margin" and of "worse" after each item, the first `since` omitted."""
    return _not_worse_path(candidate, baseline, margin, since), _worse_path(candidate, baseline, since)


def _attainable(baseline: Floats, question: Question) -> Attained:
    margin, need = question.margin, -np.log(question.alpha)
    binary = _binary(baseline, baseline)

    def reached(candidate: Floats) -> bool:
        d = margin.differences(candidate, baseline)
        return bool((evidence_path(d, margin, MIXTURE, binary=binary) >= need).any())

    code: Attainable = "possible"
    if not reached(baseline):
        code = "only_wins" if reached(np.ones(baseline.size)) else "impossible"
    d = margin.differences(baseline, baseline)
    needed = items_to_margin(d, margin, MIXTURE, question.alpha, binary=binary)
    return Attained(code, baseline.size, ceil(needed) if isfinite(needed) else None)


def first_claim(not_worse: Floats, against: Floats, alpha: float, since: int = 0) -> tuple[GateVerdict, int] | None:
    """Return the first claim whose evidence reaches 1 / alpha, and the item at which it does."""
    need = -np.log(alpha)
    passed, worse = _first(not_worse >= need), _first(against >= need)
    if passed is None and worse is None:
        return None
    if worse is None or (passed is not None and passed <= worse):
        assert passed is not None
        return "pass", since + passed
    return "fail", since + worse


def least_p(log_e: Floats) -> float:
    """Return 1 / the largest evidence of a path, at most 1."""
    return exp(-float(log_e.max(initial=0)))


def _first(reached: Flags) -> int | None:
    return int(reached.argmax()) + 1 if reached.any() else None


def _not_worse_path(candidate: Floats, baseline: Floats, margin: Margin, since: int = 0) -> Floats:
    d = np.nan_to_num(margin.differences(candidate, baseline), nan=margin.worst)
    return evidence_path(d, margin, MIXTURE, binary=_binary(candidate, baseline), since=since)


def _worse_path(candidate: Floats, baseline: Floats, since: int = 0) -> Floats:
    """Return the two-sided evidence after each item, where it is against the candidate; minus infinity elsewhere."""
    # An item without a score counts for the candidate here: either claim takes it at its worst.
    d = np.nan_to_num(baseline - candidate, nan=-1.0)
    if _binary(candidate, baseline):
        log_e = log_e_halves(np.cumsum(d > 0)[since:], np.cumsum(d < 0)[since:], MIXTURE)[0]
    else:
        log_e = graded_excess_log_e(d, 0.0, path=True)[since:]
    # Half of the two-sided evidence: the other half only adds to it.
    return np.where(np.cumsum(d)[since:] > 0, log_e - np.log(2), -np.inf)


def _binary(candidate: Floats, baseline: Floats) -> bool:
    return all(bool((np.isnan(x) | (x == 0) | (x == 1)).all()) for x in (candidate, baseline))


def _low(differences: Floats, alpha: float, *, binary: bool) -> float:
    """Return the lower bound of a mean difference, one-sided and anytime-valid."""
    if not binary:
        return graded_excess_low(differences, alpha)
    b, c = int((differences == 1).sum()), int((differences == -1).sum())
    return float(excess_low_anytime(differences.size, b, c, alpha))


def compare_along_order(candidate: Floats, baseline: Floats, items: int, question: Question) -> GateComparison:
    """Compare two models along the committed order of `gate --run`; the first claim that holds is the verdict."""
    margin, alpha = question.margin, question.alpha
    path, against = evidence_along_order(candidate, baseline, margin)
    decision = first_claim(path, against, alpha)
    shared = ~(np.isnan(candidate) | np.isnan(baseline))
    x, y, n = candidate[shared], baseline[shared], candidate.size
    binary = _binary(candidate, baseline)
    d = np.nan_to_num(margin.differences(candidate, baseline), nan=margin.worst)
    # Evidence counts up to the decision, also where the block has more items: then the size of blocks changes nothing.
    end = n if decision is None else decision[1]
    path, against = path[:end], against[:end]
    low = _low(d, alpha, binary=binary) if n and not margin.relative else None
    ahead = np.nan_to_num(baseline - candidate, nan=-1.0)
    high = -_low(ahead, alpha / 2, binary=binary) if n else None
    verdict: GateVerdict = "undecided" if decision is None else decision[0]
    needed = items_to_margin(d, margin, MIXTURE, alpha, binary=binary) if verdict == "undecided" else inf
    wins, losses = (int((x > y).sum()), int((x < y).sum())) if binary else (None, None)
    comparison = GateComparison(
        benchmark=question.benchmark,
        candidate=question.candidate,
        baseline=question.baseline,
        verdict=verdict,
        n=n,
        only_candidate=wins,
        only_baseline=losses,
        missing=items - n,
        mean_candidate=float(x.mean()) if x.size else None,
        mean_baseline=float(y.mean()) if x.size else None,
        gap=float(x.mean() - y.mean()) if x.size else None,
        gap_low=None if low is None else agreeing_bound(low, margin, verdict),
        gap_high=worse_bound(high, verdict),
        margin=margin.size,
        relative=margin.relative,
        alpha=alpha,
        looks="several",
        policy="committed",
        rule="bets",
        p_not_worse=least_p(path),
        p_worse=least_p(against),
        decided_at_n=None if decision is None else decision[1],
        items_needed=needed if isfinite(needed) else None,
        assumption=clauses(question.assumed),
        assumptions=facts(question.assumed),
        reason="",
    )
    return with_facts(comparison, of_comparison(comparison, margin, []))

"""The verdict of the full run before its end: `gate --run --exact`."""

from dataclasses import dataclass
from math import exp, isfinite, log
from typing import Final

import numpy as np

from monitor.view.board import Floats
from monitor.view.gates.along_order import Question
from monitor.view.gates.margin import agreeing_bound, equal_answers, items_to_bets, worse_bound
from monitor.view.gates.reasons import of_comparison, with_facts
from monitor.words.assumptions import clauses
from schemas.results.assumptions import Assumption, facts, sampled
from schemas.results.gate import GateComparison, GateVerdict, Rule
from schemas.results.gate_check import Attainable, Attained
from schemas.results.reasons import Reason, fact
from stats.evidence.margin import excess_p, excess_required_n, graded_excess_log_e, graded_excess_low
from stats.fixed_n.mcnemar import exact_p
from stats.gates.curtail import certain, items_until_certain
from stats.intervals.completion_gap import excess_low

_ASSUMED: Final = sampled("completion", units=False)


@dataclass(frozen=True)
class ExactQuestion(Question):
    """What `gate --run --exact` asks: the verdict on all items, as soon as no missing one can change it."""

    # Where the baseline has scores between 0 and 1, the bets decide.

    @property
    def assumed(self) -> list[Assumption]:
        """What the answer assumes: no order."""
        return [*_ASSUMED, *self.history]

    def verdict(self, candidate: Floats, baseline: Floats) -> GateVerdict:
        """Return the verdict of a full run; it never gets worse where the candidate wins an item more."""
        passed, worse = self._p(candidate, baseline)
        return "pass" if passed <= self.alpha else "fail" if worse <= self.alpha else "undecided"

    def _p(self, candidate: Floats, baseline: Floats) -> tuple[float, float]:
        if _rule(baseline) == "bets":
            d = candidate - baseline
            passed, worse = float(graded_excess_log_e(d, self.margin.bound)), float(graded_excess_log_e(-d, 0.0))
            return exp(-max(passed, 0.0)), exp(-max(worse - log(2), 0.0))
        b, c = int((candidate > baseline).sum()), int((candidate < baseline).sum())
        worse = float(exact_p(b, c)) if c > b else 1.0
        return float(excess_p(baseline.size, b, c, self.margin.bound)), worse

    def decided(self, candidate: Floats, baseline: Floats, since: int = 0) -> bool:  # noqa: ARG002 - of bets
        """Return whether no missing item can change the verdict."""
        return certain(np.nan_to_num(candidate), baseline, self.verdict) is not None

    def attainable(self, baseline: Floats) -> Attained:
        """Return whether equal answers can pass, or a candidate that is right everywhere."""
        code: Attainable = "possible"
        if self.verdict(baseline, baseline) != "pass":
            code = "only_wins" if self.verdict(np.ones(baseline.size), baseline) == "pass" else "impossible"
        return Attained(code, baseline.size, equal_answers(self.margin.size, self.alpha, _rule(baseline)))

    def items_to_pass(self, baseline: Floats) -> int | None:
        """Return after which item of the order equal answers are certain to pass; None where they do not."""
        items, verdict = items_until_certain(baseline, baseline, self.verdict)
        return items if verdict == "pass" else None

    def compare(self, candidate: Floats, baseline: Floats, items: int) -> GateComparison:
        """Compare two models on the items so far; what is missing is at its worst for either claim."""
        new = np.nan_to_num(candidate)
        rest = items - new.size
        worst, best = (np.concatenate([new, np.full(rest, score)]) for score in (0.0, 1.0))
        found = certain(new, baseline, self.verdict)
        at = items_until_certain(new, baseline, self.verdict)[0] if found is not None else None
        x, y = new, baseline[: new.size]
        rule = _rule(baseline)
        wins, losses = (int((x > y).sum()), int((x < y).sum())) if rule == "exact test" else (None, None)
        p_not_worse, p_worse = self._p(worst, baseline)[0], self._p(best, baseline)[1]
        low, high = _low(worst - baseline, self.alpha, rule), -_low(baseline - best, self.alpha / 2, rule)
        verdict: GateVerdict = found or "undecided"
        d = worst - baseline
        needed = excess_required_n(float(d.mean()), float(d.var()), self.margin.bound, self.alpha)
        if rule == "bets":
            needed = items_to_bets(d, self.margin, self.alpha)
        code = Reason.CERTAIN if found is not None else Reason.UNCERTAIN
        comparison = GateComparison(
            benchmark=self.benchmark,
            candidate=self.candidate,
            baseline=self.baseline,
            verdict=verdict,
            n=new.size,
            only_candidate=wins,
            only_baseline=losses,
            missing=rest,
            mean_candidate=float(x.mean()) if x.size else None,
            mean_baseline=float(y.mean()) if x.size else None,
            gap=float(x.mean() - y.mean()) if x.size else None,
            gap_low=agreeing_bound(low, self.margin, verdict),
            gap_high=worse_bound(high, verdict),
            margin=self.margin.size,
            relative=False,
            alpha=self.alpha,
            looks="one",
            policy="completion",
            rule=rule,
            p_not_worse=p_not_worse,
            p_worse=p_worse,
            decided_at_n=at,
            items_needed=needed if verdict == "undecided" and not rest and isfinite(needed) else None,
            assumption=clauses(self.assumed),
            assumptions=facts(self.assumed),
            reason="",
        )
        ends = new.size > 0 and (found in {"pass", "fail"} or not rest)
        reasons = of_comparison(comparison, self.margin, []) if ends else []
        return with_facts(comparison, [*reasons, fact(code, items=items, missing=rest, at=at)])


def _rule(baseline: Floats) -> Rule:
    """Return what the verdict rests on: known ahead, from the baseline alone."""
    return "exact test" if ((baseline == 0) | (baseline == 1)).all() else "bets"


def _low(differences: Floats, alpha: float, rule: Rule) -> float:
    """Return the lower bound of a mean difference, one-sided at one look."""
    if rule == "bets":
        return graded_excess_low(differences, alpha)
    b, c = int((differences > 0).sum()), int((differences < 0).sum())
    return float(excess_low(differences.size, b, c, alpha)) if differences.size else -1.0

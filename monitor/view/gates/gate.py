"""The answer of a gate over all its candidates, benchmarks and metrics, with the errors of the whole family under control."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np

from monitor.view.board import Floats
from monitor.view.gates.along_order import Question
from monitor.view.gates.margin import Margin
from monitor.view.gates.reasons import with_facts
from monitor.words import gates as words
from monitor.words.gate_checks import not_run as not_run_words
from schemas.results.gate import GateCandidate, GateComparison, GateReport, GateVerdict
from schemas.results.gate_check import Attained
from schemas.results.reasons import Reason, fact
from stats.families.error_control import holm

PASS, WAIT, FAIL = 0, 3, 4
"""Exit codes: not worse; undecided or held; worse. 1 and 2 are faults and wrong usage, as in every command."""

OnUndecided = Literal["pass", "fail", "wait"]

_CODES: Final = {"pass": PASS, "undecided": WAIT, "fail": FAIL}
_DECIDED_BY_FAMILY: Final = {"pass": Reason.NOT_WORSE_IN_FAMILY, "fail": Reason.WORSE_IN_FAMILY}
_UNDECIDED: Final = {"pass": PASS, "fail": FAIL, "wait": WAIT}


def gate_report(
    comparisons: Sequence[GateComparison],
    margin: Margin,
    on_undecided: OnUndecided = "wait",
    prices: Mapping[str, float] | None = None,
    evaluation: str | None = None,
    alpha: float | None = None,
    *,
    shares: bool = False,
) -> GateReport:
    """Judge candidates by their comparisons with one baseline."""
    # A candidate passes if it is not worse on every benchmark, in every metric: for that claim its largest p counts, without correction,
    # and the candidates share alpha (Holm). It fails if it is worse on any: there all comparisons share alpha (Holm). With `shares`, each
    # is decided at its own share of alpha: a full run that was stopped early has no other.
    models = list(dict.fromkeys(each.candidate for each in comparisons))
    of = np.array([models.index(each.candidate) for each in comparisons])
    levels = np.array([each.alpha if alpha is None else alpha for each in comparisons])
    against = np.array([each.alpha for each in comparisons]) if shares else levels
    adjusted = (lambda ratios: ratios) if shares else holm_ratios
    not_worse = np.array([each.p_not_worse for each in comparisons]) / against
    passed = adjusted(np.array([not_worse[of == k].max() for k in range(len(models))]))
    worse = adjusted(np.array([each.p_worse for each in comparisons]) / against)
    candidates = [
        _candidate(
            model,
            [each for each in comparisons if each.candidate == model],
            float(passed[k]),
            float(worse[of == k].min()),
            float(levels[of == k].min()),
            prices,
        )
        for k, model in enumerate(models)
    ]
    cheapest = _cheapest(candidates) if prices else None
    alphas = sorted(set(levels.tolist()))
    verdict = _verdict(candidates, chooses=bool(prices), cheapest=cheapest)
    return GateReport(
        verdict=verdict,
        exit_code=_UNDECIDED[on_undecided] if verdict == "undecided" else _CODES[verdict],
        headline=words.headline(
            candidates,
            comparisons,
            margin.text,
            verdict,
            cheapest,
            on_undecided,
            prices,
            [each.where for each, p in zip(comparisons, worse.tolist(), strict=True) if p <= 1],
        )
        + ("" if verdict == "undecided" else f" ({words.alpha(alphas)})"),
        risk=words.risk(verdict, margin.text, max(alphas), comparisons[0].baseline, models),
        family=words.family(candidates, comparisons, alphas, shares=shares),
        baseline=comparisons[0].baseline,
        margin=margin.size,
        relative=margin.relative,
        on_undecided=on_undecided,
        cheapest=cheapest,
        candidates=candidates,
        comparisons=[
            _in_family(each, candidates, len(comparisons), alpha_of)
            for each, alpha_of in zip(comparisons, levels.tolist(), strict=True)
        ],
        evaluation=evaluation,
    )


_SHOWN: Final = (0.01, 0.02, 0.03, 0.05)
_LARGEST: Final = 20  # points: a larger margin is no advice


def not_run(
    questions: Sequence[Question], baseline: Floats, found: Attained, on_undecided: OnUndecided = "wait"
) -> GateReport:
    """Return the answer of a gate that ends before its first call: with these items it cannot pass, or equal answers cannot."""
    first = questions[0]
    margin, least, margins = first.margin, None, []
    if not margin.relative and found.items == baseline.size:  # a budget has no other margin
        margins = [[size, first.of(size).attainable(baseline).equal_items] for size in sorted({*_SHOWN, margin.size})]
        sizes = (points / 100 for points in range(1, _LARGEST + 1) if points / 100 > margin.size)
        least = next((size for size in sizes if first.of(size).attainable(baseline).code == "possible"), None)
    why = fact(
        Reason.OUT_OF_REACH,
        attainable=found.code,
        items=found.items,
        needed=found.equal_items,
        margin=margin.size,
        relative=margin.relative,
        least=least,
        margins=margins,
    )
    comparisons = [with_facts(each.compare(np.zeros(0), baseline, baseline.size), [why]) for each in questions]
    alpha = sum(each.alpha for each in questions)
    candidates = [
        GateCandidate(model=each.candidate, verdict="undecided", price=None, p_not_worse=1.0, p_worse=1.0)
        for each in questions
    ]
    return GateReport(
        verdict="not_run",
        exit_code=2,
        headline=f"not run: {not_run_words(found)}",
        family=words.family(candidates, comparisons, [alpha], shares=True),
        baseline=first.baseline,
        margin=margin.size,
        relative=margin.relative,
        on_undecided=on_undecided,
        cheapest=None,
        candidates=candidates,
        comparisons=comparisons,
    )


def holm_ratios(ratios: Floats) -> Floats:
    """Adjust p-values in units of their alpha, which benchmarks may declare differently; 1 is the threshold."""
    unit = 1 / (ratios.size * max(1.0, float(ratios.max())))
    return holm(unit * ratios) / unit


def _candidate(
    model: str,
    mine: Sequence[GateComparison],
    passed: float,
    worse: float,
    alpha: float,
    prices: Mapping[str, float] | None,
) -> GateCandidate:
    verdict: GateVerdict = "undecided"
    if any(each.verdict == "held" for each in mine):
        verdict = "held"
    elif passed <= 1:
        verdict = "pass"
    elif worse <= 1:
        verdict = "fail"
    return GateCandidate(
        model=model,
        verdict=verdict,
        price=None if prices is None else prices.get(model),
        p_not_worse=min(1.0, passed * alpha),
        p_worse=min(1.0, worse * alpha),
    )


def _cheapest(candidates: Sequence[GateCandidate]) -> str | None:
    priced = [(each.price, each.model) for each in candidates if each.verdict == "pass" and each.price is not None]
    return min(priced)[1] if priced else None


def _verdict(
    candidates: Sequence[GateCandidate], *, chooses: bool, cheapest: str | None
) -> Literal["pass", "fail", "undecided"]:
    verdicts = {each.verdict for each in candidates}
    if chooses:
        if cheapest is not None:
            return "pass"
        return "fail" if verdicts == {"fail"} else "undecided"
    if "fail" in verdicts:
        return "fail"
    return "pass" if verdicts == {"pass"} else "undecided"


def _in_family(
    comparison: GateComparison, candidates: Sequence[GateCandidate], size: int, alpha: float
) -> GateComparison:
    """Add to the reason of a comparison that the family leaves the candidate undecided, or decides it, where it does."""
    whole = next(each.verdict for each in candidates if each.model == comparison.candidate)
    decided_by_family = whole == "pass" if comparison.verdict == "fail" else comparison.verdict == "undecided"
    if decided_by_family and size == len(candidates) and whole in _DECIDED_BY_FAMILY:
        decided = comparison.replace(verdict=whole, items_needed=None)
        return with_facts(decided, [fact(_DECIDED_BY_FAMILY[whole], alpha=alpha)])
    if whole != "undecided" or comparison.verdict == "undecided":
        return comparison
    return with_facts(comparison, [*comparison.facts, fact(Reason.OPEN_IN_FAMILY, comparisons=size)])

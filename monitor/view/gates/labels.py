"""A gate on what people prefer: the verdict of a judge, corrected by their labels."""

from collections.abc import Mapping, Sequence
from math import exp

from monitor.view.board import Floats
from monitor.view.gates.margin import Margin
from monitor.view.gates.reasons import with_facts
from monitor.view.labels import Labels, labelled_scores, labels_report
from monitor.view.pairs.table import PairTable
from schemas.results.gate import GateComparison, GateVerdict
from schemas.results.reasons import Reason, fact


def corrected(
    comparisons: Sequence[GateComparison], tables: Mapping[str, PairTable], labels: Mapping[str, Labels], margin: Margin
) -> list[GateComparison]:
    """Let people give the verdict of comparisons where they labelled both models."""
    return [
        _corrected(each, tables[each.benchmark], labels[each.benchmark], margin) if each.benchmark in labels else each
        for each in comparisons
    ]


def _corrected(c: GateComparison, table: PairTable, labels: Labels, margin: Margin) -> GateComparison:
    scores = labelled_scores(table.benchmark, labels, c.candidate, c.baseline)

    def excess(candidate: Floats, baseline: Floats) -> Floats:
        return (margin.differences(candidate, baseline) - margin.bound) / (1 - margin.bound)

    (path,), people = scores.at_largest(excess, [1]), scores.decided()
    not_worse = exp(-max(float(path.max(initial=0.0)), 0.0))
    worse = people.p if people.side < 0 else 1.0
    verdict: GateVerdict = "pass" if not_worse <= c.alpha else "fail" if worse <= c.alpha else "undecided"
    if c.verdict == "held":
        verdict = "held"
    p = worse if verdict == "fail" else not_worse
    of = {"verdict": verdict, "judge": c.verdict, "margin": margin.size, "relative": margin.relative}
    changed = c.replace(
        verdict=verdict,
        p_not_worse=not_worse,
        p_worse=worse,
        rule="labels",
        gap_low=None,
        gap_high=None,
        decided_at_n=None,
        items_needed=None,
        judge_verdict=c.verdict,
        labels=labels_report(table, labels, "anytime", (c.candidate, c.baseline)),
    )
    facts = c.facts if verdict == "held" else [fact(Reason.LABELS_GATE, **of, labels=scores.count, p=p, alpha=c.alpha)]
    return with_facts(changed, facts)

"""The verdict on one pair for the end of an evaluation job: as text, JSON, a JUnit file or a GitHub annotation."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from monitor.words.gates import conflicts as conflicts_of
from monitor.words.labels import beneath
from monitor.words.numbers import Q_IS_NO_EVIDENCE, apart, e_value, equals, p_value, safe
from monitor.words.order import LOOKS, SCOPES
from monitor.words.points import points
from monitor.words.reading import first
from schemas.results.assumptions import assumes
from schemas.results.gate import ConflictRule
from schemas.results.labels import LabelsReport
from schemas.results.report import BenchmarkReport, PairReport

FOR_A, OPEN, FOR_B = 0, 3, 4
"""Exit codes: decided for A, undecided or held, decided for B; 1 and 2 are faults and wrong usage, as in every command."""


@dataclass(frozen=True)
class Answer:
    """The verdict on models A and B, in the order of the question; `pair` is their row of the report, which orders them by rank."""

    benchmark: str
    model_a: str
    model_b: str
    code: int
    headline: str
    evidence: tuple[str, ...]
    pair: PairReport
    conflict_rule: ConflictRule
    notes: tuple[str, ...] = ()
    labels: LabelsReport | None = None


def answer(
    report: BenchmarkReport,
    pair: PairReport,
    models: tuple[str, str],
    rule: ConflictRule = "worst",
    labels: LabelsReport | None = None,
) -> Answer:
    """Answer for two models, A first, by the procedure `anytime`: alpha is for this pair only, under the order policy in force."""
    # `rule` is which score counts where an item has several. With `labels` people give the verdict.
    side = pair.decided.anytime
    held = pair.status in {"held", "invalidated"}
    if labels is not None:
        side = None if held else labels.pairs[0].decided
    better = None if side is None else pair.model_a if side == "a" else pair.model_b
    a, b = (safe(model) for model in models)
    if better is None:
        code, word = OPEN, "held" if held else "undecided"
        headline = f"{word}: no verdict for {a} against {b} on {safe(report.benchmark)}"
    else:
        code, (winner, loser) = (FOR_A, (a, b)) if better == models[0] else (FOR_B, (b, a))
        # What is decided among all pairs is decided for this one too.
        scope = SCOPES["anytime_family" if pair.decided.anytime_family == side else "anytime"]
        scope = scope if labels is None else "by labels of people"
        level = f"alpha = {report.alpha:g}, {LOOKS[report.looks]}"
        headline = f"decided {scope}: {winner} is better than {loser} on {safe(report.benchmark)} ({level})"
    people = () if labels is None else (labels.pairs[0].reason, *beneath(labels), "By the judge alone:")
    evidence = (*map(safe, people), *_evidence(report, pair, models, rule))
    return Answer(report.benchmark, *models, code, headline, evidence, pair, rule, tuple(first(report)), labels)


def _evidence(report: BenchmarkReport, pair: PairReport, models: tuple[str, str], rule: ConflictRule) -> list[str]:
    sign, only_a, only_b = (1, pair.b, pair.c) if pair.model_a == models[0] else (-1, pair.c, pair.b)
    counts = "" if only_a is None else f", only A right on {only_a:,}, only B right on {only_b:,}"
    lines = [f"shared items {pair.n:,}{counts}"]
    if pair.gap is not None:
        ends = [sign * end for end in (pair.gap_low, pair.gap_high) if end is not None]
        interval = f", interval {points(min(ends))} to {points(max(ends))}" if ends else ""
        lines.append(f"gap A - B {points(sign * pair.gap)} points{interval}")
    if report.order.policy == "completion" and pair.b is not None and pair.p_anytime is not None:
        missing = "ignored" if _ignores_missing(report, pair) else "at their worst"
        p, alpha = apart(p_value, pair.p_anytime, report.alpha)
        lines.append(f"{equals('p', p)} of the exact test, missing items {missing}; decided at p <= {alpha}")
    elif report.look and pair.p_anytime is not None:
        p, alpha = apart(p_value, pair.p_anytime, report.alpha)
        lines.append(f"{equals('p', p)} by bets or by one exact test of all items; decided at p <= {alpha}")
    elif pair.log_e is not None:
        e, threshold = apart(e_value, pair.log_e, -log(report.alpha))
        lines.append(f"e = {e} (ln e {pair.log_e:.3f}), threshold 1/alpha = {threshold}")
    if pair.resolution_ratio is not None:
        fixed = f"{_resolved(pair.resolved.fixed_n)} at a planned n (power {report.power:g})"
        anytime = pair.resolved.anytime
        watched = "" if anytime is None else f", {_resolved(anytime)} if watched throughout"
        lines.append(f"q = N/N* = {pair.resolution_ratio:.2f}: {fixed}{watched}; {Q_IS_NO_EVIDENCE}")
    policy = report.order
    # The reason of a held pair, on the next line, has the reason of the order.
    reason = f" ({safe(policy.reason)})" if policy.reason and pair.status != "held" else ""
    lines.append(f"order: {policy.policy}{reason}")
    lines.append(safe(pair.reason))
    if conflicts := conflicts_of(report.conflicts_by_model, models, rule):
        lines.append(f"! {safe(conflicts)}")
    return lines


def _ignores_missing(report: BenchmarkReport, pair: PairReport) -> bool:
    """Return whether the pair lacks items and its verdict ignores them: both runs have ended, and the declaration allows it."""
    ended = {model.model for model in report.models if model.run_ended}
    lacks = pair.n < (report.declared_items or report.items) and {pair.model_a, pair.model_b} <= ended
    return lacks and assumes(report, "ignored")


def _resolved(resolved: bool | None) -> str:  # noqa: FBT001 - a field of the report
    return "resolved" if resolved else "not resolved"


def as_text(answer: Answer) -> str:
    """Write headline and evidence, one line each."""
    notes = (f"! {safe(line)}" for line in answer.notes)
    return "\n".join((answer.headline, *(f"  {line}" for line in (*notes, *answer.evidence))))


def as_json(answer: Answer) -> str:
    """Write the verdict with the pair's row of the report."""
    return json.dumps(
        {
            "benchmark": answer.benchmark,
            "model_a": answer.model_a,
            "model_b": answer.model_b,
            "decided": {FOR_A: "a", FOR_B: "b", OPEN: None}[answer.code],
            "exit_code": answer.code,
            "headline": answer.headline,
            "notes": answer.notes,
            "conflict_rule": answer.conflict_rule,
            **({} if answer.labels is None else {"labels": answer.labels.as_dict()}),
            "pair": answer.pair.as_dict(),
        }
    )


def as_junit(answer: Answer) -> str:
    """Write a JUnit file with one test, which fails unless the verdict is for A; a test that passes prints the evidence."""
    kinds = {FOR_A: "", OPEN: "open", FOR_B: "worse"}
    name = f"{answer.model_a} better than {answer.model_b}"
    case = Case(answer.benchmark, name, as_text(answer), kinds[answer.code], answer.headline)
    return junit(f"rankwatch gate {answer.benchmark}", [case])


class Case(NamedTuple):
    """A test of a JUnit file: it fails if there is a kind of failure."""

    classname: str
    name: str
    text: str
    kind: str
    message: str


def junit(name: str, cases: Sequence[Case]) -> str:
    """Write a JUnit file; characters that XML 1.0 cannot hold are replaced."""
    root = Element("testsuites")
    failures = str(sum(bool(case.kind) for case in cases))
    suite = SubElement(root, "testsuite", name=_xml(name), tests=str(len(cases)), failures=failures)
    for case in cases:
        test = SubElement(suite, "testcase", classname=_xml(case.classname), name=_xml(case.name))
        failed = {"message": _xml(case.message), "type": case.kind}
        inside = SubElement(test, "failure", failed) if case.kind else SubElement(test, "system-out")
        inside.text = _xml(case.text)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}'


def _xml(text: str) -> str:
    return "".join(c if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)


def as_github(answer: Answer) -> str:
    """Write a workflow command; `%`, line ends and, in its properties, `:` and `,` are escaped."""
    level = {FOR_A: "notice", OPEN: "warning", FOR_B: "error"}[answer.code]
    return annotation(level, f"rankwatch gate {safe(answer.benchmark)}", as_text(answer))


def annotation(level: str, title: str, text: str) -> str:
    """Write a workflow command of GitHub, escaped."""
    title = title.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C")
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title={title}::{text}"

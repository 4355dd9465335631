"""What the page writes about a board and its verdict changes: it has no sentence of a verdict of its own."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from monitor.words import pairs
from monitor.words.assumptions import clauses
from monitor.words.columns import NEEDS, needs, sized
from monitor.words.counts import counted
from monitor.words.header import coverage, goal_line, weights
from monitor.words.kinds import words_of
from monitor.words.order import POLICIES, because
from monitor.words.reading import not_counted
from monitor.words.results import halves
from schemas.records.text import Sentence
from schemas.results.api import BoardWords, ChangeWords
from schemas.results.assumptions import Assumption, without
from schemas.results.reasons import Reason, has
from schemas.results.reasons import without as without_codes
from schemas.results.report import BenchmarkReport, PairReport

_KINDS: Final = {  # the verdicts of each claim
    "settled": "settled leads",
    "anytime": "pair-only verdicts",
    "anytime_family": "family-wise verdicts",
}


class Verdict(NamedTuple):
    """The claim of a verdict, and what it assumes."""

    kind: str
    assumptions: tuple[Assumption, ...]


def assumed(verdicts: Sequence[Verdict]) -> tuple[Sentence | None, dict[str, tuple[Assumption, ...]]]:
    """Return what most verdicts of each kind assume as a paragraph, and by kind.

    >>> listed, joined = Assumption("listed"), Assumption("joined")
    >>> text, common = assumed([Verdict("anytime", (listed,)), *[Verdict("anytime_family", (listed, joined))] * 2])
    >>> text
    'Pair-only verdicts assume that the declared list of items is the whole benchmark. Family-wise verdicts also assume that which models \
join, and when, does not depend on their scores.'
    """
    tallies: dict[str, Counter[tuple[Assumption, ...]]] = {}
    for kind, made in verdicts:
        if made:
            tallies.setdefault(kind, Counter())[made] += 1
    common = {kind: tallies[kind].most_common(1)[0][0] for kind in _KINDS if kind in tallies}
    statements: list[tuple[list[str], tuple[Assumption, ...], tuple[Assumption, ...]]] = []
    for kind, made in common.items():
        last = statements[-1] if statements else None
        if last is not None and last[1] == made:
            last[0].append(_KINDS[kind])
            continue
        also = made[len(last[1]) :] if last is not None and made[: len(last[1])] == last[1] else ()
        statements.append(([_KINDS[kind]], made, also))
    every = len({kind for kind, _ in verdicts})
    texts = []
    for kinds, made, also in statements:
        who = "verdicts" if len(kinds) == every else " and ".join(kinds)
        verb = f"also assume that {clauses(also)}" if also else f"assume that {clauses(made)}"
        texts.append(f"{who[0].upper()}{who[1:]} {verb}.")
    if others := sum(bool(made) and made != common[kind] for kind, made in verdicts):
        name = "One verdict names" if others == 1 else f"{others:,} verdicts name"
        texts.append(f"{name} another assumption.")
    return " ".join(texts) or None, common


def change_words(changes: Sequence[bytes]) -> ChangeWords:
    """Return what the page writes above some verdict changes, given as JSON, and for each of them."""
    decoded: list[dict[str, Any]] = [msgspec.json.decode(change) for change in changes]
    made = [_verdict(change) for change in decoded]
    text, common = assumed([each for each in made if each.assumptions])
    sentences = [
        change["sentence"].removesuffix(f" Assumes that {clauses(each.assumptions)}.")
        if each.assumptions and each.assumptions == common[each.kind]
        else change["sentence"]
        for change, each in zip(decoded, made, strict=True)
    ]
    return ChangeWords(assumed_note=text, sentences=sentences)


def _verdict(change: dict[str, Any]) -> Verdict:
    """Return the verdict of a change; only those that begin assume anything."""
    made = tuple(map(Assumption.of, change.get("assumptions", ())))
    if change.get("procedure") == "settled":
        made = tuple(without(made, {"listed"}))  # its sentence names the items
    return Verdict(change.get("procedure", "drift"), made)


def board_words(report: BenchmarkReport) -> BoardWords:
    """Return what the page writes about a board, and for each of its pairs."""
    b = report
    made = {k: verdict for k, pair in enumerate(b.pairs) if (verdict := _pair_verdict(pair)) is not None}
    text, common = assumed(list(made.values()))
    return BoardWords(
        result=[] if (r := b.result) is None else [halves(each.facts) for each in (r.best, r.steps, r.change) if each],
        held_note=_held(b),
        order_note=_order(b),
        partial_note=None if b.partial is None else f"This benchmark may be partial: {b.partial}.",
        reading_notes=not_counted(b),
        board_note=None if b.board is None or b.board.note is None else f"This board is {b.board.note}.",
        policy_note=f"{b.order.policy}: {POLICIES[b.order.policy]}",
        assumption_note=words_of(b).how(b),
        coverage_note=_paragraph(coverage(b)),
        weights_note=None if (given := weights(b)) is None else f"Scores are weighted: {given}.",
        goal_note=None if b.goal is None else goal_line(b.goal).text,
        assumed_note=text,
        need_note=_paragraph(NEEDS if any(sized(pair) for pair in b.pairs if pair.adjacent) else None),
        need_notes=list(map(needs, b.pairs)),
        reasons=[
            _reason(b, pair, stated=k in made and made[k].assumptions == common[made[k].kind])
            for k, pair in enumerate(b.pairs)
        ],
    )


def _pair_verdict(pair: PairReport) -> Verdict | None:
    """Return the verdict of a pair; None where its reason names no assumption."""
    named = next((each for each in pair.facts if each["code"] == Reason.ASSUMES), None)
    if named is None:
        return None
    family_wise = pair.decided.anytime_family is not None or pair.status == "equivalent"
    kind = "anytime_family" if family_wise else "anytime"
    return Verdict(kind, tuple(map(Assumption.of, named["assumptions"])))


def _reason(report: BenchmarkReport, pair: PairReport, *, stated: bool) -> Sentence:
    """Return the reason of a pair, without what it assumes where that is stated above."""
    if not stated:
        return pair.reason
    about = pairs.Pair(pair.model_a, pair.model_b, words_of(report))
    return pairs.reason(without_codes(pair.facts, Reason.ASSUMES), about)


def _is_held(report: BenchmarkReport) -> bool:
    return report.order.policy == "none" or any(pair.status in {"held", "invalidated"} for pair in report.pairs)


def _held(report: BenchmarkReport) -> Sentence | None:
    if not _is_held(report):
        return None
    return f"Verdicts are held: {report.order.reason or 'the order policy does not allow them'}."


def _order(report: BenchmarkReport) -> Sentence | None:
    """Return a warning about the arrival order that keeps no verdict back."""
    facts = report.order.facts
    if not has(facts, Reason.SUSPECT_ORDER) or _is_held(report):
        return None
    harmless = all(each["harmless"] for each in facts if each["code"] == Reason.SUSPECT_ORDER)
    return "The arrival order is suspect; no verdict here depends on it." if harmless else f"Note: {because(facts)}."


def _paragraph(text: str | None) -> Sentence | None:
    return None if text is None else f"{text[0].upper()}{text[1:]}."


QUOTE_THE_RANGE: Final = "Quote the range of ranks that the evidence leaves open, not the rank."

SITE_ASSUMES: Final = "The page of each ranking lists what its verdicts assume. Made by rankwatch export."


def rankings(count: int, decided: int, steps: int) -> Sentence:
    """Return how many steps of all rankings are real.

    >>> rankings(4, 21, 163), rankings(1, 1, 1)
    ('4 rankings: 21 of 163 steps are real.', '1 ranking: 1 of 1 step is real.')
    """
    return (
        f"{counted(count, 'ranking')}: {decided:,} of {counted(steps, 'step')} {'is' if decided == 1 else 'are'} real."
    )

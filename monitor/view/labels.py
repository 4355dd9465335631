"""What people prefer of the pairs that a judge compared: evidence from their labels of a committed part of the items."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, inf, isfinite, log
from typing import Final

import numpy as np

from monitor.view.board import BoardView, Flags, Floats
from monitor.view.pairs.table import PairTable
from monitor.words import labels as words
from schemas.records.scores import ABSENT, SCORE_UNIT, ZERO
from schemas.results.labels import LabelledPair, LabelsReport
from schemas.results.reasons import Reason, Side, fact
from stats.evidence.labels import labelled_gap, labelled_log_e, labelled_settled_log_e
from stats.families.error_control import holm
from stats.numerics.checks import TOLERANCE
from stats.order import committed_order

_FIRST_LOOK: Final = 10
"""Labels at the first look; the next comes after 10 more, or after a tenth more. So no look depends on how many labels there are."""

Difference = Callable[[Floats, Floats], Floats]
"""Differences of scores of two models, in [-1, 1]: they grow with the first, and fall with the second."""


@dataclass(frozen=True)
class Labels:
    """Labels of a benchmark, and the part of its items that people were to label: every `every`-th one in the order of a seed."""

    board: BoardView
    seed: str
    every: int


@dataclass(frozen=True)
class Evidence:
    """Evidence of a claim for either side, at the look at which it is largest."""

    log_e: float = -inf
    better: float = 0.0
    worse: float = 0.0

    @property
    def p(self) -> float:
        """1 / e, at most 1."""
        return exp(-max(self.log_e, 0.0))

    @property
    def side(self) -> int:
        """The side of the evidence, 0 for as much of either."""
        return int(np.sign(self.better - self.worse)) if self.better != self.worse else 0

    @classmethod
    def largest(cls, better: Floats, worse: Floats) -> "Evidence":
        """Return the evidence at the look at which it is largest, of e-values for either side."""
        if not better.size:
            return cls()
        both = np.logaddexp(better, worse) - log(2)
        at = int(both.argmax())
        return cls(float(both[at]), float(better[at]), float(worse[at]))


@dataclass(frozen=True)
class LabelledScores:
    """Scores of two models in the order of a seed, nan where there is none: of a judge, shape (items, 2), and of people, of their part."""

    ids: Sequence[str]
    every: int
    judge: Floats
    people: Floats
    given: Flags  # of each item of the part, whether people answered for both models: with a score, or without one

    @property
    def count(self) -> int:
        """How many labelled items count: those up to the first item of the part without a label of both."""
        return self.given.size if self.given.all() else int(self.given.argmin())

    def of_judge(self, difference: Difference) -> Floats:
        """Return the differences of the judge, a tie where it lacks a score: nothing is assumed of it."""
        lacking = np.isnan(self.judge[:, 0]) | np.isnan(self.judge[:, 1])
        filled = np.where(lacking[:, None], 0.0, self.judge)
        return difference(filled[:, 0], filled[:, 1])

    def of_people(self, difference: Difference) -> tuple[Floats, Floats]:
        """Return the lowest and the highest difference that each label may be: one without a score counts at its worst."""
        low, high = (np.where(np.isnan(self.people), worst, self.people)[: self.count] for worst in (0.0, 1.0))
        return difference(low[:, 0], high[:, 1]), difference(high[:, 0], low[:, 1])

    def decided(self) -> Evidence:
        """Return the evidence on items of this kind."""
        return Evidence.largest(*self.at_largest(np.subtract))

    def at_largest(self, difference: Difference, sides: Sequence[int] = (1, -1)) -> list[Floats]:
        """Return ln e of the claims that the mean difference is above 0 on items of this kind, and below, where that of `sides` is largest.

        One value each, and none without a label. A look is worked out in full only where a rough value, which is never below it, exceeds
        what others have.
        """
        judge, (low, high) = self.of_judge(difference), self.of_people(difference)
        labelled, unlabelled = judge[:: self.every], np.delete(judge, np.s_[:: self.every])
        people = {1: low, -1: -high}

        def at(n: int, *, refined: bool) -> list[float]:
            return [
                labelled_log_e(
                    side * unlabelled[: n * (self.every - 1)], people[side][:n], side * labelled[:n], refined=refined
                )
                for side in sides
            ]

        looks = [(np.logaddexp.reduce(at(n, refined=False)), n) for n in _looks(self.count)]
        largest, found = -inf, list[float]()
        for rough, n in sorted(looks, key=lambda look: (-look[0], look[1])):
            if found and rough < largest - TOLERANCE:
                break
            values = at(n, refined=True)
            if (total := float(np.logaddexp.reduce(values))) > largest or not found:
                largest, found = total, values
        return [np.array([found[k]] if found else [], np.float64) for k in range(len(sides))]

    def settled(self) -> Evidence:
        """Return the evidence on these items."""
        judge, (low, high) = self.of_judge(np.subtract), self.of_people(np.subtract)
        of = judge[:: self.every][: self.count]
        total = float(judge.sum())
        return Evidence.largest(
            labelled_settled_log_e(low, of, total, judge.size), labelled_settled_log_e(-high, -of, -total, judge.size)
        )

    def is_tie(self) -> bool:
        """Return whether every item is labelled, and people prefer neither."""
        low, high = self.of_people(np.subtract)
        return self.count == len(self.ids) and bool((low == high).all()) and abs(float(low.sum())) < TOLERANCE


def _looks(count: int) -> list[int]:
    """Return the numbers of labels at which the evidence counts.

    >>> _looks(35), _looks(131)[-4:]
    ([10, 20, 30, 35], [100, 110, 121, 131])
    """
    looks, n = list[int](), _FIRST_LOOK
    while n < count:
        looks.append(n)
        n += max(_FIRST_LOOK, n // 10)
    return [*looks, count] if count else looks


def labelled_scores(board: BoardView, labels: Labels, a: str, b: str) -> LabelledScores:
    """Return the judge's scores of two models, and people's along their part."""
    ids = item_ids(board)
    ids = [ids[k] for k in committed_order(labels.seed, ids).tolist()]
    people = labels.board.described()
    part = ids[:: labels.every]
    scores = [_columns(people, part, model) for model in (a, b)]
    return LabelledScores(
        ids,
        labels.every,
        np.stack([_columns(board, ids, model)[0] for model in (a, b)], axis=1),
        np.stack([values for values, _ in scores], axis=1),
        scores[0][1] & scores[1][1],
    )


def item_ids(board: BoardView) -> list[str]:
    """Return the ids of all items: declared ones, or all that have a result."""
    if board.committed is not None:
        return board.committed.names(0, board.committed.size)
    return list(dict.fromkeys(key.item for key in board.item_keys))


def _columns(board: BoardView, ids: Sequence[str], model: str) -> tuple[Floats, Flags]:
    """Return the scores of a model on some items, nan where there is none, and where it has a result."""
    row_of = {key.item: row for row, key in enumerate(board.item_keys)}
    codes = np.append(board.item_codes()[:, board.newest(model)], ABSENT)
    chosen = codes[[row_of.get(each, -1) for each in ids]]
    return np.where(chosen >= ZERO, board.item_values[chosen] / SCORE_UNIT, np.nan), chosen != ABSENT


def labels_report(
    table: PairTable, labels: Labels, procedure: str = "anytime_family", models: Sequence[str] = ()
) -> LabelsReport:
    """Report what people prefer of each pair of models that have labels."""
    board, alpha = table.benchmark, table.benchmark.spec.alpha
    ranked = [table.benchmark.contestants[k].model for k in table.ranking.tolist()]
    labelled = {each.model for each in labels.board.contestants}
    ids, answered = item_ids(board), {key.item for key in labels.board.item_keys}
    part = {ids[k] for k in committed_order(labels.seed, ids)[:: labels.every].tolist()}
    both = [model for model in ranked if model in labelled and (model in models or not models)]
    side = table.decided(procedure)
    pairs = [_pair(labelled_scores(board, labels, a, b), a, b) for a, b in combinations(both, 2)]
    alone = [0 if side is None else int(side[place_of(table, each.model_a, each.model_b)]) for each in pairs]
    outside, unknown = len(answered & set(ids) - part), len(answered - set(ids))
    strangers = sorted(labelled - set(ranked))
    return LabelsReport(
        seed=labels.seed,
        every=labels.every,
        part=len(part),
        labelled=len(answered),
        outside=outside,
        unknown=unknown,
        assumption=words.assumption(labels.seed, labels.every),
        notes=words.notes(len(part), outside, unknown, strangers, labels.board.counters["duplicates"]),
        pairs=_in_family([each.replace(judge=_side(alone[k])) for k, each in enumerate(pairs)], alpha),
    )


def place_of(table: PairTable, a: str, b: str) -> int:
    """Return the place of a pair of ranked models in a table."""
    one, other = (table.benchmark.newest(model) for model in (a, b))
    low, high = np.minimum(table.pairs.a, table.pairs.b), np.maximum(table.pairs.a, table.pairs.b)
    return int(np.flatnonzero((low == min(one, other)) & (high == max(one, other)))[0])


def _pair(scores: LabelledScores, a: str, b: str) -> LabelledPair:
    """Return the evidence on a pair, before its family is counted."""
    count, decided, settled = scores.count, scores.decided(), scores.settled()
    judge, (low, high) = scores.of_judge(np.subtract), scores.of_people(np.subtract)
    judged, known = ~np.isnan(scores.judge).any(axis=1), low == high
    estimate = (
        labelled_gap(judge, low[known], judge[:: scores.every][:count][known]) if known.sum() >= _FIRST_LOOK else None
    )
    return LabelledPair(
        model_a=a,
        model_b=b,
        labels=count,
        refused=int((~known).sum()),
        waiting=int(scores.given[count:].sum()),
        next_item=None if count == scores.given.size else scores.ids[count * scores.every],
        items=min(count * scores.every, judge.size),
        unjudged=int((~judged).sum()),
        judge_gap=float(judge[judged].mean()) if judged.any() else None,
        people_gap=float(low[known].mean()) if known.any() else None,
        gap=None if estimate is None else estimate.gap,
        gap_se=None if estimate is None else estimate.se,
        correlation=None if estimate is None or np.isnan(estimate.correlation) else estimate.correlation,
        judge=None,
        log_e=_finite(decided.log_e),
        log_e_a=_finite(decided.better),
        log_e_b=_finite(decided.worse),
        p=decided.p,
        decided=_side(decided.side),
        settled="tie" if scores.is_tie() else _side(settled.side),
        settled_log_e=_finite(settled.log_e),
        settled_p=settled.p,
        reason="",
    )


def _finite(log_e: float) -> float | None:
    return log_e if isfinite(log_e) else None


def _side(sign: int) -> Side | None:
    return None if not sign else "a" if sign > 0 else "b"


def _in_family(pairs: Sequence[LabelledPair], alpha: float) -> list[LabelledPair]:
    """Count the family: the claims on all labelled pairs share alpha, by Holm's procedure."""
    if not pairs:
        return []
    decided, settled = (holm([getattr(each, name) for each in pairs]).tolist() for name in ("p", "settled_p"))
    return [
        with_labels_reason(each.replace(p=p, settled_p=of_these), alpha)
        for each, p, of_these in zip(pairs, decided, settled, strict=True)
    ]


def with_labels_reason(pair: LabelledPair, alpha: float) -> LabelledPair:
    """Return a pair with its verdicts at the level of its p-values, and the reason."""
    limit = alpha + TOLERANCE
    people = pair.decided if pair.p <= limit else None
    names = {None: None, "a": pair.model_a, "b": pair.model_b}
    if people is None:
        code = Reason.LABELS_OPEN if pair.judge is None else Reason.LABELS_UNSUPPORTED
    elif pair.judge is None:
        code = Reason.LABELS_DECIDE
    else:
        code = Reason.LABELS_AGREE if people == pair.judge else Reason.LABELS_CONTRADICT
    facts = [fact(code, judge=names[pair.judge], people=names[people], labels=pair.labels, p=pair.p, alpha=alpha)]
    settled = pair.settled if pair.settled == "tie" or pair.settled_p <= limit else None
    return pair.replace(decided=people, settled=settled, facts=facts, reason=words.reason(facts))

"""The admission of a newcomer: the board that is frozen, the order that is committed, and what the scores show."""

import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import BoardView
from schemas.records.goals import parse_goal
from schemas.records.scores import ABSENT, SCORE_UNIT, ZERO
from schemas.records.text import shorten
from schemas.results.admission import METHOD, AdmissionResult, Certificate, Commitment, FrozenBoard, Opponent, Settled
from stats.admission.newcomer import Admission, thousandths
from stats.numerics.pairs import Index
from stats.order import committed_items

GOAL_FORMS: Final = "model:MODEL,width=3, top:K or score,width=2"

MOST_CELLS: Final = 250_000_000  # most items times totals of models: more take minutes at every look

GoalState = Literal["met", "open", "out of reach"]


class AdmissionError(ValueError):
    """A newcomer cannot be admitted: what was found, and what to do."""


class BoardScores(NamedTuple):
    """The scores of a board in units, shape (items, models), and which of them are there."""

    unit: int
    items: list[str]
    models: list[str]
    scores: Index
    present: NDArray[np.bool_]

    def difficulty(self, some: NDArray[np.bool_]) -> Index:
        """Return the difficulty of each item for some of the models."""
        return thousandths(self.scores[:, some].sum(axis=1), self.present[:, some].sum(axis=1), self.unit)

    def totals(self) -> tuple[Index, Index]:
        """Return the lowest and the highest total that each model can have."""
        low = self.scores.sum(axis=0)
        return low, low + self.unit * (~self.present).sum(axis=0)


def scores_of(board: BoardView, of: Collection[str] | None = None) -> BoardScores:
    """Return the scores of a board, or of some of its models alone; it must have one score an item of each model."""
    if not board.single_scores:
        raise AdmissionError(
            f"{board.name!r} is a suite, or has battles, repeats, units or weights; a model is admitted where an item has one score "
            "of each model"
        )
    current = np.flatnonzero(board.current()).tolist()
    models = sorted(
        (k for k in current if of is None or board.contestants[k].model in of), key=lambda k: board.contestants[k].model
    )
    there = (
        range(len(board.item_keys)) if of is None else np.flatnonzero((board.item_codes()[:, models] != ABSENT).any(1))
    )
    row_of = {board.item_keys[row].item: row for row in map(int, there)}
    items = sorted(row_of if board.spec.item_ids is None else board.spec.item_ids)
    if board.spec.item_ids is None and board.spec.items not in {None, len(items)}:
        raise AdmissionError(
            f"{board.name!r} declares {board.spec.items:,} items and the files have {len(items):,}; declare the list (item_ids)"
        )
    if strange := min(row_of.keys() - items, default=None):
        raise AdmissionError(f"{board.name!r} has a score of {shorten(strange)}, which is not in the declared list")
    if not models or not items:
        raise AdmissionError(f"{board.name!r} has no scores; give the complete results of its models")
    rows = np.array([row_of.get(item, -1) for item in items])
    codes = np.asarray(board.item_codes()[:, models], np.int64)[rows]
    present = (codes >= ZERO) & (rows >= 0)[:, None]
    scores = np.where(present, np.asarray(board.item_values, np.int64)[codes], 0)
    unit = 1 if bool(np.isin(scores, (0, SCORE_UNIT)).all()) else SCORE_UNIT
    return BoardScores(
        unit, items, [board.contestants[k].model for k in models], scores // (SCORE_UNIT // unit), present
    )


def freeze(board: BoardView, of: Collection[str] | None = None) -> FrozenBoard:
    """Return what is known of a board, or of some of its models, before the first score of a newcomer."""
    known = scores_of(board, of)
    low, high = known.totals()
    return FrozenBoard(
        benchmark=board.name,
        unit=known.unit,
        items=known.items,
        difficulty=known.difficulty(np.ones(len(known.models), bool)).tolist(),
        models=[
            Opponent(model=model, low=int(least), high=int(most))
            for model, least, most in zip(known.models, low, high, strict=True)
        ],
    )


def commit(board: FrozenBoard, model: str, alpha: float, seed: str | None) -> Commitment:
    """Commit the order of a newcomer: without a given seed, it is drawn here, after the newcomer was named."""
    return Commitment(
        board=board.digest,
        model=model,
        seed=secrets.token_hex(16) if seed is None else seed,
        seed_given=seed is not None,
        alpha=alpha,
        at=datetime.now(UTC).replace(microsecond=0),
    )


def differences(before: FrozenBoard, now: FrozenBoard) -> Iterator[str]:
    """Yield what has changed of a board."""
    old, new = ({each.model: (each.low, each.high) for each in board.models} for board in (before, now))
    for name, sign in ((before.items, "lacks item"), (now.items, "has a new item")):
        other = set(now.items if name is before.items else before.items)
        if changed := [item for item in name if item not in other]:
            yield f"it {sign} {shorten(changed[0])}" + (f" and {len(changed) - 1:,} more" if len(changed) > 1 else "")
    for model in old.keys() | new.keys():
        if model not in new or model not in old:
            yield f"it {'lacks' if model not in new else 'has a new model'} {shorten(model)}"
        elif old[model] != new[model]:
            yield f"the scores of {shorten(model)} have changed"
    if before.items == now.items and before.difficulty != now.difficulty:
        yield "the scores of some items have changed"


def follow(board: FrozenBoard, commitment: Commitment, scores: Sequence[int | None]) -> Admission:
    """Return the evidence after some scores along the committed order; a skip may be any score."""
    totals = len({(each.low, each.high) for each in board.models})
    if len(board.items) * totals > MOST_CELLS:
        raise AdmissionError(
            f"{len(board.items):,} items times {totals:,} different totals are more than {MOST_CELLS:,}; admit on fewer models"
        )
    place = {item: k for k, item in enumerate(board.items)}
    order = [place[item] for item in committed_items(commitment.seed, board.items)]
    newcomer = Admission(
        np.array(board.difficulty)[order],
        [each.low for each in board.models],
        [each.high for each in board.models],
        alpha=commitment.alpha,
        unit=board.unit,
    )
    go_on(newcomer, scores)
    return newcomer


def go_on(newcomer: Admission, scores: Sequence[int | None]) -> None:
    """Add the next scores along the order."""
    newcomer.add(*(np.array([skip if x is None else x for x in scores], np.int64) for skip in (0, newcomer.unit)))


def conclude(board: FrozenBoard, newcomer: Admission, scores: Sequence[int | None]) -> AdmissionResult:
    """Return what the scores show."""
    above, below, at = newcomer.above, newcomer.below, newcomer.settled_at
    first, last = newcomer.ranks
    least, most = newcomer.interval()
    return AdmissionResult(
        items_run=len(scores),
        skipped=sum(score is None for score in scores),
        first_rank=first,
        last_rank=last,
        least=least,
        most=most,
        total=sum(score or 0 for score in scores),
        opponents=[
            Settled(
                model=each.model,
                side="above" if above[k] else "below" if below[k] else "open",
                after=int(at[k]) or None,
            )
            for k, each in enumerate(board.models)
        ],
    )


def certify(
    board: FrozenBoard,
    commitment: Commitment,
    scores: Sequence[int | None],
    version: str,
    newcomer: Admission | None = None,
) -> Certificate:
    """Return the certificate of an admission; `newcomer`: the evidence of these scores, if it is known."""
    open_ = Certificate(
        result=conclude(board, newcomer or follow(board, commitment, scores), scores),
        commitment=commitment,
        board=board,
        scores=list(scores),
        method=METHOD,
        rankwatch=version,
        digest="",
    )
    return open_.model_copy(update={"digest": open_.seal()})


def faults(certificate: Certificate) -> Iterator[str]:
    """Yield what of a certificate does not follow from its scores."""
    board, commitment = certificate.board, certificate.commitment
    if certificate.method != METHOD:
        yield f"its method is {shorten(certificate.method)}, and this version knows {METHOD} alone"
        return
    if certificate.seal() != certificate.digest:
        yield "its digest does not fit its contents"
    if board.digest != commitment.board:
        yield "its board is not the one that was committed"
    if len(board.difficulty) != len(board.items) or board.items != sorted(set(board.items)):
        yield "its items are not a sorted list of distinct ones with a difficulty each"
        return
    if len({each.model for each in board.models} | {commitment.model}) != len(board.models) + 1:
        yield "its models are not distinct"
    if not _fits(board):
        yield "its difficulties are not those of models with these totals"
    try:
        expected = conclude(board, follow(board, commitment, certificate.scores), certificate.scores)
    except (ValueError, OverflowError) as error:
        yield f"its numbers fit no admission: {error}"
        return
    for name, value in expected:
        if (found := getattr(certificate.result, name)) != value:
            values = "" if name == "opponents" else f": it is {shorten(found)}, recomputed {value}"
            yield f"its result has another {name}{values}"


def _fits(board: FrozenBoard) -> bool:
    """Return whether some scores of the models have these totals and these difficulties."""
    most = len(board.models) * board.unit
    missing = sum(each.high - each.low for each in board.models)
    low = high = 0
    for difficulty, items in Counter(board.difficulty).items():
        # Totals of an item that round to its difficulty, if it has a score of every model; with binary fractions of large units.
        slack = most // 2 + most // 10**9
        first = max(0, -((slack - difficulty * most) // 1000))
        last = min(most, (difficulty * most + slack) // 1000)
        if first > last and not missing:
            return False
        low, high = low + items * first, high + items * last
    return low - missing <= sum(each.low for each in board.models) <= high


@dataclass(frozen=True)
class AdmissionGoal:
    """The question that a newcomer is admitted to answer; it may change at any time."""

    text: str
    ranks: int | None = None
    top: int | None = None
    points: float | None = None

    @classmethod
    def parse(cls, text: str, model: str) -> "AdmissionGoal":
        """Parse a goal of a newcomer.

        >>> AdmissionGoal.parse("score,width=2", "a").points, AdmissionGoal.parse("model:a,width=3", "a").ranks
        (2.0, 3)
        >>> AdmissionGoal.parse('model:"a b, c", width=3', "a b, c").ranks
        3
        """
        kind, _, width = text.replace(" ", "").partition(",width=")
        if kind == "score":
            try:
                points = float(width)
            except ValueError:
                points = 0.0
            if not 0 < points <= 100:
                raise ValueError(
                    f"the goal {text!r} has no valid width; write score,width=2 for an interval of 2 points"
                )
            return cls(text, points=points)
        try:
            goal = parse_goal(text.strip())
        except ValueError:
            goal = None
        if goal is None or goal.margin is not None or goal.kind not in {"model", "top"}:
            raise ValueError(f"the goal {text!r} is none of a newcomer; use {GOAL_FORMS}")
        if goal.kind == "top":
            return cls(goal.text, top=goal.size)
        if goal.models != (model,):
            raise ValueError(f"the goal {text!r} is about another model; write model:{model},width=3")
        return cls(goal.text, ranks=goal.size)

    def among(self, result: AdmissionResult) -> bool | None:
        """Return whether the newcomer is among the first K; None while that is open, and for another goal."""
        if self.top is None or result.contradicts or result.first_rank <= self.top < result.last_rank:
            return None
        return result.last_rank <= self.top

    def state(self, board: FrozenBoard, result: AdmissionResult) -> GoalState:
        """Return whether the goal is met; evidence that contradicts itself meets none."""
        if result.contradicts:
            return "out of reach"
        if self.ranks is not None:
            met = result.last_rank - result.first_rank < self.ranks
        elif self.top is not None:
            met = self.among(result) is not None
        else:
            assert self.points is not None
            met = 100 * (result.most - result.least) <= self.points * board.unit * len(board.items)
        return "met" if met else "open" if result.items_run < len(board.items) else "out of reach"


def walk(order: Sequence[str], scored: Mapping[str, int | None]) -> list[int | None]:
    """Return the scores along an order, up to the first item that has none."""
    scores: list[int | None] = []
    for item in order:
        if item not in scored:
            break
        scores.append(scored[item])
    return scores

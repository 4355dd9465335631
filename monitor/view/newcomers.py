"""Newcomers that are admitted to a live board: what is committed of each with the board, and what the stored scores show."""

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from threading import Lock
from typing import Final, NamedTuple

import numpy as np

from monitor.view.admission import AdmissionError, AdmissionGoal, certify, follow, freeze, go_on, scores_of, walk
from monitor.view.board import BoardView
from schemas.records.declaration import Admitted
from schemas.records.scores import ABSENT, SCORE_UNIT, ZERO
from schemas.records.text import shorten
from schemas.results.admission import Certificate, Commitment, FrozenBoard
from stats.admission.newcomer import Admission
from stats.order import committed_items

_KEPT: Final = 16  # newcomers whose evidence stays in memory: each takes up to some megabytes


class Proposal(NamedTuple):
    """What is to be committed for a newcomer, the models that are not complete and so not frozen, and the items in its order."""

    admitted: Admitted
    left_out: list[str]
    order: list[str]


@dataclass(frozen=True)
class Standing:
    """A newcomer at one state of its board."""

    board: FrozenBoard
    admitted: Admitted
    commitment: Commitment
    scored: dict[str, int | None]

    @cached_property
    def order(self) -> list[str]:
        """The items in the committed order."""
        return committed_items(self.commitment.seed, self.board.items)

    @cached_property
    def scores(self) -> list[int | None]:
        """The scores along the order, up to the first item that has none."""
        return walk(self.order, self.scored)

    @property
    def ahead(self) -> int:
        """How many scores lie ahead of the order, and wait."""
        return len(self.scored) - len(self.scores)

    @property
    def following(self) -> list[str]:
        """The items that have not been run, in the committed order."""
        return self.order[len(self.scores) :]


def propose(board: BoardView, model: str, alpha: float | None, seed: str | None) -> Proposal:
    """Freeze the complete models of a board for a newcomer, and draw the seed of its order."""
    admissions = board.spec.admissions or {}
    names = {board.contestants[k].model for k in np.flatnonzero(board.current()).tolist()} - {model}
    known = scores_of(board, names - admissions.keys() or names)
    listed = frozenset(known.items)
    row = np.array([key.item in listed for key in board.item_keys])
    codes = board.item_codes()[row]

    def complete(name: str) -> bool:
        contestant = board.newest(name)
        return contestant in board.ended or int((codes[:, contestant] != ABSENT).sum()) == len(listed)

    models = {name for name in names if complete(name)}
    if not models:
        raise AdmissionError(
            f"no model of {board.name!r} has all {len(listed):,} items, so there is nothing to freeze; complete the board, or end its runs"
        )
    frozen = freeze(board, models)
    admitted = Admitted(
        board=frozen.digest,
        models={each.model: (each.low, each.high) for each in frozen.models},
        seed=secrets.token_hex(16) if seed is None else seed,
        seed_given=seed is not None,
        alpha=0.05 if alpha is None else alpha,
        at=datetime.now(UTC).replace(microsecond=0),
        generation=board.generation,
    )
    follow(frozen, _commitment(model, admitted), [])  # refuses a board that is too large to be followed
    return Proposal(admitted, sorted(names - models), committed_items(admitted.seed, frozen.items))


def admission_of(board: BoardView, model: str) -> Admitted | None:
    """Return what is committed for a newcomer, or None: a board that begins again knows no admission."""
    admitted = (board.spec.admissions or {}).get(board.spec.aliases.get(model, model))
    return admitted if admitted is not None and admitted.generation == board.generation else None


def standing(board: BoardView, model: str) -> Standing:
    """Return a newcomer at one state; the board must be the one that was frozen."""
    model, admitted = board.spec.aliases.get(model, model), admission_of(board, model)
    if admitted is None:
        raise AdmissionError(f"{shorten(model)} is not admitted to {board.name!r}; admit it before its first score")
    frozen = freeze(board, admitted.models.keys())
    if frozen.digest != admitted.board:
        now = {each.model: (each.low, each.high) for each in frozen.models}
        changed = sorted(name for name in admitted.models if now.get(name) != tuple(admitted.models[name]))
        what = (
            f"the scores of {shorten(changed[0])} have changed" if changed else "its items or their scores have changed"
        )
        more = f", and of {len(changed) - 1:,} more" if len(changed) > 1 else ""
        raise AdmissionError(
            f"{board.name!r} is not the board that was frozen for {shorten(model)}: {what}{more}. Admit the model under another name, from "
            "its first item"
        )
    return Standing(frozen, admitted, _commitment(model, admitted), _scored(board, model, frozen))


def _commitment(model: str, admitted: Admitted) -> Commitment:
    return Commitment(
        board=admitted.board,
        model=model,
        seed=admitted.seed,
        seed_given=admitted.seed_given,
        alpha=admitted.alpha,
        at=admitted.at,
    )


def _scored(board: BoardView, model: str, frozen: FrozenBoard) -> dict[str, int | None]:
    """Return the newcomer's score of each item in units, None for a skip."""
    contestants = board.epochs.get(model, ())
    if not contestants:
        return {}
    if len(contestants) > 1:
        raise AdmissionError(
            f"{shorten(model)} has scores of {len(contestants)} epochs: the better of two runs on one order leads by luck; admit the other "
            "under a name of its own"
        )
    items, scale = frozenset(frozen.items), SCORE_UNIT // frozen.unit
    codes, values = board.item_codes()[:, contestants[0]], board.item_values
    scored: dict[str, int | None] = {}
    for row in np.flatnonzero(codes != ABSENT).tolist():
        item, code = board.item_keys[row].item, int(codes[row])
        if item not in items:
            continue
        units = int(values[code]) if code >= ZERO else None
        if units is not None and units % scale:
            raise AdmissionError(
                f"{shorten(model)} has the score {units / SCORE_UNIT:g} on {shorten(item)}, and the board has 0 and 1 alone; admit it "
                "under another name, with such scores"
            )
        scored[item] = None if units is None else units // scale
    return scored


class Newcomers:
    """The evidence about newcomers: a look goes on from the scores of the last one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], tuple[Commitment, list[int | None], Admission]] = OrderedDict()
        self._lock = Lock()

    def certify(self, asked: Standing, version: str) -> Certificate:
        """Return the certificate of a newcomer."""
        with self._lock:
            return certify(asked.board, asked.commitment, asked.scores, version, self._evidence(asked))

    def intervals(self, asked: Standing, after: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return the totals that are possible after some numbers of items: (items, lowest, highest)."""
        with self._lock:
            newcomer = self._evidence(asked)
            return [(items, *newcomer.interval(items)) for items in after]

    def _evidence(self, asked: Standing) -> Admission:
        """Return the evidence of the scores so far: it is a function of them, however many looks there were."""
        key, scores = (asked.board.benchmark, asked.commitment.model), asked.scores
        commitment, before, newcomer = self._kept.pop(key, (None, [], None))
        if newcomer is None or commitment != asked.commitment or scores[: len(before)] != before:
            newcomer = follow(asked.board, asked.commitment, scores)
        else:
            go_on(newcomer, scores[len(before) :])
        self._kept[key] = asked.commitment, scores, newcomer
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return newcomer


def over(asked: Standing, certificate: Certificate, goal: AdmissionGoal | None) -> bool:
    """Return whether no further item is asked for."""
    return (goal is not None and goal.state(asked.board, certificate.result) != "open") or not asked.following

"""The admission of a newcomer to a frozen board: what was committed, its scores, and what follows from them."""

import hashlib
import json
from typing import Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from schemas.records.declaration import Admitted, NewcomerAlpha, Seed
from schemas.records.names import Name
from schemas.records.text import Sentence

AHEAD: Final = "Rankwatch-Ahead"  # header of a certificate that a server sends: how many scores lie ahead of the order

METHOD: Final = "admission-1"  # the procedure from the scores to the result; another one gets another name


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Opponent(_Part):
    """A model of the board, and its total over all items: an interval where it lacks scores."""

    model: Name
    low: int = Field(ge=0, description="total in units; lowest one where scores are missing")
    high: int = Field(ge=0, description="highest total")


class FrozenBoard(_Part):
    """What was known of a board before the first score of the newcomer."""

    benchmark: Name
    unit: int = Field(ge=1, description="the whole number that is a score of 1")
    items: list[Name] = Field(min_length=1, fail_fast=True, description="all items, sorted")
    difficulty: list[int] = Field(fail_fast=True, description="mean score of the board on each item, in thousandths")
    models: list[Opponent] = Field(min_length=1, fail_fast=True)

    @property
    def digest(self) -> str:
        """SHA-256 of the board."""
        return hashlib.sha256(canonical(self)).hexdigest()


class Commitment(_Part):
    """What was fixed before the first score, in this order: the board, the newcomer, the seed."""

    board: str = Field(description="digest of the board")
    model: Name = Field(description="the newcomer")
    seed: str = Field(min_length=1, description="seed of the committed order of the items")
    seed_given: bool = Field(description="whether a person chose it; else it was drawn after the newcomer was named")
    alpha: float = Field(ge=1e-6, le=0.5)
    at: AwareDatetime


class Settled(_Part):
    """Where the newcomer's total lies against a model of the board."""

    model: Name
    side: Literal["above", "below", "open"]
    after: int | None = Field(description="items after which that was settled")


class AdmissionResult(_Part):
    """What follows from the scores."""

    items_run: int = Field(description="scores and skips along the order, up to the first item without either")
    skipped: int
    first_rank: int = Field(description="the rank range; larger than the last one if the evidence contradicts itself")
    last_rank: int
    least: int = Field(description="lowest total that is possible, in units")
    most: int = Field(description="highest total that is possible")
    total: int = Field(description="total of the scores run, in units")
    opponents: list[Settled] = Field(fail_fast=True)

    @property
    def contradicts(self) -> bool:
        """Whether no rank, or no total, is left."""
        return self.first_rank > self.last_rank or self.least > self.most


class Certificate(_Part):
    """An admission in one file."""

    result: AdmissionResult
    commitment: Commitment
    board: FrozenBoard
    scores: list[int | None] = Field(fail_fast=True, description="along the committed order, in units; null for a skip")
    method: str
    rankwatch: str = Field(description="version that wrote the file")
    digest: str = Field(description="SHA-256 of all else")

    def seal(self) -> str:
        """Return the digest of all else."""
        return hashlib.sha256(canonical(self, without="digest")).hexdigest()


def canonical(part: BaseModel, without: str | None = None) -> bytes:
    """Return the one way in which a part of a certificate is written."""
    fields = part.model_dump(mode="json", exclude=None if without is None else {without})
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class AdmissionAsked(_Part):
    """A newcomer that is to be admitted to a board of a server."""

    benchmark: Name
    model: Name = Field(description="the newcomer; it has no score yet")
    alpha: NewcomerAlpha | None = Field(
        None, description="probability, at most, that any statement is ever wrong; .05 by default"
    )
    seed: Seed | None = Field(
        None,
        description="seed of the order, if others draw it once the newcomer is fixed; else the server draws it now",
    )


class AdmissionTaken(_Part):
    """A newcomer is admitted."""

    benchmark: Name
    model: Name
    place: str | None = Field(description="position in the log; null if it was admitted before")
    in_force: bool = Field(description="whether the log is folded up to there; if false, GET the admission later")
    admission: Admitted
    items: list[Name] = Field(description="the items in the committed order")
    left_out: list[Name] = Field(
        description="models of the board that are not complete; the newcomer is not compared with them"
    )


class AdmittedModel(Settled):
    """A model of the frozen board, and where the newcomer's total lies against it."""

    low: int = Field(description="total in units; lowest one where scores are missing")
    high: int = Field(description="highest total")


class PossibleTotals(_Part):
    """The totals that were possible after some items."""

    items: int
    least: int
    most: int


class AdmissionGoalReport(_Part):
    """What the newcomer is admitted to answer."""

    goal: str
    state: Literal["met", "open", "out of reach"]
    among: bool | None = Field(description="top:K: whether the newcomer is among them; null while that is open")


class AdmissionWords(_Part):
    """The sentences of an admission."""

    headline: Sentence
    opponents_line: Sentence
    score_line: Sentence
    goal_line: Sentence | None
    ahead_line: Sentence | None
    promise_line: Sentence
    claim_line: Sentence


class AdmissionReport(_Part):
    """A newcomer on a frozen board, now."""

    benchmark: Name
    model: Name
    items: int
    unit: int = Field(description="the whole number that is a score of 1")
    admission: Admitted
    goal: AdmissionGoalReport | None
    over: bool = Field(description="whether the goal is met, or every item is run")
    ahead: int = Field(description="scores that lie ahead of the order, and wait")
    next: list[Name] = Field(description="the next items to run, in order")
    result: AdmissionResult
    models: list[AdmittedModel] = Field(description="the frozen board, the highest total first")
    totals: list[PossibleTotals] = Field(description="how the interval of the total has closed")
    words: AdmissionWords

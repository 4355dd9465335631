"""Verdict changes: the entries of the outbox, the feed, the topic and the webhook."""

from typing import Any, Final, Literal

import msgspec

from schemas.records.text import Sentence
from schemas.results.answer import Answer, Field
from schemas.results.reasons import DriftKind, Fact, Outcome

Procedure = Literal["anytime", "anytime_family"]
Claim = Literal["anytime", "anytime_family", "settled"]
Kind = Literal["decided", "reversed", "invalidated", "superseded", "settled"]

Proof = Literal["exact test at N", "bets, or exact test at N", "graded grid", "certain", "without replacement"]
"""What evidence is made of where it is no bet with a declared mixture: values of the field `mixture`."""

PROCEDURES: Final[tuple[Procedure, ...]] = ("anytime", "anytime_family")
CLAIMS: Final[tuple[Claim, ...]] = (*PROCEDURES, "settled")
DRIFT_KINDS: Final[tuple[DriftKind, ...]] = ("drift.worse", "drift.better", "drift.judge", "drift.held")
KINDS: Final[tuple[Kind, ...]] = ("decided", "reversed", "invalidated", "superseded", "settled")


class Evidence(Answer):
    """Evidence of a verdict at its event; for kinds invalidated and superseded, the evidence of the decision that ends."""

    n: int = Field("shared items of the pair")
    b: int | None = Field("items that only model_a has right; null for graded scores")
    c: int | None = Field("items that only model_b has right; null for graded scores")
    gap: float = Field("mean difference of the scores on the shared items: (b - c) / n where they are 0 or 1")
    missing: int = Field(
        "items counted against the leader (order policy completion), else 0; of claim `settled` all items that are not counted"
    )
    log_e: float | None = Field(
        "natural logarithm of the e-value; of 1/p where `mixture` names the exact test. In a family the largest so far. Null if "
        "it is certain who leads on the items of the benchmark"
    )
    log_threshold: float | None = Field(
        "natural logarithm of 1/alpha, or of 1/alpha_j in a family, which falls as its pairs are decided; null like `log_e`"
    )
    resolution_ratio: float | None = Field(
        "q = n / N* at that event; null if the gap is 0, D does not vary, or scores are graded"
    )


class VerdictChange(Answer):
    """One change of one verdict.

    The pair is named in name order, so labels never swap. `id` is a function of the log alone: the same on every replay, under every
    chunking.
    """

    id: str = Field("<record offset>-<position in the record and pair>, increasing along the log")
    benchmark: str
    model_a: str
    model_b: str
    epoch_a: int
    epoch_b: int
    kind: Kind
    procedure: Claim = Field(
        "what is claimed: a decision for this pair only, or family-wise; or `settled`, who leads on the items of the benchmark"
    )
    before: Outcome | None
    after: Outcome | None = Field(
        "null: the decision no longer counts (kind invalidated), or its scores or its declaration were replaced (kind superseded)"
    )
    order_policy: str
    alpha: float | None = Field(
        "declared error rate at which it is claimed, in a family over all its pairs; null if it is certain who leads",
        default=None,
    )
    mixture: str
    statistics_version: int
    evidence: Evidence
    sentence: Sentence
    facts: list[Fact] = Field(
        "the sentence for programs: a code each, with what `evidence` and the names do not hold", default=[]
    )
    assumptions: list[dict[str, str | int | list[str]]] = Field(
        "what a decision or a settled lead assumes: a code each, with the number that its wording states", default=[]
    )


class DriftChange(Answer):
    """What a monitor of a sentinel reports: a model got worse or better, its judge moved, or its runs contradict what was declared of them.

    `id` is a function of the log alone, as that of a verdict change.
    """

    id: str = Field("<record offset>-<position in the record and monitor>, increasing along the log")
    benchmark: str
    model: str
    kind: DriftKind
    of: Literal["model", "judge"] = Field("whose scores are watched: with frozen answers, the judge's too")
    side: Literal["worse", "better"] | None = Field("of a judge: stricter, or more lenient")
    run: str = Field("the run at which the monitor alarmed")
    start: str | None = Field("the most likely first run after the change")
    after_run: str | None = Field("the last run that is surely before the change")
    last_start: str | None = Field("the latest run with which it may have begun")
    before: float | None = Field("mean score of the runs before the change")
    since: float | None
    low: float | None = Field("least size of the change, in its direction")
    high: float | None
    runs_since: int | None
    log_sum: float | None = Field("natural logarithm of the evidence")
    log_limit: float | None = Field("the evidence at which it alarms")
    judge_moved: bool | None = Field("whether the judge has moved; null without frozen answers")
    statistics_version: int
    sentence: Sentence


AnyChange = VerdictChange | DriftChange


def read_change(data: dict[str, Any]) -> AnyChange:
    """Return a stored change."""
    return (
        msgspec.convert(data, DriftChange) if data.get("kind") in DRIFT_KINDS else msgspec.convert(data, VerdictChange)
    )


def change_order(change_id: str) -> tuple[int, int]:
    """Return the sort key of a change id: changes of one partition are ordered by it."""
    offset, _, sequence = change_id.partition("-")
    return int(offset), int(sequence)

"""The scores of a board in a random order: p < .05 at each look next to anytime verdicts."""

from pydantic import BaseModel, ConfigDict, Field

from schemas.records.text import Sentence


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class ReplayedStep(_Answer):
    """Two neighbours in rank."""

    model_a: str
    model_b: str
    called: list[tuple[int, int | None, int]] = Field(
        description="stretches over which p < .05 at each look: from item, to the item of the look that withdraws it (null: none does), "
        "and 1 for model_a or -1 for model_b"
    )
    undone: int = Field(description="calls that a later look withdraws")
    decided_at: int | None = Field(description="items at the look of the family-wise decision; null without one")
    decided_side: int = Field(description="1: model_a is decided to be better; -1: model_b; 0: undecided")


class Replay(_Answer):
    """The scores on the items that all models have, in one random order. It is no verdict: no order was committed for them."""

    benchmark: str
    reason: Sentence | None = Field(
        default=None, description="why there is none, so that all else is empty; null if there is one"
    )
    items: int = 0
    looks: int = Field(default=0, description="at equal distances")
    pairs: int = 0
    called: int = Field(default=0, description="calls of p < .05 over all pairs and looks")
    undone: int = Field(default=0, description="those of them that a later look withdraws")
    undone_pairs: int = Field(default=0, description="pairs with one")
    decided: int = Field(default=0, description="pairs decided family-wise, among all pairs; none is withdrawn")
    steps: list[ReplayedStep] = Field(default_factory=list, description="by rank")

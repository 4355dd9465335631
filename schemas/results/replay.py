"""The scores of a board in a random order: p < .05 at each look next to anytime verdicts."""

from schemas.records.text import Sentence
from schemas.results.answer import Answer, Field


class ReplayedStep(Answer):
    """Two neighbours in rank."""

    model_a: str
    model_b: str
    called: list[tuple[int, int | None, int]] = Field(
        "stretches over which p < .05 at each look: from item, to the item of the look that withdraws it (null: none does), and "
        "1 for model_a or -1 for model_b"
    )
    undone: int = Field("calls that a later look withdraws")
    decided_at: int | None = Field("items at the look of the family-wise decision; null without one")
    decided_side: int = Field("1: model_a is decided to be better; -1: model_b; 0: undecided")


class Replay(Answer):
    """The scores on the items that all models have, in one random order. It is no verdict: no order was committed for them."""

    benchmark: str
    reason: Sentence | None = Field("why there is none, so that all else is empty; null if there is one", default=None)
    items: int = 0
    looks: int = Field("at equal distances", default=0)
    pairs: int = 0
    called: int = Field("calls of p < .05 over all pairs and looks", default=0)
    undone: int = Field("those of them that a later look withdraws", default=0)
    undone_pairs: int = Field("pairs with one", default=0)
    decided: int = Field("pairs decided family-wise, among all pairs; none is withdrawn", default=0)
    steps: list[ReplayedStep] = Field("by rank", default=[])

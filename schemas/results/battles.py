"""The battles of a benchmark in a report: ratings, islands, positions and judges."""

from schemas.records.text import Sentence
from schemas.results.answer import Answer, Field


class RatingReport(Answer):
    """The rating of one model."""

    model: str
    rating: float | None = Field("Bradley-Terry rating: 400 points are odds of 10 to 1; null where it is not finite")
    rating_low: float | None = Field(
        "interval at alpha, sandwich errors by prompt: asymptotic, and valid at a planned number of battles only"
    )
    rating_high: float | None
    prompts: int = Field("prompts on which it met a model, each pair on its own")
    win_share: float = Field("mean points, a tie as half; it depends on the opponents and does not rank")
    island: int = Field("models of different islands never met, directly or through others")
    unrated: Sentence | None = Field("why there is no finite rating; null where there is one")


class PositionReport(Answer):
    """How often the answer that was shown first wins."""

    votes: int = Field("votes whose order is known")
    first_wins: int
    second_wins: int
    swapped: int = Field("prompts judged in both orders, whose mean over the orders counts")
    fixed: int = Field("prompts judged in one known order only")
    effect: float | None = Field(
        "rating points that the first place is worth, taken out of the ratings; null where it cannot be estimated"
    )
    effect_low: float | None
    effect_high: float | None


class JudgeReport(Answer):
    """One judge: a voter, a model, a language."""

    judge: str
    votes: int
    shared: int = Field("prompts of a pair that another judge judged too")
    agrees: float | None = Field("mean share of the other judges of these that gave the same result")
    ranking: list[str] | None = Field("the models by its votes only; null where these leave islands")


class Disagreement(Answer):
    """A pair whose direct battles favour the model with the lower rating."""

    higher: str = Field("the model with the higher rating")
    lower: str
    rating_gap: float
    prompts: int
    direct_gap: float = Field("mean D of their battles, negative: the lower-rated model wins more of them")
    decided: bool = Field("whether the direct battles decide it family-wise")


class BattlesReport(Answer):
    """The battles of a benchmark."""

    votes: int
    prompts: int
    units: int = Field("prompts on which a pair met: all votes on one prompt are one unit of its pair")
    pairs_met: int
    ties: int = Field("votes that are ties")
    anchor: str | None = Field("the model whose rating is 1,000; null: the mean of each island is")
    ratings: list[RatingReport] = Field("by rank")
    islands: list[list[str]] = Field("the models of each island, by rank; ranks of two islands do not compare")
    position: PositionReport | None = Field("null where no order is known")
    judges: list[JudgeReport] = Field("the judges with the most votes, at most 20")
    judge_count: int
    agreement: float | None = Field("Krippendorff's alpha of the judges; null where no two judged the same")
    disagreements: list[Disagreement] = Field("strongest direct evidence first")

"""The battles of a benchmark in a report: ratings, islands, positions and judges."""

from pydantic import BaseModel, ConfigDict, Field

from schemas.records.text import Sentence


class _Model(BaseModel):
    """A model with exactly the declared fields, and frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null", defer_build=True)


class RatingReport(_Model):
    """The rating of one model."""

    model: str
    rating: float | None = Field(
        description="Bradley-Terry rating: 400 points are odds of 10 to 1; null where it is not finite"
    )
    rating_low: float | None = Field(
        description="interval at alpha, sandwich errors by prompt: asymptotic, and valid at a planned number of battles only"
    )
    rating_high: float | None
    prompts: int = Field(description="prompts on which it met a model, each pair on its own")
    win_share: float = Field(description="mean points, a tie as half; it depends on the opponents and does not rank")
    island: int = Field(description="models of different islands never met, directly or through others")
    unrated: Sentence | None = Field(description="why there is no finite rating; null where there is one")


class PositionReport(_Model):
    """How often the answer that was shown first wins."""

    votes: int = Field(description="votes whose order is known")
    first_wins: int
    second_wins: int
    swapped: int = Field(description="prompts judged in both orders, whose mean over the orders counts")
    fixed: int = Field(description="prompts judged in one known order only")
    effect: float | None = Field(
        description="rating points that the first place is worth, taken out of the ratings; null where it cannot be estimated"
    )
    effect_low: float | None
    effect_high: float | None


class JudgeReport(_Model):
    """One judge: a voter, a model, a language."""

    judge: str
    votes: int
    shared: int = Field(description="prompts of a pair that another judge judged too")
    agrees: float | None = Field(description="mean share of the other judges of these that gave the same result")
    ranking: list[str] | None = Field(description="the models by its votes only; null where these leave islands")


class Disagreement(_Model):
    """A pair whose direct battles favour the model with the lower rating."""

    higher: str = Field(description="the model with the higher rating")
    lower: str
    rating_gap: float
    prompts: int
    direct_gap: float = Field(description="mean D of their battles, negative: the lower-rated model wins more of them")
    decided: bool = Field(description="whether the direct battles decide it family-wise")


class BattlesReport(_Model):
    """The battles of a benchmark."""

    votes: int
    prompts: int
    units: int = Field(description="prompts on which a pair met: all votes on one prompt are one unit of its pair")
    pairs_met: int
    ties: int = Field(description="votes that are ties")
    anchor: str | None = Field(description="the model whose rating is 1,000; null: the mean of each island is")
    ratings: list[RatingReport] = Field(description="by rank")
    islands: list[list[str]] = Field(
        description="the models of each island, by rank; ranks of two islands do not compare"
    )
    position: PositionReport | None = Field(description="null where no order is known")
    judges: list[JudgeReport] = Field(description="the judges with the most votes, at most 20")
    judge_count: int
    agreement: float | None = Field(description="Krippendorff's alpha of the judges; null where no two judged the same")
    disagreements: list[Disagreement] = Field(description="strongest direct evidence first")

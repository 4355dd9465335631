"""What people prefer of the pairs that a judge compared, from their labels of a committed part of the items."""

from schemas.records.text import Sentence
from schemas.results.answer import Answer, Field
from schemas.results.reasons import Fact, Outcome, Side


class LabelledPair(Answer):
    """A pair with labels of both models; gaps are model_a minus model_b, in score units."""

    model_a: str
    model_b: str
    labels: int = Field("labelled items that count: the committed part, up to its first item without a label of both")
    refused: int = Field("labels among them without a score: they count at their worst for each claim")
    waiting: int = Field(
        "labelled items of the committed part after the first without a label of both: they do not count yet"
    )
    next_item: str | None = Field("that first item; null where the whole part is labelled")
    items: int = Field("items of the judge that count with these labels")
    unjudged: int = Field("items that lack a score of the judge for a model: they count as a tie of the judge")
    judge_gap: float | None = Field("mean difference of the judge's scores, over the items that it scored for both")
    people_gap: float | None = Field("mean difference of the labels")
    gap: float | None = Field("estimate of what people prefer of all items; no verdict rests on it")
    gap_se: float | None
    correlation: float | None = Field("of the two differences over the labelled items; null where one does not vary")
    judge: Side | None = Field("the better model by the judge alone: the verdict of the report or gate without labels")
    log_e: float | None = Field(
        "ln of the largest e-value so far, of both sides, on items of this kind; null without a label"
    )
    log_e_a: float | None = Field("the same for model_a alone, at that label")
    log_e_b: float | None
    p: float = Field("1 / e, at most 1, adjusted over the labelled pairs (Holm)")
    decided: Side | None = Field(
        "the model that people prefer on items of this kind; labelled pairs share alpha (Holm)"
    )
    settled: Outcome | None = Field("the model that people prefer on these items; labelled pairs share alpha (Holm)")
    settled_log_e: float | None = Field(
        "ln of the largest e-value of that claim; null without a label, and once it is certain"
    )
    settled_p: float = Field("1 / e of that claim, adjusted in the same way")
    reason: Sentence
    facts: list[Fact] = Field("the reason for programs: a code, with its numbers", default=[])


class LabelsReport(Answer):
    """The labels of a benchmark."""

    seed: str = Field("the committed part: every `every`-th item of the order of this seed")
    every: int
    part: int = Field("items of the committed part")
    labelled: int = Field("items with a label")
    outside: int = Field("labelled items outside the committed part: they do not count")
    unknown: int = Field("labelled items that the results do not have: they do not count")
    assumption: Sentence
    notes: list[Sentence] = Field("labels that do not count, or count otherwise than given")
    pairs: list[LabelledPair]

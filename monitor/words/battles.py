"""The battles of a benchmark in words: what was counted, and what to know before a rating is quoted."""

from typing import Final

from monitor.words import numbers as form
from monitor.words.counts import counted
from schemas.results.battles import BattlesReport, Disagreement, JudgeReport, PositionReport, RatingReport

_NAMED: Final = 3

RATING_NOTE: Final = (
    "Ratings are Bradley-Terry estimates, 400 points are odds of 10 to 1, with sandwich intervals by prompt: asymptotic, and valid at a "
    "planned number of battles only. Ranges of ranks come from the direct battles of each pair."
)


def rating(model: RatingReport) -> str:
    """Return a rating in whole points; a dash where it is not finite."""
    return form.MISSING if model.rating is None else f"{model.rating:,.0f}"


def rating_range(model: RatingReport) -> str:
    """Return the interval of a rating in whole points; a dash without one.

    >>> from schemas.results.battles import RatingReport
    >>> columns = {"prompts": 9, "win_share": 0.5, "island": 1, "unrated": None}
    >>> rating_range(RatingReport(model="ash", rating=1012.4, rating_low=990.2, rating_high=1034.6, **columns))
    '990 to 1,035'
    """
    if model.rating_low is None or model.rating_high is None:
        return form.MISSING
    return f"{model.rating_low:,.0f} to {model.rating_high:,.0f}"


def counts(b: BattlesReport) -> str:
    """Return how many votes were read, and what they come to."""
    judges = f" by {counted(b.judge_count, 'judge')}" if b.judges else ""
    text = f"{counted(b.votes, 'vote')}{judges} on {counted(b.prompts, 'prompt')}, {b.ties:,} of them ties"
    if b.units < b.votes:
        text += f"; the votes of a pair on one prompt count as one ({b.units:,} units)"
    return f"{text}; {counted(b.pairs_met, 'pair')} met"


def checks(b: BattlesReport) -> list[str]:
    """Return what to check before the ratings are quoted, a sentence or two each."""
    lines = [_islands(b), _unrated(b), _position(b.position), _judges(b), _disagreements(b.disagreements)]
    return [text for text in lines if text]


def _islands(b: BattlesReport) -> str:
    if len(b.islands) < 2:
        return ""
    sizes = ", ".join(map(_island, b.islands[:_NAMED]))
    more = f", and {len(b.islands) - _NAMED:,} more islands" if len(b.islands) > _NAMED else ""
    return (
        f"{len(b.islands):,} islands of models never met, directly or through others ({sizes}{more}): ratings and ranks compare within an "
        "island only. Battles between them join them."
    )


def _island(names: list[str]) -> str:
    return form.safe(names[0]) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")


def _unrated(b: BattlesReport) -> str:
    unrated = [model for model in b.ratings if model.unrated is not None]
    if not unrated:
        return ""
    reasons = "; ".join(f"{form.safe(model.model)}: {model.unrated}" for model in unrated[:_NAMED])
    more = f"; and {len(unrated) - _NAMED:,} more" if len(unrated) > _NAMED else ""
    return f"{counted(len(unrated), 'model')} without a rating: {reasons}{more}."


def _position(p: PositionReport | None) -> str:
    if p is None:
        return (
            "No battle names the answer that was shown first (position), so a preference for a position is neither measured nor "
            "corrected."
        )
    decisive = p.first_wins + p.second_wins
    share = f"{p.first_wins / decisive:.1%} of {counted(decisive, 'decisive vote')}" if decisive else "no decisive vote"
    text = f"Position: the answer shown first wins {share}"
    if p.effect is not None and p.effect_low is not None and p.effect_high is not None:
        text += f", worth {p.effect:+,.0f} rating points ({p.effect_low:+,.0f} to {p.effect_high:+,.0f}), which the ratings take out"
    if p.swapped:
        text += f". {counted(p.swapped, 'prompt')} judged in both orders: the mean of the two counts"
    if p.fixed and p.effect is None:
        text += ". The effect cannot be separated from the models: one order was always used"
    return f"{text}."


def _judges(b: BattlesReport) -> str:
    if not b.judges:
        return ""
    if b.agreement is None:
        return ""
    apart = [judge for judge in b.judges if judge.agrees is not None]
    text = f"Judges: agreement on prompts with several is {b.agreement:.2f} (Krippendorff's alpha; 1 is full agreement, 0 chance)"
    if len(apart) > 1:
        least = min(apart, key=_agreement)
        text += f"; {form.safe(least.judge)} agrees least, on {_agreement(least):.0%} of {least.shared:,} prompts"
    return f"{text}."


def _agreement(judge: JudgeReport) -> float:
    return 1.0 if judge.agrees is None else judge.agrees


def _disagreements(found: list[Disagreement]) -> str:
    if not found:
        return ""
    first = ", ".join(
        f"{form.safe(d.lower)} over {form.safe(d.higher)} on {counted(d.prompts, 'prompt')}{' (decided)' if d.decided else ''}"
        for d in found[:_NAMED]
    )
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    what = "The direct battles of 1 pair" if len(found) == 1 else f"The direct battles of {len(found):,} pairs"
    return f"{what} favour the model with the lower rating: {first}{more}."

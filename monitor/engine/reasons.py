"""Sentences: what a verdict says, under which assumption, and what would settle an open one."""

from dataclasses import dataclass

from schemas.report import Status

NO_ORDER = (
    "no order policy is declared, so nothing can be decided anytime: declare the item count (order policy completion), or that the arrival "
    "order does not depend on outcomes (trusted), before the first score"
)


@dataclass(frozen=True)
class PairFacts:
    """What a sentence about one pair is made of; gaps in score units, None where not known."""

    model_a: str
    model_b: str
    status: Status
    side: str | None
    n: int
    discordant: int | None
    low: float | None
    high: float | None
    pair_side: str | None
    missing: int | None
    items_to_decision: float | None
    held: str | None
    gap: float | None
    assumption: str | None
    no_family: str | None
    """Why the pair can have no family verdict."""


def points(gap: float) -> str:
    """Write a gap in percentage points.

    Examples
    --------
    >>> points(0.01878)
    '1.88 points'
    """
    return f"{abs(gap) * 100:.2f} points"


def reason(facts: PairFacts) -> str:
    """Say in one or more plain sentences why a pair has its status."""
    if facts.n == 0:
        return f"{facts.model_a} and {facts.model_b} share no item yet."
    parts = [_verdict(facts)]
    if facts.status != "decided":
        if facts.no_family:
            parts.append(f"It has no family verdict: {facts.no_family}.")
        parts += _open(facts)
    if facts.gap is not None and facts.gap < 0:
        parts.append(
            f"On the items they share {facts.model_b} leads, although {facts.model_a} has the higher mean over its own items: "
            "they were scored on different items."
        )
    return " ".join(parts)


def _verdict(facts: PairFacts) -> str:
    texts = {
        "invalidated": f"It was decided, but {facts.held}: the decision no longer counts.",
        "held": f"Held: {facts.held}.",
        "equivalent": "The gap is smaller than the declared margin, in either direction.",
        "exhausted": "Every item has been scored, and the evidence does not decide it.",
    }
    if facts.status == "decided":
        better, worse = (facts.model_a, facts.model_b) if facts.side == "a" else (facts.model_b, facts.model_a)
        turned = facts.gap is not None and (facts.gap < 0 if facts.side == "a" else facts.gap > 0)
        ending = "; the gap has since turned" if turned else ""
        return f"{better} is better than {worse}, decided family-wise{ending}. Assumes that {facts.assumption}."
    if facts.pair_side and facts.status in {"collecting", "exhausted"}:
        better = facts.model_a if facts.pair_side == "a" else facts.model_b
        scored = "Every item has been scored. " if facts.status == "exhausted" else ""
        family = ", not yet family-wise" if facts.status == "collecting" else ", not family-wise"
        return f"{scored}Decided for this pair by itself ({better} is better){'' if facts.no_family else family}."
    if facts.status in texts:
        return texts[facts.status]
    if facts.missing:
        return (
            f"Undecided: {facts.missing:,} items of the benchmark are still missing for this pair, and could turn it."
        )
    return "Undecided."


def _open(facts: PairFacts) -> list[str]:
    parts = []
    if facts.low is not None and facts.high is not None:
        low, high = facts.low, facts.high
        ruled = [
            f"{name} ahead by more than {points(side)}" for name, side in ((facts.model_a, high), (facts.model_b, low))
        ]
        parts.append(
            f"The interval rules out {ruled[0]} and {ruled[1]}."
            if low < 0 < high
            else f"The interval rules out {ruled[0]}."
        )
    if facts.discordant is not None:
        parts.append(
            f"{facts.discordant:,} of {facts.n:,} shared items are informative (exactly one of the two is right)."
        )
    if facts.status in {"collecting", "exhausted", "held"}:
        parts += _prospect(facts)
    return parts


def _prospect(facts: PairFacts) -> list[str]:
    if facts.low is None:
        return []
    more, left = facts.items_to_decision, facts.missing
    if more is None:
        return ["At the present estimate no number of items settles it."]
    if more < 1:
        return []
    count = "more than a million" if more >= 1e6 else f"about {more:,.0f}"
    if left is not None and more > left:
        rest = f"{left:,}" if left else "none"
        return [
            f"The benchmark is too small to settle a gap like this one: {count} further items would be needed, {rest} are left."
        ]
    return [f"At the present estimate {count} further items would settle it."]

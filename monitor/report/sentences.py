"""Sentences: what a verdict says, under which assumption, and what would settle an open one."""

from dataclasses import dataclass
from math import floor, log10

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
    wins: int | None = None
    losses: int | None = None
    turned_at: int | None = None
    """Shared items at which the gap first turned against the decision."""
    epochs: tuple[int, int] = (0, 0)
    policy: str = "none"


def points(gap: float) -> str:
    """Write a gap in percentage points.

    Examples
    --------
    >>> points(0.01878)
    '1.88 points'
    """
    return f"{abs(gap) * 100:.2f} points"


def rounded(items: float) -> str:
    """Write an estimated number of items, with no more digits than an estimate has.

    Examples
    --------
    >>> rounded(152.3), rounded(220_767), rounded(2e6)
    ('150', '220,000', 'more than a million')
    """
    if items >= 1e6:
        return "more than a million"
    digit = 10 ** max(floor(log10(max(items, 1))) - 1, 0)
    return f"{round(items / digit) * digit:,}"


def counted(count: int, noun: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> counted(1, "pair"), counted(1_200, "item")
    ('1 pair', '1,200 items')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def are(count: int) -> str:
    """Return the verb that goes with a number of things."""
    return "is" if count == 1 else "are"


def reason(facts: PairFacts) -> str:
    """Say in one or more plain sentences why a pair has its status."""
    if facts.n == 0:
        return f"{facts.model_a} and {facts.model_b} share no item yet."
    if facts.status == "superseded":
        return _superseded(facts)
    parts = _decided(facts) if facts.status == "decided" else [_verdict(facts)]
    if facts.status != "decided":
        if facts.no_family:
            parts.append(f"It has no family verdict: {facts.no_family}.")
        parts += _open(facts)
        if facts.assumption and (facts.status == "equivalent" or _alone(facts)):
            parts.append(f"Assumes that {facts.assumption}.")
    if facts.gap is not None and facts.gap < 0:
        parts.append(
            f"On the items they share {facts.model_b} leads, although {facts.model_a} has the higher mean over its own items: "
            "they were scored on different items."
        )
    return " ".join(parts)


def _sides(facts: PairFacts, side: str) -> tuple[str, str]:
    return (facts.model_a, facts.model_b) if side == "a" else (facts.model_b, facts.model_a)


def _superseded(facts: PairFacts) -> str:
    side = facts.side or facts.pair_side
    kept = "nothing had been decided"
    if side is not None:
        better, worse = _sides(facts, side)
        kept = f"{better} had been decided to be better than {worse}"
        kept += "" if facts.side else ", for this pair by itself"
    return (
        f"Superseded: {kept}, on epoch {facts.epochs[0]} of {facts.model_a} and epoch {facts.epochs[1]} of {facts.model_b}. "
        "One of them has been scored again since: the newer scores are a comparison of their own, and this verdict is kept as it was made."
    )


def _decided(facts: PairFacts) -> list[str]:
    """Say who is better, what it rests on, whether it has turned since, and the assumption."""
    side = facts.side or "a"
    better, worse = _sides(facts, side)
    said = f"{better} is better than {worse}, decided family-wise"
    if facts.wins is not None and facts.losses is not None:
        wins, losses = (facts.wins, facts.losses) if side == "a" else (facts.losses, facts.wins)
        said += f": of {facts.n:,} shared items, {wins:,} are right in {better} alone and {losses:,} in {worse} alone"
    if facts.missing and facts.policy == "completion":
        said += f"; the {counted(facts.missing, 'item')} still missing cannot undo it"
    parts = [f"{said}."]
    if facts.gap is not None and (facts.gap < 0 if side == "a" else facts.gap > 0):
        parts.append(
            f"But the gap has since turned: {worse} now leads. The decision stands as it was made; look at what changed."
        )
    elif facts.turned_at is not None:
        parts.append(
            f"After the decision the gap had turned for a while, at {facts.turned_at:,} shared items; it has turned back."
        )
    return [*parts, f"Assumes that {facts.assumption}."]


def _alone(facts: PairFacts) -> bool:
    """Say whether a pair is decided by itself and not in its family."""
    return facts.pair_side is not None and facts.status in {"collecting", "exhausted"}


def _verdict(facts: PairFacts) -> str:
    texts = {
        "invalidated": f"It was decided, but {facts.held}: the decision no longer counts.",
        "held": f"Held: {facts.held}.",
        "equivalent": "A tie: the gap is smaller than the declared margin, in either direction.",
        "exhausted": "Every item has been scored, and the evidence does not decide which is better.",
    }
    if _alone(facts):
        better, worse = _sides(facts, facts.pair_side or "a")
        scored = "Every item has been scored. " if facts.status == "exhausted" else ""
        alone = f"{scored}Decided for this pair by itself ({better} is better than {worse})"
        if facts.no_family:
            return f"{alone}."
        family = "not yet family-wise" if facts.status == "collecting" else "not family-wise"
        return f"{alone}, {family}: with this many pairs compared, chance alone makes one look like this too often."
    if facts.status in texts:
        return texts[facts.status]
    if facts.missing:
        missing = f"{counted(facts.missing, 'item')} of the benchmark {are(facts.missing)} still missing"
        return f"Undecided: {missing} for this pair, and could turn it."
    return "Undecided: the evidence so far does not tell which is better."


def _open(facts: PairFacts) -> list[str]:
    parts = []
    if facts.low is not None and facts.high is not None:
        low, high = facts.low, facts.high
        ruled = []
        if high < 1:
            ruled.append(f"{facts.model_a} ahead by more than {points(high)}" if high > 0 else f"{facts.model_a} ahead")
        if low > -1:
            ruled.append(f"{facts.model_b} ahead by more than {points(low)}" if low < 0 else f"{facts.model_b} ahead")
        if ruled:
            parts.append(f"The interval rules out {' and '.join(ruled)}.")
    if facts.discordant is not None:
        parts.append(
            f"{facts.discordant:,} of {facts.n:,} shared items {are(facts.discordant)} informative (exactly one of the two is right)."
        )
    if facts.status in {"collecting", "exhausted", "held"}:
        parts += _prospect(facts)
    return parts


def _prospect(facts: PairFacts) -> list[str]:
    if facts.low is None:
        return []
    more, left = facts.items_to_decision, facts.missing
    if more is None and facts.discordant is None:
        return []  # not estimated for graded scores
    if more is None:
        return ["At the present estimate no number of items settles it."]
    if more < 1:
        return []
    count = rounded(more) if more >= 1e6 else f"about {rounded(more)}"
    if left is not None and more > left:
        rest = f"{left:,} {are(left)} left" if left else "none are left"
        small = "The benchmark is too small to settle a gap like this one"
        return [f"{small}: {count} further items would be needed, {rest}."]
    return [f"At the present estimate {count} further items would settle it."]

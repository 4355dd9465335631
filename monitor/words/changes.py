"""The sentences of verdicts that every surface shares: scopes and verdict changes."""

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from monitor.words.assumptions import clauses
from schemas.records.catalogue import published
from schemas.results.assumptions import BATTLES, Assumption, without
from schemas.results.reasons import Fact, Reason

DELETED: Final = "the board was deleted"

UNDONE: Final = "some of the scores were withdrawn, and the board is judged again without them"

UNDECLARED_UNITS: Final = (
    "results name units of their items, and none are declared; declare the unit of each item "
    "(units: {item: unit}, or --units FILE)"
)


class Numbers(NamedTuple):
    """The fields of `Evidence`, for sentences about many pairs: there as the model sees them that a sentence names first."""

    n: int
    b: int | None
    c: int | None
    gap: float
    missing: int
    log_e: float | None
    log_threshold: float | None
    resolution_ratio: float | None

    def swapped(self) -> "Numbers":
        """Return the same as the other model sees it."""
        return self._replace(b=self.c, c=self.b, gap=-self.gap)


LOOKS: Final = {"one": "at this one look at complete results", "several": "however often you look"}
"""When an error rate holds, by the field `looks` of a report."""

SCOPES: Final = {"anytime": "for this pair only", "anytime_family": "family-wise"}
"""The comparisons over which each anytime procedure controls the error rate."""


def level(alpha: float) -> str:
    """Return the error rate at which a claim is decided.

    >>> level(0.05)
    'at alpha = 0.05'
    """
    return f"at alpha = {alpha:g}"


def too_many_items(benchmark: str, items: int, arrived: int | None = None) -> str:
    """Return that more items have arrived than the item count of a benchmark, and whether that count is the published size.

    >>> too_many_items("my-bench", 50)
    'more items have arrived than the 50 declared, so the declared item count was wrong'
    >>> too_many_items("gsm8k", 1_319)
    'more items have arrived than the published size of 1,319, so that size does not fit these results'
    """
    known = published(benchmark)
    if known is None or known.items != items:
        fault = "so the declared item count was wrong"
        if arrived is None:
            return f"more items have arrived than the {items:,} declared, {fault}"
        return f"{arrived:,} items arrived and {items:,} were declared, {fault}; declare the right one (items: N)"
    fault = "so that size does not fit these results"
    if arrived is None:
        return f"more items have arrived than the published size of {items:,}, {fault}"
    return f"{arrived:,} items arrived and the published size is {items:,}, {fault}; declare the item count (items: N)"


def too_many_of_cluster(cluster: str, items: int) -> str:
    """Return that more items of a cluster have arrived than declared.

    >>> too_many_of_cluster("math", 1351)
    'more items of cluster math have arrived than the 1,351 declared, so the declared sizes were wrong'
    """
    return f"more items of cluster {cluster} have arrived than the {items:,} declared, so the declared sizes were wrong"


def too_many_repeats(model: str, item: str, declared: int) -> str:
    """Return that an item has a repeat beyond those declared, and what to do; kept with the benchmark."""
    verb = "is" if declared == 1 else "are"
    return (
        f"{model} has {declared + 1:,} repeats of item {item}, and {declared:,} {verb} declared; declare as many as the items "
        "have (repeats: R), or all (repeats: all)"
    )


def too_many_votes(first: str, second: str, prompt: str, declared: int) -> str:
    """Return that a prompt has a vote beyond those declared, and what to do; kept with the benchmark."""
    verb = "is" if declared == 1 else "are"
    return (
        f"{first} and {second} have {declared + 1:,} votes on prompt {prompt}, and {declared:,} {verb} declared; declare as many as the "
        "prompts have (repeats: R), or all (repeats: all)"
    )


def decided(
    better: str,
    worse: str,
    benchmark: str,
    procedure: str,
    policy: str,
    evidence: Numbers,
    assumed: Collection[Assumption],
    *,
    alpha: float,
    weighted: bool = False,
) -> str:
    """Return the sentence of a decision under some assumptions, at alpha; `weighted` is whether clusters have weights."""
    # `evidence` speaks for the better model against the other.
    kind = "prompts" if policy == BATTLES else "items"
    if policy == BATTLES and evidence.b is not None and evidence.c is not None:
        outcome = battle_counts(better, worse, evidence.n, evidence.b, evidence.c)
    else:
        outcome = _outcome(better, worse, evidence, kind, weighted=weighted)
    if evidence.missing and evidence.gap > 0:
        lacking = "skipped" if policy == "committed" else "missing"
        rest = f"the 1 {lacking} item" if evidence.missing == 1 else f"all {evidence.missing:,} {lacking} items"
        outcome += f", even if {rest} went the other way"
    how = f"decided {SCOPES[procedure]} {level(alpha)}{_earlier(better, evidence)}"
    clause = clauses(assumed)
    return (
        f"{better} is better than {worse} on {kind} like those of {benchmark}, {how}: {outcome}. Assumes that {clause}."
    )


def _outcome(better: str, worse: str, evidence: Numbers, kind: str, *, weighted: bool) -> str:
    """Return how the better model did against the other on the shared items."""
    if evidence.b is None or evidence.c is None:
        higher = "higher" if evidence.gap >= 0 else "lower"
        return f"on {evidence.n:,} shared {kind} its {_mean(weighted)} is {higher} by {abs(evidence.gap):.4g}"
    return (
        f"of {evidence.n:,} shared items, only {better} is right on {evidence.b:,} and only {worse} on {evidence.c:,}"
    )


def _mean(weighted: bool) -> str:  # noqa: FBT001 - private
    return "weighted mean score" if weighted else "mean score"


def _earlier(better: str, evidence: Numbers) -> str:
    """Return that earlier evidence counts, where the better model does not lead at the event: another decision lowered the threshold."""
    return "" if evidence.gap > 0 else f" by its largest evidence so far, although {better} does not lead now"


def battle_counts(better: str, worse: str, n: int, wins: int, losses: int) -> str:
    """Return how often each model won.

    >>> battle_counts("ash", "birch", 30, 18, 7)
    'of 30 prompts, ash won 18 and birch won 7, the others are ties'
    >>> battle_counts("ash", "birch", 25, 18, 7)
    'of 25 prompts, ash won 18 and birch won 7'
    """
    ties = ", the others are ties" if n > wins + losses else ""
    return f"of {n:,} prompts, {better} won {wins:,} and {worse} won {losses:,}{ties}"


def settled(
    better: str,
    worse: str,
    benchmark: str,
    items: int,
    evidence: Numbers,
    *,
    assumed: Collection[Assumption],
    alpha: float,
    tie: bool = False,
    weighted: bool = False,
) -> str:
    """Return the sentence of a settled pair: who leads on the items of the benchmark, and nothing beyond them."""
    of_items = f"on the {items:,} items of {benchmark}, settled"
    assumes = "" if (clause := clauses(without(assumed, {"listed"}))) is None else f" Assumes that {clause}."
    if tie:
        return f"{better} and {worse} have the same {_mean(weighted)} {of_items}: all of them are scored.{assumes}"
    lead = _outcome(better, worse, evidence, "items", weighted=weighted)
    if evidence.log_e is not None:
        left = "1 item is" if evidence.missing == 1 else f"{evidence.missing:,} items are"
        return f"{better} leads {worse} {of_items} {level(alpha)}{_earlier(better, evidence)}: {lead}; {left} left.{assumes}"
    rest = "all items are scored."
    if evidence.missing:
        rest = (
            f"the {evidence.missing:,} missing {'item' if evidence.missing == 1 else 'items'} cannot change who leads."
        )
    return f"{better} leads {worse} {of_items}: {lead}; {rest}{assumes}"


def reversed_after(
    leader: str, trailer: str, benchmark: str, procedure: str, evidence: Numbers, policy: str = "trusted"
) -> str:
    """Return the sentence of a gap that reversed after the decision; `evidence` is that of the leader against the other."""
    graded = evidence.b is None or evidence.c is None
    lead = f"by {evidence.gap:.4g}" if graded else f"{evidence.b:,} to {evidence.c:,}"
    return (
        f"The gap on {benchmark} has reversed after the decision ({SCOPES[procedure]}): {leader} now leads {trailer}, {lead} on "
        f"{evidence.n:,} shared {'prompts' if policy == BATTLES else 'items'}. The decision is kept; look at what changed."
    )


def invalidated(first: str, second: str, benchmark: str, procedure: str, reason: str) -> str:
    """Return the sentence of a decision that no longer counts."""
    return f"{_verdict(first, second, benchmark, procedure)} no longer counts: {reason}."


def _verdict(first: str, second: str, benchmark: str, claim: str) -> str:
    if claim == "settled":
        return f"The settled lead between {first} and {second} on {benchmark}"
    return f"The decision between {first} and {second} on {benchmark} ({SCOPES[claim]})"


def superseded(first: str, second: str, benchmark: str, procedure: str, why: Fact) -> str:
    """Return the sentence of a decision whose scores or declaration newer ones replace."""
    return f"{_verdict(first, second, benchmark, procedure)} is superseded: {_REPLACED[why['code']](why)}"


_REPLACED: Final[Mapping[str, Callable[[Fact], str]]] = {
    Reason.SCORED_AGAIN: lambda given: (
        f"{given['model']} was scored again, as epoch {given['epoch']}. The new scores are compared separately."
    ),
    Reason.DECLARED_AGAIN: lambda given: (
        f"the benchmark was declared again, as version {given['version']}. The scores are judged again under it."
    ),
}

"""The sentences of verdicts that every surface shares: why they are held, what changed them, and what a report assumes besides."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from monitor.words.assumptions import TEXTS, clauses
from monitor.words.counts import counted
from schemas.records.catalogue import published
from schemas.records.text import Sentence, printable, shorten
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
    """Return the sentence of a gap that reversed after the decision; `evidence` favours the leader over the other."""
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


REFUSED_REMEDY: Final = "correct the file by its reason, or leave it out"

POLICIES: Final[Mapping[str, str]] = {  # how verdicts are given under each order policy
    "completion": "declared: the item count; a verdict is given once the missing items cannot change it, in any order of arrival",
    "committed": "asserted that the items follow the permutation that was committed before the first score",
    "trusted": "asserted that neither the arrival order nor what is skipped depends on outcomes or clusters",
    "none": "nothing is asserted, so no anytime verdict is given; declare an order policy",
}


def at_the_end(share: float) -> str:
    """Return which part of alpha the exact test of all items has.

    >>> at_the_end(0.2)
    '20 % of alpha, once the items left cannot undo it'
    """
    return f"{100 * share:g} % of alpha, once the items left cannot undo it"


_NO_ORDER: Final = (
    "no order policy is declared; declare the item count (items: N), or that neither the arrival order "
    "nor what is skipped depends on outcomes (order: trusted)"
)
_NO_BATTLE_ORDER: Final = (
    f"no order policy is declared; declare order: trusted (--order trusted), which assumes that {TEXTS[BATTLES]}"
)


def because(facts: Sequence[Fact]) -> Sentence | None:
    """Return reasons as one clause; None without any.

    >>> because([{"code": "mixed_scores"}, {"code": "incomplete_file", "detail": "a.jsonl breaks off"}])
    'some scores are neither 0 nor 1, and the pairs bet on 0/1 scores; declare graded scores (scores: graded); a.jsonl breaks off, so its \
end is not taken for the end of any run; complete the file'
    """
    return "; ".join(_CLAUSES[each["code"]](each) for each in facts) or None


def suspicion(model: str, statistic: str, items: int, observed: float, expected: float, p: float) -> Sentence:
    """Return the finding against the arrival order."""
    tail = f"p at most {p:.1g}"
    if statistic == "cluster successions":
        return (
            f"the arrival order is suspect: of the first {items:,} items of {model}, {observed:,.0f} follow an "
            f"item of the same cluster; about {expected:,.0f} would in a random order ({tail})"
        )
    return (
        f"the arrival order is suspect: the first {items:,} items of {model} follow the order of their ids "
        f"(correlation {observed:.2f}; {tail})"
    )


def _suspicion(given: Mapping[str, Any]) -> str:
    return suspicion(**{name: given[name] for name in ("model", "statistic", "items", "observed", "expected", "p")})


def _suspect(given: Mapping[str, Any]) -> str:
    return _suspicion(given) + ("; this order policy does not depend on it" if given["harmless"] else "")


def _refused(given: Mapping[str, Any]) -> str:
    files = given["files"]
    more = f" and {counted(files - 1, 'more file')}" if files > 1 else ""
    verb = "were" if more else "was"
    return f"{printable(given['path'])}{more} {verb} refused, so what was read is not taken for the whole benchmark; {REFUSED_REMEDY}"


def _too_many(given: Mapping[str, Any]) -> str:
    return too_many_items(given["benchmark"], given["declared"], given["arrived"])


def _too_many_of_cluster(given: Mapping[str, Any]) -> str:
    return f"{too_many_of_cluster(shorten(given['cluster']), given['declared'])}; declare the right ones (clusters: CLUSTER:N,...)"


def _repeats(given: Mapping[str, Any]) -> str:
    least, mean, most, declared = (given[name] for name in ("least", "mean", "most", "declared"))
    more = "" if declared is None else f", {declared:,} are declared"
    score = "a score is the mean of all" if more else "a score is their mean"
    if least == most:
        return f"{most:,} repeats an item{more}: {score}"
    number = f"{mean:.0f}" if mean >= 10 or mean == round(mean) else f"{mean:.1f}"
    return f"{number} repeats an item on average, {least:,} to {most:,}{more}: {score}"


_MEMBER_ORDERS: Final = {
    "none": "no order policy",
    "trusted": "order policy trusted, and there is no order of arrival among benchmarks",
}


def _lost(given: Mapping[str, Any]) -> str:
    gaps = "; ".join(gap(each["partition"], each["start"], each["end"]) for each in given["gaps"])
    return f"records {gaps} of the log were lost before they were folded, so scores or declarations may be missing"


def gap(partition: int, start: int, end: int) -> str:
    """Return which records were lost.

    >>> gap(3, 0, 60_000)
    '0 to 59,999 of partition 3'
    """
    return f"{start:,} to {end - 1:,} of partition {partition}"


def _not_declared(given: Mapping[str, Any]) -> str:
    models = given["models"]
    verb = "is" if len(models) == 1 else "are"
    nearest = "".join(f"; the declared model with the nearest name is {shorten(name)}" for name in given["nearest"])
    return f"{' and '.join(map(shorten, models))} {verb} not among the {given['declared']:,} declared models{nearest}"


_CLAUSES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    Reason.OTHER_ITEMS: lambda given: given["detail"],
    Reason.OFF_SCALE: lambda given: given["detail"],
    Reason.INCOMPLETE_FILE: lambda given: (
        f"{given['detail']}, so its end is not taken for the end of any run; complete the file"
    ),
    Reason.REFUSED_FILES: _refused,
    Reason.UNREAD_ITEMS: lambda given: (
        f"the lines of {counted(given['items'], 'item')} were rejected, so the weights of the clusters are not known; fix those lines"
    ),
    Reason.NO_ORDER: lambda _: _NO_ORDER,
    Reason.NO_BATTLE_ORDER: lambda _: _NO_BATTLE_ORDER,
    Reason.NO_SUITE_ORDER: lambda given: (
        "no anytime verdict is given; a suite has one where every member declares its items under order policy completion, or every member "
        f"under committed: {because(given['because'])}"
    ),
    Reason.SHARED_ITEM: lambda given: (
        f"{' and '.join(map(shorten, given['members']))} both have an item {shorten(given['item'])}, and an item that counts twice makes "
        "verdicts err; declare that items of the same id are different ones (distinct_items: true, --distinct), or leave one of the two out"
    ),
    Reason.MEMBER_UNSCORED: lambda given: f"{shorten(given['member'])} has no scores",
    Reason.MEMBER_ORDER: lambda given: f"{shorten(given['member'])} has {_MEMBER_ORDERS[given['policy']]}",
    Reason.MEMBER_HELD: lambda given: f"{shorten(given['member'])}: {because(given['because'])}",
    Reason.MIXED_POLICIES: lambda _: "some members have completion, others committed",
    Reason.SAME_SEED: lambda given: (
        f"{' and '.join(map(shorten, given['members']))} have the same seed and both have an item {shorten(given['item'])}; give each its "
        "own seed"
    ),
    Reason.SUITE_TOO_LARGE: lambda given: (
        f"{given['pairs']:,} pairs on {given['items']:,} items are too many to compute live; `rankwatch report --suite` on the results has "
        "them"
    ),
    Reason.UNDECLARED: lambda given: given["detail"],
    Reason.ORDER_REFUTED: lambda given: f"{_suspicion(given)}, and the order was declared trusted",
    Reason.TOO_MANY_ITEMS: _too_many,
    Reason.TOO_MANY_OF_CLUSTER: _too_many_of_cluster,
    Reason.MIXED_SCORES: lambda _: (
        "some scores are neither 0 nor 1, and the pairs bet on 0/1 scores; declare graded scores (scores: graded)"
    ),
    Reason.ASSERTED: lambda given: f"asserted that {clauses(map(Assumption.of, given['assumptions']))}",
    Reason.FILES_COMPLETE: lambda _: (
        "assumes that the files are complete: a later run that reads more may show another decision (an ended record makes the end "
        "permanent)"
    ),
    Reason.UNITS: lambda given: (
        f"{counted(given['items'], 'item')} in {counted(given['units'], 'unit')}: the score of a unit is the mean of its items"
    ),
    Reason.REPEATS: _repeats,
    Reason.UNUSED_POLICY: lambda given: f"the declared order policy {given['policy']} is not used: {given['detail']}",
    Reason.LEAD_UNSETTLED: lambda given: f"{because(given['because'])}; until then no lead is settled",
    Reason.SUSPECT_ORDER: _suspect,
    Reason.LOST_RECORDS: _lost,
    Reason.QUARANTINED: lambda given: (
        f"its records from offset {given['since']:,} on are set aside ({given['records']:,} until now), because {given['found']}; "
        "see `rankwatch quarantine list`"
    ),
    Reason.NOT_IN_FAMILY: lambda _: "it is not in the declared family",
    Reason.NOT_DECLARED: _not_declared,
    Reason.HELD_AT_FIRST: lambda _: "the benchmark was held when the pair got its first shared item",
    Reason.FAMILY_FULL: lambda given: f"earlier pairs filled the declared family ({given['capacity']:,})",
    Reason.NO_SUITE_FAMILY: lambda _: (
        "no member declares its family (family: models or capacity), and there is no order of arrival among benchmarks"
    ),
    Reason.SUITE_BEYOND_FAMILY: lambda given: (
        f"the suite has {given['pairs']:,} pairs, and a member declares a family of {given['capacity']:,}"
    ),
}
"""The clause of each reason of a benchmark, or of a place in its family."""

"""Why verdicts of a benchmark are held, and what a report assumes besides: the clauses that follow a colon or a semicolon."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from monitor.words.assumptions import TEXTS, clauses
from monitor.words.changes import too_many_items, too_many_of_cluster
from monitor.words.counts import counted
from schemas.records.text import Sentence, printable, shorten
from schemas.results.assumptions import BATTLES, Assumption
from schemas.results.reasons import Fact, Reason

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

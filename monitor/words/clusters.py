"""Why to read clustered results with care, or why there are none."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from monitor.words.counts import counted
from schemas.records.text import Sentence
from schemas.results.reasons import Fact, Reason


def warning(facts: Sequence[Fact]) -> Sentence | None:
    """Return what is unusual about the clusters; None where nothing is.

    >>> warning([{"code": "one_cluster", "cluster": "math"}])
    'All items with a cluster are in one (math), so there is no clustered result.'
    """
    return " ".join(_SENTENCES[each["code"]](each) for each in facts) or None


def _unlabelled(given: Mapping[str, Any]) -> str:
    verb = "has no cluster and is" if given["unlabelled"] == 1 else "have no cluster and are"
    return (
        f"{given['unlabelled']:,} of {counted(given['items'], 'item')} {verb} omitted from clustered results. The first result of an item "
        "sets its cluster (--cluster names the field)."
    )


_SENTENCES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    Reason.ONE_CLUSTER: lambda given: (
        f"All items with a cluster are in one ({given['cluster']}), so there is no clustered result."
    ),
    Reason.TOO_MANY_CLUSTERS: lambda given: (
        f"There is no clustered result: with {given['clusters']:,} clusters there are too many pairs (--pairs adjacent)."
    ),
    Reason.FEW_CLUSTERS: lambda given: (
        f"The effective number of clusters is {given['effective']:.1f} of {given['clusters']:,}; the largest, {given['largest']}, has "
        f"{100 * given['share']:.0f} % of the items. Below {given['few']:.0f} the clustered test uses the CR3 standard error: "
        "at a nominal .05 its error rate is .05 with equal sizes and roughly normal gaps, up to .12 where one cluster dominates and up to "
        ".23 where two do."
    ),
    Reason.UNLABELLED: _unlabelled,
}

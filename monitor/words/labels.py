"""What people prefer of a pair that a judge compared, in words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from monitor.words.counts import counted, listed
from monitor.words.numbers import equals, p_value
from monitor.words.points import points
from schemas.records.text import Sentence, shorten
from schemas.results.labels import LabelledPair, LabelsReport
from schemas.results.reasons import Fact, Reason


def reason(facts: Sequence[Fact]) -> Sentence:
    """Return what the labels show of a pair.

    >>> reason([{"code": "labels_unsupported", "judge": "x", "people": None, "labels": 200, "p": 0.4, "alpha": 0.05}])
    'The judge alone finds x better; the labels do not support it (200 labels, p = 0.4, alpha = 0.05).'
    """
    return " ".join(_SENTENCES[each["code"]](each) for each in facts)


def _of(given: Mapping[str, Any]) -> str:
    return f"({counted(given['labels'], 'label')}, {equals('p', p_value(given['p']))}, alpha = {given['alpha']:g})"


_SENTENCES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    Reason.LABELS_AGREE: lambda given: (
        f"People prefer {shorten(given['people'])} on items of this kind, as the judge alone does {_of(given)}."
    ),
    Reason.LABELS_UNSUPPORTED: lambda given: (
        f"The judge alone finds {shorten(given['judge'])} better; the labels do not support it {_of(given)}."
    ),
    Reason.LABELS_CONTRADICT: lambda given: (
        f"The judge alone finds {shorten(given['judge'])} better; people prefer {shorten(given['people'])} {_of(given)}."
    ),
    Reason.LABELS_DECIDE: lambda given: (
        f"People prefer {shorten(given['people'])} on items of this kind; the judge alone decides nothing {_of(given)}."
    ),
    Reason.LABELS_OPEN: lambda given: f"Neither the judge alone nor the labels show which is better {_of(given)}.",
}


def part(seed: str, every: int) -> str:
    """Return which items people were to label.

    >>> part("2026", 10), part("2026", 1)
    ('every 10th item in the order of the seed 2026', 'the items in the order of the seed 2026')
    """
    which = "the items" if every == 1 else f"every {_ordinal(every)} item"
    return f"{which} in the order of the seed {shorten(seed)}"


def _ordinal(number: int) -> str:
    last = 0 if number % 100 in {11, 12, 13} else number % 10
    return f"{number:,}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def assumption(seed: str, every: int) -> Sentence:
    """Return what the claims on labels assume."""
    return (
        f"Assumes that people were to label {part(seed, every)} before anybody saw a score, that they saw neither the judge's scores nor "
        "the names of the models, and that the items are a sample of independent items."
    )


def notes(size: int, outside: int, unknown: int, strangers: Sequence[str], duplicates: int) -> list[Sentence]:
    """Return which labels do not count."""
    found = []
    if outside:
        found.append(
            f"Labels of {counted(outside, 'item')} are not of the {size:,} that people were to label: they do not count. "
            "Check --label-seed and --label-every."
        )
    if unknown:
        found.append(f"Labels of {counted(unknown, 'item')} that the results do not have do not count.")
    if strangers:
        found.append(
            f"The labels are also of {listed([shorten(each) for each in strangers[:_NAMED]], len(strangers))}, without results."
        )
    if duplicates:
        found.append(f"{_verb(duplicates, 'label', 'come')} again with the same score, which changes nothing.")
    return found


def beneath(report: LabelsReport) -> list[Sentence]:
    """Return what the labels of a gate show besides its verdict, and what they assume."""
    return [*(line for pair in report.pairs for line in pair_lines(pair)[1:]), *report.notes, report.assumption]


def pair_lines(pair: LabelledPair) -> list[Sentence]:
    """Return the verdict of people on a pair, its numbers, and what it waits for."""
    lines, names = [pair.reason], {"a": pair.model_a, "b": pair.model_b}
    if pair.settled is not None:
        found = "as good" if pair.settled == "tie" else f"{shorten(names[pair.settled])} better"
        lines.append(f"Labels of all these items {'find both' if pair.settled == 'tie' else 'would find'} {found}.")
    if pair.gap is not None and pair.gap_se is not None:
        judge = "" if pair.judge_gap is None else f"{points(pair.judge_gap)} points by the judge, "
        like = "" if pair.correlation is None else f"; the judge and people correlate with {pair.correlation:.2f}"
        lines.append(
            f"The gap {shorten(pair.model_a)} - {shorten(pair.model_b)} is {judge}{points(pair.people_gap or 0.0)} by the labels, "
            f"{points(pair.gap)} by both (standard error {100 * pair.gap_se:.2f}){like}."
        )
    if pair.next_item is not None:
        later = _verb(pair.waiting, "label", "wait")
        waits = f" {later} for it, of later items." if pair.waiting else ""
        lines.append(f"The next item to label for both models is {shorten(pair.next_item)}.{waits}")
    if pair.refused:
        lines.append(f"{_verb(pair.refused, 'label', 'count')} at the worst for each claim, for lack of a score.")
    if pair.unjudged:
        lines.append(f"{_verb(pair.unjudged, 'item', 'count')} as a tie of the judge, which did not score both models.")
    return lines


_NAMED: Final = 3


def planned_labels(
    gap: float,
    discordance: float,
    correlation: float,
    items: int,
    power: float,
    alpha: float,
    corrected: int | None,
    alone: int | None,
    settled: int | None,
) -> list[Sentence]:
    """Return how many labels a gap takes."""

    def labels(count: int | None) -> str:
        return "not even labels of all items" if count is None else f"about {counted(count, 'label')}"

    every = "" if corrected is None else f" (label every {_ordinal(items // corrected)} item)"
    differ = f"{100 * discordance:g} % of {items:,} items different"
    like = f"a judge without bias that correlates with them by {correlation:g}"
    return [
        f"A gap of {100 * gap:g} points where people find {differ}, with {like}:",
        f"  on items of this kind: {labels(corrected)}{every}; without the judge {labels(alone)}",
        f"  on these items: {labels(settled)}",
        f"In {100 * power:g} % of simulated boards they find the gap at alpha = {alpha:g}. Correlated are the differences of two models.",
    ]


def _verb(count: int, noun: str, verb: str) -> str:
    """Return a count with its noun and verb.

    >>> _verb(1, "label", "count"), _verb(2, "label", "count")
    ('1 label counts', '2 labels count')
    """
    return f"{counted(count, noun)} {verb}{'s' * (count == 1)}"

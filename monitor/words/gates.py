"""The sentences of a gate: its headline, its family, and what the verdict on one benchmark means or would take."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, Final

from monitor.words.counts import counted
from monitor.words.numbers import equals, p_value, points
from monitor.words.order import LOOKS, because, level
from schemas.records.text import Sentence, shorten
from schemas.results.gate import ConflictRule, GateCandidate, GateComparison
from schemas.results.reasons import Fact, Reason

ON_UNDECIDED: Final = {  # what an undecided gate counts as, by the flag that changes it
    "wait": "Undecided ends with code 3: --on-undecided pass (a workflow: on-undecided) lets it pass, and worse models too.",
    "pass": "It passes because of --on-undecided pass: models that are worse by the margin pass too.",
    "fail": "It fails because of --on-undecided fail.",
}


def reason(facts: Sequence[Fact]) -> Sentence:
    """Return what the verdict on a benchmark means, or what it would take.

    >>> reason([{"code": "not_worse", "margin": 0.01, "relative": False, "alpha": 0.05, "decided_at": None, "worse": False}])
    'Not worse by more than 1 point at alpha = 0.05.'
    """
    return " ".join(_SENTENCES[each["code"]](each) for each in facts)


def margin(size: float, *, relative: bool) -> str:
    """Return a margin in words.

    >>> margin(0.01, relative=False), margin(0.025, relative=True)
    ('1 point', '2.5 % of its score')
    """
    number = f"{100 * size:g}"
    return f"{number} % of its score" if relative else f"{number} {'point' if number == '1' else 'points'}"


def _not_worse(given: Mapping[str, Any]) -> str:
    by = margin(given["margin"], relative=given["relative"])
    at = f", decided at item {given['decided_at']:,}" if given["decided_at"] else ""
    also = "; it is worse, by less than the margin" if given["worse"] else ""
    return f"Not worse by more than {by} {level(given['alpha'])}{at}{also}."


def _worse(given: Mapping[str, Any]) -> str:
    beyond = ", and the observed gap is beyond the margin"
    within = "; the observed gap is within the margin"
    return f"Worse than the baseline {level(given['alpha'])}{beyond if given['beyond'] else within}."


def _takes(given: Mapping[str, Any]) -> str:
    items, n = given["items"], given["n"]
    if items is None:
        return f"Undecided: {_lost(given)}more items like these would not make it pass."
    if given["missing"] and items <= n + given["missing"]:
        return f"Undecided: {_lost(given)}score them too."
    about = f"about {_two_digits(items):,} items"
    decides = (
        f"a test of {about} decides this in 4 of 5 runs"
        if given["rule"] == "exact test"
        else f"evidence like this decides at {about}"
    )
    return f"Undecided: {_lost(given)}{decides}; {n:,} {'is' if n == 1 else 'are'} shared."


def _lost(given: Mapping[str, Any]) -> str:
    return f"{given['missing']:,} missing items count against the candidate; " if given["missing"] else ""


def _people(given: Mapping[str, Any]) -> str:
    of = f"({counted(given['labels'], 'label')}, {equals('p', p_value(given['p']))}, alpha = {given['alpha']:g})"
    judge = {"pass": "the judge alone passes it", "fail": "the judge alone finds it worse"}.get(given["judge"])
    if given["verdict"] == "undecided":
        why = "by the labels as by the judge alone" if judge is None else f"{judge}, and the labels do not support it"
        return f"Undecided: {why} {of}."
    by = margin(given["margin"], relative=given["relative"])
    what = f"not worse by more than {by}" if given["verdict"] == "pass" else "worse"
    alone = "so does the judge alone" if given["judge"] == given["verdict"] else judge or "the judge alone is undecided"
    return f"People find it {what} {of}; {alone}."


def _runs(given: Mapping[str, Any]) -> str:
    return f"two runs of the baseline ({shorten(given['baseline'])} and {shorten(given['rerun'])})"


def _noise(given: Mapping[str, Any]) -> str:
    over = "" if given["benchmarks"] < 2 else f" over {given['benchmarks']} benchmarks (Holm)"
    return f"(p = {given['p']:.3g}{over})"


def evaluated(n: int, items: int, candidates: int, *, spent: bool, broken: int) -> Sentence:
    """Return how many items were evaluated, how many were saved, and how often a block broke off.

    >>> evaluated(30, 120, 2, spent=True, broken=0)
    'evaluated 30 of 120 items of 2 candidates, the budget; 90 items (75 %) were not evaluated'
    """
    percent = min(99, round(100 * (items - n) / items)) if n else 100
    share = f"{items - n:,} items ({percent} %) were not evaluated" if items > n else "none were left"
    of = f" of {candidates} candidates" if candidates > 1 else ""
    times = "once" if broken == 1 else f"{broken:,} times"
    again = f"; a block broke off and was evaluated again {times}" if broken else ""
    return f"evaluated {n:,} of {items:,} items{of}{', the budget' if spent else ''}; {share}{again}"


def _out_of_reach(given: Mapping[str, Any]) -> str:
    by, needed, items = margin(given["margin"], relative=given["relative"]), given["needed"], given["items"]
    lack = f"Answers as good as the old ones cannot exclude a loss of {by}"
    if needed is None:
        return f"{lack} with any number of items. No model was called."
    least = given["least"]
    larger = f", or declare a margin of {margin(least, relative=False)}" if least else ""
    anyway = "" if given["attainable"] == "impossible" else "; --run-anyway goes on"
    return (
        f"{lack} on fewer than {counted(needed, 'item')}. Add {counted(needed - items, 'item')}{larger}, before the run{anyway}. "
        "No model was called."
    )


def _two_digits(items: float) -> int:
    """Return an estimated number of items with two significant digits, rounded up: no fewer than it takes.

    >>> _two_digits(5_807_759), _two_digits(1_320.4), _two_digits(8.2)
    (5900000, 1400, 9)
    """
    whole = ceil(items)
    digit = int(10 ** max(len(str(whole)) - 2, 0))
    return -(-whole // digit) * digit


_SENTENCES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    Reason.HELD: lambda given: f"Held: {because(given['because'])}.",
    Reason.NO_SHARED_ITEMS: lambda _: "The models share no items.",
    Reason.NOT_WORSE: _not_worse,
    Reason.WORSE: _worse,
    Reason.NOT_WITHIN_MARGIN: lambda given: (
        f"Undecided: the observed gap, {points(given['gap'])} points, is not inside the margin, so more items like these would not make it "
        "pass."
    ),
    Reason.TAKES_ITEMS: _takes,
    Reason.CERTAIN: lambda given: (
        "All items were run."
        if not given["missing"]
        else f"Certain from item {given['at']:,} on: none of the {counted(given['missing'], 'missing item')} can change the verdict of all "
        f"{given['items']:,}."
    ),
    Reason.UNCERTAIN: lambda given: (
        f"Open: the {counted(given['missing'], 'missing item')} may still change the verdict."
    ),
    Reason.ONLY_WINS: lambda given: (
        f"With {counted(given['items'], 'item')} only a better model can pass: equal answers pass from {given['needed']:,} on."
    ),
    Reason.OUT_OF_REACH: _out_of_reach,
    Reason.NOT_EVALUATED: lambda given: (
        f"Not evaluated: {shorten(given['cheaper'])} passes and costs no more."
        if given["cheaper"]
        else "Not evaluated: the budget is spent."
    ),
    Reason.NOT_WORSE_IN_FAMILY: lambda given: (
        f"Not worse by more than the margin {level(given['alpha'])}, with what the decided candidates leave of it (Holm)."
    ),
    Reason.WORSE_IN_FAMILY: lambda given: (
        f"Worse than the baseline {level(given['alpha'])}, with what the decided candidates leave of it (Holm)."
    ),
    Reason.OPEN_IN_FAMILY: lambda given: (
        f"On its own: in the family of {given['comparisons']} comparisons the candidate is undecided."
    ),
    Reason.LABELS_GATE: _people,
    Reason.RERUN_AGREES: lambda given: f"Noise: {_runs(given)} differ by no more than theirs {_noise(given)}.",
    Reason.RERUN_DIFFERS: lambda given: (
        f"Held: {_runs(given)} differ by more than the noise of repeats {_noise(given)}; find out why, then compare."
    ),
}


def conflicts(counts: Mapping[str, int], models: Sequence[str], rule: ConflictRule = "worst") -> str | None:
    """Return which of two models have scores that contradict earlier ones, and what to do; None without any."""
    mine = {model: counts[model] for model in models if model in counts}
    if not mine:
        return None
    total = sum(mine.values())
    scores = "1 score contradicts" if total == 1 else f"{total:,} scores contradict"
    which = {
        "worst": f"Each counts at its worst for {shorten(models[0])} (--conflicts first or last changes that).",
        "first": "The score that was read first counts (--conflicts first).",
        "last": "The score that was read last counts (--conflicts last).",
    }
    names = ", ".join(f"{shorten(model)} ({count:,})" for model, count in mine.items())
    return (
        f"{scores} an earlier score of the same model and item: {names}. {which[rule]} If these are two runs, name each one "
        "(NAME=PATH): --margin with --rerun checks their noise."
    )


def noise(repeats: float, share: float, left: float) -> Sentence:
    """Return what share of the variance of a gap comes from so many repeats an item, and how much of it twice as many would leave."""
    return (
        f"{100 * share:.0f} % of the variance of the gap comes from repeats ({repeats:.3g} an item): twice the repeats leave "
        f"{100 * left:.0f} % of it, twice the items 50 %"
    )


def headline(
    candidates: Sequence[GateCandidate],
    comparisons: Sequence[GateComparison],
    by: str,
    verdict: str,
    cheapest: str | None,
    on_undecided: str,
    prices: Mapping[str, float] | None,
    worse: Sequence[str],
) -> Sentence:
    """Return the verdict on all candidates; `by` is the margin in words, and `worse` has the benchmarks on which one is worse."""
    baseline = comparisons[0].baseline
    names = _places(comparisons)
    where = next(iter(names)) if len(names) == 1 else _count(comparisons)
    claim = f"not worse than {baseline} by more than {by} on {where}"
    counts = f" (on_undecided: {on_undecided})" if verdict == "undecided" and on_undecided != "wait" else ""
    if prices:
        if cheapest is None:
            return f"{verdict}{counts}: no candidate is shown to be {claim}"
        price = prices[cheapest]
        open_below = [
            each.model for each in candidates if each.verdict in {"undecided", "held"} and (each.price or 0) < price
        ]
        also = f"; undecided and cheaper: {', '.join(open_below)}" if open_below else ""
        return f"pass: {cheapest} is the cheapest ({price:g}) that is {claim}{also}"
    if len(candidates) == 1:
        return _of_one(candidates[0], comparisons, by, verdict, counts, claim, worse)
    passed = sum(each.verdict == "pass" for each in candidates)
    are = "is" if passed == 1 else "are"
    return f"{verdict}{counts}: {passed} of {len(candidates)} candidates {are} {claim}"


def _of_one(
    candidate: GateCandidate,
    comparisons: Sequence[GateComparison],
    by: str,
    verdict: str,
    counts: str,
    claim: str,
    worse: Sequence[str],
) -> Sentence:
    model, first = candidate.model, comparisons[0]
    if verdict == "pass":
        return f"pass: {model} is {claim}"
    if verdict == "fail":
        return f"fail: {model} is worse than {first.baseline} on {', '.join(worse)}"
    if candidate.verdict == "held":
        return f"held{counts}: no verdict on whether {model} is {claim}"
    if len(comparisons) == 1 and first.n:
        items = counted(first.n, "item") if first.labels is None else counted(first.labels.pairs[0].labels, "label")
        return f"{verdict}{counts}: {items} cannot exclude that {model} is worse than {first.baseline} by {by} on {first.where}"
    return f"{verdict}{counts}: {model} is neither shown to be {claim}, nor to be worse"


def _places(comparisons: Sequence[GateComparison]) -> dict[str, None]:
    """Return the benchmarks, with their metrics, in order and once each."""
    return dict.fromkeys(each.where for each in comparisons)


def _count(comparisons: Sequence[GateComparison]) -> str:
    """Return how many benchmarks and metrics there are."""
    benchmarks = list(dict.fromkeys(each.benchmark for each in comparisons))
    of = benchmarks[0] if len(benchmarks) == 1 else f"{len(benchmarks)} benchmarks"
    several = any(each.metric is not None for each in comparisons)
    return f"{len(_places(comparisons))} metrics of {of}" if several else of


def decisive_gap(c: GateComparison) -> float | None:
    """Return the gap that the verdict is about: with labels, what they and the judge estimate; the judge's own is `c.gap`."""
    if c.labels is None:
        return c.gap
    pair = c.labels.pairs[0]
    return None if pair.gap is None else pair.gap if pair.model_a == c.candidate else -pair.gap


def bound(c: GateComparison) -> str:
    """Return the gap with the bound that decides, next to what was allowed."""
    if c.labels is not None:
        gap = decisive_gap(c)
        people = "" if gap is None else f"gap {points(gap)} points by labels and judge, "
        return f"{people}{points(c.gap)} by the judge alone, allowed {points(c.allowed)}"
    high = c.verdict == "fail"
    end = c.gap_high if high else c.gap_low
    decides = "" if end is None else f", at {'most' if high else 'least'} {points(end)}"
    return f"gap {points(c.gap)} points{decides}, allowed {points(c.allowed)}"


def counts(c: GateComparison) -> Sentence | None:
    """Return on how many items one of the models alone is right, and which ones a worse candidate lost; None for graded scores."""
    if c.only_candidate is None or c.only_baseline is None:
        return None
    lost = c.only_baseline > c.only_candidate
    (more, first), (less, second) = sorted(
        [(c.only_candidate, c.candidate), (c.only_baseline, c.baseline)], key=lambda each: each[0], reverse=True
    )
    names = f" The first lost: {', '.join(map(shorten, c.first_lost))}." if lost and c.first_lost else ""
    judge = "" if c.labels is None else "By the judge alone: "
    return f"{judge}{counted(more, 'item')} only {shorten(first)} has right, {less:,} only {shorten(second)}.{names}"


def risk(verdict: str, by: str, alpha: float, baseline: str, candidates: Sequence[str]) -> Sentence | None:
    """Return how often such a verdict is wrong.

    >>> risk("pass", "2 points", 0.05, "old", ["new"]), risk("fail", "2 points", 0.05, "old", ["a", "b"])
    ('At most 5 % chance that a model worse by 2 points passes.', 'At most 5 % chance of this verdict if no candidate is worse than old.')
    """
    percent = f"At most {100 * alpha:.3g} % chance"
    if verdict == "pass":
        return f"{percent} that {'a' if len(candidates) == 1 else 'any'} model worse by {by} passes."
    if verdict == "fail":
        who = f"{shorten(candidates[0])} is not" if len(candidates) == 1 else "no candidate is"
        return f"{percent} of this verdict if {who} worse than {shorten(baseline)}."
    return None


def alpha(levels: Sequence[float]) -> str:
    """Return the levels of a gate."""
    return f"alpha = {' and '.join(f'{level:g}' for level in levels)}"


def family(
    candidates: Sequence[GateCandidate],
    comparisons: Sequence[GateComparison],
    levels: Sequence[float],
    *,
    shares: bool = False,
) -> Sentence:
    """Return how the candidates and comparisons share alpha."""
    of = alpha(levels)
    looks = LOOKS[comparisons[0].looks]
    if len(comparisons) == 1:
        return f"one comparison, {of}, one-sided, {looks}"
    if shares:
        return f"{of} {looks}: each of the {len(candidates)} candidates is decided at an equal share of it"
    parts = []
    if len(_places(comparisons)) > 1:
        kind = "benchmark" if all(each.metric is None for each in comparisons) else "metric"
        parts.append(
            f"a candidate passes if it is not worse on each {kind}, so this claim needs no correction over {kind}s"
        )
    if len(candidates) > 1:
        parts.append(f"the {len(candidates)} candidates share alpha (Holm)")
    parts.append(f"it fails if it is worse on any: the {len(comparisons)} comparisons share alpha (Holm)")
    return f"{of} {looks}: {'; '.join(parts)}"

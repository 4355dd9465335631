"""The three lines of a result and the goal: what is settled, decided and resolved, and what a goal still depends on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from monitor.words.counts import about_items, counted, listed
from monitor.words.numbers import apart, equals, p_value
from monitor.words.order import because
from monitor.words.points import points, size
from schemas.records.text import Sentence
from schemas.results.reasons import Fact, Reason

Given = Mapping[str, Any]

_FEW_TURNED: Final = 2
"""Items of one model that, had the other one been right, decide a pair: so few are named in place of a gap."""


def line(facts: Sequence[Fact]) -> Sentence:
    """Return the answer to a question, a sentence or two for each fact.

    >>> line([{"code": "leads", "model": "ash", "items": 1200}])
    'ash leads on the 1,200 items.'
    """
    return " ".join(filter(None, halves(facts)))


def halves(facts: Sequence[Fact]) -> tuple[Sentence, Sentence]:
    """Return an answer in two parts, the first one for bold type; either may be empty.

    >>> halves([{"code": "steps", "decided": 2, "steps": 9, "ties": 7, "open": 0}])
    ('2 of 9 steps', 'of the ranking are real, 7 are ties.')
    """
    first, *others = facts
    made = _SENTENCES[first["code"]](first)
    strong, rest = (made, "") if isinstance(made, str) else made
    return strong, " ".join(filter(None, [rest, *(line([each]) for each in others)]))


def clause(facts: Sequence[Fact]) -> str:
    """Return the same without its full stop, for quotation."""
    return line(facts)[:-1]


def _unit(given: Given) -> str:
    return "unit" if given.get("units") else "prompt" if given.get("prompts") else "item"


def _items(given: Given) -> str:
    return counted(given["items"], _unit(given))


def _rivals(given: Given) -> str:
    if given["rivals"]:
        return f"only {listed(given['rivals'], given['count'])}"
    return f"{given['count']:,} of {counted(given['others'], 'model')}"


_OPEN: Final[Mapping[str, Callable[[Given], str]]] = {
    "too_many_items": lambda _: "has the best score so far; more items arrived than declared, so nothing is settled",
    "no_item_count": lambda _: "has the best score so far; the number of items is not declared",
    "no_order": lambda _: "has the best score so far; without an order policy nothing is settled",
    "ended": lambda given: (
        f"leads on the items scored; the runs have ended, and {_rivals(given)} could have passed it on all {_items(given)}"
    ),
    "open": lambda given: f"leads on the items scored; {_rivals(given)} may still pass it on all {_items(given)}",
}


def _rated(given: Given) -> str:
    rating = given["rating"]
    text = f"{given['model']} " + (
        "is ahead, and unbeaten" if rating is None else f"has the highest rating ({rating:,.0f})"
    )
    if given["islands"] > 1:
        islands = counted(given["islands"], "island")
        text = f"{islands} of models never met, so there is no common ranking; in the largest, {text}"
    return f"{text}. Battles have no last item: nothing is settled."


def _neighbours(given: Given) -> str:
    ties, undecided, every, size = (given[name] for name in ("ties", "undecided", "all_decided", "all_pairs"))
    rest = [counted(ties, "tie")] if ties else []
    if undecided:
        rest.append(f"{undecided:,} undecided so far")
    of_all = f"{every:,} of all {size:,}"
    if not every:
        text = f"No pair is decided{'' if given['over'] else ' yet'}"
    elif not given["decided"]:
        text = f"No pair of neighbours in rank is decided: {', '.join(rest)}; {of_all} {'is' if every == 1 else 'are'}"
    else:
        of = f"{given['decided']:,} of {counted(given['pairs'], 'pair')} of neighbours in rank"
        text = ", ".join([of, *rest]) + (f"; {of_all} pairs" if given["pairs"] < size else "")
    return f"{text}."


def _enough(given: Given) -> str:
    what = given["unit"]
    resolved = f"{given['resolved']:,}" if given["resolved"] else "none"
    text = f"Enough {what} for {resolved} of {counted(given['gaps'], 'gap')} between neighbours in a planned test"
    if given["anytime"] is not None:
        text += f", {given['anytime']:,} if you look as results arrive"
    if given["unknown"]:
        text += f"; unknown for {given['unknown']:,}, as every item differs alike"
    return f"{text}."


def _held(given: Given) -> str:
    """Return why no verdict is given, and what is to be done; the notes have the rest."""
    first = given["because"][0]
    if given.get("withdrawn") and first["code"] == Reason.ORDER_REFUTED:
        return f"Withdrawn: the order of arrival was not random, as the first {first['items']:,} items of {first['model']} show."
    if [first["code"]] == [each["code"] for each in given["because"]] == [Reason.NO_ORDER]:
        return "Held: no order is declared. Declare the number of items before the first score."
    return f"Held: {because(given['because'])}."


def _others(count: int) -> str:
    return "both others" if count == 2 else f"all {count:,} others"


def _best_but(given: Given) -> tuple[str, str]:
    rivals = listed(given["rivals"], len(given["rivals"]))
    verb = "lack" if len(given["rivals"]) > 1 else "lacks"
    items = "items" if given["missing"] is None else counted(given["missing"], "item")
    who = f"{given['model']} lacks items, and {rivals}" if given["missing"] == 0 else f"{rivals} {verb} {items} and"
    could = f"{who} could have passed it" if given["over"] else f"{rivals} could still pass it"
    return f"{given['model']} is better than {given['better']:,} of the {given['others']:,} others.", f"{could}."


def _two_models(given: Given) -> str:
    """Return who is better and by how much, or that it is not decided and the numbers that show why."""
    (a, b), gap = given["models"], given["gap"]
    if given["side"] is not None:
        better, worse = (a, b) if given["side"] == "a" else (b, a)
        ahead = gap if given["side"] == "a" else -gap
        if ahead < 0:
            return f"Decided for {better}, but {worse} is {_ahead(-ahead)} ahead on these items{_evidence(given)}."
        return f"Decided: {better} is better than {worse}, {_ahead(ahead)} ahead{_evidence(given)}."
    first, second = (a, b) if gap >= 0 else (b, a)
    state = "Not decided" if given["over"] else "Not decided yet"
    where = "" if given["over"] else f" after {given['n']:,} of {counted(given['of'], _unit(given))}"
    if not gap:
        return f"{state}: {a} and {b} are level{where}."
    text = f"{state}: {first} is {_ahead(abs(gap))} ahead of {second}{where}"
    if missing := given["missing"]:
        verb = "is" if missing == 1 else "are"
        return f"{text} on {counted(given['n'], _unit(given))}, and {missing:,} {verb} missing."
    if not given["close"]:
        return f"{text}, and {counted(given['n'], _unit(given))} cannot show that."
    return f"{text}{_evidence(given)}."


def _two_counts(given: Given) -> str:
    """Return the interval of the gap, and on how many items the two models differ."""
    a, b = given["models"]
    parts = []
    if given["low"] is not None:
        parts.append(f"The interval of the gap is {points(given['low'])} to {points(given['high'])} points.")
    if "wins" in given:
        right = f"Only {a} is right on {counted(given['wins'], _unit(given))}, only {b} on {given['losses']:,}"
        missing = f", {given['missing']:,} missing" if given["missing"] else ""
        parts.append(f"{right}; {given['alike']:,} are alike{missing}.")
    return " ".join(parts)


def _ahead(gap: float) -> str:
    text = size(gap).removesuffix("0").removesuffix("0").removesuffix(".")
    return "1 point" if text == "1" else f"{text} points"


def _evidence(given: Given) -> str:
    """Return p and what decides, with the digits that show which is smaller."""
    if given["p"] is None:
        return ""
    p, threshold = apart(p_value, given["p"], given["threshold"])
    return f", {equals('p', p)} against {threshold}"


def _steps(given: Given) -> tuple[str, str]:
    rest = [f"{given['ties']:,} {'is a tie' if given['ties'] == 1 else 'are ties'}"] if given["ties"] else []
    if given["open"]:
        state = "over" if given["over"] else "missing" if given.get("missing") else "open"
        rest.append(f"{given['open']:,} {_WAITS[state][given['open'] > 1]}")
    real = f"of the ranking {'is' if given['decided'] == 1 else 'are'} real"
    return f"{given['decided']:,} of {counted(given['steps'], 'step')}", f"{', '.join([real, *rest])}."


_WAITS: Final = {
    "over": ("lacks items", "lack items"),
    "missing": ("waits for missing items", "wait for missing items"),
    "open": ("is open", "are open"),
}


def _closest_tie(given: Given) -> str:
    ranks, needed = f"ranks {given['rank']:,} and {given['rank'] + 1:,}", about_items(given["items"], _unit(given))
    step = "open step" if given.get("open") else "tie"
    return f"Closest {step}: {ranks} need {needed}; {'they share' if given.get('shared') else 'there are'} {given['of']:,}."


def _would_decide(given: Given) -> str:
    differ = counted(given["differ"], _unit(given))
    if given["wins"] is None:
        return f"With {differ} that differ, no gap decides."
    counts = f"{given['wins']:,} to {given['differ'] - given['wins']:,}"
    if 0 < given["turned"] <= _FEW_TURNED:
        turned = counted(given["turned"], _unit(given))
        return f"{turned} turned would decide it: {counts} {_unit(given)}s give {equals('p', p_value(given['p']))}."
    return f"With {differ} that differ, the smallest gap that decides is {_ahead(given['gap'])} ({counts})."


def _goal_open(given: Given) -> str:
    others = "; no further item of another model can change the answer" if given["others"] else ""
    return f"It depends on {counted(given['pairs'], 'undecided pair')} of {listed(given['models'], given['count'])}{others}."


def _up_to(given: Given) -> str:
    return "" if given["margin"] is None else f", up to gaps of {100 * given['margin']:g} points"


def _met_rank(given: Given) -> str:
    low, high = given["low"], given["high"]
    return f"{given['models'][0]} has rank {low:,}{'' if low == high else f' to {high:,}'} of {given['of']:,}{_up_to(given)}"


def _met_top(given: Given) -> str:
    count = given["count"]
    if count == given["of"]:
        return f"The board has {counted(count, 'model')}"
    best = "is the best" if count == 1 else f"are the best {count:,}"
    return f"{listed(given['models'], count)} {best} of {given['of']:,} models{_up_to(given)}"


_GOALS: Final[Mapping[str, Callable[[Given], str]]] = {
    "ranking": lambda given: f"The order of {counted(given['of'], 'model')} is decided{_up_to(given)}",
    "pair": lambda given: (
        f"{given['models'][0]} is {'decided better' if given['decided'] else 'not worse'} than {given['models'][1]}"
        f"{'' if given['decided'] else _up_to(given)}"
    ),
    "model": _met_rank,
    "top": _met_top,
}


def _goal_waits(given: Given) -> str:
    return f"{listed(given['models'], given['count'])} {'has' if given['count'] == 1 else 'have'} no scores yet."


def _verified(given: Given) -> str:
    """Return which models are the best, at what risk, and what that does not claim."""
    count, others = given["count"], given["of"] - given["count"]
    than = "the other model" if others == 1 else f"each of the other {others:,} models"
    each = "is" if count == 1 else "are each"
    p, alpha = apart(p_value, given["p"], given["alpha"])
    risk = f"at most {100 * given['alpha']:g} %{'' if given['exact'] else ' (large-sample)'}"
    wrong = "a model that is not better than all others" if count == 1 else f"a set that is not the best {count:,}"
    about = "first place alone" if count == 1 else "the set, and not about the order in it"
    return (
        f"Verified: {listed(given['models'], count)} {each} better than {than} on {_unit(given)}s of this kind "
        f"({equals('p' if others * count == 1 else 'largest p', p)} against {alpha}). One look at a planned {_items(given)}, for a "
        f"question fixed in advance, names {wrong} with a chance of {risk}. This is about {about}."
    )


def _not_verified(given: Given) -> str:
    (inside, outside), (p, alpha) = given["pair"], apart(p_value, given["p"], given["alpha"])
    look = f"one look at a planned {_items(given)} does not show that {inside} is better than {outside}"
    return f"Not verified: {look} ({equals('p', p)} against {alpha})."


_NEEDS: Final[Mapping[str, Callable[[Given], str]]] = {
    "count": lambda _: "one look needs a planned number of items; declare it (items: N)",
    "models": lambda given: f"{_goal_waits(given)[:-1]}",
    "scores": lambda _: "one look needs scores that are right or wrong, an item once, and each item counting the same",
    "items": lambda given: (
        f"one look needs every model's score on the planned {_items(given)}, and all have {counted(given['shared'], _unit(given))}"
    ),
}


_SENTENCES: Final[Mapping[str, Callable[[Given], str | tuple[str, str]]]] = {
    Reason.WOULD_CHANGE: lambda given: (
        f"What would change it: the {counted(given['missing'], 'item')} that {listed(given['models'], len(given['models']))} "
        f"{'lack' if len(given['models']) > 1 else 'lacks'}."
    ),
    Reason.BEST: lambda given: f"{given['model']} is better than {_others(given['others'])}.",
    Reason.BEST_BUT: _best_but,
    Reason.FIRST_OPEN: lambda given: (
        "First place is open:",
        f"{'any of the' if given['count'] == given['of'] else '{count:,} of'.format(**given)} {given['of']:,} models may hold it.",
    ),
    Reason.FIRST_TIE: lambda given: ("First place is a tie:", f"{listed(given['models'], given['count'])}."),
    Reason.TWO_MODELS: _two_models,
    Reason.TWO_COUNTS: _two_counts,
    Reason.HELD_RESULT: _held,
    Reason.STEPS: _steps,
    Reason.CLOSEST_TIE: _closest_tie,
    Reason.WOULD_DECIDE: _would_decide,
    Reason.FOUND_HERE: lambda given: (
        f"A gap of {_ahead(round(given['gap'], 2))} is found in 4 of 5 tests of this size."
    ),
    Reason.GAP_NEEDS: lambda given: (
        f"A gap of {_ahead(given['gap'])} needs {about_items(given['items'], _unit(given))} in all, to be found in 4 of 5 tests."
    ),
    Reason.OTHER_ITEMS: lambda _: "Nothing is settled: the scores of two models are not shown to be of the same items.",
    Reason.OFF_SCALE: lambda _: "Nothing is settled: the scores may be on another scale.",
    Reason.TRAILS: lambda given: (
        f"{given['model']} has the best mean score, but {listed(given['ahead'], given['count'])} "
        f"{'leads' if given['count'] == 1 else 'lead'} on the items that both have."
    ),
    Reason.LEADS: lambda given: f"{given['model']} leads on the {_items(given)}.",
    Reason.EQUAL: lambda given: (
        f"{listed(given['models'], given['count'])} have the same score on the {_items(given)}."
    ),
    Reason.LEAD_OPEN: lambda given: f"{given['model']} {_OPEN[given['state']](given)}.",
    Reason.RATED: _rated,
    Reason.NO_VERDICT: lambda given: f"No verdict: {because(given['because'])}.",
    Reason.NEIGHBOURS: _neighbours,
    Reason.NO_FURTHER_VERDICT: lambda given: f"No further verdict: {because(given['because'])}.",
    Reason.ENOUGH_ITEMS: _enough,
    Reason.GOAL_WAITS: _goal_waits,
    Reason.GOAL_OF_STRANGER: lambda _: "It names a model that does not take part.",
    Reason.GOAL_MET: lambda given: f"{_GOALS[given['kind']](given)}.",
    Reason.GOAL_OPEN: _goal_open,
    Reason.GOAL_IMPOSSIBLE: lambda given: (
        f"{_goal_open({**given, 'others': 0})[:-1]}, and no item that may still come can decide "
        f"{'it' if given['pairs'] == 1 else 'any of them'}."
    ),
    Reason.VERIFIED: _verified,
    Reason.NOT_VERIFIED: _not_verified,
    Reason.NOT_LOOKED_AT: lambda given: f"Not verified: {_NEEDS[given['needs']](given)}.",
    Reason.OUTSIDE_GOAL: lambda given: (
        f"Outside the declared models, so not counted: {listed(given['models'], given['count'])}."
    ),
}


def race(shuffles: int, met: int, items: float, scores: float, models: int, shared: int) -> Sentence:
    """Return what races along a committed order took."""
    full, pairs = models * shared, models * (models - 1) // 2
    ends = "meets the goal" if met == shuffles else f"meets the goal in {met:,} shuffles, and ends"
    alpha = f", with alpha shared equally by all {counted(pairs, 'pair')}," if pairs > 1 else ""
    return (
        f"On the {counted(shared, 'item')} that all models have, a race along a committed order{alpha} {ends} at a median of item "
        f"{items:,.0f}, after {scores:,.0f} of {counted(full, 'score')} ({100 * scores / full:.1f} %), over "
        f"{counted(shuffles, 'shuffle')} of these items. This is no verdict: no order was committed for these scores."
    )

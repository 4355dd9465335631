"""Why a pair has its status: one sentence for each fact."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from monitor.words.assumptions import clauses
from monitor.words.counts import about_items, counted, probability
from monitor.words.kinds import OfItems
from monitor.words.order import SCOPES, because, level
from monitor.words.points import size
from schemas.records.text import Sentence
from schemas.results.assumptions import Assumption
from schemas.results.reasons import Fact, Reason


class Pair(NamedTuple):
    """What the facts of a pair are about."""

    model_a: str
    model_b: str
    words: OfItems

    def ordered(self, side: str) -> tuple[str, str]:
        """Return the model of a side, and the other."""
        return (self.model_a, self.model_b) if side == "a" else (self.model_b, self.model_a)


class PairBoard(NamedTuple):
    """What the words about a pair need of its benchmark; `family`: the pairs that share alpha."""

    benchmark: str
    policy: str
    alpha: float
    family: int
    items: int
    unit: str
    power: float
    look: float


def reason(facts: Sequence[Fact], pair: Pair) -> Sentence:
    """Return why a pair has its status, in one or more sentences.

    >>> reason([{"code": "too_little_evidence"}, {"code": "never"}], Pair("ash", "birch", OfItems()))
    'Undecided: the evidence so far does not show which model is better. At the current estimate no number of items decides it.'
    """
    return " ".join(_SENTENCES[each["code"]](each, pair) for each in facts)


Given = Mapping[str, Any]


def _nothing_shared(given: Given, pair: Pair) -> str:
    both = f"{pair.model_a} and {pair.model_b}"
    if given["waits"]:
        return f"{both} share no items yet: their items count when both runs have ended (repeats: all)."
    return f"{both} share no items{'' if given['ended'] else ' yet'}."


def _not_met(given: Given, pair: Pair) -> str:
    waits = ": the votes on a prompt count when all of them are in, or when both runs have ended"
    return f"{pair.model_a} and {pair.model_b} have not met{waits if given['waits'] else ''}."


def _superseded(given: Given, pair: Pair) -> str:
    verdict = "nothing was decided"
    if given["side"] is not None:
        better, worse = pair.ordered(given["side"])
        verdict = (
            f"{better} was decided to be better than {worse}, {SCOPES[given['procedure']]} {level(given['alpha'])},"
        )
    first, second = given["epochs"]
    return (
        f"Superseded: {verdict} on epoch {first} of {pair.model_a} and epoch {second} of {pair.model_b}. "
        "At least one of them was scored again later. This verdict is kept unchanged; the newer scores are compared separately."
    )


def _decided(given: Given, pair: Pair) -> str:
    better, worse = pair.ordered(given["side"])
    verdict = f"{better} is better than {worse}, decided family-wise {level(given['alpha'])}"
    wins, losses, n = given["wins"], given["losses"], given["n"]
    if wins is not None:
        verdict += f": {pair.words.decided(better, worse, n, wins, losses)}"
    if given["missing"]:
        verdict += f"; the {counted(given['missing'], 'missing item')} cannot change that"
    if given["ignored"]:
        verdict += f"; {counted(given['ignored'], 'missing item')} ignored"
    return f"{verdict}."


def _gap_turned(given: Given, pair: Pair) -> str:
    worse, _ = pair.ordered(given["leader"])
    return f"The gap has turned since: {worse} now leads. The decision is not withdrawn; check what changed."


def _pair_only(given: Given, pair: Pair) -> str:
    better, worse = pair.ordered(given["side"])
    end = {"scored": "Every item is scored. ", "ended": "The runs have ended. ", None: ""}[given["end"]]
    return f"{end}Decided {SCOPES['anytime']} {level(given['alpha'])}: {better} is better than {worse}."


def _exhausted(given: Given, pair: Pair) -> str:
    missing = given["missing"]
    end = pair.words.exhausted(missing, given["ignored"])
    if end is not None:
        return end
    lacks = f"{counted(missing, 'item')} {'is' if missing == 1 else 'are'} missing for this pair"
    if given["against_leader"]:
        lacks += f" and {'counts' if missing == 1 else 'count'} against the leader"
    return f"Undecided after the end of the runs: {lacks}."


def _if_ignored(given: Given, pair: Pair) -> str:
    better, _ = pair.ordered(given["side"])
    return f"It would be decided for {better} if missing items were ignored (missing: ignorable)."


def _missing(given: Given, _: Pair) -> str:
    verb = "is" if given["missing"] == 1 else "are"
    return f"Undecided: {counted(given['missing'], 'item')} {verb} still missing for this pair and could change the result."


def _ruled_out(given: Given, pair: Pair) -> str:
    leads = [
        f"{model} leads" + (f" by more than {size(bound)} points" if bound > 0 else "")
        for model, bound in ((pair.model_a, given["a"]), (pair.model_b, given["b"]))
        if bound is not None
    ]
    return f"The family-wise interval rules out that {' and that '.join(leads)}."


def _informative(given: Given, pair: Pair) -> str:
    return pair.words.informative(given["informative"], given["n"])


def _needs(given: Given, pair: Pair) -> str:
    return f"A test of {about_items(given['items'], pair.words.unit)} in all finds a gap of this size in 4 of 5 runs."


def _not_family_wise(given: Given, _: Pair) -> str:
    yet = "" if given["exhausted"] else " yet"
    return f"Not decided family-wise{yet}: among this many pairs, chance alone often makes one look like this."


@lru_cache(maxsize=64)
def _assumes(made: tuple[Assumption, ...]) -> str:
    """Return what many pairs assume alike."""
    return f"Assumes that {clauses(made)}."


_SENTENCES: Final[Mapping[str, Callable[[Given, Pair], str]]] = {
    Reason.NOTHING_SHARED: _nothing_shared,
    Reason.NOT_MET: _not_met,
    Reason.SUPERSEDED: _superseded,
    Reason.DECIDED: _decided,
    Reason.GAP_TURNED: _gap_turned,
    Reason.GAP_TURNED_BACK: lambda given, _: (
        f"After the decision the gap turned, at {given['n']:,} shared items; it has turned back since."
    ),
    Reason.PAIR_ONLY: _pair_only,
    Reason.NOT_FAMILY_WISE: _not_family_wise,
    Reason.INVALIDATED: lambda given, _: f"A decision was made and no longer counts: {because(given['because'])}.",
    Reason.HELD: lambda given, _: f"Held: {because(given['because'])}.",
    Reason.EQUIVALENT: lambda given, _: (
        f"A tie {level(given['alpha'])}: the gap is smaller than the declared margin in either direction."
    ),
    Reason.EXHAUSTED: _exhausted,
    Reason.DECIDED_IF_IGNORED: _if_ignored,
    Reason.MISSING_ITEMS: _missing,
    Reason.TOO_LITTLE_EVIDENCE: lambda *_: "Undecided: the evidence so far does not show which model is better.",
    Reason.OUTSIDE_FAMILY: lambda given, _: f"It has no family-wise verdict: {because(given['because'])}.",
    Reason.RULED_OUT: _ruled_out,
    Reason.INFORMATIVE: _informative,
    Reason.NEVER: lambda _, pair: f"At the current estimate no number of {pair.words.unit}s decides it.",
    Reason.NEEDS_ITEMS: _needs,
    Reason.CHANCE: lambda given, _: (
        f"It is decided by the last item with a probability of {probability(given['probability'])}."
    ),
    Reason.ASSUMES: lambda given, _: _assumes(tuple(map(Assumption.of, given["assumptions"]))),
    Reason.OTHER_LEADER: lambda _, pair: pair.words.other_leader(pair.model_a, pair.model_b),
}

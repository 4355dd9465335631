"""Every sentence of a report about verdicts: why a pair has its status, why verdicts are held, what the order assumes."""

from dataclasses import dataclass
from typing import NamedTuple

from monitor.engine.state.benchmark import Benchmark
from monitor.view.pairs.item_means import described, repeats_of
from monitor.words.assumptions import TEXTS
from monitor.words.changes import SCOPES, battle_counts, level, too_many_items
from monitor.words.counts import counted, more_items, probability
from monitor.words.points import size
from schemas.records.text import printable
from schemas.results.assumptions import BATTLES
from schemas.results.changes import Side
from schemas.results.report import ASSERTED, FILES_COMPLETE, Status

NO_ORDER = (
    "no order policy is declared; declare the item count (items: N), or that neither the arrival order "
    "nor what is skipped depends on outcomes (order: trusted)"
)


_HALF_DIGIT = 0.00005
"""Half of the last digit of a gap in points: a bound nearer to 1 is printed as 100.00."""

NO_BATTLE_ORDER = (
    f"no order policy is declared; declare order: trusted (--order trusted), which assumes that {TEXTS[BATTLES]}"
)


def hold_reason(benchmark: Benchmark) -> str | None:
    """Return why no further anytime verdict is given on the benchmark, or None."""
    spec = benchmark.spec
    if benchmark.reading.differing or spec.order.policy == "none":
        return benchmark.reading.differing or _without_order(benchmark)
    if benchmark.order_refuted:
        return f"{benchmark.suspicion}, and the order was declared trusted"
    if benchmark.completion_refuted:
        return _excess(benchmark)
    if benchmark.undeclared:
        return benchmark.undeclared
    if benchmark.mixed:
        return (
            "some scores are neither 0 nor 1, and the pairs bet on 0/1 scores; declare graded scores (scores: graded)"
        )
    return None


def _without_order(benchmark: Benchmark) -> str:
    no_order = NO_ORDER if benchmark.battles is None else NO_BATTLE_ORDER
    no_order = no_order if benchmark.united is None else benchmark.united.hold_reason
    parts = (incomplete(benchmark), refused(benchmark), unweighed(benchmark), no_order, benchmark.undeclared)
    return "; ".join(each for each in parts if each)


def _excess(benchmark: Benchmark) -> str:
    """Return that more items have arrived than declared, and what to do."""
    if benchmark.too_many_of_cluster:
        return f"{benchmark.too_many_of_cluster}; declare the right ones (clusters: CLUSTER:N,...)"
    return too_many_items(benchmark.name, benchmark.spec.items or 0, benchmark.items)


def incomplete(benchmark: Benchmark) -> str | None:
    """Return which file breaks off, what follows from it and what to do; None for complete files."""
    if not benchmark.incomplete:
        return None
    return f"{benchmark.incomplete}, so its end is not taken for the end of any run; complete the file"


def refused(benchmark: Benchmark) -> str | None:
    """Return which files were refused, what follows from it and what to do; None where none was."""
    files = benchmark.reading.refused
    if not files:
        return None
    more = f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    verb = "were" if more else "was"
    return f"{printable(files[0].path)}{more} {verb} refused, so what was read is not taken for the whole benchmark; {REFUSED_REMEDY}"


REFUSED_REMEDY = "correct the file by its reason, or leave it out"


def unweighed(benchmark: Benchmark) -> str | None:
    """Return that items were not read whose weight is not known; None where every item counts the same, or was read."""
    unread = benchmark.reading.unread
    if not unread or not benchmark.spec.weights:
        return None
    return f"the lines of {counted(unread, 'item')} were rejected, so the weights of the clusters are not known; fix those lines"


def partial(benchmark: Benchmark) -> str | None:
    """Return which records were gone before they were folded, or are set aside, and may be of the benchmark; None if there are none."""
    reasons = []
    if benchmark.gaps:
        gaps = "; ".join(gap.describe() for gap in benchmark.gaps)
        reasons.append(
            f"records {gaps} of the log were lost before they were folded, so scores or declarations may be missing"
        )
    if benchmark.quarantine is not None:
        reasons.append(benchmark.quarantine.describe())
    return "; ".join(reasons) or None


def order_reason(benchmark: Benchmark, *, asserted: str | None, rests_on_ends: bool = False) -> str | None:
    """Return why verdicts are held, what is asserted, and what is suspect in the arrival order; None if nothing is.

    `asserted` is what verdicts on files assume that are taken as complete.
    """
    state = hold_reason(benchmark)
    if rests_on_ends:
        state = f"{FILES_COMPLETE}: a later run that reads more may show another decision (an ended record makes the end permanent)"
    if asserted:
        state = f"{ASSERTED}{asserted}{_units(benchmark)}{_repeats(benchmark)}{_unused_policy(benchmark)}"
    elif benchmark.order_trusted and benchmark.too_many_items:
        unsettled = f"{_excess(benchmark)}; until then no lead is settled"
        state = "; ".join(each for each in (state, unsettled) if each)
    if benchmark.incomplete and benchmark.spec.order.policy != "none":
        state = "; ".join(each for each in (incomplete(benchmark), state) if each)
    if benchmark.reading.refused and benchmark.spec.order.policy != "none":
        state = "; ".join(each for each in (refused(benchmark), state) if each)
    if benchmark.suspicion is None or benchmark.order_refuted:
        return state
    harmless = asserted or benchmark.spec.order.policy in {"completion", "committed"}
    warning = benchmark.suspicion + ("; this order policy does not depend on it" if harmless else "")
    return warning if state is None else f"{state}; {warning}"


def unit_items(benchmark: Benchmark) -> int | None:
    """Return how many items the units have whose scores were read; None without units."""
    repeats = benchmark.repeats
    return None if repeats is None or repeats.members is None else len(repeats.members.keys)


def _units(benchmark: Benchmark) -> str:
    """Return how many items the units have, where there are any."""
    items = unit_items(described(benchmark))
    if items is None:
        return ""
    return f"; {counted(items, 'item')} in {counted(benchmark.items, 'unit')}: the score of a unit is the mean of its items"


def _repeats(benchmark: Benchmark) -> str:
    """Return how many repeats the items have, where it is not one each."""
    counts = repeats_of(described(benchmark), slice(None, len(benchmark.contestants)))
    if counts is None or counts.most == 1:
        return ""
    declared = benchmark.spec.repeats
    more = f", {declared:,} are declared" if isinstance(declared, int) and 1 < declared < counts.most else ""
    mean = "a score is the mean of all" if more else "a score is their mean"
    if counts.least == counts.most:
        return f"; {counts.most:,} repeats an item{more}: {mean}"
    number = f"{counts.mean:.0f}" if counts.mean >= 10 or counts.mean == round(counts.mean) else f"{counts.mean:.1f}"
    return f"; {number} repeats an item on average, {counts.least:,} to {counts.most:,}{more}: {mean}"


def _unused_policy(benchmark: Benchmark) -> str:
    """Return that the declared order policy is not used, and why, where completion replaces another one."""
    policy = benchmark.spec.order.policy
    if policy in {"none", "completion"}:
        return ""
    return f"; the declared order policy {policy} is not used: {benchmark.undeclared}"


@dataclass(frozen=True)
class ClusterFacts:
    """The facts that a warning about clusters states."""

    clusters: int
    effective: float
    few: float
    """Effective number of clusters below which the clustered test is widened."""
    largest: str
    share: float
    """Share of the labelled items in the largest cluster."""
    items: int
    unlabelled: int
    fits: bool
    """Whether the displayed pairs times the clusters are few enough to be computed."""


def cluster_warning(facts: ClusterFacts) -> str | None:
    """Return why to read clustered results with care, or why there are none; None if nothing is wrong."""
    parts = []
    if facts.clusters < 2:
        parts.append(f"All items with a cluster are in one ({facts.largest}), so there is no clustered result.")
    elif not facts.fits:
        parts.append(
            f"There is no clustered result: with {facts.clusters:,} clusters there are too many pairs (--pairs adjacent)."
        )
    elif facts.effective < facts.few:
        parts.append(
            f"The effective number of clusters is {facts.effective:.1f} of {facts.clusters:,}; the largest, {facts.largest}, has "
            f"{100 * facts.share:.0f} % of the items. Below {facts.few:.0f} the clustered test uses the CR3 standard error: "
            "at a nominal .05 its error rate is .05 with equal sizes, up to .12 where one cluster dominates and up to .23 where two do."
        )
    if facts.unlabelled:
        verb = "has no cluster and is" if facts.unlabelled == 1 else "have no cluster and are"
        parts.append(
            f"{facts.unlabelled:,} of {counted(facts.items, 'item')} {verb} omitted from clustered results. The first result of an item "
            "sets its cluster (--cluster names the field)."
        )
    return " ".join(parts) or None


class PairFacts(NamedTuple):
    """The facts that the reason of a pair states; gaps in score units, None where not known."""

    model_a: str
    model_b: str
    status: Status
    n: int
    wins: int | None
    losses: int | None
    gap: float | None
    low: float | None
    high: float | None
    items_to_decision: float | None
    decision_probability: float | None
    """Of a family-wise decision by the last item; None unless items are to come, and it is known how many."""
    side: Side | None
    """What is decided family-wise."""
    pair_side: Side | None
    """What is decided for this pair only."""
    missing: int | None
    """Items that are missing and not ignored; under policy `completion` they count against the leader."""
    left: int | None
    """Items that may still come."""
    ignored: int
    """Missing items that the declaration ignores."""
    ended: bool
    """Whether both runs have ended."""
    waits: bool
    """Whether items of the pair count only when both runs have ended."""
    side_if_ignored: Side | None
    """What would be decided family-wise if missing items were ignored."""
    turned_at: int | None
    """Shared items at which the gap first turned against the decision."""
    outside_family: str | None
    """Why the pair can have no family-wise verdict."""
    hold_reason: str | None
    policy: str
    alpha: float
    assumption: str | None
    epochs: tuple[int, int]

    def ordered(self, side: Side) -> tuple[str, str]:
        """Return the better model and the other."""
        return (self.model_a, self.model_b) if side == "a" else (self.model_b, self.model_a)

    @property
    def units(self) -> str:
        """What pairs are compared on."""
        return "prompts" if self.policy == BATTLES else "items"

    @property
    def pair_only(self) -> Side | None:
        """The side that is decided for this pair only, and not family-wise."""
        return self.pair_side if self.status in {"collecting", "exhausted"} else None


def reason(facts: PairFacts) -> str:
    """Return why a pair has its status, in one or more plain sentences.

    For an undecided pair these include what the interval rules out, the informative items, and how many more it needs.
    """
    if facts.n == 0 and facts.policy == BATTLES:
        waits = (
            ": the votes on a prompt count when all of them are in, or when both runs have ended" if facts.waits else ""
        )
        return f"{facts.model_a} and {facts.model_b} have not met{waits}."
    if facts.n == 0:
        if facts.waits:
            return f"{facts.model_a} and {facts.model_b} share no items yet: their items count when both runs have ended (repeats: all)."
        return f"{facts.model_a} and {facts.model_b} share no items{'' if facts.ended else ' yet'}."
    if facts.status == "superseded":
        return _superseded(facts)
    if facts.status == "decided":
        parts = _decided(facts, facts.side or "a")
    else:
        parts = [_not_decided(facts)]
        if facts.outside_family:
            parts.append(f"It has no family-wise verdict: {facts.outside_family}.")
        parts += [*_interval(facts), *_informative(facts), *_prospect(facts)]
        if facts.assumption and (facts.status == "equivalent" or facts.pair_only):
            parts.append(f"Assumes that {facts.assumption}.")
    if facts.gap is not None and facts.gap < 0 and facts.policy == BATTLES:
        parts.append(
            f"{facts.model_b} wins more of their direct battles, although {facts.model_a} has the higher rating, which counts the battles "
            "with all other models."
        )
    elif facts.gap is not None and facts.gap < 0:
        parts.append(
            f"{facts.model_b} leads on the shared items, although {facts.model_a} has the higher mean on its own items: the two were "
            "scored on different items."
        )
    return " ".join(parts)


def _superseded(facts: PairFacts) -> str:
    side = facts.side or facts.pair_side
    verdict = "nothing was decided"
    if side is not None:
        better, worse = facts.ordered(side)
        scope = SCOPES["anytime_family" if facts.side else "anytime"]
        verdict = f"{better} was decided to be better than {worse}, {scope} {level(facts.alpha)},"
    return (
        f"Superseded: {verdict} on epoch {facts.epochs[0]} of {facts.model_a} and epoch {facts.epochs[1]} of {facts.model_b}. "
        "At least one of them was scored again later. This verdict is kept unchanged; the newer scores are compared separately."
    )


def _decided(facts: PairFacts, side: Side) -> list[str]:
    """Return who is better, the counts, whether the gap has turned since, and the assumption."""
    better, worse = facts.ordered(side)
    verdict = f"{better} is better than {worse}, decided family-wise {level(facts.alpha)}"
    if facts.wins is not None and facts.losses is not None:
        wins, losses = (facts.wins, facts.losses) if side == "a" else (facts.losses, facts.wins)
    if facts.policy == BATTLES and facts.wins is not None and facts.losses is not None:
        verdict += f": {battle_counts(better, worse, facts.n, wins, losses)}"
    elif facts.wins is not None and facts.losses is not None:
        verdict += f": of {facts.n:,} shared items, only {better} is right on {wins:,} and only {worse} on {losses:,}"
    if facts.missing and facts.policy == "completion":
        verdict += f"; the {counted(facts.missing, 'missing item')} cannot change that"
    if facts.ignored:
        verdict += f"; {counted(facts.ignored, 'missing item')} ignored"
    parts = [f"{verdict}."]
    if facts.gap is not None and (facts.gap < 0 if side == "a" else facts.gap > 0):
        parts.append(f"The gap has turned since: {worse} now leads. The decision is not withdrawn; check what changed.")
    elif facts.turned_at is not None:
        parts.append(
            f"After the decision the gap turned, at {facts.turned_at:,} shared items; it has turned back since."
        )
    return [*parts, f"Assumes that {facts.assumption}."]


def _not_decided(facts: PairFacts) -> str:
    """Return the first sentence about a pair without a family-wise verdict."""
    if facts.pair_only:
        return _pair_only(facts, facts.pair_only)
    sentences = {
        "invalidated": f"A decision was made and no longer counts: {facts.hold_reason}.",
        "held": f"Held: {facts.hold_reason}.",
        "equivalent": f"A tie {level(facts.alpha)}: the gap is smaller than the declared margin in either direction.",
        "exhausted": _exhausted(facts),
    }
    if facts.status in sentences:
        return sentences[facts.status]
    if facts.missing:
        verb = "is" if facts.missing == 1 else "are"
        return f"Undecided: {counted(facts.missing, 'item')} {verb} still missing for this pair and could change the result."
    return "Undecided: the evidence so far does not show which model is better."


def _exhausted(facts: PairFacts) -> str:
    if facts.policy == BATTLES:
        return "No further battles come, and the evidence does not decide which model is better."
    if not facts.missing and not facts.ignored:
        return "Every item is scored, and the evidence does not decide which model is better."
    if not facts.missing:
        return "The runs have ended, and the evidence does not decide which model is better."
    lacks = f"{counted(facts.missing, 'item')} {'is' if facts.missing == 1 else 'are'} missing for this pair"
    if facts.policy == "completion":  # bets along an order look only at the items scored
        lacks += f" and {'counts' if facts.missing == 1 else 'count'} against the leader"
    return f"Undecided after the end of the runs: {lacks}.{_if_ignored(facts)}"


def _if_ignored(facts: PairFacts) -> str:
    if facts.side_if_ignored is None:
        return ""
    better, _ = facts.ordered(facts.side_if_ignored)
    return f" It would be decided for {better} if missing items were ignored (missing: ignorable)."


def _pair_only(facts: PairFacts, side: Side) -> str:
    better, worse = facts.ordered(side)
    exhausted = facts.status == "exhausted"
    all_in = not (facts.missing or facts.ignored) and facts.policy != BATTLES
    end = "Every item is scored. " if all_in else "The runs have ended. "
    verdict = (
        f"{end if exhausted else ''}Decided {SCOPES['anytime']} {level(facts.alpha)}: {better} is better than {worse}."
    )
    if facts.outside_family:
        return verdict
    yet = "" if exhausted else " yet"
    return (
        f"{verdict} Not decided family-wise{yet}: among this many pairs, chance alone often makes one look like this."
        f"{_if_ignored(facts)}"
    )


def _interval(facts: PairFacts) -> list[str]:
    """Return what the interval rules out; nothing where what it rests on is not declared, or proved to be wrong."""
    if facts.low is None or facts.high is None or facts.status in {"held", "invalidated"}:
        return []
    leads, whole = [], 1 - _HALF_DIGIT
    if facts.high < whole:
        leads.append(f"{facts.model_a} leads" + (f" by more than {_points(facts.high)}" if facts.high > 0 else ""))
    if facts.low > -whole:
        leads.append(f"{facts.model_b} leads" + (f" by more than {_points(facts.low)}" if facts.low < 0 else ""))
    return [f"The family-wise interval rules out that {' and that '.join(leads)}."] if leads else []


def _informative(facts: PairFacts) -> list[str]:
    if facts.wins is None or facts.losses is None:
        return []
    if facts.policy == BATTLES:
        return [f"Decisive prompts: {facts.wins + facts.losses:,} of {facts.n:,}; the others are ties."]
    return [
        f"Informative items: {facts.wins + facts.losses:,} of {facts.n:,} shared (exactly one of the two models is right)."
    ]


def _prospect(facts: PairFacts) -> list[str]:
    """Return how many more items a decision needs, and how likely it is; nothing for graded scores, where that is not estimated."""
    if facts.status not in {"collecting", "exhausted", "held"} or facts.low is None or facts.wins is None:
        return []
    more, left = facts.items_to_decision, facts.left
    chance = []
    if facts.decision_probability is not None:
        chance = [f"It is decided by the last item with a probability of {probability(facts.decision_probability)}."]
    if more is None and (facts.missing or 0) > (facts.left or 0):
        return chance  # what is missing counts at its worst, and will not come
    if more is None:
        return [f"At the current estimate no number of {facts.units} decides it.", *chance]
    if more < 1:
        return chance
    needs = more_items(more, facts.units)
    if left is None or more <= left:
        return [f"At the current estimate it needs {needs}.", *chance]
    rest = "no more will come" if not left else "1 is left" if left == 1 else f"{left:,} are left"
    return [f"At the current estimate it needs {needs}; {rest}.", *chance]


def _points(gap: float) -> str:
    return f"{size(gap)} points"

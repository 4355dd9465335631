"""The reasons of verdicts as facts: why they are held, what a report assumes besides, and why a pair has its status."""

from typing import Final, NamedTuple

from monitor.view.board import BoardView
from schemas.records.boards import Suspect
from schemas.results.assumptions import Assumption
from schemas.results.assumptions import facts as assumed
from schemas.results.reasons import Fact, Reason, Side, fact
from schemas.results.report import RepeatsReport, Status

_HALF_DIGIT: Final = 0.00005
"""Half of the last digit of a gap in points: a bound nearer to 1 is printed as 100.00, and rules out nothing."""


def held(benchmark: BoardView) -> list[Fact]:
    """Return why no further anytime verdict is given on the benchmark; nothing where one may be."""
    spec = benchmark.spec
    if benchmark.reading.hold:
        code = Reason.OTHER_ITEMS if benchmark.reading.differing else Reason.OFF_SCALE
        return [fact(code, detail=benchmark.reading.hold)]
    if spec.order.policy == "none":
        why = [fact(Reason.NO_ORDER if benchmark.battles is None else Reason.NO_BATTLE_ORDER)]
        if benchmark.united is not None:
            why = benchmark.united.held
        return [*incomplete(benchmark), *refused(benchmark), *unweighed(benchmark), *why, *_undeclared(benchmark)]
    if benchmark.order_refuted:
        return [_finding(benchmark, Reason.ORDER_REFUTED)]
    if benchmark.completion_refuted:
        return [_excess(benchmark)]
    if benchmark.undeclared:
        return _undeclared(benchmark)
    return [fact(Reason.MIXED_SCORES)] if benchmark.mixed else []


def _undeclared(benchmark: BoardView) -> list[Fact]:
    return [fact(Reason.UNDECLARED, detail=benchmark.undeclared)] if benchmark.undeclared else []


def _excess(benchmark: BoardView) -> Fact:
    """Return that more items have arrived than declared."""
    cluster = "" if benchmark.weighting is None else benchmark.weighting.exceeded
    if cluster:
        return fact(Reason.TOO_MANY_OF_CLUSTER, cluster=cluster, declared=(benchmark.spec.clusters or {})[cluster])
    declared = benchmark.spec.items or 0
    return fact(Reason.TOO_MANY_ITEMS, benchmark=benchmark.name, declared=declared, arrived=benchmark.items)


def _finding(benchmark: BoardView, code: Reason, **values: bool) -> Fact:
    """Return the finding against the arrival order."""
    finding = benchmark.finding
    assert finding is not None
    return fact(
        code,
        model=benchmark.contestants[finding.model].model,
        statistic=finding.statistic,
        items=finding.items,
        observed=finding.observed,
        expected=finding.expected,
        p=finding.p_value,
        **values,
    )


def incomplete(benchmark: BoardView) -> list[Fact]:
    """Return which file breaks off; nothing for complete files."""
    return [fact(Reason.INCOMPLETE_FILE, detail=benchmark.incomplete)] if benchmark.incomplete else []


def refused(benchmark: BoardView) -> list[Fact]:
    """Return how many files were refused, and the first; nothing where none was."""
    files = benchmark.reading.refused
    return [fact(Reason.REFUSED_FILES, files=len(files), path=files[0].path)] if files else []


def unweighed(benchmark: BoardView) -> list[Fact]:
    """Return how many items were not read whose weight is not known; nothing where every item counts the same, or was read."""
    unread = benchmark.unread
    return [fact(Reason.UNREAD_ITEMS, items=unread)] if unread and benchmark.spec.weights else []


def partial(benchmark: BoardView) -> list[Fact]:
    """Return which records were gone before they were folded, or are quarantined, and may be of the benchmark."""
    facts = []
    if benchmark.gaps:
        facts.append(fact(Reason.LOST_RECORDS, gaps=[gap._asdict() for gap in benchmark.gaps]))
    if benchmark.quarantine is not None:
        facts.append(quarantined(benchmark.quarantine))
    return facts


def quarantined(suspect: Suspect) -> Fact:
    """Return since when the records of a benchmark are set aside, how many are, and what was found."""
    return fact(Reason.QUARANTINED, since=suspect.since or 0, records=suspect.records, found=suspect.reason)


def of_order(
    benchmark: BoardView,
    repeats: RepeatsReport | None,
    *,
    asserted: list[Assumption] | None,
    rests_on_ends: bool = False,
) -> list[Fact]:
    """Return why verdicts are held, what is asserted, and what is suspect in the arrival order."""
    # `repeats` are those of the items, and `asserted` is what verdicts on files assume that are taken as complete.
    facts = held(benchmark)
    if rests_on_ends:
        facts = [fact(Reason.FILES_COMPLETE)]
    if asserted:
        unused = _unused_policy(benchmark)
        facts = [
            fact(Reason.ASSERTED, assumptions=assumed(asserted)),
            *_units(benchmark),
            *_repeats(benchmark, repeats),
            *unused,
        ]
    elif benchmark.order_trusted and benchmark.too_many_items:
        facts = [*facts, fact(Reason.LEAD_UNSETTLED, because=[_excess(benchmark)])]
    declared = benchmark.spec.order.policy != "none"
    facts = [*(refused(benchmark) if declared else ()), *(incomplete(benchmark) if declared else ()), *facts]
    if benchmark.finding is not None and not benchmark.order_refuted:
        harmless = bool(asserted) or benchmark.spec.order.policy in {"completion", "committed"}
        facts.append(_finding(benchmark, Reason.SUSPECT_ORDER, harmless=harmless))
    return facts


def unit_items(benchmark: BoardView) -> int | None:
    """Return how many items the units have whose scores were read; None without units."""
    if benchmark.united is not None:
        return benchmark.united.unit_items
    members = benchmark.by_item.members
    return None if members is None else len(members.keys)


def _units(benchmark: BoardView) -> list[Fact]:
    """Return how many items the units have, where there are any."""
    items = unit_items(benchmark.described())
    return [] if items is None else [fact(Reason.UNITS, items=items, units=benchmark.items)]


def _repeats(benchmark: BoardView, counts: RepeatsReport | None) -> list[Fact]:
    """Return how many repeats the items have, where it is not one each."""
    if counts is None or counts.max == 1:
        return []
    declared = benchmark.spec.repeats
    fewer = declared if isinstance(declared, int) and 1 < declared < counts.max else None
    return [fact(Reason.REPEATS, least=int(counts.min), mean=float(counts.mean), most=int(counts.max), declared=fewer)]


def _unused_policy(benchmark: BoardView) -> list[Fact]:
    """Return that the declared order policy is not used, and why, where completion replaces another one."""
    policy = benchmark.spec.order.policy
    if policy in {"none", "completion"}:
        return []
    return [fact(Reason.UNUSED_POLICY, policy=policy, detail=benchmark.undeclared)]


class PairState(NamedTuple):
    """What the reasons of a pair depend on; gaps in score units, None where not known."""

    status: Status
    n: int
    wins: int | None
    losses: int | None
    gap: float | None
    low: float | None
    high: float | None
    items_to_decision: float | None
    needs_items: float | None
    decision_probability: float | None
    """Of a family-wise decision by the last item; None unless items are to come, and it is known how many."""
    side: Side | None  # what is decided family-wise
    pair_side: Side | None  # what is decided for this pair only
    missing: int | None
    """Items that are missing and not ignored; under policy `completion` they count against the leader."""
    left: int | None  # items that may still come
    ignored: int  # missing items that the declaration ignores
    unmet: Fact  # that the pair shares nothing
    side_if_ignored: Side | None  # what would be decided family-wise if missing items were ignored
    turned_at: int | None  # shared items at which the gap first turned against the decision
    outside_family: list[Fact]  # why the pair can have no family-wise verdict
    held: list[Fact]
    policy: str
    has_end: bool  # whether there is a last item
    alpha: float
    assumptions: list[dict[str, str | int | list[str]]]
    epochs: tuple[int, int]

    @property
    def pair_only(self) -> Side | None:
        """The side that is decided for this pair only, and not family-wise."""
        return self.pair_side if self.status in {"collecting", "exhausted"} else None


def of_pair(pair: PairState) -> list[Fact]:
    """Return why a pair has its status."""
    # For an undecided pair these include what the interval rules out, the informative items, and how many more it needs.
    if pair.n == 0:
        return [pair.unmet]
    if pair.status == "superseded":
        return [_superseded(pair)]
    if pair.status == "decided":
        facts = _decided(pair, pair.side or "a")
    else:
        facts = _not_decided(pair)
        if pair.outside_family:
            facts.append(fact(Reason.OUTSIDE_FAMILY, because=pair.outside_family))
        facts += [*_interval(pair), *_informative(pair), *_prospect(pair)]
        if pair.assumptions and (pair.status == "equivalent" or pair.pair_only):
            facts.append(fact(Reason.ASSUMES, assumptions=pair.assumptions))
    if pair.gap is not None and pair.gap < 0:
        facts.append(fact(Reason.OTHER_LEADER))
    return facts


def _superseded(pair: PairState) -> Fact:
    procedure = "anytime_family" if pair.side else "anytime"
    return fact(
        Reason.SUPERSEDED,
        side=pair.side or pair.pair_side,
        procedure=procedure,
        alpha=pair.alpha,
        epochs=[*pair.epochs],
    )


def _decided(pair: PairState, side: Side) -> list[Fact]:
    """Return who is better, the counts, whether the gap has turned since, and the assumptions."""
    wins, losses = (pair.wins, pair.losses) if side == "a" else (pair.losses, pair.wins)
    facts = [
        fact(
            Reason.DECIDED,
            side=side,
            alpha=pair.alpha,
            n=pair.n,
            wins=wins,
            losses=losses,
            missing=(pair.missing or 0) if pair.policy == "completion" else 0,
            ignored=pair.ignored,
        )
    ]
    if pair.gap is not None and (pair.gap < 0 if side == "a" else pair.gap > 0):
        facts.append(fact(Reason.GAP_TURNED, leader="b" if side == "a" else "a"))
    elif pair.turned_at is not None:
        facts.append(fact(Reason.GAP_TURNED_BACK, n=pair.turned_at))
    return [*facts, fact(Reason.ASSUMES, assumptions=pair.assumptions)]


def _not_decided(pair: PairState) -> list[Fact]:
    """Return the first reasons of a pair without a family-wise verdict."""
    if pair.pair_only:
        exhausted = pair.status == "exhausted"
        all_in = pair.has_end and not (pair.missing or pair.ignored)
        end = ("scored" if all_in else "ended") if exhausted else None
        facts = [fact(Reason.PAIR_ONLY, side=pair.pair_only, alpha=pair.alpha, end=end)]
        if not pair.outside_family:
            facts += [fact(Reason.NOT_FAMILY_WISE, exhausted=exhausted), *_if_ignored(pair)]
        return facts
    if pair.status in {"invalidated", "held"}:
        return [fact(Reason.INVALIDATED if pair.status == "invalidated" else Reason.HELD, because=pair.held)]
    if pair.status == "equivalent":
        return [fact(Reason.EQUIVALENT, alpha=pair.alpha)]
    if pair.status == "exhausted":
        against_leader = pair.policy == "completion"  # bets along an order look only at the items scored
        missing = pair.missing or 0
        ends = fact(Reason.EXHAUSTED, missing=missing, ignored=pair.ignored, against_leader=against_leader)
        return [ends, *(_if_ignored(pair) if missing else ())]
    return [fact(Reason.MISSING_ITEMS, missing=pair.missing) if pair.missing else fact(Reason.TOO_LITTLE_EVIDENCE)]


def _if_ignored(pair: PairState) -> list[Fact]:
    return [] if pair.side_if_ignored is None else [fact(Reason.DECIDED_IF_IGNORED, side=pair.side_if_ignored)]


def _interval(pair: PairState) -> list[Fact]:
    """Return what the interval rules out; nothing where what it rests on is not declared, or proved to be wrong."""
    if pair.low is None or pair.high is None or pair.status in {"held", "invalidated"}:
        return []
    whole = 1 - _HALF_DIGIT
    a = max(pair.high, 0.0) if pair.high < whole else None
    b = max(-pair.low, 0.0) if pair.low > -whole else None
    return [] if a is None and b is None else [fact(Reason.RULED_OUT, a=a, b=b)]


def _informative(pair: PairState) -> list[Fact]:
    if pair.wins is None or pair.losses is None:
        return []
    return [fact(Reason.INFORMATIVE, informative=pair.wins + pair.losses, n=pair.n)]


def _prospect(pair: PairState) -> list[Fact]:
    """Return how many more items a decision needs, and how likely it is; nothing for graded scores, where that is not estimated."""
    if pair.status not in {"collecting", "exhausted", "held"} or pair.low is None or pair.wins is None:
        return []
    more = pair.items_to_decision
    chance = []
    if pair.decision_probability is not None:
        chance = [fact(Reason.CHANCE, probability=pair.decision_probability)]
    if more is None and (pair.missing or 0) > (pair.left or 0):
        return chance  # what is missing counts at its worst, and will not come
    if more is None:
        return [fact(Reason.NEVER), *chance]
    if more < 1 or pair.needs_items is None:
        return chance
    return [fact(Reason.NEEDS_ITEMS, items=pair.needs_items), *chance]

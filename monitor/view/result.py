"""The result of a benchmark in three lines, one for each question: settled, decided, resolved."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.view.kinds.kind import is_resolved
from monitor.view.pairs.intervals import evidence_columns, found_gap, least_wins, needs_items
from monitor.view.pairs.table import PairTable
from monitor.view.reasons import unit_items
from monitor.words.results import line
from schemas.results.reasons import Fact, Reason, fact
from schemas.results.report import ResultLine, ResultReport
from stats.evidence.settled import TIE
from stats.fixed_n.mcnemar import exact_p
from stats.numerics.pairs import Index

_FEW_NAMED = 3  # models that are named; of more, the number
_FEW = 2  # models that may still pass the leader, each by its name

_CLOSE = 4
"""How often p is at most above its threshold where digits of p, and not the number of items, explain that nothing is decided."""


class Headline(NamedTuple):
    """The lines of a result, each as facts; no `steps` where there is only one, no `change` where nothing is known of it."""

    best: list[Fact]
    decided: bool  # whether the leader is decided better than all others
    steps: list[Fact]
    change: list[Fact]


def headline(table: PairTable) -> Headline:
    """Return the result of a benchmark in which some models share items."""
    sides = table.decided("anytime_family")
    if sides is None:
        undone = {} if table.in_force or not table.anytime_decisions["anytime_family"].any() else {"withdrawn": True}
        return Headline([fact(Reason.HELD_RESULT, because=[*table.held], **undone)], False, [], [])
    leader, steps = table.ranking[0], np.flatnonzero(table.pairs.adjacent)
    of_leader = np.flatnonzero(table.pairs.a == leader)
    decided = bool((sides[of_leader] > 0).all())
    if table.ranking.size == _FEW and of_leader.size == 1:
        pair = int(of_leader[0])
        two = _two(table, pair, sides[pair])
        return Headline([two], decided, [], _two_change(table, pair, sides[pair], close=two["close"]))
    best, change = _best(table, sides, of_leader), _change(table, sides, steps)
    if best["code"] == Reason.BEST_BUT and best["missing"] and not best["over"]:
        change.insert(0, fact(Reason.WOULD_CHANGE, models=best["rivals"], missing=best["missing"]))
    return Headline([best], decided, [_steps(table, sides, steps)], change)


def _names(table: PairTable, models: Index) -> list[str]:
    return [table.benchmark.contestants[k].model for k in models.tolist()] if models.size <= _FEW_NAMED else []


def _best(table: PairTable, sides: NDArray[np.int8], of_leader: Index) -> Fact:
    """Return who is best, whether that is decided, and who may still be."""
    best = table.benchmark.contestants[table.ranking[0]].model
    others, open_pairs = int(of_leader.size), of_leader[sides[of_leader] <= 0]
    if not open_pairs.size:
        return fact(Reason.BEST, model=best, others=others)
    lacks = _lack(table, open_pairs)
    rivals, missing = table.pairs.b[open_pairs], table.pairs.missing
    own = np.clip(table.item_count - table.benchmark.scored[rivals], 0, None)  # of a pair the leader may lack some too
    if lacks.all() and rivals.size <= min(_FEW, others - 1) and (sides[open_pairs] == 0).all():
        return fact(
            Reason.BEST_BUT,
            model=best,
            better=others - int(rivals.size),
            others=others,
            rivals=_names(table, rivals),
            missing=None if missing is None else int(np.minimum(own, missing[open_pairs]).max()),
            over=bool(table.pairs.ended[open_pairs].all()),
        )
    unbeaten = np.ones(len(table.benchmark.contestants), bool)
    unbeaten[table.pairs.b[sides > 0]] = False
    unbeaten[table.pairs.a[sides < 0]] = False
    first = table.ranking[unbeaten[table.ranking]]
    code = Reason.FIRST_OPEN if lacks.any() or first.size > _FEW_NAMED else Reason.FIRST_TIE
    return fact(code, models=_names(table, first), count=int(first.size), of=others + 1)


def _lack(table: PairTable, at: Index) -> NDArray[np.bool_]:
    """Return which of some pairs are open steps: items are missing that count, or nothing is shared."""
    missing = table.pairs.counted_missing
    waits = ~table.pairs.ended if missing is None else missing > 0
    return np.asarray((waits | (table.pairs.n == 0))[at])


def _steps(table: PairTable, sides: NDArray[np.int8], steps: Index) -> Fact:
    """Return how many steps of the ranking are real, are ties, and lack items."""
    undecided = steps[sides[steps] == 0]
    lacks = _lack(table, undecided)
    return fact(
        Reason.STEPS,
        decided=int(steps.size - undecided.size),
        steps=int(steps.size),
        ties=int(undecided.size - np.count_nonzero(lacks)),
        open=int(np.count_nonzero(lacks)),
        over=bool(table.pairs.ended[undecided][lacks].all()),
        **({"missing": True} if lacks.any() and table.pairs.counted_missing is not None else {}),
    )


def _change(table: PairTable, sides: NDArray[np.int8], steps: Index) -> list[Fact]:
    """Return which tie needs the fewest items; without one, which step that is still open."""
    lacks = _lack(table, steps)
    undecided = (sides[steps] == 0) & (table.pairs.n[steps] > 0) & ~(lacks & table.pairs.ended[steps])
    is_open = not (undecided & ~lacks).any()
    ties = steps[undecided & (lacks == is_open)]
    needed = needs_items(table, ties)
    if is_open:  # items are missing, and not evidence
        needed[needed <= table.pairs.n[ties]] = np.nan
    if not np.isfinite(needed).any():
        return []
    closest = int(np.nanargmin(needed))
    rank = int(np.flatnonzero(steps == ties[closest])[0]) + 1
    size, shared = _size(table), int(table.pairs.n[ties[closest]])
    if shared < size["of"]:
        size |= {"of": shared, "shared": True}
    size |= {"open": True} if is_open else {}
    return [fact(Reason.CLOSEST_TIE, rank=rank, items=float(needed[closest]), **size)]


def _units(table: PairTable) -> dict[str, object]:
    """Return whether units are counted, or prompts, and not items."""
    counted = "unit" if unit_items(table.benchmark) is not None else table.kind.unit
    return {f"{counted}s": True} if counted in {"unit", "prompt"} else {}


def _size(table: PairTable) -> dict[str, Any]:
    return {"of": table.item_count, **_units(table)}


def _two(table: PairTable, pair: int, side: int) -> Fact:
    """Return which of two models is better, or that this is not decided, and why."""
    names = [table.benchmark.contestants[k].model for k in (table.pairs.a[pair], table.pairs.b[pair])]
    at = np.array([pair])
    gap, _ = (float(moment[pair]) for moment in table.kind.moments)
    threshold = float(np.exp(-table.log_family_threshold(at)[0]))
    p = float(table.p_anytime(at)[0]) if table.kind.bets else None
    over = bool(table.pairs.ended[pair] or table.pairs.complete[pair])
    return fact(
        Reason.TWO_MODELS,
        models=names,
        side={1: "a", -1: "b", 0: None}[int(side)],
        gap=gap,
        p=p,
        threshold=threshold,
        n=int(table.pairs.n[pair]),
        over=over,
        missing=_missing(table, pair) if over else 0,
        close=not over or p is None or p <= _CLOSE * threshold,
        **_size(table),
    )


def _missing(table: PairTable, pair: int) -> int:
    """Return the items that verdicts count against the leader of a pair."""
    missing = table.pairs.counted_missing
    return 0 if missing is None else int(missing[pair])


def _two_change(table: PairTable, pair: int, side: int, *, close: bool) -> list[Fact]:
    """Return which counts would decide an undecided pair, and how many items a gap of this size needs."""
    at, n = np.array([pair]), int(table.pairs.n[pair])
    wins, losses = (each[0] for each in table.kind.counts(at))
    bounds = [float(evidence_columns(table, at)[name][0]) for name in ("gap_family_low", "gap_family_high")]
    low, high = bounds if np.isfinite(bounds).all() else (None, None)
    names = [table.benchmark.contestants[k].model for k in (table.pairs.a[pair], table.pairs.b[pair])]
    counts = {}
    if wins is not None and losses is not None:
        counts = {"wins": wins, "losses": losses, "alike": n - wins - losses, "missing": _missing(table, pair)}
    units = _units(table)
    facts = [fact(Reason.TWO_COUNTS, models=names, low=low, high=high, **counts, **units)]
    facts = facts if n and (counts or low is not None) else []
    if side or not n:
        return facts
    wins, losses = wins or 0, losses or 0
    if table.kind.decides_at_end and not _missing(table, pair) and (differ := wins + losses):
        least = least_wins(table, pair)
        found = {} if least is None else {"gap": (2 * least - differ) / n, "turned": least - max(wins, losses)}
        found |= {} if least is None else {"p": float(exact_p(least, differ - least))}
        facts.append(fact(Reason.WOULD_DECIDE, differ=differ, wins=least, **found, **units))
        if not close and (gap := found_gap(table, pair)) is not None:
            facts.append(fact(Reason.FOUND_HERE, gap=gap))
    (needed,) = needs_items(table, at)
    if np.isfinite(needed) and needed > 0:
        gap = abs(float(table.kind.moments[0][pair]))
        facts.append(fact(Reason.GAP_NEEDS, gap=gap, items=float(needed), **units))
    return facts


_NAMED = 2  # models that are named next to the leader; of more than one more, the number


def result_report(table: PairTable) -> ResultReport | None:
    """Report what is settled, decided and resolved; None unless some models share items."""
    # The lines hold for all pairs of the benchmark, however few of them a report shows.
    if not (table.pairs.n > 0).any():
        return None
    rated = table.kind.rated(table.ranking)
    best, decided, steps, change = headline(table)
    return ResultReport(
        best=_line(*best, yes=decided, held=bool(table.held)),
        steps=_line(*steps, yes=steps[0]["decided"] > 0) if steps else None,
        change=_line(*change) if change else None,
        settled=_settled(table) if rated is None else _line(rated),
        decided=_decided(table),
        resolved=_resolved(table),
    )


def _line(*facts: Fact, yes: bool = False, held: bool = False) -> ResultLine:
    return ResultLine(yes=yes, held=held, text=line(facts), facts=[*facts])


def _settled(table: PairTable) -> ResultLine:
    """Report who leads on the items of the benchmark."""
    benchmark, leader = table.benchmark, table.ranking[0]
    if benchmark.reading.hold:
        return _line(fact(Reason.OTHER_ITEMS if benchmark.reading.differing else Reason.OFF_SCALE), held=True)
    names = [contestant.model for contestant in benchmark.contestants]
    of_what = {"items": table.item_count}
    if unit_items(benchmark) is not None:
        of_what["units"] = True
    of_leader = np.flatnonzero(table.pairs.a == leader)
    sides, others = table.settled[of_leader], table.pairs.b[of_leader]
    level, ahead, rivals = (others[sides == side] for side in (TIE, -1, 0))
    best = names[leader]
    if ahead.size:
        return _line(fact(Reason.TRAILS, model=best, ahead=_models(names, ahead), count=int(ahead.size)))
    if not rivals.size and not level.size:
        return _line(fact(Reason.LEADS, model=best, **of_what), yes=True)
    if not rivals.size:
        equal = np.append(leader, level)
        models = _models(names, equal) or [best]
        return _line(fact(Reason.EQUAL, models=[*models], count=int(equal.size), **of_what), yes=True)
    over = bool(table.pairs.ended[of_leader][sides == 0].all())
    few = rivals.size <= _NAMED
    return _line(
        fact(
            Reason.LEAD_OPEN,
            model=best,
            state=_openness(table, over=over),
            rivals=_models(names, rivals) if few else [],
            count=int(rivals.size),
            others=int(others.size),
            **of_what,
        )
    )


def _openness(table: PairTable, *, over: bool) -> str:
    """Return why the lead is open; `over`: whether nothing more comes of the leader and its rivals."""
    benchmark = table.benchmark
    if benchmark.too_many_items and benchmark.suite is None:
        return "too_many_items"
    if table.pairs.missing is None:
        return "no_item_count"
    if benchmark.spec.order.policy == "none" and benchmark.suite is None and not table.asserted:
        return "no_order"
    return "ended" if over else "open"


def _models(names: list[str], models: Index) -> list[str]:
    """Name models; nothing where they are many."""
    return [names[k] for k in models.tolist()] if models.size <= _NAMED + 1 else []


def _decided(table: PairTable) -> ResultLine:
    """Report for how many neighbours in rank, and for how many pairs, there is evidence beyond these items."""
    sides, held = table.decided("anytime_family"), table.held
    if sides is None:
        return _line(fact(Reason.NO_VERDICT, because=[*held]), held=True)
    neighbours = table.pairs.adjacent
    real = int(np.count_nonzero(sides[neighbours]))
    over = table.pairs.ended | table.pairs.complete
    ties, undecided = (int(np.count_nonzero(neighbours & (sides == 0) & part)) for part in (over, ~over))
    facts = [
        fact(
            Reason.NEIGHBOURS,
            decided=real,
            pairs=int(np.count_nonzero(neighbours)),
            ties=ties,
            undecided=undecided,
            all_decided=int(np.count_nonzero(sides)),
            all_pairs=table.pairs.size,
            over=bool(over.all()),
        )
    ]
    if held:
        facts.append(fact(Reason.NO_FURTHER_VERDICT, because=[*held]))
    return _line(*facts, yes=real > 0, held=bool(held))


def _resolved(table: PairTable) -> ResultLine:
    """Report for how many neighbours in rank the benchmark has enough items."""
    at = np.flatnonzero(table.pairs.adjacent)
    n, needed = table.pairs.n[at], table.kind.n_star(at)
    enough = is_resolved(n, needed)
    resolved = int(np.count_nonzero(enough))
    anytime = table.kind.anytime_required_n(at) if resolved else None
    return _line(
        fact(
            Reason.ENOUGH_ITEMS,
            unit=f"{table.kind.unit}s",
            resolved=resolved,
            gaps=int(at.size),
            anytime=None if anytime is None else int(np.count_nonzero(is_resolved(n, anytime))),
            # Where every shared item has the same difference there is no spread to plan with.
            unknown=int(np.count_nonzero((needed == 0) & (n > 0))),
        ),
        yes=resolved > 0,
    )

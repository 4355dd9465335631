"""The result of a benchmark in three lines, one for each question: settled, decided, resolved."""

import numpy as np
from numpy.typing import NDArray

from monitor.view.headline import headline
from monitor.view.kinds.kind import is_resolved
from monitor.view.pairs.table import PairTable
from monitor.view.reasons import unit_items
from monitor.words.results import line
from schemas.results.reasons import Fact, Reason, fact
from schemas.results.report import ResultLine, ResultReport
from stats.evidence.settled import TIE

Index = NDArray[np.int64]

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

"""The result of a benchmark in three lines, one for each question: settled, decided, resolved."""

import numpy as np
from numpy.typing import NDArray

from monitor.view.pairs.evidence import is_resolved
from monitor.view.pairs.ratings import ratings_of
from monitor.view.pairs.table import PairTable
from monitor.words.counts import counted, more_items
from schemas.results.report import ResultLine, ResultReport
from stats.evidence.settled import TIE

Index = NDArray[np.int64]

_NAMED = 2
"""Models that are named; of more, the number."""


def result_report(table: PairTable) -> ResultReport | None:
    """Report what is settled, decided and resolved; None unless some models share items.

    The lines hold for all pairs of the benchmark, however few of them a report shows.
    """
    if not (table.n > 0).any():
        return None
    settled = _settled(table) if table.benchmark.battles is None else _rated(table)
    return ResultReport(settled=settled, decided=_decided(table), resolved=_resolved(table))


def _settled(table: PairTable) -> ResultLine:
    """Report who leads on the items of the benchmark."""
    benchmark, leader = table.benchmark, table.ranking[0]
    if benchmark.reading.differing:
        return ResultLine(
            yes=False,
            held=True,
            text="Nothing is settled: the scores of two models are not shown to be of the same items.",
        )
    names = [contestant.model for contestant in benchmark.contestants]
    items = counted(benchmark.spec.items or table.assumed_items or benchmark.items, "item")
    of_leader = np.flatnonzero(table.a == leader)
    sides, others = table.settled[of_leader], table.b[of_leader]
    level, ahead, rivals = (others[sides == side] for side in (TIE, -1, 0))
    best = names[leader]
    if ahead.size:
        by = _models(names, ahead)
        return ResultLine(
            yes=False,
            text=f"{best} has the best mean score, but {by} {'leads' if ahead.size == 1 else 'lead'} on the items that both have.",
        )
    if not rivals.size:
        if not level.size:
            return ResultLine(yes=True, text=f"{best} leads on the {items}.")
        if level.size > _NAMED:
            return ResultLine(yes=True, text=f"{best} and {_models(names, level)} have the same score on the {items}.")
        equal = _models(names, np.append(leader, level))
        return ResultLine(yes=True, text=f"{equal} have the same score on the {items}.")
    over = bool(table.ended[of_leader][sides == 0].all())
    return ResultLine(yes=False, text=f"{best} {_unsettled(table, names, rivals, others.size, items, over=over)}.")


def _unsettled(table: PairTable, names: list[str], rivals: Index, others: int, items: str, *, over: bool) -> str:
    """Return what is known of the leader while its lead is open; `over`: whether nothing more comes of it and its rivals."""
    benchmark = table.benchmark
    if benchmark.too_many_items and benchmark.suite is None:
        return "has the best score so far; more items arrived than declared, so nothing is settled"
    if table.missing is None:
        return "has the best score so far; the number of items is not declared"
    if benchmark.spec.order.policy == "none" and benchmark.suite is None and not table.asserted:
        return "has the best score so far; without an order policy nothing is settled"
    who = _models(names, rivals) if rivals.size <= _NAMED else f"{rivals.size:,} of {counted(others, 'model')}"
    only = "only " if rivals.size <= _NAMED else ""
    if over:
        return f"leads on the items scored; the runs have ended, and {only}{who} could have passed it on all {items}"
    return f"leads on the items scored; {only}{who} may still pass it on all {items}"


def _rated(table: PairTable) -> ResultLine:
    """Report the highest rating; battles have no last item, so nothing is ever settled."""
    ratings = ratings_of(table.described_from)
    values, _ = ratings.ratings
    islands = int(ratings.groups.island.max()) + 1
    best = int(table.ranking[0])
    name = ratings.names[best]
    text = (
        f"{name} has the highest rating ({values[best]:,.0f})"
        if ratings.rated[best]
        else f"{name} is ahead, and unbeaten"
    )
    if islands > 1:
        text = (
            f"{counted(islands, 'island')} of models never met, so there is no common ranking; in the largest, {text}"
        )
    return ResultLine(yes=False, text=f"{text}. Battles have no last item: nothing is settled.")


def _models(names: list[str], models: Index) -> str:
    """Name models, or count them where they are many."""
    if models.size > _NAMED + 1:
        return counted(models.size, "model")
    *first, last = [names[k] for k in models.tolist()]
    return f"{', '.join(first)} and {last}" if first else last


def _decided(table: PairTable) -> ResultLine:
    """Report for how many neighbours in rank, and for how many pairs, there is evidence beyond these items."""
    sides = table.decided("anytime_family")
    if sides is None:
        return ResultLine(yes=False, held=True, text=f"No verdict: {table.hold_reason}.")
    neighbours = table.adjacent
    real, total = int(np.count_nonzero(sides[neighbours])), int(np.count_nonzero(neighbours))
    over = table.ended | table.complete
    ties, undecided = (int(np.count_nonzero(neighbours & (sides == 0) & part)) for part in (over, ~over))
    rest = [counted(ties, "tie")] if ties else []
    if undecided:
        rest.append(f"{undecided:,} undecided so far")
    every = int(np.count_nonzero(sides))
    of_all = f"{every:,} of all {table.size:,}"
    if not every:
        text = f"No pair is decided{' yet' if not over.all() else ''}"
    elif not real:
        text = f"No pair of neighbours in rank is decided: {', '.join(rest)}; {of_all} {'is' if every == 1 else 'are'}"
    else:
        text = ", ".join([f"{real:,} of {counted(total, 'pair')} of neighbours in rank", *rest])
        text += f"; {of_all} pairs" if total < table.size else ""
    held = table.hold_reason is not None
    reason = f" No further verdict: {table.hold_reason}." if held else ""
    return ResultLine(yes=real > 0, held=held, text=f"{text}.{reason}")


def _resolved(table: PairTable) -> ResultLine:
    """Report for how many neighbours in rank the benchmark has enough items."""
    at = np.flatnonzero(table.adjacent)
    n, needed = table.n[at], table.n_star(at)
    enough, total = is_resolved(n, needed), counted(at.size, "gap")
    what = "items" if table.benchmark.battles is None else "prompts"
    resolved = int(np.count_nonzero(enough))
    text = (
        f"Enough {what} for {f'{resolved:,}' if resolved else 'none'} of {total} between neighbours in a planned test"
    )
    if resolved and table.benchmark.binary:
        text += f", {np.count_nonzero(is_resolved(n, table.anytime_required_n(at))):,} if you look as results arrive"
    # Where every shared item has the same difference there is no spread to plan with.
    if unknown := int(np.count_nonzero((needed == 0) & (n > 0))):
        text += f"; unknown for {unknown:,}, as every item differs alike"
    short = np.where(~enough & np.isfinite(needed) & (needed > 0), needed - n, np.inf)
    if np.isfinite(short).any():
        place = int(np.argmin(short))
        text += f"; ranks {place + 1:,} and {place + 2:,} need {more_items(short[place], what)}"
    return ResultLine(yes=resolved > 0, text=f"{text}.")

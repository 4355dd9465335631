"""A gate on past runs, in words."""

from collections.abc import Iterator, Sequence
from typing import Final

from monitor.words.counts import EQUAL_RUNS, counted
from monitor.words.gates import margin as in_points
from monitor.words.numbers import money
from schemas.records.text import Sentence, shorten
from schemas.results.gate_replay import Replay


def headline(found: Replay) -> Sentence:
    """Return whether the exact gate agrees with the full run, always."""
    asked = len(found.runs) * found.orders
    agreed = sum(run.exact_agrees for run in found.runs)
    return (
        f"Full run and exact gate agree in {agreed:,} of {asked:,} replays of {counted(len(found.runs), 'past run')}."
    )


def savings(found: Replay) -> Iterator[Sentence]:
    """Yield what each gate would have saved, and how often the statistical one differs from the full run."""
    items = sum(run.items for run in found.runs)
    exact, bets = (sum(getattr(run, of) for run in found.runs) for of in ("exact_items", "statistical_items"))
    yield f"The exact gate runs {_share(exact, items)} of the items, evidence along a committed order {_share(bets, items)}."
    if found.costs is not None:
        full, sure, along = (money(each) for each in found.costs)
        yield f"The candidates cost {full} in full, {sure} with the exact gate, and {along} along an order."
    same = sum(getattr(run.statistical, _FIELDS[run.full]) for run in found.runs if run.full in _FIELDS)
    yield (
        f"Evidence along an order gives the verdict of the full run in {_share(same, len(found.runs) * found.orders)} of replays. "
        f"Judge it by its error, at most {100 * found.alpha:g} %: near the margin the full run flips too."
    )
    odd = [run.run for run in found.runs if getattr(run.statistical, _FIELDS.get(run.full, "undecided")) < found.orders]
    if odd:
        yield f"It differs in some order on {_first(odd)}."


def flips(found: Replay) -> Sentence:
    """Return how the gate answers on equal pairs."""
    if not found.equal_pairs:
        return "No two runs of the baseline came one after the other and differ, so flips are not known."
    pairs, equal = counted(found.equal_pairs, "pair"), found.equal
    return (
        f"On {pairs} of successive runs of {shorten(found.baseline)}, taken as one unchanged model: {equal.passed} pass, "
        f"{equal.failed} fail, {equal.undecided} undecided. If you compare means, {found.equal_red} turn red."
    )


def title(found: Replay) -> Sentence:
    """Return what was replayed."""
    what, by = f"{shorten(found.baseline)} on {shorten(found.benchmark)}", in_points(found.margin, relative=False)
    return f"{what}, a margin of {by}, alpha = {found.alpha:g}, {found.orders} orders.{f' {EQUAL_RUNS}' * found.equal_runs}"


_NAMED: Final = 10
VERDICTS: Final = "pass/fail/undecided"
TABLE: Final = (
    "Items that each gate runs, in the mean over the orders: all, until the full run is certain, and until evidence along a committed "
    "order decides; with the verdicts of the latter."
)
_FIELDS: Final = {"pass": "passed", "fail": "failed", "undecided": "undecided"}


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def _first(names: Sequence[str]) -> str:
    """Name the first of some runs, and count the others."""
    rest = len(names) - _NAMED
    return ", ".join(map(shorten, names[:_NAMED])) + (f" and {rest:,} more" if rest > 0 else "")

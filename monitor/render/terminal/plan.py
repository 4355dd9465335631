"""A plan as JSON, or as tables with a curve."""

import json
from collections.abc import Iterator
from math import isfinite, log
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from monitor.render.document import Column, Notes, Table, numbers, plain, texts
from monitor.render.terminal.layout import output_console, shorten
from monitor.render.terminal.tables import group
from monitor.view.admission_plan import AdmissionPlan
from monitor.words import admission as words
from monitor.words.numbers import decimal, percent, planned_items, points, safe
from stats.planning.comparison_plan import Likeness, Planned, Procedure, Row

_NAMES: Final = {"fixed_n": "fixed n", "bonferroni": "Bonferroni", "clustered": "clustered"}
_HOLDS_FOR: Final = {
    "fixed_n": "one pair, one look at the end",
    "completion": "one pair, any order of arrival",
    "anytime": "one pair, committed or trusted",
    "clustered": "one pair, one look; {clusters} clusters",
    "bonferroni": "{m} pairs, one look, the first",
    "completion_family": "{m} declared pairs, the first",
    "anytime_family": "{m} declared pairs, the first",
    "completion_spending": "pair {m} of `watch`, if first",
    "anytime_spending": "pair {m} of `watch`, if first",
    "completion_spending_last": "pair {m} of `watch`, if last",
    "anytime_spending_last": "pair {m} of `watch`, if last",
}
_TEST_NAMES: Final = {"exact": "exact", "mid": "mid-p", "chi2": "chi-squared", "corrected": "continuity-corrected"}
_SHOWN_QUANTILES: Final = (0.1, 0.5, 0.9)
_SMALL: Final = 0.001  # a gap that two decimals of a point do not show
_BLOCKS: Final = "▁▂▃▄▅▆▇█"


def render_plan(planned: Planned, source: str, *, as_json: bool) -> RenderableType | str:
    """Show a plan."""
    return _json(planned, source) if as_json else group(_tables(planned, source))


# --- JSON -------------------------------------------------------------------------------------------------------------------------------


def _json(planned: Planned, source: str) -> str:
    likeness, clusters, effect = planned.likeness, planned.clusters, planned.effect
    rows = {row.procedure.name: row for row in planned.rows}
    return json.dumps(
        {
            "source": source,
            "accuracy": likeness.accuracy,
            "rho": likeness.rho,
            "discordance": likeness.discordance,
            "alpha": planned.alpha,
            "power": planned.power,
            "mixture": planned.mixture,
            "family": planned.family,
            "clusters": clusters and {"clusters": clusters.number, "icc": clusters.icc, "items": clusters.size},
            "gap": planned.gap,
            "effect": effect and {"pilot_gap": effect.pilot_gap, "gap": effect.gap, "interval": effect.interval()},
            "levels": {name: row.procedure.alpha for name, row in rows.items()},
            "levels_at_end": {name: row.procedure.at_end for name, row in rows.items() if row.procedure.at_end},
            "required_n": {name: _finite(row.needed) for name, row in rows.items() if row.needed is not None},
            "required_n_interval": {
                name: [_finite(each) for each in row.interval] for name, row in rows.items() if row.interval
            },
            "decided_by": {name: row.decided_by for name, row in rows.items() if row.decided_by},
            "items": planned.items,
            "power_at_items": {name: row.power for name, row in rows.items() if row.power is not None},
            "mde": {name: row.detectable for name, row in rows.items()}
            if planned.gap is None and planned.effect is None
            else {},
            "tests": planned.tests,
            "clusters_needed": {name: _finite(value) for name, value in planned.cluster_need.items()},
            "curve": [
                {"gap": gap, "required_n": {name: _finite(value) for name, value in needs.items()}}
                for gap, needs in planned.curve
            ],
        }
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


# --- tables -----------------------------------------------------------------------------------------------------------------------------


def _tables(planned: Planned, source: str) -> Iterator[Table | Notes]:
    head = [_likeness(planned, source)]
    if planned.effect is not None:
        low, high = planned.effect.interval()
        head += [
            f"With 95 % probability the gap is between {points(low)} and {points(high)} points.",
            f"Its mean is {points(planned.effect.gap)}: the pilot's {points(planned.effect.pilot_gap)}, shrunk.",
            "`Upper end` and `lower end` are the items that the ends of this range need; `mean power` is averaged over it.",
        ]
    settings = f"alpha {planned.alpha:g}, power {planned.power:g}, mixture {planned.mixture}; items in random order"
    head.append(settings if planned.gap is None else f"Gap {_points(planned.gap)} points, {settings}")
    yield plain(*head, *_saved_by_order(planned))
    yield Table({column.head: column for column in _columns(planned)})
    if notes := _notes(planned):
        yield plain(*notes)
    if planned.curve:
        yield _curve(planned)


def _columns(planned: Planned) -> Iterator[Column]:
    rows = planned.rows
    yield Column("procedure", texts(_NAMES.get(row.procedure.name, row.procedure.kind) for row in rows))
    yield Column("decided at", texts(_threshold(row.procedure) for row in rows))
    if planned.effect is not None and planned.gap is None:
        for end, title in ((1, "upper end"), (0, "lower end")):
            cells = (planned_items(row.interval[end]) if row.interval else "-" for row in rows)
            yield numbers(f"items,\n{title}", list(cells))
    if any(row.needed is not None for row in rows):
        title = f"items for\npower {planned.power:g}" if planned.effect is None else f"mean\npower {planned.power:g}"
        yield numbers(title, ("-" if row.needed is None else planned_items(row.needed) for row in rows))
    if planned.items is not None:
        several = planned.gap is not None or planned.effect is not None
        title = f"power at\n{planned_items(planned.items)}" if several else f"smallest gap\nof {_items(planned.items)}"
        yield numbers(title, (_at_items(row, several=several) for row in rows))
    if planned.gap is not None:
        for share in _SHOWN_QUANTILES if planned.items is None else _SHOWN_QUANTILES[:2]:
            found = [row.decided_by.get(share) for row in rows]
            yield numbers(f"{share:.0%} by\nitem", ["-" if n is None else planned_items(n) for n in found])
    m = f"{planned.family:,}"
    clusters = f"{planned.clusters.number:,}" if planned.clusters else ""
    yield Column("holds for", texts(_HOLDS_FOR[row.procedure.name].format(m=m, clusters=clusters) for row in rows))


def _items(count: int) -> str:
    return f"{planned_items(count)} item" + "s" * (count != 1)


def _points(gap: float) -> str:
    """Format a gap that may be very small."""
    return percent(gap) if gap >= _SMALL else f"{100 * gap:.3g}"


def _threshold(procedure: Procedure) -> str:
    if procedure.kind == "anytime":
        return f"e ≥ {1 / procedure.alpha:,.0f}"
    return f"p ≤ {procedure.alpha:.2g}"


def _at_items(row: Row, *, several: bool) -> str:
    if several:
        return decimal(row.power, 3)
    return "none" if row.detectable is None else f"{_points(row.detectable)} points"


def _likeness(planned: Planned, source: str) -> str:
    likeness: Likeness = planned.likeness
    if likeness.discordance is not None:
        return f"Exactly one of the two models is right on {likeness.discordance:.1%} of the items ({source})."
    text = f"Mean accuracy {likeness.accuracy:g}, correlation (phi) of the 0/1 scores {likeness.rho:g} ({source})"
    if planned.gap is None:
        return f"{text}."
    return f"{text}: one alone is right on {likeness.discordance_at(planned.gap):.1%}."


def _notes(planned: Planned) -> list[str]:
    notes = []
    if planned.tests:
        at = planned.items if planned.items is not None else planned["fixed_n"].needed
        assert at is not None
        powers = ", ".join(f"{_TEST_NAMES[test]} {power:.3f}" for test, power in planned.tests.items())
        notes.append(f"Power of the tests with {_items(int(at))}, one pair: {powers}.")
    if planned.gap is not None:
        notes.append(
            "10% by item: a tenth of the runs is decided for the better model by that item; - where fewer ever are."
        )
    if any(row.needed is not None and not isfinite(row.needed) for row in planned.rows):
        notes.append("No number: the power is not reached with any number of items, or only with more than 10^12.")
    if planned.family > 1:
        notes += [
            f"A declared family starts at alpha/{planned.family:,}. Each decision relaxes it, to alpha for the last pair (as one pair).",
            f"`watch` spends alpha over a family that grows; pair {planned.family:,} has the strictest threshold of so many.",
        ]
    if at_end := planned["anytime"].procedure.at_end:
        notes.append(
            f"`anytime` is along a committed order here: the exact test of all items decides too, one pair at p ≤ {at_end:.2g}."
        )
    if planned.clusters is not None and planned.gap is not None:
        notes.append(_clusters(planned))
    return notes


def _saved_by_order(planned: Planned) -> list[str]:
    """Compare a committed order with the item count alone, which decides only once the missing items cannot change the result."""
    if planned.gap is None or planned.items is None:
        return []
    ordered, counted = (planned[name].decided_by.get(0.5) for name in ("anytime", "completion"))
    if ordered is None or (counted is not None and counted <= ordered):
        return []
    with_count = (
        "fewer than half with the item count alone"
        if counted is None
        else (f"by item {planned_items(counted)} with the item count alone")
    )
    return [f"Half are decided by item {planned_items(ordered)} in a committed order, {with_count}."]


def _clusters(planned: Planned) -> str:
    assert planned.clusters is not None
    number, icc, need = planned.clusters.number, planned.clusters.icc, planned.cluster_need
    of_size = ""
    if planned.clusters.size is not None:
        of_size = f", {planned_items(need['same_size'])} of {planned.clusters.size:,.0f} items"
    if not isfinite(planned["clustered"].needed or 0):
        fewest = f"{planned_items(need['any_size'])} clusters or more are"
        return f"With {number:,} clusters (ICC {icc:.3g}) no number of items suffices: {fewest} needed{of_size}."
    each = (planned["clustered"].needed or 0) / number
    return f"Clustered: {planned_items(each)} items in each of {number:,} clusters, ICC {icc:.3g}."


def _curve(planned: Planned) -> Table:
    """Build the table of items by gap, each with a bar on one logarithmic scale."""
    names = list(planned.curve[0][1])
    values = [needs[name] for _, needs in planned.curve for name in names if isfinite(needs[name])]
    low, high = (log(min(values)), log(max(values))) if values else (0.0, 0.0)

    def bar(items: float) -> str:
        share = (log(items) - low) / (high - low) if high > low and isfinite(items) else 1.0
        return f"{planned_items(items)} {_BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)]}"

    heads = {
        "fixed_n": "fixed n",
        "bonferroni": "Bonferroni",
        "anytime": "anytime",
        "anytime_family": "anytime,\ndeclared",
        "anytime_spending": "anytime,\n`watch`",
    }
    columns = {"gap": numbers("gap, points", (_points(gap) for gap, _ in planned.curve))}
    columns |= {name: numbers(heads[name], [bar(needs[name]) for _, needs in planned.curve]) for name in names}
    return Table(columns, "Items by gap:")


_NAME_ROOM = 40


def print_admission_plan(plan: AdmissionPlan) -> None:
    """Print what a newcomer needs, and what each model of the board would have needed."""
    console, rows = output_console(), plan.newcomers
    console.print(Text(safe(words.planned(plan.goal, plan.items, plan.median, plan.nine_of_ten))))
    console.print(Text(safe(words.replays(plan.benchmark, len(rows), plan.orders))))
    columns = {
        "rank": numbers("rank", (f"{row.rank:,}" for row in rows)),
        "model": Column("model", texts(shorten(row.model, _NAME_ROOM) for row in rows)),
        "items": numbers("items", (f"{row.items:,}" for row in rows)),
        "share": numbers("of all", (words.share(row.items, plan.items) for row in rows)),
    }
    console.print(group([Table(columns)]))

"""A plan as JSON, or as tables with a curve."""

import json
from math import isfinite, log
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from monitor.render.numbers import percent, planned_items
from monitor.render.terminal.layout import Column, table
from stats.comparison_plan import Likeness, Planned

_PROCEDURES: Final = {
    "fixed_n": ("fixed n", "one pair chosen in advance, looked at once, at the end"),
    "bonferroni": ("Bonferroni", "{m} pairs, looked at once, at the end"),
    "anytime": ("anytime", "one pair, valid however often you look"),
    "anytime_family": ("anytime family", "{m} pairs, valid however often you look"),
    "clustered": (
        "clustered",
        "one pair, looked at once, at the end; items in clusters with design effect {effect:.3g}",
    ),
}
_OF_A_FAMILY: Final = ("bonferroni", "anytime_family")
_BLOCKS: Final = "▁▂▃▄▅▆▇█"


def render_plan(planned: Planned, source: str, *, as_json: bool) -> RenderableType | str:
    """Show a plan.

    Parameters
    ----------
    planned : Planned
    source : str
        The source of the likeness of the two models.
    as_json : bool
        Whether to return JSON text, not tables.
    """
    return _json(planned, source) if as_json else _tables(planned, source)


def _json(planned: Planned, source: str) -> str:
    def finite(values: dict[str, float]) -> dict[str, float | None]:
        return {name: value if isfinite(value) else None for name, value in values.items()}

    likeness = planned.likeness
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
            "design_effect": planned.design_effect,
            "gap": planned.gap,
            "required_n": finite(planned.needed),
            "items": planned.items,
            "mde": planned.detectable,
            "curve": [{"gap": gap, "required_n": finite(needs)} for gap, needs in planned.curve],
        }
    )


def _tables(planned: Planned, source: str) -> Group:
    names = [name for name in planned.needed or planned.detectable if planned.family > 1 or name not in _OF_A_FAMILY]
    columns = [Column("procedure", [Text(_PROCEDURES[name][0]) for name in names])]
    if planned.needed:
        assert planned.gap is not None
        title = f"items for a gap\nof {percent(planned.gap)} points"
        columns.append(Column(title, [Text(planned_items(planned.needed[name])) for name in names], right=True))
    if planned.items is not None:
        title = f"smallest gap that\n{planned.items:,} items detect"
        cells = [_detectable(planned.detectable[name]) for name in names]
        columns.append(Column(title, [Text(cell) for cell in cells], right=True))
    holds = {
        name: text.format(m=f"{planned.family:,}", effect=planned.design_effect or 1)
        for name, (_, text) in _PROCEDURES.items()
    }
    columns.append(Column("holds for", [Text(holds[name]) for name in names]))
    parts: list[RenderableType] = [
        Text(_likeness(planned.likeness, source)),
        Text(f"alpha {planned.alpha:g}, power {planned.power:g}, mixture {planned.mixture}"),
        Text(),
        table(columns),
    ]
    if planned.curve:
        parts += [Text(), _curve(planned)]
    return Group(*parts)


def _likeness(likeness: Likeness, source: str) -> str:
    if likeness.discordance is not None:
        return f"Exactly one of the two models is right on {likeness.discordance:.1%} of the items ({source})."
    return f"Mean accuracy {likeness.accuracy:g}, correlation of the scores {likeness.rho:g} ({source})."


def _curve(planned: Planned) -> Group:
    """Build the table of items by gap, each with a bar on one logarithmic scale."""
    names = [name for name in planned.needed if name in {"fixed_n", "anytime", "anytime_family"}]
    names = names if planned.family > 1 else ["fixed_n", "anytime"]
    values = [needs[name] for _, needs in planned.curve for name in names if isfinite(needs[name])]
    low, high = log(min(values)), log(max(values))

    def block(items: float) -> str:
        share = (log(items) - low) / (high - low) if high > low and isfinite(items) else 1.0
        return _BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)]

    columns = [Column("gap, points", [Text(percent(gap)) for gap, _ in planned.curve], right=True)]
    for name in names:
        cells = [Text(f"{planned_items(needs[name])} {block(needs[name])}") for _, needs in planned.curve]
        columns.append(Column(f"{_PROCEDURES[name][0]}", cells, right=True))
    spark = "  ".join(f"{_PROCEDURES[n][0]} {''.join(block(needs[n]) for _, needs in planned.curve)}" for n in names)
    return Group(Text("Half the gap takes four times the items:"), table(columns), Text(spark))


def _detectable(gap: float | None) -> str:
    return "none" if gap is None else f"{percent(gap)} points"

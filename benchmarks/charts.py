"""Draw the kept results as SVG files in ``docs/explanation/charts``; the same figures give the same bytes."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

CHARTS = Path(__file__).parent.parent / "docs" / "explanation" / "charts"
OURS, OTHERS = "#0b6e4f", "#b8bfc6"
STYLE = {
    "svg.hashsalt": "rankwatch",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
}

Rows = list[dict[str, Any]]
"""A table: each row maps columns to cells."""


def rows_of(table: dict[str, Any]) -> Rows:
    """Return the rows of a kept table."""
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def peers(axes: Axes, tables: list[Rows]) -> None:
    """Draw the time of each package for all pairs of a leaderboard."""
    rows = [row for row in tables[0] if row["processor seconds"] is not None]
    bars(
        axes,
        [re.split(r",| \(", row["program"])[0] for row in rows],
        [row["processor seconds"] for row in rows],
        ours="rankwatch",
    )
    axes.set_xlabel("processor seconds, all pairs from a cold start")


def ingest(axes: Axes, tables: list[Rows]) -> None:
    """Draw the ladder from the bare client to the whole service."""
    bars(
        axes,
        [row["what"] for row in tables[0]],
        [row["events/s"] for row in tables[0]],
        ours="rankwatch",
    )
    axes.set_xlabel("events/s, K = 29")


def fold(axes: Axes, tables: list[Rows]) -> None:
    """Draw how the speed of the fold changes with the number of models."""
    for order, style in (("none", "-"), ("trusted", "--")):
        rows = [row for row in tables[0] if row["order"] == order]
        models = [row["models"] for row in rows]
        axes.plot(
            models,
            [row["pair updates/s"] for row in rows],
            style,
            color=OURS,
            marker="o",
            ms=4,
            label=f"order policy: {order}",
        )
    axes.set(xscale="log", yscale="log", xlabel="models", ylabel="pair updates/s of processor time")
    axes.legend(frameon=False)


def evaluation(axes: Axes, tables: list[Rows]) -> None:
    """Draw the time of the statistics of all pairs at several numbers of models."""
    shown = ("all columns made of counts", "items_to_decision", "exact_p", "log_e_value", "chi2_p")
    rows = {row["what"]: row for row in tables[0]}
    for place, name in enumerate(shown):
        sizes = [column for column in rows[name] if column.startswith("K = ")]
        models = [int(column.removeprefix("K = ").replace(",", "")) for column in sizes]
        color = OURS if place == 0 else f"C{place}"
        axes.plot(models, [rows[name][column] for column in sizes], color=color, marker="o", ms=4, label=name)
    axes.set(xscale="log", yscale="log", xlabel="models", ylabel="milliseconds, all pairs")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def recovery(axes: Axes, tables: list[Rows]) -> None:
    """Draw how long a worker takes from its start to the first new event."""
    names, values = [], []
    for table in tables:
        for row in table:
            names.append(f"{row['table'].removeprefix('Restart over ').split(',  ')[0]}: {row['pair sums']}")
            values.append(row["worker to first new event, s"])
    bars(axes, names, values, ours="")
    axes.set_xlabel("seconds")


CHARTS_OF: dict[str, tuple[str, Callable[[Axes, list[Rows]], None]]] = {
    "peers": ("All pairs of a leaderboard, against other packages", peers),
    "ingest": ("From Kafka to durable state", ingest),
    "fold": ("The fold: scores that meet scores", fold),
    "evaluation": ("The statistics of all pairs", evaluation),
    "recovery": ("From a cold start to the first new event", recovery),
}


def bars(axes: Axes, names: Sequence[str], values: Sequence[float], ours: str) -> None:
    """Draw horizontal bars with their values; those whose name begins with `ours` have our colour."""
    drawn = axes.barh(names, values, color=[OURS if name.startswith(ours) else OTHERS for name in names])
    axes.bar_label(drawn, [f"{value:,.3g}" if value < 100 else f"{value:,.0f}" for value in values], padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.15)


def draw(results: Path, into: Path = CHARTS) -> list[str]:
    """Draw every chart whose result is kept; return their names."""
    into.mkdir(exist_ok=True)
    drawn = []
    for name, (title, chart) in CHARTS_OF.items():
        file = results / f"{name}.json"
        if not file.exists():
            continue
        kept = json.loads(file.read_text(encoding="utf-8"))["tables"]
        tables = [[{"table": table["title"], **row} for row in rows_of(table)] for table in kept]
        with mpl.rc_context(STYLE):
            figure, axes = plt.subplots(figsize=(8, 3.6))
            axes.set_title(title)
            chart(axes, tables)
            figure.savefig(into / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)
        drawn.append(name)
    return drawn

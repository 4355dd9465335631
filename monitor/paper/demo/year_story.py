"""The end of the demo of a year: what the sentinel shows, and what limits around a baseline would have called, side by side."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from rich.console import Console
from rich.text import Text

from monitor.paper.demo.year import CHANGE, HISTORY, ITEMS, VERSIONS, WINDOWS, Alarms, Year, below_limits, first_days
from monitor.render.drift import findings
from monitor.render.terminal.layout import Column, table
from monitor.words.counts import counted
from schemas.results.drift import DriftReport

_RULES: Final = (
    (f"each day against the first {HISTORY}, p < .05", (1,)),
    (f"windows of {WINDOWS[0]}, {WINDOWS[1]} and {WINDOWS[2]} days, 95 % limits", WINDOWS),
)


class Typical(NamedTuple):
    """What years like this bring, of windows and of the monitor: false alarms (mean), and days until the change is called (median)."""

    false: tuple[float, float]
    found: tuple[float, float]


TYPICAL: Final = Typical(false=(3.5, 0.03), found=(6, 5))
"""Over 60 seeds (standard errors of the false alarms 0.5 and 0.02)."""


def alarms_of_limits(year: Year) -> dict[str, Alarms]:
    """Return, for each rule of limits, the days on which it is below them."""
    below = {window: below_limits(year.means, ITEMS, window) for window in WINDOWS}
    return {name: np.any([below[window] for window in windows], axis=0) for name, windows in _RULES}


def alarms_of_report(year: Year, report: DriftReport) -> Alarms:
    """Return the days on which the monitor of the model alarmed."""
    called = {alarm.run for sentinel in report.sentinels for alarm in sentinel.monitors[0].alarms}
    return np.array([day in called for day in year.days])


def calls_of_windows(year: Year) -> dict[int, list[str]]:
    """Return a line for each day on which windows begin to call a drop."""
    windows = [*alarms_of_limits(year).values()][-1]
    false = {day: year.change is None or day < year.change for day in np.flatnonzero(first_days(windows)).tolist()}
    return {
        day: [f"windows:   {year.days[day]} is below the limits{', falsely' if wrong else ''}"]
        for day, wrong in false.items()
    }


def render_year(year: Year, report: DriftReport, console: Console) -> None:
    """Print the end of the demo of a year."""
    parts: list[object] = [Text(line) for line in findings(report)]
    parts += [Text(), Text(_title(year), "bold"), table(_columns(year, report)), Text(), Text(_simulated(year))]
    for part in parts:
        console.print(part, highlight=False)


def _title(year: Year) -> str:
    if year.change is None:
        return "One quiet year, three ways: every alarm is false"
    return f"One year, three ways: {VERSIONS[1]} answers from {year.days[year.change]} on"


def _columns(year: Year, report: DriftReport) -> Sequence[Column]:
    ways = alarms_of_limits(year) | {"rankwatch": alarms_of_report(year, report)}
    quiet = slice(None, year.change)
    false = [int(first_days(alarms)[quiet].sum()) for alarms in ways.values()]
    columns = [
        Column("way", [Text(name) for name in ways]),
        Column("false alarms", [Text(str(count)) for count in false], right=True),
        Column("days of them", [Text(str(int(alarms[quiet].sum()))) for alarms in ways.values()], right=True),
    ]
    if year.change is not None:
        late = [np.flatnonzero(alarms[year.change :]) for alarms in ways.values()]
        columns.append(
            Column(
                "calls the change after",
                [Text(counted(int(days[0]) + 1, "run") if days.size else "never") for days in late],
                right=True,
            )
        )
    return columns


def _simulated(year: Year) -> str:
    versions = VERSIONS[0] if year.change is None else f"{VERSIONS[0]}, then {VERSIONS[1]}"
    return (
        f"Simulated from the printed counts of MMLU-Pro: {ITEMS} items, {versions}, at temperature 1. In 60 years like this windows raised "
        f"{TYPICAL.false[0]:g} false alarms in the {CHANGE} quiet days, rankwatch {TYPICAL.false[1]:g}. In half of them windows called the "
        f"change within {TYPICAL.found[0]:g} runs, rankwatch within {TYPICAL.found[1]:g}."
    )

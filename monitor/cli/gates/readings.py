"""The results of a gate as each of its metrics reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.options import ScoreOptions
from monitor.files.streams.paths import show
from monitor.view.board import BoardView

_SCORE: Final = "score="


@dataclass(frozen=True)
class Reading:
    """The files, read with one metric of each benchmark."""

    boards: Mapping[str, BoardView]
    # by benchmark that this reading is for: the metric, where the command line names several
    metrics: Mapping[str, str | None]


def has_several_metrics(logs: ScoreOptions) -> bool:
    """Return whether a benchmark has several metrics, scorers or columns with scores."""
    return bool(_several(logs))


def read_metrics(logs: ScoreOptions, read: Callable[[ScoreOptions], Mapping[str, BoardView]]) -> list[Reading]:
    """Read files once, or once for each metric if one benchmark or all have several."""
    flags = _several(logs)
    if not flags:
        boards = read(logs)
        return [Reading(boards, dict.fromkeys(boards))]
    readings, each = [], each_metric(logs)
    ((flag, names_of),) = flags.items()
    for k, chosen in enumerate(each):
        boards = read(chosen)
        for benchmark, names in names_of.items():
            if benchmark is not None and len(names) > 1 and benchmark not in boards:
                known = ", ".join(map(show, boards))
                stop(f"--{flag} {show(benchmark)}: several metrics need the name of a benchmark, one of {known}", USAGE)
        of = {name: names_of.get(name, names_of.get(None, [])) for name in boards}
        metrics = {name: names[k] if names else None for name, names in of.items() if k < max(1, len(names))}
        readings.append(Reading(boards, metrics))
    return readings


def each_metric(logs: ScoreOptions) -> list[ScoreOptions]:
    """Return how files are read, once, or once for each metric if one benchmark or all have several."""
    flags = _several(logs)
    if len(flags) > 1:
        stop(f"--{' and --'.join(flags)} name several metrics each; use one of the two, and call the gate again", USAGE)
    return [
        _with(logs, flag, {benchmark: names[min(k, len(names) - 1)] for benchmark, names in names_of.items()})
        for flag, names_of in flags.items()
        for k in range(max(map(len, names_of.values())))
    ] or [logs]


def _several(logs: ScoreOptions) -> dict[str, dict[str | None, list[str]]]:
    """Return the flags that name several metrics of a benchmark, with the names by benchmark; None is any other one."""
    given = {
        "metric": logs.metric or [],
        "scorer": logs.scorer or [],
        "columns": [part.removeprefix(_SCORE) for part in _columns(logs) if part.startswith(_SCORE)],
    }
    flags: dict[str, dict[str | None, list[str]]] = {}
    for flag, entries in given.items():
        names_of: dict[str | None, list[str]] = {}
        for entry in dict.fromkeys(entries):
            benchmark, _, name = ("", "", entry) if flag == "columns" else entry.rpartition("=")
            names_of.setdefault(benchmark or None, []).append(name)
        if any(len(names) > 1 for names in names_of.values()):
            flags[flag] = names_of
    return flags


def _with(logs: ScoreOptions, flag: str, chosen: Mapping[str | None, str]) -> ScoreOptions:
    if flag == "columns":
        others = [part for part in _columns(logs) if not part.startswith(_SCORE)]
        return replace(logs, columns=[*others, *(f"{_SCORE}{name}" for name in chosen.values())])
    entries = [name if benchmark is None else f"{benchmark}={name}" for benchmark, name in chosen.items()]
    return replace(logs, metric=entries) if flag == "metric" else replace(logs, scorer=entries)


def _columns(logs: ScoreOptions) -> list[str]:
    return [part.strip() for text in logs.columns or () for part in text.split(",")]

"""`gate --baseline-max-age`: how old the results of a baseline are, by the dates in the names of their files, and what refreshes them."""

import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from monitor.cli.gates.readings import each_metric
from monitor.cli.shared.errors import USAGE, note, stop
from monitor.cli.shared.files import read_runs
from monitor.cli.shared.options import ScoreOptions
from monitor.files.dated_runs import DatedRuns
from monitor.files.streams.paths import show
from schemas.records.run_names import date_in, name_of
from schemas.records.text import shorten

_HOURS: Final = {"h": 1, "d": 24, "w": 168}


class _Dated(NamedTuple):
    """The oldest results of a baseline."""

    file: str
    date: str
    age: timedelta


def check_age(
    paths: Sequence[str],
    logs: ScoreOptions,
    max_rejected: float,
    baseline: str,
    benchmarks: Sequence[str],
    longest: str,
    refresh: str | None,
) -> None:
    """End the command if results of the baseline are older than that, after a command that may refresh them."""
    limit = _parse(longest)
    found = _oldest(paths, logs, max_rejected, baseline, benchmarks)
    left = ""
    if refresh is not None and (found is None or found.age > limit):
        why = "has no results" if found is None else f"is of {found.date}, older than {longest}"
        note(f"the baseline {show(baseline)} {why}: {shorten(refresh)}")
        _refresh(refresh)
        found, left = _oldest(paths, logs, max_rejected, baseline, benchmarks), ", and --baseline-refresh left them so"
    if found is not None and found.age > limit:
        stop(
            f"--baseline-max-age {longest}: results of the baseline {show(baseline)} in {show(found.file)} are of {found.date}, older than "
            f"that{left}; evaluate the baseline again, and give these results in their place"
        )


def _oldest(
    paths: Sequence[str], logs: ScoreOptions, max_rejected: float, baseline: str, benchmarks: Sequence[str]
) -> _Dated | None:
    """Return the oldest results of a baseline; None where it has none; the gate itself reports that."""
    files = {
        run.name
        for each in each_metric(logs)
        for (benchmark, model), (of, _) in read_runs(
            paths, each, max_rejected, DatedRuns(str, by_file=True), models=True
        )
        .sentinels()
        .items()
        if model == baseline and (not benchmarks or benchmark in benchmarks)
        for run in of
    }
    found = [_dated(file) for file in sorted(files)]
    return max(found, key=lambda each: each.age, default=None)


def _dated(file: str) -> _Dated:
    """Return the age of a file by the date in its own name or the name of a folder above it; one without a date ends the command."""
    date = date_in(name_of(file))
    try:
        begun = None if date is None else datetime.fromisoformat(date).replace(tzinfo=UTC)
    except ValueError:
        begun = None
    if date is None or begun is None:
        stop(
            f"--baseline-max-age: {show(file)} has no date in its name or its folder; name it by the day of the evaluation, for example "
            f"baseline_{datetime.now(UTC):%Y-%m-%d}.jsonl",
            USAGE,
        )
    age = datetime.now(UTC) - begun
    if age < -timedelta(days=1):
        stop(f"--baseline-max-age: the date of {show(file)}, {date}, lies ahead; correct its name", USAGE)
    return _Dated(file, date, age)


def _parse(text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if unit not in _HOURS or not number.isascii() or not number.isdigit() or not 0 < int(number) <= 10_000:
        stop(f"--baseline-max-age {shorten(text)}: give hours, days or weeks, for example 12h, 30d or 4w", USAGE)
    return timedelta(hours=int(number) * _HOURS[unit])


def _refresh(command: str) -> None:
    try:
        words = shlex.split(command)
        code = subprocess.run(words, check=False).returncode if words else 0  # noqa: S603 - what the user asked for
    except (OSError, ValueError) as error:
        stop(f"--baseline-refresh {shorten(command)}: cannot be run: {error}", USAGE)
    if code:
        stop(f"--baseline-refresh {shorten(command)}: ended with code {code}")

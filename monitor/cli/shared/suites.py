"""The suites that flags name: benchmarks that are reported together."""

from collections.abc import Collection, Sequence
from math import isfinite

from monitor.cli.shared.declarations import similar_first
from monitor.cli.shared.errors import USAGE, stop
from monitor.report.suite import Suite
from schemas.names import name_fault
from schemas.text import shorten


def parse_suites(entries: Sequence[str] | None, benchmarks: Collection[str]) -> list[Suite]:
    """Parse suites of the form NAME=MEMBER,... with MEMBER or MEMBER:WEIGHT; a wrong one ends the command.

    Parameters
    ----------
    entries : sequence of str, optional
    benchmarks : collection of str
        The benchmarks that were read. One whose own name ends with a colon and a number needs no weight.
    """
    suites: dict[str, Suite] = {}
    for entry in entries or ():
        name, equals, text = entry.partition("=")
        where = f"--suite {shorten(entry)}"
        if not equals or not name or name_fault(name) is not None:
            stop(f"{where}: give a name and its benchmarks, as NAME=A,B,C", USAGE)
        if name in benchmarks or name in suites:
            stop(f"{where}: {shorten(name)} is the name of another benchmark or suite; choose another name", USAGE)
        members: dict[str, float] = {}
        for each in filter(None, map(str.strip, text.split(","))):
            member, weight = _member(each, benchmarks, where)
            if member in members:
                stop(f"{where}: {shorten(member)} is given twice; give each benchmark once", USAGE)
            members[member] = weight
        if len(members) < 2:
            stop(f"{where}: a suite has at least 2 benchmarks; give them as NAME=A,B,C", USAGE)
        suites[name] = Suite(name, members)
    return list(suites.values())


def _member(entry: str, benchmarks: Collection[str], where: str) -> tuple[str, float]:
    """Return the benchmark and its weight, 1 unless one is given."""
    if entry in benchmarks:
        return entry, 1.0
    member, colon, text = entry.rpartition(":")
    if not colon or member not in benchmarks:
        unknown = entry if not colon else member
        stop(
            f"{where}: the files hold no benchmark {shorten(unknown)}; they hold {similar_first(unknown, benchmarks)}",
            USAGE,
        )
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not isfinite(weight) or not 0 < weight <= 1e9:
        stop(f"{where}: {shorten(text)} is not a positive weight; give a number above 0, as BENCHMARK:WEIGHT", USAGE)
    return member, weight

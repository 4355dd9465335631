"""The suites that flags and settings name: benchmarks that are reported together."""

from collections.abc import Mapping, Sequence

from monitor.cli.shared.declared.values import similar_first
from monitor.cli.shared.errors import USAGE, stop
from monitor.view.board import BoardView
from monitor.view.kinds.kind import kind_of
from schemas.records.declaration import MAX_GRADED_ITEMS
from schemas.records.suites import Missing, Suite, parse_suites, split_suites
from schemas.records.text import shorten


def suites_of_files(
    entries: Sequence[str] | None,
    benchmarks: Mapping[str, BoardView],
    missing: Missing | None = None,
    *,
    distinct: bool = False,
) -> list[Suite]:
    """Parse the suites of benchmarks that were read, NAME=MEMBER,... each; a wrong one ends the command."""
    # A benchmark whose own name ends with a colon or a tilde and a number needs no weight.
    try:
        suites = parse_suites(split_suites(entries or ()), benchmarks, missing or "unranked", distinct=distinct)
    except ValueError as error:
        stop(f"--suite {error}", USAGE)
    for suite in suites:
        where = f"--suite {shorten(suite.name)}"
        if suite.name in benchmarks:
            stop(f"{where}: the files hold a benchmark of this name; choose another name", USAGE)
        for name in suite.members:
            if name not in benchmarks:
                near = similar_first(name, benchmarks)
                stop(f"{where}: the files hold no benchmark {shorten(name)}; they hold {near}", USAGE)
            if kind_of(benchmarks[name]).member_state == "battles":
                stop(f"{where}: {shorten(name)} holds battles, which have no mean score; omit it", USAGE)
        sizes = sum(max(benchmarks[name].spec.items or 0, benchmarks[name].items) for name in suite.members)
        if sizes > MAX_GRADED_ITEMS:
            stop(f"{where}: it has {sizes:,} items; a suite has at most {MAX_GRADED_ITEMS:,}", USAGE)
    return suites


def suites_flag(entries: Sequence[str] | None) -> dict[str, list[str]] | None:
    """Return the setting `suites` for flags, None without one; a wrong flag ends the command."""
    if not entries:
        return None
    try:
        parse_suites(suites := split_suites(entries))
    except ValueError as error:
        stop(f"--suite {error}", USAGE)
    return suites

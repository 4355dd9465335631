"""The report on a terminal: the overview of each benchmark, and on demand the pairs with their reasons, and the counts."""

from collections.abc import Mapping
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from monitor.render.signs import HELD, UNDECIDED, Glyphs, relation, result_sign, status_glyph
from monitor.render.terminal.layout import glyphs_for
from monitor.render.terminal.overview import overview
from monitor.render.terminal.tables import Extra, goal_table, legend, models_table, pairs_table, summary_table
from monitor.view.ranking.tie_bands import TieBands
from monitor.words import header as facts
from monitor.words.counts import counted
from monitor.words.numbers import safe
from monitor.words.reading import first
from schemas.results.report import BenchmarkReport, PairReport, Report

_SHORT: Final = 10
"""Models above which the result is printed once more at the end, as the first lines have left the screen."""

ROW_LIMIT: Final = 60
"""Benchmarks, and rows of one table, at most; the rest is counted."""


def render_report(
    report: Report,
    console: Console,
    *,
    extra: Extra | None = None,
    limit: int = ROW_LIMIT,
    low_coverage: float = 0.0,
    ties: Mapping[str, TieBands] | None = None,
    with_pairs: bool = False,
    verbose: bool = False,
    last: bool = True,
) -> None:
    """Print a report: the overview of each benchmark, and details on demand."""
    if not report.benchmarks:
        console.print(Text(facts.NO_RESULTS))
    for position, benchmark in enumerate(report.benchmarks[:limit]):
        if position:
            console.print()
        drawn = None if ties is None else ties.get(benchmark.benchmark)
        lines = result(benchmark, glyphs_for(console)) or [Text(facts.NO_PAIR, style=HELD)]
        head = [*title(benchmark), *lines]
        ends = last and position == min(len(report.benchmarks), limit) - 1
        lines = overview(
            benchmark,
            console,
            drawn,
            head=head,
            limit=limit,
            low_coverage=low_coverage,
            several=len(report.benchmarks) > 1,
            last=ends,
            whole=verbose,
        )
        for line in lines:
            console.print(line, highlight=False)
        if with_pairs or verbose or extra:
            details = _details(benchmark, console, extra, limit, low_coverage, verbose=verbose)
            console.print(details, highlight=False)
    if len(report.benchmarks) > limit:
        console.print()
        console.print(_omitted(len(report.benchmarks) - limit, "benchmarks"))


def result(benchmark: BenchmarkReport, glyphs: Glyphs) -> list[Text]:
    """Build the three lines of the result."""
    lines = []
    for word, line in facts.result(benchmark):
        sign, colour = result_sign(word, line, glyphs)
        lines.append(Text(sign, colour).append(f" {word:9}", "bold").append(safe(line.text), "default"))
    return lines


def title(benchmark: BenchmarkReport) -> list[Text]:
    """Build the line that names a benchmark and what was read, and those that warn of lost records and of what was done with the board."""
    b = benchmark
    title = Text(safe(b.benchmark), style="bold")
    if b.board is not None and b.board.title is not None:
        title = Text(safe(f"{b.board.title} ({b.benchmark})"), style="bold")
    title.append(f"  {facts.counts(b)}", "not bold")
    if b.duplicates:
        title.append(f", {counted(b.duplicates, 'duplicate')}", "not bold")
    for text in (
        counted(b.conflicts, "conflict") if b.conflicts else "",
        f"{b.rejected:,} rejected" if b.rejected else "",
    ):
        title.append(f", {text}" if text else "", HELD)
    notes = first(b)
    notes += [f"may be partial: {b.partial}"] if b.partial is not None else []
    notes += [] if b.board is None or b.board.note is None else [b.board.note]
    return [title, *(Text(safe(note), style=HELD) for note in notes)]


def assumptions(benchmark: BenchmarkReport) -> list[Text]:
    """Build the lines on what verdicts assume, the levels, and what to read with care; the first is the order policy."""
    b = benchmark
    policy = f"order: {b.order.policy} ({safe(facts.order_sentence(b))})"
    levels = f"family: {facts.family(b)}; {safe(facts.levels(b))}; decided at {facts.thresholds(b)}"
    lines = [Text(policy, style=HELD if b.order.policy == "none" else ""), Text(levels)]
    weights = facts.weights(b)
    if weights is not None:
        lines.append(Text(f"weights: {safe(weights)}"))
    lines += [Text(safe(text)) for text in facts.members(b)]
    titles = facts.titles(b)
    if titles is not None:
        lines.append(Text(f"titles: {safe(titles)}"))
    aliases = facts.aliases(b)
    if aliases is not None:
        lines.append(Text(f"aliases: {safe(aliases)}"))
    epochs = facts.epochs(b)
    if epochs is not None:
        lines.append(Text(f"epochs: {epochs}", style=HELD if b.unranked else ""))
    warning = facts.order_warning(b)
    if warning is not None:
        lines.append(Text(f"order: {safe(warning)}", style=HELD if b.order.suspect else ""))
    coverage = facts.coverage(b)
    if coverage is not None:
        lines.append(Text(f"items: {safe(coverage)}", style=HELD))
    clusters = facts.cluster_warning(b)
    if clusters is not None:
        lines.append(Text(f"clusters: {safe(clusters)}", style=HELD))
    conflicts = facts.conflicts(b)
    if conflicts is not None:
        lines.append(Text(f"conflicts: {safe(conflicts)}", style=HELD))
    return lines


def _details(
    benchmark: BenchmarkReport,
    console: Console,
    extra: Extra | None,
    limit: int,
    low_coverage: float,
    *,
    verbose: bool,
) -> Group:
    """Build what the overview leaves to a second look: the pairs; and with `verbose` all columns, reasons, counts and levels."""
    width, ascii_only = console.width, console.options.ascii_only
    glyphs = glyphs_for(console)
    parts: list[RenderableType] = [Text()]
    if verbose:
        parts.append(models_table(benchmark.models[:limit], width, ascii_only=ascii_only, low_coverage=low_coverage))
        if len(benchmark.models) > limit:
            parts.append(_omitted(len(benchmark.models) - limit, "models"))
        parts.append(Text())
        if benchmark.goal is not None:
            parts += [goal_table(benchmark.goal, limit, ascii_only=ascii_only), Text()]
            race = benchmark.goal.committed
            parts += [] if race is None else [Text(race.text), Text()]
    pairs = benchmark.pairs[:limit]
    if not pairs:
        return Group(*parts, Text("No pair shares an item yet."))
    table, with_reasons = pairs_table(benchmark, pairs, console, width, extra)
    parts.append(table)
    if len(benchmark.pairs) > limit:
        parts.append(_omitted(len(benchmark.pairs) - limit, "pairs"))
    parts += [Text(), legend(pairs, glyphs)]
    if not verbose:
        return Group(*parts)
    if not with_reasons:
        parts += [Text(), *(_reason(pair, glyphs) for pair in pairs)]
    parts += [Text(), summary_table(benchmark, width, ascii_only=ascii_only), Text(), *assumptions(benchmark)]
    why = facts.registration(benchmark)
    if why is not None:
        parts.append(Text(why))
    if len(benchmark.models) > _SHORT:
        parts += [Text(), *result(benchmark, glyphs)]
    return Group(*parts)


def _reason(pair: PairReport, glyphs: Glyphs) -> Text:
    glyph, _, colour = status_glyph(pair, glyphs)
    line = Text(glyph, style="").append(f" {safe(pair.model_a)} {relation(pair)} {safe(pair.model_b)}: ", "bold")
    line.stylize(colour, 0, len(glyph))
    return line.append(safe(pair.reason))


def _omitted(count: int, what: str) -> Text:
    return Text(f"... {count:,} more {what} are not shown; --format json, csv or html lists all.", style=UNDECIDED)

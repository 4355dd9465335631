"""The report as tables on a terminal: for each benchmark the ranking, the pairs with their reasons, and the counts."""

from typing import Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from monitor.render import header as facts
from monitor.render.numbers import safe
from monitor.render.signs import DECIDED, HELD, UNDECIDED, Glyphs, relation, status_glyph
from monitor.render.terminal.layout import glyphs_for
from monitor.render.terminal.tables import Extra, legend, models_table, pairs_table, summary_table
from monitor.report.sentences import counted
from schemas.report import BenchmarkReport, PairReport, Report

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
) -> None:
    """Print a report.

    Parameters
    ----------
    report : Report
        Any number of benchmarks and pairs.
    console : Console
        Its width, encoding and colors determine the layout.
    extra : Extra, optional
        A further column of the pair table.
    limit : int
        Benchmarks, and rows of each table, at most.
    low_coverage : float
        Share of the items below which a model is marked.
    """
    if not report.benchmarks:
        console.print(Text(facts.NO_RESULTS))
    for position, benchmark in enumerate(report.benchmarks[:limit]):
        if position:
            console.print()
        console.print(_benchmark(benchmark, console, extra, limit, low_coverage), highlight=False)
    if len(report.benchmarks) > limit:
        console.print()
        console.print(_omitted(len(report.benchmarks) - limit, "benchmarks"))


def result(benchmark: BenchmarkReport, glyphs: Glyphs) -> list[Text]:
    """Build the three lines of the result."""
    signs = {"settled": (glyphs.unsettled, glyphs.settled)}
    lines = []
    for word, line in facts.result(benchmark):
        sign = signs.get(word, (glyphs.undecided, glyphs.decided))[line.yes]
        lines.append(
            Text(sign, DECIDED if line.yes else UNDECIDED)
            .append(f" {word:9}", "bold")
            .append(safe(line.text), "default")
        )
    return lines


def title(benchmark: BenchmarkReport) -> list[Text]:
    """Build the line that names a benchmark and what was read, and the one that warns of lost records."""
    b = benchmark
    title = Text(safe(b.benchmark), style="bold")
    title.append(f"  {facts.counts(b)}", "not bold")
    for count, word in ((b.duplicates, "duplicates"), (b.conflicts, "conflicts"), (b.rejected, "rejected")):
        title.append(f", {count:,} {word}", HELD if count and word != "duplicates" else "not bold")
    return [title] if b.partial is None else [title, Text(f"may be partial: {b.partial}", style=HELD)]


def assumptions(benchmark: BenchmarkReport) -> list[Text]:
    """Build the lines on what verdicts assume, the levels, and what to read with care; the first is the order policy."""
    b = benchmark
    policy = f"order: {b.order.policy} ({safe(facts.order_sentence(b))})"
    levels = f"family: {facts.family(b)}; {safe(facts.levels(b))}; decided at {facts.thresholds(b)}"
    lines = [Text(policy, style=HELD if b.order.policy == "none" else ""), Text(levels)]
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


def _benchmark(
    benchmark: BenchmarkReport, console: Console, extra: Extra | None, limit: int, low_coverage: float
) -> Group:
    width = console.width
    glyphs = glyphs_for(console)
    parts: list[RenderableType] = [*title(benchmark), *result(benchmark, glyphs), *assumptions(benchmark), Text()]
    ascii_only = console.options.ascii_only
    parts.append(models_table(benchmark.models[:limit], width, ascii_only=ascii_only, low_coverage=low_coverage))
    low = sum(model.coverage < low_coverage for model in benchmark.models)
    if low:
        parts.append(Text(_low_coverage(low, low_coverage), HELD))
    if len(benchmark.models) > limit:
        parts.append(_omitted(len(benchmark.models) - limit, "models"))
    pairs = benchmark.pairs[:limit]
    if pairs:
        table, with_reasons = pairs_table(benchmark, pairs, console, width, extra)
        parts += [Text(), table]
        if len(benchmark.pairs) > limit:
            parts.append(_omitted(len(benchmark.pairs) - limit, "pairs"))
        parts += [Text(), legend(glyphs)]
        if not with_reasons:
            parts += [Text(), *(_reason(pair, glyphs) for pair in pairs)]
        parts += [
            Text(),
            summary_table(benchmark, width, ascii_only=console.options.ascii_only),
        ]
        why = facts.registration(benchmark)
        if why is not None:
            parts += [Text(), Text(why)]
        if len(benchmark.models) > _SHORT:
            parts += [Text(), *result(benchmark, glyphs)]
    else:
        parts += [Text(), Text("No pair shares an item yet.")]
    return Group(*parts)


def _reason(pair: PairReport, glyphs: Glyphs) -> Text:
    glyph, _, colour = status_glyph(pair, glyphs)
    line = Text(glyph, style="").append(f" {safe(pair.model_a)} {relation(pair)} {safe(pair.model_b)}: ", "bold")
    line.stylize(colour, 0, len(glyph))
    return line.append(safe(pair.reason))


def _low_coverage(models: int, share: float) -> str:
    return (
        f"{counted(models, 'model')} with scores on less than {share:.0%} of the items (in brackets): "
        "means over different items may not compare."
    )


def _omitted(count: int, what: str) -> Text:
    return Text(f"... {count:,} more {what} are not shown; --format json, csv or html lists all.", style=UNDECIDED)

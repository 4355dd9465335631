"""The report as tables: for each benchmark the ranking, the pairs, why they are undecided, and the counts."""

import sys
from io import TextIOWrapper
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from monitor.render import numbers as form
from monitor.render.numbers import HELD, UNDECIDED, Glyphs
from monitor.render.terminal.tables import Extra, glyphs_for, legend, models_table, pairs_table, summary_table
from monitor.report.sentences import counted
from schemas.report import BenchmarkReport, PairReport, Report

PIPE_WIDTH: Final = 160
"""Columns of a table that goes to a file or a pipe."""

ROW_LIMIT: Final = 60
"""Benchmarks, and rows of one table; more of them are counted, not shown."""


def output_console() -> Console:
    """Return a console on standard output: as wide as the terminal, or 160 columns where there is none."""
    # A name may hold characters that the terminal's encoding lacks: they are escaped, never an error.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


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
        Where to: its width, encoding and colours decide the layout.
    extra : Extra, optional
        A further column of the pair table.
    limit : int
        Benchmarks, and rows of each table, that are shown at most.
    low_coverage : float
        Share of the items below which a model is marked.
    """
    if not report.benchmarks:
        console.print(Text("No results: nothing was read that holds a score."))
    for position, benchmark in enumerate(report.benchmarks[:limit]):
        if position:
            console.print()
        console.print(_benchmark(benchmark, console, extra, limit, low_coverage), highlight=False)
    if len(report.benchmarks) > limit:
        console.print()
        console.print(_left_out(len(report.benchmarks) - limit, "benchmarks"))


def header(benchmark: BenchmarkReport) -> list[Text]:
    """Build the lines above a benchmark: what was read, what is asserted, and at which levels."""
    b = benchmark
    title = Text(form.safe(b.benchmark), style="bold")
    counts = form.read(b)
    faults = [(b.duplicates, "duplicates"), (b.conflicts, "conflicts"), (b.rejected, "rejected")]
    title.append(f"  {counts}", "not bold")
    for count, word in faults:
        title.append(f", {count:,} {word}", HELD if count and word != "duplicates" else "not bold")
    alone, family = form.log_thresholds(b)
    size = "size not fixed" if b.family.size is None else counted(b.family.size, "pair")
    needed = f"decided at ln e >= {alone:.2f} for a pair by itself, "
    needed += f">= {family:.2f} in the family" if family is not None else "each pair at its own threshold in the family"
    levels = f"alpha {b.alpha:g}, power {b.power:g}, mixture {form.safe(b.mixture)}"
    lines = [
        title,
        Text(
            f"order: {b.order.policy} ({form.safe(form.order_sentence(b))})",
            style=HELD if b.order.policy == "none" else "",
        ),
        Text(f"family: {b.family.policy}, {size}; {levels}; {needed}"),
    ]
    trouble = form.order_trouble(b)
    if trouble is not None:
        lines.append(Text(f"order: {form.safe(trouble)}", style=HELD if b.order.suspect else ""))
    return lines


def _benchmark(
    benchmark: BenchmarkReport, console: Console, extra: Extra | None, limit: int, low_coverage: float
) -> Group:
    width = console.width
    parts: list[RenderableType] = [*header(benchmark), Text()]
    ascii_only = console.options.ascii_only
    parts.append(models_table(benchmark.models[:limit], width, ascii_only=ascii_only, low_coverage=low_coverage))
    low = sum(model.coverage < low_coverage for model in benchmark.models)
    if low:
        parts.append(Text(_low_coverage(low, low_coverage), HELD))
    if len(benchmark.models) > limit:
        parts.append(_left_out(len(benchmark.models) - limit, "models"))
    pairs = benchmark.pairs[:limit]
    if pairs:
        table, reasons_shown = pairs_table(benchmark, pairs, console, width, extra)
        parts += [Text(), table]
        if len(benchmark.pairs) > limit:
            parts.append(_left_out(len(benchmark.pairs) - limit, "pairs"))
        glyphs = glyphs_for(console)
        parts += [Text(), legend(glyphs)]
        if not reasons_shown:
            parts += [Text(), *(_reason(pair, glyphs) for pair in pairs)]
        parts += [
            Text(),
            summary_table(benchmark, width, ascii_only=console.options.ascii_only),
            Text(),
            _headline(benchmark),
        ]
    else:
        parts += [Text(), Text("No pair shares an item yet.")]
    return Group(*parts)


def _reason(pair: PairReport, glyphs: Glyphs) -> Text:
    glyph, _, colour = form.status_glyph(pair, glyphs)
    line = Text(glyph, style="").append(
        f" {form.safe(pair.model_a)} {form.relation(pair)} {form.safe(pair.model_b)}: ", "bold"
    )
    line.stylize(colour, 0, len(glyph))
    return line.append(form.safe(pair.reason))


def _headline(benchmark: BenchmarkReport) -> Text:
    summary = benchmark.summary
    undecided = summary.undecided.get("anytime_family")
    if undecided is None:
        return Text()
    decided = summary.pairs - undecided
    return Text(
        f"{decided:,} of {counted(summary.pairs, 'pair')} decided (anytime family: valid however often you look).",
        style="bold",
    )


def _low_coverage(models: int, share: float) -> str:
    what = "1 model has" if models == 1 else f"{models:,} models have"
    return (
        f"{what} scores on less than {share:.0%} of the items (in brackets): a mean over other items may not compare."
    )


def _left_out(count: int, what: str) -> Text:
    return Text(f"... {count:,} more {what} are not shown: --format json, csv or html lists them all.", style=UNDECIDED)

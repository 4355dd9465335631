"""The report on a terminal: the overview of each benchmark, and on demand the pairs with their reasons, and the counts."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from monitor.render.document import Table
from monitor.render.pairs import Extra, procedures, verdicts
from monitor.render.report import goal_runs, labels_notes, legend
from monitor.render.report import result as result_notes
from monitor.render.signs import HELD, UNDECIDED, Glyphs, pair_signs, relation, status_glyph
from monitor.render.terminal.layout import glyphs_for
from monitor.render.terminal.overview import overview
from monitor.render.terminal.ranking import Ranking
from monitor.render.terminal.tables import lines
from monitor.render.terminal.two_models import compared
from monitor.view.values import TieBands
from monitor.words import header as facts
from monitor.words.counts import counted
from monitor.words.kinds import suite
from monitor.words.numbers import safe
from monitor.words.reading import first
from monitor.words.results import halves
from schemas.results.report import BenchmarkReport, PairReport, Report

_SHORT: Final = 10
"""Models above which the result is printed once more at the end, as the first lines have left the screen."""

ROW_LIMIT: Final = 60  # benchmarks, and rows of one table, at most; the rest is counted


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
    # `limit`: benchmarks, and rows of each table, at most. `ties`: by benchmark. `with_pairs`: the pairs are listed, and with `verbose`
    # also every reason and assumption. `last`: no more output follows, and the flags that show more are named.
    if not report.benchmarks:
        console.print(Text(facts.NO_RESULTS))
    for position, benchmark in enumerate(report.benchmarks[:limit]):
        if position:
            console.print()
        drawn = None if ties is None else ties.get(benchmark.benchmark)
        answer = result(benchmark, glyphs_for(console)) or [Text(facts.NO_PAIR, style=HELD)]
        if benchmark.result is not None and benchmark.result.change is not None and compared(benchmark) is not None:
            answer.pop()  # the rows below have the details
        head = [*title(benchmark), *answer, *_people(benchmark)]
        ends = last and position == min(len(report.benchmarks), limit) - 1
        shown = overview(
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
        for line in shown:
            console.print(line, highlight=False)
        if with_pairs or verbose or extra:
            details = _details(benchmark, console, extra, limit, low_coverage, verbose=verbose)
            console.print(details, highlight=False)
    for line in _omitted(len(report.benchmarks) - limit, "benchmarks"):
        console.print()
        console.print(line)


def result(benchmark: BenchmarkReport, glyphs: Glyphs) -> list[Text]:
    """Build the lines of the result."""
    notes = result_notes(benchmark, glyphs)
    if notes is None:
        return []
    lines = [
        Text(f"{note.sign} " if note.sign else "", note.tone).append(safe(note.text), "default") for note in notes.notes
    ]
    for line, (word, found) in zip(lines, facts.result(benchmark), strict=True):
        if word != "details":
            line.highlight_words([safe(halves(found.facts)[0] if found.facts else found.text)], "bold")
    return lines


def _people(benchmark: BenchmarkReport) -> list[Text]:
    """Build the lines on what people prefer."""
    if benchmark.labels is None:
        return []
    lines = [Text(), Text("What people prefer", "bold")]
    for note in labels_notes(benchmark.labels).notes:
        label = Text(f"{safe(note.label)}: " if note.label else "", "bold")
        lines.append(label.append(safe(note.text), "not bold"))
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
    b, family = benchmark, f"family: {facts.family(benchmark)}"
    levels = f"{facts.levels(b)}; decided at {facts.thresholds(b)}"
    held_order, unranked = HELD if b.order.policy == "none" else "", HELD if b.unranked else ""
    lines = [
        ("order", f"{b.order.policy} ({facts.order_sentence(b)})", held_order),
        ("", f"{family}; {levels}", ""),
        ("weights", facts.weights(b), ""),
        *(("", each, "") for each in suite.members(b)),
        ("titles", facts.titles(b), ""),
        ("aliases", facts.aliases(b), ""),
        ("epochs", facts.epochs(b), unranked),
        ("order", facts.order_warning(b), HELD if b.order.suspect else ""),
        ("items", facts.coverage(b), HELD),
        ("clusters", facts.cluster_warning(b), HELD),
        ("conflicts", facts.conflicts(b), HELD),
    ]
    return [Text(f"{label}: {safe(text)}" if label else safe(text), tone) for label, text, tone in lines if text]


def _details(
    benchmark: BenchmarkReport, console: Console, extra: Extra | None, limit: int, low_coverage: float, *, verbose: bool
) -> Group:
    """Build what the overview leaves to a second look: the pairs; and with `verbose` all columns, reasons, counts and levels."""
    glyphs, pairs, goal = glyphs_for(console), benchmark.pairs[:limit], benchmark.goal

    def table(part: Table) -> list[Text]:
        return lines(part, console.width, ascii_only=console.options.ascii_only)

    parts: list[RenderableType] = [Text()]
    if verbose:
        parts += Ranking(benchmark, console, None, limit, low_coverage).counts()
        parts += [*_omitted(len(benchmark.models) - limit, "models"), Text()]
    if verbose and goal is not None:
        parts += [*table(goal_runs(goal, limit)), Text()]
        parts += [] if goal.committed is None else [Text(goal.committed.text), Text()]
    if not pairs:
        return Group(*parts, Text("No pair shares an item yet."))
    parts += table(verdicts(benchmark, pairs, glyphs, extra))
    parts += [*_omitted(len(benchmark.pairs) - limit, "pairs"), Text(), _legend(pairs, glyphs)]
    if not verbose:
        return Group(*parts)
    parts += [Text(), *(_reason(pair, glyphs) for pair in pairs), Text()]
    parts += [*table(procedures(benchmark)), Text(), *assumptions(benchmark)]
    why = facts.registration(benchmark)
    parts += [] if why is None else [Text(why)]
    if len(benchmark.models) > _SHORT:
        parts += [Text(), *result(benchmark, glyphs)]
    return Group(*parts)


def _legend(pairs: Sequence[PairReport], glyphs: Glyphs) -> Text:
    """Explain the signs that a table of pairs shows, and its procedures."""
    text = Text("Signs: ", UNDECIDED)
    for sign, colour, words in pair_signs(pairs, glyphs):
        text.append(sign, colour).append(f" {words}  ")
    text.rstrip()
    return text.append("\n" + "\n".join(note.text for note in legend().notes))


def _reason(pair: PairReport, glyphs: Glyphs) -> Text:
    glyph, _, colour = status_glyph(pair, glyphs)
    line = Text(glyph, style="").append(f" {safe(pair.model_a)} {relation(pair)} {safe(pair.model_b)}: ", "bold")
    line.stylize(colour, 0, len(glyph))
    return line.append(safe(pair.reason))


def _omitted(count: int, what: str) -> list[Text]:
    text = f"... {count:,} more {what} are not shown; --format json, csv or html lists all."
    return [Text(text, style=UNDECIDED)] if count > 0 else []

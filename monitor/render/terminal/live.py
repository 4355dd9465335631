"""A live screen: the result, the ranking with its ties, the latest verdict changes and the progress of reading."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Final, Self

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from monitor.render.pairs import Extra, verdicts
from monitor.render.signs import DECIDED, HELD, UNDECIDED, Glyphs, in_name_order
from monitor.render.terminal.layout import glyphs_for, wrap
from monitor.render.terminal.plain import LiveStatus, Progress, in_verdict_order, status_sentence
from monitor.render.terminal.ranking import Ranking
from monitor.render.terminal.report import result, title
from monitor.render.terminal.tables import lines as table_lines
from monitor.view.values import TieBands
from monitor.words import header as facts
from monitor.words.flags import named_flags
from monitor.words.numbers import safe
from monitor.words.reading import first
from schemas.results.changes import AnyChange, DriftChange
from schemas.results.report import BenchmarkReport, Report

REFRESH_PER_SECOND: Final = 4
_FEED: Final = 50
_FEED_ROOM: Final = 4  # lines of the verdict changes, with the blank line above
_FEED_LEAST: Final = 2  # the same where the result needs the room: no blank line, and the latest change only
_TITLE_LINES: Final = 3  # of the pairs: two lines of titles, and a rule
_WRAPPED_ROOM: Final = 28  # lines from which long lines of the result are wrapped
_BENCHMARK_ROOM: Final = 12  # lines below which a further benchmark is omitted
_BAR_WIDTH: Final = 40

_Lines = list[list[Segment]]


class LiveView:
    """A screen that fits the terminal and refreshes at most four times a second."""

    shows_reports = True

    def __init__(self, console: Console, *, clock: Callable[[], float] = monotonic, low_coverage: float = 0.0) -> None:
        self._console, self._low_coverage = console, low_coverage
        self._progress = Progress(clock)
        self._report: Report | None = None
        self._status = LiveStatus()
        self._extra: Extra | None = None
        self._ties: Mapping[str, TieBands] = {}
        self._feed: tuple[AnyChange, ...] = ()
        self._live = Live(
            console=console, screen=True, refresh_per_second=REFRESH_PER_SECOND, get_renderable=lambda: self
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    # A separate thread draws the screen: `update` and `change` replace values, and never modify them.

    def update(
        self,
        report: Report | None,
        status: LiveStatus,
        extra: Extra | None = None,
        ties: Mapping[str, TieBands] | None = None,
    ) -> None:
        """Show this report and status at the next refresh; `ties` are by benchmark, and without them none is drawn."""
        self._progress.see(status)
        if report is not None:
            report = Report(benchmarks=[named_flags(benchmark) for benchmark in report.benchmarks])
        self._report, self._status, self._extra, self._ties = report, status, extra, ties or {}

    def change(self, change: AnyChange) -> None:
        """Add a verdict change to the feed."""
        self._feed = (change, *self._feed)[:_FEED]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw within the terminal: every line cut to the width, and at most the height in lines."""
        width, height = max(1, options.max_width), max(1, options.size.height)
        lines = self._draw(console, options.update(width=width, height=None), height)
        for position, line in enumerate(lines[:height]):
            if position:
                yield Segment.line()
            yield from Segment.adjust_line_length(line, width, pad=False)

    def _draw(self, console: Console, options: ConsoleOptions, height: int) -> _Lines:
        status = self._status_lines(console, options)
        benchmarks = self._report.benchmarks if self._report else []
        room = height - len(status)
        if not benchmarks:
            return [*_lines(console, options, Text("waiting for the first result", style=UNDECIDED)), *status]
        on_screen = benchmarks[: max(1, room // _BENCHMARK_ROOM)]
        body: _Lines = []
        hidden = len(benchmarks) - len(on_screen)
        for position, benchmark in enumerate(on_screen):
            share = (room - len(body) - (hidden > 0)) // (len(on_screen) - position)
            body += self._benchmark(console, options, benchmark, share)
        if hidden:
            body += _lines(
                console,
                options,
                Text(f"... {hidden:,} more benchmarks; see the page or run rankwatch report", style=UNDECIDED),
            )
        return [*body[:room], *[[] for _ in range(room - len(body))], *status]

    def _benchmark(self, console: Console, options: ConsoleOptions, benchmark: BenchmarkReport, room: int) -> _Lines:
        """Draw the result, the pairs of the extra column, the ranking with its ties, and the latest verdict changes."""
        covered = [pair for pair in benchmark.pairs if self._extra and in_name_order(pair) in self._extra.cells]
        rows = _TITLE_LINES + len(covered) if covered else 1 + len(benchmark.models)
        lines = _lines(console, options, *self._head(console, benchmark, room, room - rows - _FEED_LEAST - 1), Text())
        if covered:
            shown = max(1, min(len(covered), room - len(lines) - _FEED_ROOM - _TITLE_LINES))
            part = verdicts(benchmark, covered[:shown], glyphs_for(console), self._extra)
            table = table_lines(part, options.max_width, ascii_only=console.options.ascii_only)
            lines += _lines(console, options, *table, *_more(len(covered) - shown, "pairs"), Text())
        rest = room - len(lines) - _FEED_ROOM
        if not covered:  # a line that explains the ties, and each model, come before further changes
            rest = max(rest, min(rows + 1, room - len(lines) - _FEED_LEAST))
        if not covered or rest > len(benchmark.models):
            lines += _lines(console, options, *self._ranking(console, benchmark, rest))
            lines += [[]] if room - len(lines) > _FEED_LEAST else []
        changes = [change for change in self._feed if change.benchmark == benchmark.benchmark]
        return [*lines, *_lines(console, options, *_feed(changes[:room], glyphs_for(console)))][:room]

    def _ranking(self, console: Console, benchmark: BenchmarkReport, room: int) -> list[Text]:
        """Return the ranking; rules and the explanation of the ties, where they have room."""
        every = len(benchmark.models)
        shown = every if every < room else max(1, room - 2)
        ranking = Ranking(benchmark, console, self._ties.get(benchmark.benchmark), shown, self._low_coverage)
        spare = room - 1 - shown
        rules = ranking.rules if len(ranking.rules) <= spare else ()
        lines = [*ranking.table(rules), *_more(every - shown, "models")]
        key = ranking.key(with_rules=bool(rules)) if every == shown else []
        return [*lines, *(key if len(lines) + len(key) <= room else [])]

    def _head(self, console: Console, benchmark: BenchmarkReport, room: int, spare: int) -> list[Text]:
        """Return the name, the result and the assumption; where room is scarce, the lines that do not fit into `spare` are cut."""
        assumed = facts.assumed(benchmark, several=self._report is not None and len(self._report.benchmarks) > 1)
        head = [*title(benchmark), *(Text(safe(text), HELD) for text in first(benchmark, live=True))]
        head += result(benchmark, glyphs_for(console))
        head += [Text(safe(assumed), UNDECIDED)] if assumed else []
        lines: list[Text] = []
        spare -= len(head)
        for line in head:
            wrapped = wrap(line, console, 2)
            if room >= _WRAPPED_ROOM or len(wrapped) - 1 <= spare:
                spare -= len(wrapped) - 1
            else:
                line.no_wrap, line.overflow = True, "ellipsis"
                wrapped = [line]
            lines += wrapped
        return lines

    def _status_lines(self, console: Console, options: ConsoleOptions) -> _Lines:
        status = self._status
        text = Text(status_sentence(status), no_wrap=True, overflow="ellipsis")
        if status.rejected:
            text.highlight_words([f"{status.rejected:,} rejected"], HELD)
        lines = _lines(console, options, text)[:1]
        if status.caught_up or status.share is None:
            return lines
        bar = Table.grid(padding=(0, 2, 0, 0))
        bar.add_row(
            ProgressBar(
                total=1.0,
                completed=status.share,
                width=min(_BAR_WIDTH, max(4, options.max_width // 2)),
                complete_style=DECIDED,
            ),
            Text(self._progress.sentence(status), no_wrap=True),
        )
        return [*_lines(console, options, bar)[:1], *lines]


def _more(count: int, what: str) -> list[Text]:
    return [Text(f"... {count:,} more {what}", style=UNDECIDED)] if count > 0 else []


def _feed(changes: Sequence[AnyChange], glyphs: Glyphs) -> list[Text]:
    if not changes:
        return [Text("verdict changes", style="bold"), Text("none so far", style=UNDECIDED)]
    return [
        Text("verdict changes, latest first (at n)", style="bold"),
        *(_change(change, glyphs) for change in changes),
    ]


def _change(change: AnyChange, glyphs: Glyphs) -> Text:
    """Return a decision as one line, and a change of a decision as its whole sentence."""
    if isinstance(change, DriftChange):
        return Text(f"{glyphs.held} {safe(change.sentence)}", HELD)
    if change.kind != "decided":
        sign = glyphs.reversed if change.kind == "reversed" else glyphs.held
        return Text(f"{sign} {safe(change.sentence)}", HELD)
    a, b = in_verdict_order(change)
    headline = change.procedure == "anytime_family"
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{glyphs.decided} {'family' if headline else 'pair  '}", DECIDED if headline else UNDECIDED)
    return text.append(f" {change.evidence.n:>9,}  {safe(a)} > {safe(b)}", "" if headline else UNDECIDED)


def _lines(console: Console, options: ConsoleOptions, *parts: Text | Table | Group) -> _Lines:
    lines: _Lines = []
    for part in parts:
        lines += console.render_lines(part, options, pad=False)
    return lines

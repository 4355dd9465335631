"""A live screen: pairs, ranking, the latest verdict changes and the progress of reading."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from time import monotonic
from typing import Final, Self

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from monitor.render.flags import named_flags
from monitor.render.numbers import safe
from monitor.render.signs import DECIDED, HELD, UNDECIDED, Glyphs, in_name_order
from monitor.render.terminal.layout import glyphs_for
from monitor.render.terminal.plain import LiveStatus, Progress, status_sentence
from monitor.render.terminal.report import assumptions, result, title
from monitor.render.terminal.tables import Extra, models_table, pairs_table
from schemas.changes import VerdictChange
from schemas.report import BenchmarkReport, PairReport, Report

REFRESH_PER_SECOND: Final = 4
_FEED: Final = 50
_BOTTOM_ROOM: Final = 4
_BENCHMARK_ROOM: Final = 9  # lines below which a further benchmark is omitted
_FEED_ROOM: Final = 40  # columns below which the feed comes under the ranking, not next to it
_RANKING_ROOM: Final = 28
_BETWEEN: Final = 3
_BAR_WIDTH: Final = 40

_Lines = list[list[Segment]]


class LiveView:
    """A screen that fits the terminal and refreshes at most four times a second.

    Parameters
    ----------
    console : Console
        A terminal.
    clock : callable
        Monotonic seconds; they measure the rate of catching up.
    low_coverage : float
        Share of the items below which a model is marked.
    """

    shows_reports = True

    def __init__(self, console: Console, *, clock: Callable[[], float] = monotonic, low_coverage: float = 0.0) -> None:
        self._console, self._low_coverage = console, low_coverage
        self._progress = Progress(clock)
        self._report: Report | None = None
        self._status = LiveStatus()
        self._extra: Extra | None = None
        self._feed: tuple[VerdictChange, ...] = ()
        self._live = Live(
            console=console, screen=True, refresh_per_second=REFRESH_PER_SECOND, get_renderable=lambda: self
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    # A separate thread draws the screen: `update` and `change` replace values, and never modify them.

    def update(self, report: Report | None, status: LiveStatus, extra: Extra | None = None) -> None:
        """Show this report and status at the next refresh."""
        self._progress.see(status)
        if report is not None:
            report = Report(benchmarks=[named_flags(benchmark) for benchmark in report.benchmarks])
        self._report, self._status, self._extra = report, status, extra

    def change(self, change: VerdictChange) -> None:
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
        width = options.max_width
        pairs = _displayed_pairs(benchmark, self._extra)
        order = assumptions(benchmark)[0]
        order.stylize(UNDECIDED)
        head = [*title(benchmark), *result(benchmark, glyphs_for(console)), order]
        for line in head:
            line.no_wrap, line.overflow = True, "ellipsis"
        top = [*_lines(console, options, *head), []]
        # The ranking and the feed keep a quarter of the lines; the pairs take what they need of the rest.
        pair_rows = max(1, min(len(pairs), room - len(top) - 4 - max(_BOTTOM_ROOM, room // 4)))
        table, _ = pairs_table(benchmark, pairs[:pair_rows], console, width, self._extra)
        top += _lines(console, options, table)
        if len(pairs) > pair_rows:
            top += _lines(console, options, Text(f"... {len(pairs) - pair_rows:,} more pairs", style=UNDECIDED))
        rest = room - len(top) - 1
        if rest < 3:
            return top[:room]
        return [*top, [], *self._bottom(console, options, benchmark, rest)]

    def _bottom(self, console: Console, options: ConsoleOptions, benchmark: BenchmarkReport, room: int) -> _Lines:
        """Draw the ranking, and the feed next to it or, on a narrow terminal, below it."""
        width, ascii_only = options.max_width, options.ascii_only
        models = benchmark.models[: max(1, room - 2)]
        changes = [change for change in self._feed if change.benchmark == benchmark.benchmark][:room]
        feed = _feed(changes, glyphs_for(console))
        ranking_room = width - max(_FEED_ROOM, width * 9 // 20) - _BETWEEN
        wide = width if ranking_room < _RANKING_ROOM else ranking_room
        table = models_table(models, wide, ascii_only=ascii_only, low_coverage=self._low_coverage)
        ranking = _lines(console, options, table)
        if ranking_room < _RANKING_ROOM:
            return [*ranking, [], *_lines(console, options, *feed)][:room]
        taken = max(Segment.get_line_length(line) for line in ranking) + _BETWEEN
        right = _lines(console, options.update(width=width - taken), *feed)
        empty: list[Segment] = []
        both = zip_longest(ranking[:room], right[:room], fillvalue=empty)
        return [[*Segment.adjust_line_length(left, taken), *other] for left, other in both]

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


def _displayed_pairs(benchmark: BenchmarkReport, extra: Extra | None) -> Sequence[PairReport]:
    """Return the pairs that the extra column covers, else the neighbours in rank."""
    covered = [pair for pair in benchmark.pairs if extra and in_name_order(pair) in extra.cells]
    return covered or [pair for pair in benchmark.pairs if pair.adjacent] or benchmark.pairs


def _feed(changes: Sequence[VerdictChange], glyphs: Glyphs) -> list[Text]:
    if not changes:
        return [Text("verdict changes", style="bold"), Text("none so far", style=UNDECIDED)]
    return [
        Text("verdict changes, latest first (at n)", style="bold"),
        *(_change(change, glyphs) for change in changes),
    ]


def _change(change: VerdictChange, glyphs: Glyphs) -> Text:
    """Return a decision as one line, and a change of a decision as its whole sentence."""
    if change.kind != "decided":
        sign = glyphs.reversed if change.kind == "reversed" else glyphs.held
        return Text(f"{sign} {safe(change.sentence)}", HELD)
    a, b = (change.model_b, change.model_a) if change.after == "b" else (change.model_a, change.model_b)
    headline = change.procedure == "anytime_family"
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{glyphs.decided} {'family' if headline else 'pair  '}", DECIDED if headline else UNDECIDED)
    return text.append(f" {change.evidence.n:>9,}  {safe(a)} > {safe(b)}", "" if headline else UNDECIDED)


def _lines(console: Console, options: ConsoleOptions, *parts: Text | Table | Group) -> _Lines:
    lines: _Lines = []
    for part in parts:
        lines += console.render_lines(part, options, pad=False)
    return lines

"""The answer on one screen: the result, the ranking with its ties, what would separate them, and what to check before quoting it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from monitor.render import battles
from monitor.render import header as facts
from monitor.render import numbers as form
from monitor.render.signs import DECIDED, HELD, UNDECIDED, decision_glyph, settled_glyph
from monitor.render.terminal.layout import ellipsis_of, glyphs_for, shorten
from monitor.report.sentences import counted
from monitor.report.tie_bands import TieBands
from schemas.report import BenchmarkReport, ModelReport, PairReport

_ONE_SCREEN: Final = 10
"""Models that fit one screen; more take two."""

_SEPARATED: Final = 8
"""Ties listed with what would separate them."""

_NAME_ROOM: Final = 16
_ENDLESS: Final = 10**6
_BAR: Final = 10

_NARROW: Final = 100
"""Columns below which the table has less space between its columns."""

_WIDE: Final = 120
"""Columns from which scores are drawn, with their intervals."""


@dataclass(frozen=True)
class _Marks:
    """The signs that draw ties and ranges, one cell each."""

    begin: str
    within: str
    end: str
    alone: str
    passed: str
    lacking: str
    with_lacking: str
    rule: str
    range: str
    place: str
    minus: str
    dash: str
    full: str
    empty: str


_UNICODE: Final = _Marks("╻", "┃", "╹", "○", "┊", "▸", "◦", "─", "─", "●", "−", "–", "█", "·")
_ASCII: Final = _Marks(",", "|", "'", "o", ":", ">", ".", "-", "-", "o", "-", "-", "#", ".")


def overview(
    benchmark: BenchmarkReport,
    console: Console,
    ties: TieBands | None,
    *,
    head: Sequence[Text],
    limit: int,
    low_coverage: float,
) -> list[Text]:
    """Build the lines of a benchmark.

    Parameters
    ----------
    benchmark : BenchmarkReport
    console : Console
        A terminal's height determines what is drawn: up to ten models fit one screen, and thirty fit two. Elsewhere nothing is omitted.
    ties : TieBands or None
        None where they are not known: they are not drawn.
    head : sequence of Text
        The lines above: the name, and the result.
    limit : int
        Models at most.
    low_coverage : float
        Share of the items below which a model is marked.
    """
    screen = _Screen(benchmark, console, ties, limit, low_coverage)
    models = len(screen.models)

    def wrapped(lines: Sequence[Text], indent: int = 0) -> list[Text]:
        return [part for line in lines for part in _wrap(line, console, indent)]

    top, key, checks = wrapped(head, 2), wrapped([*screen.key(), *screen.assumptions()]), wrapped(screen.checks(), 2)
    following = wrapped([screen.next()])
    room = max(24, console.height) * (1 if models <= _ONE_SCREEN else 2) - 1 if console.is_terminal else _ENDLESS
    spare = room - sum(map(len, (top, key, checks, following))) - models - 1
    if spare < 0:
        checks = wrapped(screen.checks(with_harmless=False), 2)
    rules = screen.rules if len(screen.rules) <= spare else ()
    if not rules:
        key = wrapped([*screen.key(with_rules=False), *screen.assumptions()])
    spare -= len(rules)
    separated = screen.separated(spare - 2) if models > _ONE_SCREEN else []
    spare -= len(separated)
    blanks = [Text()] * min(4, max(0, spare))
    lines = top
    for part in (screen.table(rules), key, [*separated, *checks], following):
        lines += [*(blanks and part and [blanks.pop()]), *part]
    return lines


class _Screen:
    """The parts of the overview of one benchmark."""

    def __init__(
        self, benchmark: BenchmarkReport, console: Console, ties: TieBands | None, limit: int, low_coverage: float
    ) -> None:
        self.benchmark, self.ties, self.low_coverage = benchmark, ties, low_coverage
        self.models = benchmark.models[:limit]
        self.width, self.glyphs = console.width, glyphs_for(console)
        self.ascii = console.options.ascii_only
        self.marks = _ASCII if self.ascii else _UNICODE
        names = {model.model for model in benchmark.models}
        current = [p for p in benchmark.pairs if p.adjacent and p.status != "superseded"]
        self.steps = {p.model_a: p for p in current if {p.model_a, p.model_b} <= names}

    # --- the table ------------------------------------------------------------------------------------------------------------------

    @property
    def rules(self) -> tuple[int, ...]:
        """Positions after which no tie crosses, within the models shown."""
        return () if self.ties is None else tuple(k for k in self.ties.rules if k < len(self.models) - 1)

    def table(self, rules: Sequence[int]) -> list[Text]:
        """Build the ranking, a rule after each of these positions."""
        columns = self._columns()
        widths = {
            key: max([cell_len(title), *(cell.cell_len for cell in cells)])
            for key, (title, cells, _) in columns.items()
        }
        gap = 1 if self.width < _NARROW else 2
        fixed = sum(widths.values()) - widths["model"] + gap * (len(columns) - 1)
        for key in ("plot", "strip", "won", "signs", "more", "range"):
            if key in columns and fixed + min(widths["model"], 28 if key == "plot" else _NAME_ROOM) > self.width:
                fixed -= widths.pop(key) + gap
                del columns[key]
        room = min(widths["model"], max(4, self.width - fixed))
        columns["model"] = ("model", [self._name(model, room) for model in self.models], False)
        widths["model"] = room
        lines = []
        for k in range(-1, len(self.models)):
            line = Text(no_wrap=True, overflow="crop")
            for place, (key, (title, cells, right)) in enumerate(columns.items()):
                cell = Text(title, UNDECIDED) if k < 0 else cells[k]
                space = " " * (widths[key] - cell.cell_len)
                line.append(" " * gap if place else "")
                line.append_text(Text(space).append_text(cell) if right else cell.copy().append(space))
            line.rstrip()
            line.truncate(self.width)
            lines.append(line)
            if k in rules:
                lines.append(
                    Text(self.marks.rule * min(self.width, sum(widths.values()) + gap * (len(columns) - 1)), DECIDED)
                )
        return lines

    def _columns(self) -> dict[str, tuple[str, list[Text], bool]]:
        models = self.models
        columns: dict[str, tuple[str, list[Text], bool]] = {}
        if self.ties is not None and self.ties.bands is not None:
            columns["ties"] = ("ties", [self._lanes(k) for k in range(len(models))], False)
        columns["ranks"] = ("ranks", [Text(form.ranks(m, self.marks.dash), "bold") for m in models], True)
        if len(self.benchmark.models) > 1:
            columns["strip"] = self._strip()
        columns["model"] = ("model", [self._name(m, 10**4) for m in models], False)
        if self.benchmark.battles is None:
            columns["score"] = ("score", [Text(form.percent(m.mean)) for m in models], True)
        else:
            ratings = {each.model: each for each in self.benchmark.battles.ratings}
            columns["score"] = ("rating", [Text(battles.rating(ratings[m.model])) for m in models], True)
            columns["range"] = (
                "interval",
                [Text(battles.rating_range(ratings[m.model]), UNDECIDED) for m in models],
                True,
            )
            columns["won"] = ("won %", [Text(form.percent(m.mean)) for m in models], True)
        plot = self._plot()
        if plot is not None:
            columns["plot"] = plot
        if self.steps:
            steps = [
                self.steps.get(m.model) if m is not models[-1] or len(models) < len(self.benchmark.models) else None
                for m in models
            ]
            columns["step"] = ("to next", [self._gap(pair) for pair in steps], True)
            columns["more"] = ("", [self._more(pair) for pair in steps], True)
            g = self.glyphs
            columns["signs"] = (f"{g.settled} {g.decided} {g.resolved}", [self._signs(pair) for pair in steps], False)
        return columns

    def _lanes(self, k: int) -> Text:
        """Draw the bands at one model: one cell a lane, the first one for models that lack items."""
        assert self.ties is not None
        assert self.ties.bands is not None
        marks, text = self.marks, Text()
        if self.ties.lacking:
            tied = any(k in others for others in self.ties.lacking.values())
            text.append(marks.lacking if k in self.ties.lacking else marks.with_lacking if tied else " ", HELD)
        cells = [(" ", "")] * self.ties.lanes
        for band in self.ties.bands:
            first, last = band.members[0], band.members[-1]
            if first <= k <= last:
                sign = (
                    marks.alone
                    if first == last
                    else marks.passed
                    if k not in band.members
                    else marks.begin
                    if k == first
                    else marks.end
                    if k == last
                    else marks.within
                )
                cells[band.lane] = (sign, DECIDED if first == last else "")
        for cell in cells:
            text.append(*cell)
        return text

    def _strip(self) -> tuple[str, list[Text], bool]:
        """Draw the range of ranks of each model, from rank 1 to the last."""
        total = len(self.benchmark.models)
        room = min(total, 10 if self.width < _NARROW else 20)

        def at(rank: int) -> int:
            return (rank - 1) * (room - 1) // (total - 1)

        cells = []
        for model in self.models:
            low, high, place = at(model.rank_low), at(model.rank_high), at(model.rank)
            cell = Text()
            for k in range(room):
                if k == place:
                    cell.append(self.marks.place, "bold")
                else:
                    cell.append(self.marks.range if low <= k <= high else " ", UNDECIDED)
            cell.rstrip()
            cells.append(cell)
        last = str(total)
        return "1" + " " * max(1, room - 1 - len(last)) + last, cells, False

    def _plot(self) -> tuple[str, list[Text], bool] | None:
        """Draw the scores with their intervals, on wide terminals."""
        known = [m for m in self.models if m.mean is not None and m.mean_low is not None and m.mean_high is not None]
        if self.width < _WIDE or not known:
            return None
        step = 5
        least = int(100 * min(m.mean_low or 0 for m in known)) // step * step
        most = -(-int(100 * max(m.mean_high or 0 for m in known) + 1) // step) * step
        room = min(40, 21 + max(0, self.width - 130))

        def at(share: float) -> int:
            return min(room - 1, max(0, round((100 * share - least) / max(most - least, 1) * (room - 1))))

        cells = []
        for m in self.models:
            cell = Text()
            if m.mean is not None:
                low, high, place = at(m.mean_low or m.mean), at(m.mean_high or m.mean), at(m.mean)
                for k in range(high + 1):
                    sign = self.marks.place if k == place else self.marks.range if k >= low else " "
                    cell.append(sign, "" if k == place else UNDECIDED)
            cells.append(cell)
        right = f"{most} %"
        return f"{least}".ljust(room - len(right)) + right, cells, False

    def _name(self, model: ModelReport, room: int) -> Text:
        mark = f" {model.coverage:.0%}" if model.coverage < self.low_coverage else ""
        return Text(shorten(model.model, room - len(mark), ellipsis_of(ascii_only=self.ascii))).append(mark, HELD)

    def _gap(self, pair: PairReport | None) -> Text:
        if pair is None or pair.gap is None:
            return Text()
        return Text(form.points(pair.gap).replace("-", self.marks.minus), HELD if pair.gap < 0 else _colour(pair))

    def _more(self, pair: PairReport | None) -> Text:
        """Return the verdict on a step, or how many more items it needs at the present estimate."""
        if pair is None:
            return Text()
        if pair.status == "decided":
            return Text("decided", DECIDED) if pair.decided.anytime_family == "a" else Text("decided against", HELD)
        if pair.status in {"held", "invalidated", "equivalent"}:
            return Text(pair.status, UNDECIDED if pair.status == "equivalent" else HELD)
        more = pair.items_to_decision
        if more is None or pair.n == 0 or more < 1:
            return Text("undecided", UNDECIDED)
        return Text(form.more(more), UNDECIDED)

    def _signs(self, pair: PairReport | None) -> Text:
        if pair is None:
            return Text()
        g = self.glyphs
        resolved = pair.resolved.fixed_n
        third = (
            (g.missing, UNDECIDED)
            if resolved is None
            else (g.resolved, DECIDED)
            if resolved
            else (g.unresolved, UNDECIDED)
        )
        text = Text()
        for sign in (settled_glyph(pair, g), decision_glyph(pair, "anytime_family", g), third):
            text.append(*sign).append(" ")
        text.rstrip()
        return text

    # --- below the table ------------------------------------------------------------------------------------------------------------

    def key(self, *, with_rules: bool = True) -> list[Text]:
        """Explain the ties, and which models are shown."""
        lines = []
        marks, ties, models = self.marks, self.ties, self.benchmark.models
        if ties is not None and ties.bands is None:
            lines.append(Text("Too many ties overlap to be drawn; the ranges of ranks include them.", UNDECIDED))
        elif ties is not None and len(models) > 1:
            text = Text(f"{marks.within} models on one line are tied", UNDECIDED)
            if any(not set(range(b.members[0], b.members[-1])) <= set(b.members) for b in ties.bands or ()):
                text.append(f" ({marks.passed} is not)")
            text.append(f"; {marks.alone} is tied with none")
            but = f" but {marks.with_lacking}" if ties.lacking else ""
            if self.rules:
                text.append(f"; no tie{but} crosses {marks.rule * 3}" if with_rules else "")
            lines.append(text.append("."))
            if ties.lacking:
                names = [
                    f"{form.safe(models[k].model)} ({models[k].coverage:.0%} of the items)"
                    for k in list(ties.lacking)[:3]
                ]
                more = f" and {len(ties.lacking) - 3:,} more" if len(ties.lacking) > 3 else ""
                lines.append(Text(f"{marks.with_lacking} may be tied with {', '.join(names)}{more}.", HELD))
        if len(self.models) < len(models):
            lines.append(
                Text(
                    f"The first {len(self.models):,} of {len(models):,} models; ranks and verdicts are over all of them "
                    "(--top N shows more).",
                    UNDECIDED,
                )
            )
        return lines

    def separated(self, room: int) -> list[Text]:
        """List the ties between neighbours that need the fewest items, in at most `room` lines."""
        ranks = {model.model: model.rank for model in self.benchmark.models}
        ties = [
            pair
            for pair in self.steps.values()
            if pair.status in {"collecting", "exhausted"}
            and pair.items_to_decision is not None
            and pair.items_to_decision >= 1
        ]
        ties.sort(key=lambda pair: pair.items_to_decision or 0)
        shown = ties[: min(_SEPARATED, max(0, room - 2))]
        if len(shown) < min(3, len(ties)) or not ties:
            return []
        rows = [
            (f"{ranks[p.model_a]} v {ranks[p.model_b]}", self._bar(p), form.more(p.items_to_decision or 0))
            for p in shown
        ]
        place, more = (max(cell_len(row[k]) for row in rows) for k in (0, 2))
        names = min(
            max(cell_len(form.safe(p.model_a)) + cell_len(form.safe(p.model_b)) + 3 for p in shown),
            max(9, self.width - place - more - _BAR - 15),
        )
        title = Text("What would separate the ties", "bold").append("  (bar: evidence, of what decides)", "not bold")
        title.truncate(self.width)
        lines = [title]
        for pair, (where, bar, needs) in zip(shown, rows, strict=True):
            line = Text(f"{where:>{place + 1}}  ").append_text(self._both(pair, names))
            line.append(f"  {form.points(pair.gap).replace('-', self.marks.minus):>6}  ").append(
                f"{bar:{_BAR}}  ", UNDECIDED
            )
            lines.append(line.append(f"{needs:>{more}}"))
        if len(ties) > len(shown):
            least = form.more(ties[len(shown)].items_to_decision or 0).removesuffix(" more")
            lines.append(
                Text(f" {counted(len(ties) - len(shown), 'further tie')}: {least} or more items each.", UNDECIDED)
            )
        return lines

    def _bar(self, pair: PairReport) -> str:
        """Draw the evidence as a share of what decides the pair family-wise."""
        p, threshold = pair.p_anytime, pair.family_threshold
        if p is None or threshold is None or not 0 < threshold < 1:
            return ""
        share = 1.0 if p <= 0 else max(0.0, min(1.0, log(p) / log(threshold)))
        full = min(_BAR - 1, int(_BAR * share)) if isfinite(share) else 0
        return self.marks.full * full + self.marks.empty * (_BAR - full)

    def _both(self, pair: PairReport, room: int) -> Text:
        a, b = form.safe(pair.model_a), form.safe(pair.model_b)
        share, ellipsis = room - 3, ellipsis_of(ascii_only=self.ascii)
        if cell_len(a) + cell_len(b) > share:
            of_a = min(cell_len(a), max(share // 2, share - cell_len(b)))
            a, b = shorten(a, of_a, ellipsis), shorten(b, share - of_a, ellipsis)
        text = Text(f"{a} ~ {b}")
        return text.append(" " * (room - text.cell_len))

    def checks(self, *, with_harmless: bool = True) -> list[Text]:
        """List what to check before the ranking is quoted, and on request what changes no verdict."""
        low = sum(m.coverage < self.low_coverage for m in self.models)
        marked = self.ties.lacking if self.ties is not None and self.ties.bands is not None else {}
        texts = facts.short_checks(self.benchmark)
        order = facts.harmless_order(self.benchmark) if with_harmless else None
        texts += [] if order is None else [order]
        if low > len(marked):
            texts.insert(0, facts.low_coverage(low, self.low_coverage))
        return [Text("! ", HELD).append(form.safe(text), "default") for text in texts]

    def assumptions(self) -> list[Text]:
        """Return what the verdicts assume, once."""
        text, weights = facts.assumed(self.benchmark), facts.weights(self.benchmark)
        lines = [] if weights is None else [Text(form.safe(f"Scores are weighted: {weights}."), UNDECIDED)]
        lines += [Text(form.safe(each), UNDECIDED) for each in facts.members(self.benchmark)]
        return [*lines, *([Text(form.safe(text), UNDECIDED)] if text else [])]

    def next(self) -> Text:
        """Return which flags show more."""
        return Text("Next: ", "bold").append(
            "rankwatch report PATH --verbose (reasons), --pairs all, --format html", "not bold"
        )


def _colour(pair: PairReport) -> str:
    return DECIDED if pair.status == "decided" else ""


def _wrap(line: Text, console: Console, indent: int = 0) -> list[Text]:
    """Wrap a line to the width; all but its first line are indented."""
    width = console.width
    if line.cell_len <= width:
        return [line]
    first, *rest = line.wrap(console, width)
    if not rest or width <= 3 * indent:
        return [first, *rest]
    remaining = line[len(first.plain.rstrip()) :]
    remaining = remaining[len(remaining.plain) - len(remaining.plain.lstrip()) :]
    return [first, *(Text(" " * indent).append_text(part) for part in remaining.wrap(console, width - indent))]
